"""Every legal move of a job, as a table. What is not in it cannot happen."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from mainspring.model.job import JobState


class Verb(StrEnum):
    """What moves a job."""

    ENQUEUE = "enqueue"
    DUE = "run_at comes"
    """Nobody's act: a delayed job is ready once the store's clock has reached its `run_at`."""
    HASTEN = "hasten"
    CLAIM = "claim"
    SUCCEED = "settle: succeeded"
    FAIL = "settle: failed"
    DIE = "settle: dead"
    RELEASE = "settle: released"
    SNOOZE = "settle: snoozed"
    DISCARD = "settle: discarded"
    CRASH = "settle: crashed"
    REAP = "reap"
    EXPIRE = "expire"
    """Nobody has claimed it by its deadline."""
    CANCEL = "cancel"
    EDIT = "edit"
    REPLAY = "replay"
    PURGE = "purge"


class WorkflowVerb(StrEnum):
    """What moves jobs of workflows alone: their steps, and the jobs that workflows are."""

    START = "settle: started"
    """The job is a workflow, which begins, and with which it ends."""
    FINISH = "its workflow ends"
    EXPIRE = "its workflow's deadline passes"
    RETRY = "its workflow is retried"


class Move(NamedTuple):
    """One legal move. No source: the job comes into being. No target: it leaves the record."""

    source: JobState | None
    verb: Verb | WorkflowVerb
    target: JobState | None


MOVES = (
    Move(None, Verb.ENQUEUE, JobState.READY),
    Move(None, Verb.ENQUEUE, JobState.DELAYED),
    Move(JobState.DELAYED, Verb.DUE, JobState.READY),
    Move(JobState.DELAYED, Verb.HASTEN, JobState.READY),
    Move(JobState.READY, Verb.CLAIM, JobState.RUNNING),
    Move(JobState.RUNNING, Verb.SUCCEED, JobState.SUCCEEDED),
    Move(JobState.RUNNING, Verb.FAIL, JobState.DELAYED),
    Move(JobState.RUNNING, Verb.FAIL, JobState.READY),
    Move(JobState.RUNNING, Verb.DIE, JobState.DEAD),
    Move(JobState.RUNNING, Verb.RELEASE, JobState.READY),
    Move(JobState.RUNNING, Verb.RELEASE, JobState.DELAYED),
    Move(JobState.RUNNING, Verb.SNOOZE, JobState.DELAYED),
    Move(JobState.RUNNING, Verb.SNOOZE, JobState.READY),
    Move(JobState.RUNNING, Verb.DISCARD, JobState.DISCARDED),
    Move(JobState.RUNNING, Verb.CRASH, JobState.DELAYED),
    Move(JobState.RUNNING, Verb.CRASH, JobState.READY),
    Move(JobState.RUNNING, Verb.CRASH, JobState.DEAD),
    Move(JobState.RUNNING, Verb.REAP, JobState.READY),
    Move(JobState.RUNNING, Verb.REAP, JobState.DEAD),
    Move(JobState.DELAYED, Verb.EXPIRE, JobState.DEAD),
    Move(JobState.READY, Verb.EXPIRE, JobState.DEAD),
    Move(JobState.DELAYED, Verb.CANCEL, JobState.CANCELLED),
    Move(JobState.READY, Verb.CANCEL, JobState.CANCELLED),
    Move(JobState.RUNNING, Verb.CANCEL, JobState.CANCELLED),
    Move(JobState.DEAD, Verb.EDIT, JobState.DEAD),
    Move(JobState.DEAD, Verb.REPLAY, JobState.READY),
    Move(JobState.DEAD, Verb.PURGE, None),
)

WORKFLOW_MOVES = (
    Move(JobState.RUNNING, WorkflowVerb.START, JobState.RUNNING),
    Move(JobState.RUNNING, WorkflowVerb.FINISH, JobState.SUCCEEDED),
    Move(JobState.RUNNING, WorkflowVerb.FINISH, JobState.DEAD),
    Move(JobState.RUNNING, WorkflowVerb.FINISH, JobState.CANCELLED),
    Move(JobState.RUNNING, WorkflowVerb.EXPIRE, JobState.DEAD),
    *(
        Move(source, WorkflowVerb.RETRY, target)
        for source in (JobState.DEAD, JobState.CANCELLED, JobState.SUCCEEDED, JobState.DISCARDED)
        for target in (JobState.READY, JobState.DELAYED)
    ),
    Move(JobState.DEAD, WorkflowVerb.RETRY, JobState.RUNNING),
    Move(JobState.CANCELLED, WorkflowVerb.RETRY, JobState.RUNNING),
)
"""Beside those of every job."""


_FINAL = (JobState.SUCCEEDED, JobState.CANCELLED, JobState.DISCARDED)


def targets(source: JobState | None, verb: Verb) -> frozenset[JobState | None]:
    """Where this verb may take a job that stands at `source`; empty when it may not act on it."""
    return frozenset(move.target for move in MOVES if (move.source, move.verb) == (source, verb))


def mermaid() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = [
        f"    {_node(move.source)} --> {_node(move.target)}: {_label(move.verb)}"
        for move in (*MOVES, *WORKFLOW_MOVES)
    ]
    finals = [f"    {state} --> [*]" for state in _FINAL]
    return "\n".join(["stateDiagram-v2", *lines, *finals])


def _node(state: JobState | None) -> str:
    return "[*]" if state is None else state.value


def _label(verb: Verb | WorkflowVerb) -> str:
    # A second colon would end the label.
    return verb.value.replace(":", "")
