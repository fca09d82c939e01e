"""One claim in hand: what is known of its run while it goes on, and how it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from enum import Enum, auto
from typing import Any

from mainspring.lifecycle.burial import NEVER_BEGAN
from mainspring.model.job import Claim
from mainspring.model.outcome import Expired, Failed, Outcome, Stopped
from mainspring.telemetry.events import RunStarted
from mainspring.telemetry.traces import RunSpan
from mainspring.worker.outcomes import failure_of, shown_in_log
from mainspring.worker.threads import ThreadCall


class Ending(Enum):
    """Why we end a run ourselves."""

    RELEASE = auto()
    """The job goes back to the queue: shutdown, or a lease that is running out."""
    DROP = auto()
    """The claim is not ours any more: there is nothing to settle."""


class Run:
    """A claim and the task that runs it."""

    __slots__ = (
        "_limit",
        "began",
        "call",
        "claim",
        "due",
        "ending",
        "late",
        "seconds",
        "settling",
        "span",
        "task",
    )

    def __init__(self, claim: Claim, limit: Callable[[Run, float], None]) -> None:
        self.claim = claim
        self._limit = limit
        self.began = 0.0
        self.due: float | None = None
        """When its timeout ends, by the active_runs's clock."""
        self.seconds = 0.0
        """Its timeout."""
        self.late = False
        """Whether its timeout has ended."""
        self.ending: Ending | None = None
        self.span: RunSpan | None = None
        self.settling = False
        """A transaction of the handler's has written, or is about to, that the job is done: the claim may
        be gone from the store at any moment, and that is no loss."""
        self.task: asyncio.Task[Any] | None = None
        """Set while it runs in one: one that has not begun need not be cancelled."""
        self.call: ThreadCall | None = None
        """Set while it is, or waits to be, in a thread without a task."""

    def is_set(self) -> bool:
        """Whether the handler should end: what `ctx.cancelled` asks."""
        return self.ending is not None or self.late

    def barred(self) -> Outcome | None:
        """How it ends if it should not begin at all: we are stopping, or the job's deadline has passed."""
        if self.ending:
            return Stopped(started=False)
        left = self.claim.expires_in
        return None if left is None or left > timedelta() else Expired(failure=NEVER_BEGAN, started=False)

    def begun(self) -> RunStarted:
        """What is to be said when it begins."""
        claim = self.claim
        return RunStarted(
            job_id=claim.job_id,
            task=claim.task,
            attempt=claim.attempt,
            waited=claim.waited,
            schedule_id=claim.schedule_id,
            slot_at=claim.slot_at,
            trace=claim.trace,
            queue=claim.queue,
            workflow_id=claim.workflow_id,
        )

    def cut_off(self, error: BaseException) -> Outcome:
        """How it ends by what is no outcome of its handler's: a cancellation, or something that was missing
        to run it. If that is not our doing, a release would run it for ever."""
        if self.ending is not None:
            return Stopped()
        failure = failure_of(error)
        return Failed(failure=failure, error=shown_in_log(error, failure))

    def limit(self, seconds: float) -> None:
        """The timeout starts to run."""
        self.seconds = seconds
        self._limit(self, seconds)
