"""The table of legal moves."""

from __future__ import annotations

from pathlib import Path

from mainspring.model.job import LIVE_STATES, JobState
from tests.support.transitions import MOVES, WORKFLOW_MOVES, Verb, WorkflowVerb, mermaid, targets

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


def test_no_move_is_listed_twice_and_every_verb_moves_something() -> None:
    assert len(set(MOVES)) == len(MOVES)
    assert {move.verb for move in MOVES} == set(Verb)


def test_every_state_can_be_reached_from_nothing() -> None:
    reached: set[JobState | None] = {None}
    for _ in MOVES:
        reached |= {move.target for move in MOVES if move.source in reached}

    assert reached == {None, *JobState}


def test_only_a_dead_letter_comes_back_from_a_final_state_unless_its_workflow_is_retried() -> None:
    leaving = {(move.source, move.verb) for move in MOVES if move.source not in (None, *LIVE_STATES)}

    assert leaving == {(JobState.DEAD, verb) for verb in (Verb.EDIT, Verb.REPLAY, Verb.PURGE)}


def test_every_live_state_can_be_cancelled_and_no_other() -> None:
    cancellable = [state for state in JobState if targets(state, Verb.CANCEL)]

    assert cancellable == list(LIVE_STATES)


def test_only_a_running_job_is_settled_or_reaped() -> None:
    held = [verb for verb in Verb if verb.value.startswith("settle: ")] + [Verb.REAP]

    assert {move.source for move in MOVES if move.verb in held} == {JobState.RUNNING}


def test_only_a_job_that_nobody_holds_expires_by_itself() -> None:
    assert {move.source for move in MOVES if move.verb is Verb.EXPIRE} == {JobState.DELAYED, JobState.READY}


def test_workflows_move_jobs_by_verbs_of_their_own() -> None:
    assert {move.verb for move in WORKFLOW_MOVES} == set(WorkflowVerb)
    assert len(set(WORKFLOW_MOVES)) == len(WORKFLOW_MOVES)


def test_the_page_in_the_docs_shows_this_table() -> None:
    assert f"```mermaid\n{mermaid()}\n```" in PAGE.read_text(encoding="utf-8")
