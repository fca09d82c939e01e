"""The sink that writes log lines. Everything the engine has to say goes through here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import assert_never

from mainspring.clock import SystemClock
from mainspring.duration import format_duration, short_duration
from mainspring.model.job import Whereabouts
from mainspring.model.schedule import Skipped
from mainspring.model.workflow import WorkflowState
from mainspring.telemetry.events import (
    AlertTold,
    AlertUndelivered,
    ClaimsLost,
    DeadLettersCounted,
    Event,
    HandlerLeaked,
    HandlersLeft,
    HintsMissing,
    HistoryPruned,
    JobsExpired,
    JobsQuarantined,
    LagMeasured,
    LeaseEnded,
    LeaseOutlasted,
    LeaseRenewed,
    LoopBlocked,
    LoopFailed,
    LoopStalled,
    PingFailed,
    ProcessesReaped,
    ProcessOverdue,
    ProcessStarted,
    ProcessStopped,
    ProcessStopping,
    ProcessWornOut,
    RenewalFailed,
    ResultsDropped,
    RunEnded,
    RunStarted,
    SchedulesUndeclared,
    SchedulesWritten,
    SettlementRefused,
    SlotsDropped,
    SlotsFired,
    StoreRecovered,
    StoreTrouble,
    StrayRaised,
    TriggerRefused,
    WorkerEnded,
    WorkerStarted,
    WorkflowEnded,
)
from mainspring.telemetry.run_fields import (
    SUCCEEDED,
    facts,
    run_ended,
    run_started,
    tells_starts,
    tells_successes,
)

_log = logging.getLogger("mainspring")
_alerts = logging.getLogger("mainspring.alerts")
_NAMED = 5
"""Names in one line, at most."""
_ALERT_LEVELS = {"critical": logging.ERROR, "notice": logging.INFO}


CALM = 60.0
"""Seconds after the last line about an outage within which a short one gets no line of its own."""
PATIENCE = 10.0
"""Seconds after which an outage gets its line, however soon after another it began."""
TAIL = 3.0
"""Seconds within which a loop may still notice the outage that has just ended."""


class StoreLines:
    """What the log says of a store that is away. Every loop, the heartbeat and the listener for hints notice
    an outage independently and repeatedly. The log has one line when it begins and one when it is over. A
    store that comes and goes is logged once a minute. Called on any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._since: float | None = None
        """When the outage began that goes on."""
        self._is_told = False
        self._told_at: float | None = None
        self._ended_at: float | None = None
        self._untold = 0
        self._refused: dict[str, tuple[str, float]] = {}
        """Loops that the store answered with an error: which, and when it was logged."""

    def failed(self, event: StoreTrouble) -> None:
        """A pass failed."""
        with self._lock:
            line = self._away(event) if event.away else self._refusal(event)
        if line is None:
            _log.debug("%s: %s; again in %s", event.loop, event.reason, short_duration(event.again_in))
        else:
            _log.warning(line)

    def recovered(self, loop: str) -> None:
        """A pass of this loop went well after one that did not."""
        with self._lock:
            refused = self._refused.pop(loop, None)
        if refused is not None:
            _log.info("%s: goes on", loop)
        self.answered()

    def answered(self) -> None:
        """The store has answered a call."""
        with self._lock:
            if self._since is None:
                return
            now = self._monotonic()
            since, self._since = self._since, None
            is_told, self._is_told = self._is_told, False
            if is_told:
                self._told_at = now
            elif self._ended_at is None or since - self._ended_at > TAIL:
                self._untold += 1
            self._ended_at = now
        if is_told:
            _log.info("the store answers again after %s", short_duration(timedelta(seconds=now - since)))

    def _away(self, event: StoreTrouble) -> str | None:
        now = self._monotonic()
        if self._since is None:
            self._since = now
        is_calm = self._told_at is None or now - self._told_at >= CALM
        if self._is_told or not (is_calm or now - self._since >= PATIENCE):
            return None
        self._is_told, self._told_at = True, now
        untold, self._untold = self._untold, 0
        before = (
            f"; since the last such line it was away {_counted(untold, 'time', 'times')}" if untold else ""
        )
        return f"the store cannot be reached ({event.loop}: {event.reason}); tried until it can be{before}"

    def _refusal(self, event: StoreTrouble) -> str | None:
        now = self._monotonic()
        reason, told_at = self._refused.get(event.loop, ("", 0.0))
        if reason == event.reason and now - told_at < CALM:
            return None
        self._refused[event.loop] = event.reason, now
        return f"{event.loop}: {event.reason}; tried until it works"


class _LogLines:
    """One event, at most one line."""

    def __init__(self) -> None:
        self._store = StoreLines(SystemClock().monotonic)

    def __call__(self, event: Event) -> None:
        self._tell(event)

    def _tell(self, event: Event) -> None:
        match event:
            case StoreTrouble():
                self._store.failed(event)
            case StoreRecovered():
                self._store.recovered(event.loop)
            case LeaseRenewed():
                self._store.answered()
            case _:
                _log_event(event)

    def hear_all(self, events: Sequence[Event]) -> None:
        """Many at once. Most of them are successes, which are seldom logged."""
        silent = not tells_successes()
        for event in events:
            if not (silent and type(event) is RunEnded and event.verdict is SUCCEEDED):
                self._tell(event)

    def hears(self, kind: type[Event]) -> bool:
        """The beginning of a run is logged at the level DEBUG only."""
        return kind is not RunStarted or tells_starts()


log_event = _LogLines()


def _log_event(event: Event) -> None:
    match event:
        case RunStarted():
            run_started(event)
        case RunEnded():
            run_ended(event)
        case (
            ProcessStarted()
            | ProcessStopping()
            | ProcessStopped()
            | ProcessOverdue()
            | HandlersLeft()
            | StrayRaised()
            | ProcessWornOut()
            | HandlerLeaked()
            | LoopBlocked()
            | WorkerStarted()
            | WorkerEnded()
        ):
            _process(event)
        case SettlementRefused() | ClaimsLost() | LeaseEnded() | LeaseOutlasted() | ProcessesReaped():
            _fleet(event)
        case JobsQuarantined() | JobsExpired() | DeadLettersCounted() | WorkflowEnded():
            _endings(event)
        case SlotsFired() | SchedulesWritten() | SchedulesUndeclared() | TriggerRefused() | SlotsDropped():
            _schedule(event)
        case LagMeasured() | LeaseRenewed() | RenewalFailed() | StoreTrouble() | StoreRecovered():
            pass  # for those who plot; what it means for a slot, or for the process, is in a line of its own
        case HistoryPruned() | ResultsDropped():
            what = "results" if isinstance(event, ResultsDropped) else "partitions or rows"
            _log.info("history: %d %s dropped", event.gone, what)
        case AlertTold() | AlertUndelivered() | PingFailed() | HintsMissing() | LoopFailed() | LoopStalled():
            _trouble(event)
        case _:
            assert_never(event)


def _endings(event: JobsQuarantined | JobsExpired | DeadLettersCounted | WorkflowEnded) -> None:
    match event:
        case WorkflowEnded():
            level = logging.ERROR if event.state is WorkflowState.FAILED else logging.INFO
            _log.log(level, "workflow %d %s: %s", event.workflow_id, event.name, event.state)
        case JobsQuarantined():
            _each(event, "quarantined, for it crashed too often; see `mainspring dead show`")
        case JobsExpired():
            _each(event, "expired before a worker took it")
        case DeadLettersCounted(grown=0):
            pass  # a gauge for those who plot
        case DeadLettersCounted():
            least = "at least " if event.count >= event.most else ""
            _log.warning(
                "dead letters: %s%d, %d more within %s",
                least,
                event.count,
                event.grown,
                format_duration(event.within),
            )


def _each(event: JobsQuarantined | JobsExpired, what: str) -> None:
    """A line for each job, so that a search for the job, its task or its queue finds it."""
    names = {each.job_id: each for each in event.jobs}
    for job_id in event.job_ids:
        name = names.get(job_id)
        about: dict[str, object] = {"job_id": job_id}
        if name is not None:
            about |= {"task": name.task, "queue": name.queue}
        _log.error("job %d%s: %s", job_id, "" if name is None else f" {name.task}", what, extra=about)


_OfAProcess = (
    ProcessStarted
    | ProcessStopping
    | ProcessStopped
    | ProcessOverdue
    | HandlersLeft
    | StrayRaised
    | ProcessWornOut
    | HandlerLeaked
    | LoopBlocked
    | WorkerStarted
    | WorkerEnded
)


def _process(event: _OfAProcess) -> None:
    match event:
        case ProcessStarted():
            _log.info("%s %s started (process %x)", event.role, event.name, event.process_id)
        case ProcessStopping():
            _stopping(event)
        case ProcessStopped():
            _stopped(event)
        case HandlersLeft():
            _log.warning(
                "these handlers ignored the stop and go on until the process ends: %s", _jobs(event.jobs)
            )
        case WorkerStarted():
            _log.info("worker %d: process %d", event.number, event.pid)
        case WorkerEnded():
            _worker_ended(event)
        case _:
            _stuck(event)


def _worker_ended(event: WorkerEnded) -> None:
    how = f"exit code {event.code}" if event.code >= 0 else f"signal {-event.code}"
    if event.again_in is None:
        level = logging.INFO if event.code == 0 else logging.WARNING
        _log.log(level, "worker %d: process %d ended (%s)", event.number, event.pid, how)
        return
    again = short_duration(event.again_in)
    _log.warning("worker %d: process %d ended (%s), another in %s", event.number, event.pid, how, again)


def _stopping(event: ProcessStopping) -> None:
    if not event.running:
        _log.info("stopping: no job is running")
        return
    _log.info(
        "stopping: %s %s to end; a second Ctrl-C or SIGTERM gives them back at once",
        _counted(event.running, "running job gets", "running jobs get"),
        format_duration(event.grace),
    )


def _stopped(event: ProcessStopped) -> None:
    given_back = _counted(event.released, "unfinished job was", "unfinished jobs were")
    if not event.unwritten:
        _log.info("stopped; %s given back", given_back)
        return
    others = _counted(event.unwritten, "job", "jobs")
    _log.warning(
        "stopped; %s given back; the end of %s could not be written: others take over what is not done",
        given_back,
        others,
    )


def _jobs(jobs: Sequence[tuple[int, str]]) -> str:
    named = ", ".join(f"job {job_id} {task}" for job_id, task in jobs[:_NAMED])
    return f"{named} and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else named or "none"


def _stuck(event: ProcessWornOut | HandlerLeaked | LoopBlocked | ProcessOverdue | StrayRaised) -> None:
    match event:
        case ProcessOverdue():
            how = (
                "they are given back" if event.given_back else "they are taken over when the lease has ended"
            )
            _log.error(
                "this process did not end in its time, and is ended where it stands; still running: %s%s",
                _jobs(event.jobs),
                f"; {how}" if event.jobs else "",
            )
        case StrayRaised():
            _log.error(
                "a task that a handler left beside itself raised %s; only that task has ended", event.kind
            )
        case HandlerLeaked():
            _log.error(
                "job %d %s: the handler ignored the stop; its %s is given up, %d left",
                event.job_id,
                event.task,
                event.what,
                event.left,
                extra=_of_run(event),
            )
        case LoopBlocked():
            _log.error(
                "job %d %s: the handler blocks the event loop beyond its timeout; nothing else can run here",
                event.job_id,
                event.task,
                extra=_of_run(event),
            )
        case ProcessWornOut(supervised=True):
            _log.warning("stopping, to be replaced: handlers that would not end go with this process")
        case ProcessWornOut():
            _log.error("stopping: handlers that would not end have taken every thread or execution slot")


def _fleet(event: SettlementRefused | ClaimsLost | LeaseEnded | LeaseOutlasted | ProcessesReaped) -> None:
    match event:
        case SettlementRefused():
            _log.warning(
                "job %d %s: settlement (%s) refused, claim %d had been lost; %s",
                event.job_id,
                event.task,
                event.verdict,
                event.fence,
                _where(event.whereabouts),
                extra={**_of_run(event), "status": "refused"},
            )
        case ClaimsLost():
            _claims_lost(event)
        case LeaseEnded(expired=True):
            _log.warning("lease lost: %s was too late; %d handlers told to stop", event.name, event.running)
        case LeaseEnded():
            _log.warning(
                "lease of %s cannot be renewed; %d handlers told to stop before it ends",
                event.name,
                event.running,
            )
        case LeaseOutlasted():
            _log.info(
                "the database itself is down: nobody can take over what %s holds; it goes on", event.name
            )
        case ProcessesReaped():
            names = ", ".join(event.processes) or "earlier ones"
            _log.warning("dead processes found (%s): %d jobs given back", names, event.jobs)


def _claims_lost(event: ClaimsLost) -> None:
    """A line for each: each is another run's end."""
    where = {each.job_id: each for each in event.whereabouts}
    for claim in event.claims:
        _log.warning(
            "job %d %s: claim %d lost, the handler was told to stop; %s",
            claim.job_id,
            claim.task,
            claim.fence,
            _where(where.get(claim.job_id)),
            extra={**facts(claim), "status": "lost"},
        )


def _where(found: Whereabouts | None) -> str:
    if found is None:
        return "the job is not ours any more"
    if not found.live:
        return "the job was cancelled, or has ended elsewhere"
    if found.holder is None:
        return "the job waits in its queue again"
    return f"worker {found.holder} has the job now"


def _of_run(event: HandlerLeaked | LoopBlocked | SettlementRefused) -> dict[str, object]:
    """The fields of its run."""
    return {"job_id": event.job_id, "task": event.task} if event.claim is None else facts(event.claim)


def _schedule(
    event: SlotsFired | SchedulesWritten | SchedulesUndeclared | TriggerRefused | SlotsDropped,
) -> None:
    match event:
        case SlotsFired():
            _log.info(
                "slot %s: %d fired, %d skipped, %s late",
                event.slot_at.isoformat(),
                event.fired,
                event.skipped,
                short_duration(event.late),
            )
        case SchedulesWritten():
            more = event.count - len(event.names)
            _log.info("schedules written: %s%s", ", ".join(event.names), f" and {more} more" if more else "")
        case SlotsDropped():
            _dropped(event)
        case SchedulesUndeclared():
            one = len(event.names) == 1 and not event.more
            _log.warning(
                "schedules on record that this app does not declare: %s%s; "
                "`mainspring schedules delete %s` takes %s away",
                ", ".join(event.names),
                " and more" if event.more else "",
                event.names[0] if one else "NAME",
                "it" if one else "one",
            )
        case TriggerRefused():
            _log.error("trigger %s cannot be read: %s", event.trigger, event.reason)


def _dropped(event: SlotsDropped) -> None:
    if not event.told:
        return
    names = ", ".join(event.told[:_NAMED])
    more = f" and {len(event.told) - _NAMED} more" if len(event.told) > _NAMED else ""
    since = "" if event.since is None else f"{event.since.isoformat()} to "
    _log.warning(
        "%s%s: the missed slots %s%s were dropped (%s): %s",
        names,
        more,
        since,
        event.slot_at.isoformat(),
        event.reason,
        "they are older than the catch_up of the schedule"
        if event.reason is Skipped.TOO_LATE
        else "too many of its jobs are live, and the circuit breaker leaves out the rest; "
        "`mainspring schedules go-on NAME` runs what was left out",
    )


def _alert(event: AlertTold | AlertUndelivered | PingFailed) -> None:
    match event:
        case AlertTold():
            level = _ALERT_LEVELS.get(event.severity, logging.WARNING)
            about = {"rule": event.rule, "subject": event.subject, "severity": event.severity}
            word = f"{'test of an ' if event.test else ''}alert {event.kind}"
            _alerts.log(
                logging.INFO if event.kind == "recovered" else level,
                "%s (%s): %s",
                word,
                event.severity,
                event.sentence,
                extra=about,
            )
        case AlertUndelivered():
            then = "given up" if event.again_in is None else f"again in {short_duration(event.again_in)}"
            _alerts.error("alerts: %s did not take a message: %s; %s", event.target, event.reason, then)
        case PingFailed():
            _alerts.warning("alerts: no ping to %s: %s", event.target, event.reason)


def _trouble(
    event: AlertTold | AlertUndelivered | PingFailed | HintsMissing | LoopFailed | LoopStalled,
) -> None:
    match event:
        case AlertTold() | AlertUndelivered() | PingFailed():
            _alert(event)
        case LoopStalled():
            _log.error("%s: no progress in %s; the pass was ended", event.loop, format_duration(event.after))
        case HintsMissing():
            _log.warning("no hints, so new jobs wait for the next look (worker.poll): %s", event.reason)
        case LoopFailed():
            _log.error(
                "%s: unexpected %s; again in %s",
                event.loop,
                type(event.error).__name__,
                short_duration(event.again_in),
                exc_info=event.error,
            )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
