"""What happened, as typed events; sinks decide what is done with them. The log is one sink (log.py)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.job import Claim, Failure, JobName, Whereabouts
from mainspring.model.run import Reason, Verdict
from mainspring.model.schedule import Skipped
from mainspring.model.value import Value
from mainspring.model.workflow import WorkflowState

_log = logging.getLogger("mainspring")


class ProcessStarted(Value, frozen=True, kw_only=True):
    """A worker or scheduler has joined the fleet."""

    role: str
    name: str
    process_id: int


class ProcessStopping(Value, frozen=True, kw_only=True):
    """A stop was asked for; `running` jobs are given `grace` to end."""

    running: int
    grace: timedelta


class ProcessStopped(Value, frozen=True, kw_only=True):
    """All loops have ended; the store has taken `released` jobs back unfinished. Of `unwritten` more it has
    not answered: they are taken over when the lease has ended."""

    released: int
    unwritten: int = 0


class HandlersLeft(Value, frozen=True, kw_only=True):
    """The process stops, and these handlers ignored a stop: they end with the process."""

    jobs: tuple[tuple[int, str], ...]
    """Ids and tasks."""


class ProcessOverdue(Value, frozen=True, kw_only=True):
    """The process did not end in its time, and is ended where it stands. `jobs` were running; with
    `given_back` the store knows that, or else they are taken over when the lease has ended."""

    jobs: tuple[tuple[int, str], ...]
    given_back: bool


class StrayRaised(Value, frozen=True, kw_only=True):
    """A task that a handler started beside itself raised what ends a program; this one goes on."""

    kind: str


class WorkerStarted(Value, frozen=True, kw_only=True):
    """A supervisor has started a worker process."""

    number: int
    pid: int


class WorkerEnded(Value, frozen=True, kw_only=True):
    """A worker process under a supervisor has ended, by a signal if `code` is negative; another one takes
    its place after `again_in`, or none does."""

    number: int
    pid: int
    code: int
    again_in: timedelta | None


class RunStarted(Value, frozen=True, kw_only=True):
    """A handler begins."""

    job_id: int
    task: str
    attempt: int
    waited: timedelta | None = None
    """How long its job had been due when it was claimed."""
    schedule_id: int | None = None
    slot_at: datetime | None = None
    trace: str | None = None
    queue: str = ""
    workflow_id: int | None = None


class RunEnded(Value, frozen=True, kw_only=True, gc=False):
    """A run has been settled."""

    job_id: int
    task: str
    attempt: int
    verdict: Verdict
    took: timedelta
    delay: timedelta
    failure: Failure | None
    reason: Reason | None = None
    """Why the job died of it, if it did."""
    awaits: str | None = None
    """The event that the job waits for now."""
    schedule_id: int | None = None
    slot_at: datetime | None = None
    trace: str | None = None
    queue: str = ""
    waited: timedelta | None = None
    """How long it had been due when it was claimed."""
    workflow_id: int | None = None
    error: BaseException | None = None
    """What the handler raised, where this process has it; of a child process there is the failure alone."""


class HandlerLeaked(Value, frozen=True, kw_only=True):
    """A handler ignored a stop: its run is settled, and the `what` it occupies ("slot",
    "thread") is given up. `left` of them can still work."""

    job_id: int
    task: str
    what: str
    left: int
    claim: Claim | None = None


class LoopBlocked(Value, frozen=True, kw_only=True):
    """A handler holds up the event loop, beyond its timeout: nothing in this process moves but the
    heartbeats."""

    job_id: int
    task: str
    claim: Claim | None = None


class ProcessWornOut(Value, frozen=True, kw_only=True):
    """The process stops because handlers have taken what it works with; `supervised` says that
    another one takes its place."""

    supervised: bool


class SettlementRefused(Value, frozen=True, kw_only=True):
    """A run ended after its claim had been lost: what it did not commit elsewhere is dropped."""

    job_id: int
    task: str
    fence: int
    verdict: Verdict
    claim: Claim | None = None
    whereabouts: Whereabouts | None = None
    """Where the job is now, as far as the store could say."""


class ClaimsLost(Value, frozen=True, kw_only=True):
    """The store says that these claims are no longer ours; their handlers are stopped."""

    job_ids: tuple[int, ...]
    claims: tuple[Claim, ...] = ()
    whereabouts: tuple[Whereabouts, ...] = ()
    """Where the jobs are now, as far as the store could say."""


class LeaseEnded(Value, frozen=True, kw_only=True):
    """This process lost its lease (`expired`), or could not renew it in time and stops its handlers
    before it ends."""

    name: str
    running: int
    expired: bool


class LeaseRenewed(Value, frozen=True, kw_only=True):
    """The store has taken a heartbeat."""

    role: str


class RenewalFailed(Value, frozen=True, kw_only=True):
    """A heartbeat got no answer, or an error; it is tried again while the lease lasts."""

    role: str
    reason: str


class LeaseOutlasted(Value, frozen=True, kw_only=True):
    """The database itself is down for longer than a lease lasts: no process can take over what this one
    holds, and its handlers go on."""

    role: str
    name: str


class ProcessesReaped(Value, frozen=True, kw_only=True):
    """Other processes were found dead, and their jobs given back."""

    processes: tuple[str, ...]
    jobs: int


class JobsQuarantined(Value, frozen=True, kw_only=True):
    """Jobs crashed too often and are dead letters now; they run again only on request."""

    job_ids: tuple[int, ...]
    jobs: tuple[JobName, ...] = ()
    """What they are, as far as the store could say."""


class JobsExpired(Value, frozen=True, kw_only=True):
    """Jobs that no worker had claimed by their deadline are dead letters now."""

    job_ids: tuple[int, ...]
    jobs: tuple[JobName, ...] = ()
    """What they are, as far as the store could say."""


class WorkflowEnded(Value, frozen=True, kw_only=True):
    """A workflow has no step left to run."""

    workflow_id: int
    name: str
    state: WorkflowState


class DeadLettersCounted(Value, frozen=True, kw_only=True):
    """A gauge, set every minute: how many dead letters there are, and how many of them died `within` that
    time. Neither is counted beyond `most`."""

    count: int
    grown: int
    within: timedelta
    most: int


class SlotsFired(Value, frozen=True, kw_only=True):
    """Ledger rows and jobs were written for one slot."""

    slot_at: datetime
    fired: int
    skipped: int
    late: timedelta


class SlotsDropped(Value, frozen=True, kw_only=True):
    """Schedules lost slots from `since` to `slot_at`: they came too late, or the circuit breaker left them
    out. `told` are the schedules that the log should name now, without those that were named a moment ago."""

    slot_at: datetime
    since: datetime | None
    reason: Skipped
    schedules: int
    told: tuple[str, ...]


class LagMeasured(Value, frozen=True, kw_only=True):
    """A gauge, set with every pass of a scheduler: how late the latest trigger is, and how many were due."""

    lag: timedelta
    due: int


class TriggerRefused(Value, frozen=True, kw_only=True):
    """A stored trigger that this version cannot read; its schedules wait."""

    trigger: str
    reason: str


class SchedulesWritten(Value, frozen=True, kw_only=True):
    """Schedules declared in code were new or changed."""

    names: tuple[str, ...]
    """The first few of them, by name."""
    count: int
    """How many they are."""


class SchedulesUndeclared(Value, frozen=True, kw_only=True):
    """Schedules on record go on firing although the app that starts here does not declare them."""

    names: tuple[str, ...]
    more: bool = False
    """Whether there are others besides."""


class HistoryPruned(Value, frozen=True, kw_only=True):
    """Old history was dropped."""

    gone: int


class ResultsDropped(Value, frozen=True, kw_only=True):
    """Results were dropped before their runs."""

    gone: int


class AlertTold(Value, frozen=True, kw_only=True):
    """Something is wrong, still wrong, or well again: the log is one of the targets of alerts."""

    kind: str
    rule: str
    subject: str
    severity: str
    sentence: str
    test: bool = False


class AlertUndelivered(Value, frozen=True, kw_only=True):
    """A target of alerts did not take a message; it is tried again, or given up when `again_in` is None."""

    target: str
    reason: str
    again_in: timedelta | None


class PingFailed(Value, frozen=True, kw_only=True):
    """The ping was not sent: its address could not be reached, or all is not well."""

    target: str
    reason: str


class StoreTrouble(Value, frozen=True, kw_only=True):
    """A pass failed on the store; it is tried again."""

    loop: str
    reason: str
    again_in: timedelta
    away: bool = True
    """Whether the store could not be reached, or its answer was lost; else it answered, with an error."""

    @classmethod
    def of(cls, loop: str, error: StoreError, again_in: timedelta) -> StoreTrouble:
        """For a pass of this loop that raised this."""
        away = isinstance(error, StoreUnavailable | AnswerLost)
        return cls(loop=loop, reason=str(error), again_in=again_in, away=away)


class HintsMissing(Value, frozen=True, kw_only=True):
    """There are no hints of new jobs: this process finds them when it looks."""

    reason: str


class StoreRecovered(Value, frozen=True, kw_only=True):
    """The store answers again."""

    loop: str


class LoopFailed(Value, frozen=True, kw_only=True):
    """A pass raised an unexpected error: a defect. The loop goes on."""

    loop: str
    error: BaseException
    again_in: timedelta


class LoopStalled(Value, frozen=True, kw_only=True):
    """A pass made no progress for so long and was ended; the loop goes on."""

    loop: str
    after: timedelta


Event = (
    ProcessStarted
    | ProcessStopping
    | ProcessStopped
    | ProcessOverdue
    | HandlersLeft
    | StrayRaised
    | WorkerStarted
    | WorkerEnded
    | RunStarted
    | RunEnded
    | HandlerLeaked
    | LoopBlocked
    | ProcessWornOut
    | SettlementRefused
    | ClaimsLost
    | LeaseEnded
    | LeaseRenewed
    | RenewalFailed
    | LeaseOutlasted
    | ProcessesReaped
    | JobsQuarantined
    | WorkflowEnded
    | JobsExpired
    | DeadLettersCounted
    | SlotsFired
    | SlotsDropped
    | LagMeasured
    | TriggerRefused
    | SchedulesWritten
    | SchedulesUndeclared
    | HistoryPruned
    | ResultsDropped
    | AlertTold
    | AlertUndelivered
    | PingFailed
    | StoreTrouble
    | HintsMissing
    | StoreRecovered
    | LoopFailed
    | LoopStalled
)
Sink = Callable[[Event], None]


class Telemetry:
    """Hands every event to every sink, in order, on the caller's thread. A sink may be a user's: what
    it raises is logged and does not reach the others."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def joined(self, *sinks: Sink) -> Telemetry:
        """The same with more sinks."""
        return Telemetry(*self._sinks, *sinks)

    def behind(self, *sinks: Sink) -> Telemetry:
        """The same with more sinks before them."""
        return Telemetry(*sinks, *self._sinks)

    def hears(self, kind: type[Event]) -> bool:
        """Whether a sink would do something with such an event now: for events of every job, this is asked
        before one is made. A sink says so by a function `hears` of its own, or else hears everything."""
        return any((hears := _owned(sink, "hears")) is None or hears(kind) for sink in self._sinks)

    def emit(self, event: Event) -> None:
        """Tell the sinks."""
        for sink in self._sinks:
            _tell(sink, event)

    def emit_all(self, events: Sequence[Event]) -> None:
        """Tell the sinks of many at once. One that has a function `hear_all` is called once: what is done
        once a job should not take two calls for each."""
        for sink in self._sinks:
            if (hear_all := _owned(sink, "hear_all")) is not None:
                _tell(hear_all, events)
                continue
            for event in events:
                _tell(sink, event)


def _tell(sink: Callable[[Any], None], told: object) -> None:
    try:
        sink(told)
    except BaseException as error:  # noqa: BLE001 - a sink may be user code, and writes user's exceptions out
        # Without the exception where it is not an ordinary one: to write it out may raise it again.
        shown = error if isinstance(error, Exception) else None
        _log.error("a telemetry sink failed on %s", type(told).__name__, exc_info=shown)


def _owned(sink: Sink, name: str) -> Callable[[Any], Any] | None:
    """A function of that name beside the sink; of a method, one of the object it belongs to."""
    return getattr(getattr(sink, "__self__", sink), name, None)
