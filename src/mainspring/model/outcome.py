"""How one run of a handler ended, before any rule has been applied to it."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.failure import Failure
from mainspring.model.value import Value
from mainspring.model.workflow import NewWorkflow


class Succeeded(Value, frozen=True, kw_only=True):
    """The handler returned; `result` is its JSON, or None for nothing."""

    result: bytes | None = None


class Settled(Value, frozen=True, kw_only=True):
    """The handler succeeded, and its own transaction has written so: nothing is left to write."""

    result: bytes | None = None


class Failed(Value, frozen=True, kw_only=True):
    """The handler raised, timed out, or returned what cannot be kept."""

    failure: Failure
    permanent: bool = False
    """What it raised says that trying again cannot help."""
    retry_after: timedelta | None = None
    """What it raised says that trying again sooner cannot help."""
    rule: int | None = None
    """The place, among the rules of its task's retry policy, of the one that speaks of this exception."""
    error: BaseException | None = None
    """What it raised, where this process has it: for the log, and for nobody else."""


class Stopped(Value, frozen=True, kw_only=True):
    """We ended the run ourselves, at shutdown: it costs no attempt. `started` is false for a
    claim whose handler never began."""

    started: bool = True


class Snoozed(Value, frozen=True, kw_only=True):
    """The handler asked to be called again later: it costs no attempt."""

    delay: timedelta
    awaits: str | None = None
    """The event that it waits for, at most for the delay."""


class Discarded(Value, frozen=True, kw_only=True):
    """The handler said that the job is of no use any more; `failure` tells why."""

    failure: Failure


class Crashed(Value, frozen=True, kw_only=True):
    """The process that ran the handler died under it: it costs no attempt, and is counted apart."""

    failure: Failure


class Expired(Value, frozen=True, kw_only=True):
    """The job's deadline passed: while the handler ran, or, without `started`, before it could begin."""

    failure: Failure
    started: bool = True


class Started(Value, frozen=True, kw_only=True):
    """The job is a workflow, which begins: the job ends with it."""

    workflow: NewWorkflow


Outcome = Succeeded | Settled | Failed | Stopped | Snoozed | Discarded | Crashed | Expired | Started
