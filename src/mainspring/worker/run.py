"""The life of a run, and the seam between it and the executors.

    claimed ──► begun ──► handler runs ──► ended: settled, or dropped with its claim

A run is claimed when it is handed to its executor. The executor reports to `run.life`: `begin` when the
turn of the run has come, `handler_begins` when the handler is called, `end` when it has ended. The lifecycle
does the rest, for every executor alike: it reports that a run started, keeps timeouts and deadlines, has the
executor stop a run (`Executor.stop`) and settles each run once. What an executor reports of a run that has
ended is ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Protocol

from mainspring.model.job import Claim
from mainspring.model.run import Expired, Failed, Outcome, Stopped
from mainspring.tasks.task import Task
from mainspring.telemetry.traces import RunSpan
from mainspring.worker.outcomes import (
    expired_failure,
    failed,
    failure_of,
    is_a,
    shown_in_log,
    timeout_failure,
)

AnyTask = Task[..., Any]


class Stop(Enum):
    """Why a run should end before its handler does."""

    TIMEOUT = auto()
    """The timeout of its task has passed."""
    DEADLINE = auto()
    """The deadline of its job has passed."""
    RELEASE = auto()
    """The job goes back to its queue: the process stops, or its lease is about to end."""
    DROP = auto()
    """The claim is not ours any more, or the run has been given up: there is nothing to settle."""


class Executor(Protocol):
    """Runs handlers in one way. What it is given has been claimed; what it begins it must end."""

    def takes(self, task: AnyTask, claim: Claim) -> bool:
        """Whether this job is run here: the first executor of the worker that says so gets it. Asked once
        for each task and queue; anew for a job with a deadline, and for one whose process died (an orphaned
        job)."""

    def start(self, runs: Sequence[ActiveRun]) -> None:
        """Run these, in this order, as soon as there is a place for each. Does not wait."""

    def stop(self, run: ActiveRun) -> None:
        """End this run soon (`run.stop` says why), and report its end. Does not wait. One that has not begun
        ends at once, as `Stopped(started=False)`."""

    def is_sure_to_end(self, run: ActiveRun) -> bool:
        """Whether a stop ends this run in any case. If it may go on, the lifecycle settles it after a while,
        and its execution slot is lost until it ends."""

    async def close(self) -> None:
        """End what still runs, and take nothing more: the process ends."""


class Lifecycle(Protocol):
    """What an executor reports to. Called on the worker's event loop."""

    tells_start: bool
    """Whether `begin` has anything to say of a run: if not, and if its task has no timeout, an executor that
    could only report the beginning by an extra turn of the event loop need not."""

    def begin(self, run: ActiveRun) -> Outcome | None:
        """The run's turn has come. Answers how it ends if it must not begin any more; None to go on."""

    def handler_begins(self, run: ActiveRun) -> None:
        """The handler is called: the timeout of its task starts to run."""

    def handler_ended(self, run: ActiveRun) -> None:
        """The handler has ended, and its timeout does not count any more. Only needed where the report of the
        end takes time."""

    def end(self, run: ActiveRun, outcome: Outcome, seconds: float) -> None:
        """The run has ended like this, after so many seconds. What comes after this is ignored."""

    def leaked(self, claim: Claim, what: str, left: int) -> None:
        """The handler of this claim ignored a stop: what it occupies is lost, and `left` remain."""


class ActiveRun:
    """One claim, from when it was granted until it is settled."""

    __slots__ = (
        "began",
        "claim",
        "deadline",
        "due",
        "ended",
        "executor",
        "handle",
        "life",
        "settling",
        "span",
        "stop",
        "task",
    )

    def __init__(self, claim: Claim, task: AnyTask, executor: Executor, life: Lifecycle) -> None:
        self.claim = claim
        self.task = task
        self.executor = executor
        self.life = life
        self.handle: Any = None
        """Of the executor: what it needs to stop the run. None while the run has not begun."""
        self.began = 0.0
        self.due: float | None = None
        """When its timeout ends, by the steady clock."""
        self.deadline: asyncio.TimerHandle | None = None
        self.stop: Stop | None = None
        self.ended = False
        self.span: RunSpan | None = None
        self.settling = False
        """A transaction of the handler's has written, or is about to, that the job is done: the claim may
        be gone from the store at any moment, and that is no loss."""

    @property
    def late(self) -> bool:
        """Whether it should stop because its timeout has passed."""
        return self.stop is Stop.TIMEOUT

    def is_set(self) -> bool:
        """Whether the handler should end: what `ctx.cancelled` asks."""
        return self.stop is not None

    def handler_begins(self) -> None:
        """The handler is called."""
        self.life.handler_begins(self)

    def handler_ended(self) -> None:
        """The handler has ended."""
        self.life.handler_ended(self)

    def stopped(self) -> Outcome:
        """How it ends if it did stop."""
        if self.stop is Stop.TIMEOUT:
            return timed_out(self.task, TimeoutError())
        return Expired(failure=expired_failure()) if self.stop is Stop.DEADLINE else Stopped()

    def cut_off(self, error: BaseException) -> Outcome:
        """How it ends by what is no outcome of its handler's: a cancellation, or something that was missing
        to run it. If that is not our doing, a release would run it for ever."""
        if self.stop is not None and self.stop is not Stop.TIMEOUT:
            return self.stopped()
        failure = failure_of(error)
        return Failed(failure=failure, error=shown_in_log(error, failure))


def timed_out(task: AnyTask, error: BaseException) -> Outcome:
    seconds = 0.0 if task.timeout is None else task.timeout.total_seconds()
    failure = timeout_failure(seconds)
    late = error if is_a(error, TimeoutError) else TimeoutError()
    # Where it stood when its time was over, if it was on the event loop.
    shown = TimeoutError(failure.message).with_traceback(error.__traceback__)
    return failed(failure, late, task.retry, shown=shown_in_log(shown, failure, frames_to_hide=1))
