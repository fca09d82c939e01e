"""The sink that writes log lines. Everything the engine has to say goes through here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import assert_never

from mainspring.duration import short, written
from mainspring.engine.runlines import SUCCEEDED, run_ended, run_started, tells_starts, tells_successes
from mainspring.model.workflow import WorkflowState
from mainspring.telemetry import (
    AlertTold,
    AlertUndelivered,
    BreakerTripped,
    ClaimsLost,
    DeadLettersCounted,
    Event,
    HandlerLeaked,
    HintsMissing,
    HistoryPruned,
    JobsExpired,
    JobsQuarantined,
    LagMeasured,
    LeaseEnded,
    LeaseRenewed,
    LoopBlocked,
    LoopFailed,
    LoopStalled,
    MembersReaped,
    PingFailed,
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
    SlotsFired,
    StoreRecovered,
    StoreTrouble,
    TriggerRefused,
    WorkerEnded,
    WorkerStarted,
    WorkflowEnded,
)

_log = logging.getLogger("mainspring")
_alerts = logging.getLogger("mainspring.alerts")
_ALERT_LEVELS = {"critical": logging.ERROR, "notice": logging.INFO}


class _Lines:
    """One event, at most one line."""

    def __call__(self, event: Event) -> None:
        _log_event(event)

    def hear_all(self, events: Sequence[Event]) -> None:
        """Many at once. Successes are most of them, and nobody reads of those at most times."""
        silent = not tells_successes()
        for event in events:
            if not (silent and type(event) is RunEnded and event.verdict is SUCCEEDED):
                _log_event(event)

    def hears(self, kind: type[Event]) -> bool:
        """That a run begins is told to those who want to know everything."""
        return kind is not RunStarted or tells_starts()


log_event = _Lines()


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
            | ProcessWornOut()
            | HandlerLeaked()
            | LoopBlocked()
            | WorkerStarted()
            | WorkerEnded()
        ):
            _process(event)
        case SettlementRefused() | ClaimsLost() | LeaseEnded() | MembersReaped():
            _fleet(event)
        case JobsQuarantined() | JobsExpired() | DeadLettersCounted() | WorkflowEnded():
            _endings(event)
        case SlotsFired() | SchedulesWritten() | SchedulesUndeclared() | TriggerRefused() | BreakerTripped():
            _schedule(event)
        case LagMeasured() | LeaseRenewed() | RenewalFailed():
            pass  # a gauge for those who plot; what it means for a slot is in its own line
        case HistoryPruned() | ResultsDropped():
            what = "results" if isinstance(event, ResultsDropped) else "partitions or rows"
            _log.info("history: %d %s dropped", event.gone, what)
        case (
            AlertTold()
            | AlertUndelivered()
            | PingFailed()
            | StoreTrouble()
            | HintsMissing()
            | StoreRecovered()
            | LoopFailed()
            | LoopStalled()
        ):
            _trouble(event)
        case _:
            assert_never(event)


def _endings(event: JobsQuarantined | JobsExpired | DeadLettersCounted | WorkflowEnded) -> None:
    match event:
        case WorkflowEnded():
            level = logging.ERROR if event.state is WorkflowState.FAILED else logging.INFO
            _log.log(level, "workflow %d %s: %s", event.workflow_id, event.name, event.state)
        case JobsQuarantined():
            jobs = ", ".join(map(str, event.job_ids))
            _log.error("quarantined, for they crashed too often: jobs %s; see `mainspring dead show`", jobs)
        case JobsExpired():
            jobs = ", ".join(map(str, event.job_ids))
            _log.error("expired before a worker took them: jobs %s", jobs)
        case DeadLettersCounted(grown=0):
            pass  # a gauge for those who plot
        case DeadLettersCounted():
            least = "at least " if event.count >= event.most else ""
            _log.warning(
                "dead letters: %s%d, %d more within %s",
                least,
                event.count,
                event.grown,
                written(event.within),
            )


_OfAProcess = (
    ProcessStarted
    | ProcessStopping
    | ProcessStopped
    | ProcessWornOut
    | HandlerLeaked
    | LoopBlocked
    | WorkerStarted
    | WorkerEnded
)


def _process(event: _OfAProcess) -> None:
    match event:
        case ProcessStarted():
            _log.info("%s %s started (member %x)", event.role, event.name, event.member_id)
        case ProcessStopping():
            _stopping(event)
        case ProcessStopped():
            _log.info(
                "stopped; %s given back",
                _counted(event.released, "unfinished job was", "unfinished jobs were"),
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
    again = short(event.again_in)
    _log.warning("worker %d: process %d ended (%s), another in %s", event.number, event.pid, how, again)


def _stopping(event: ProcessStopping) -> None:
    if not event.running:
        _log.info("stopping: no job is running")
        return
    _log.info(
        "stopping: %s %s to end; a second Ctrl-C or SIGTERM gives them back at once",
        _counted(event.running, "running job gets", "running jobs get"),
        written(event.grace),
    )


def _stuck(event: ProcessWornOut | HandlerLeaked | LoopBlocked) -> None:
    match event:
        case HandlerLeaked():
            _log.error(
                "job %d %s: the handler was told to end and goes on; its %s is given up, %d left",
                event.job_id,
                event.task,
                event.what,
                event.left,
                extra={"job_id": event.job_id, "task": event.task},
            )
        case LoopBlocked():
            _log.error(
                "job %d %s: the handler blocks the event loop beyond its timeout; nothing else can run here",
                event.job_id,
                event.task,
                extra={"job_id": event.job_id, "task": event.task},
            )
        case ProcessWornOut(supervised=True):
            _log.warning("stopping, to be replaced: handlers that would not end go with this process")
        case ProcessWornOut():
            _log.error("stopping: handlers that would not end have taken every thread or hand")


def _fleet(event: SettlementRefused | ClaimsLost | LeaseEnded | MembersReaped) -> None:
    match event:
        case SettlementRefused():
            _log.warning(
                "job %d %s: settlement (%s) refused, claim %d had been lost; the job is somebody else's now",
                event.job_id,
                event.task,
                event.verdict,
                event.fence,
                extra={"job_id": event.job_id, "task": event.task, "status": "refused"},
            )
        case ClaimsLost():
            jobs = ", ".join(map(str, event.job_ids))
            _log.warning("claims lost (cancelled or taken away), handlers told to stop: jobs %s", jobs)
        case LeaseEnded(expired=True):
            _log.warning("lease lost: %s was too late; %d handlers told to stop", event.name, event.running)
        case LeaseEnded():
            _log.warning(
                "lease of %s cannot be renewed; %d handlers told to stop before it ends",
                event.name,
                event.running,
            )
        case MembersReaped():
            names = ", ".join(event.members) or "earlier ones"
            _log.warning("dead processes found (%s): %d jobs given back", names, event.jobs)


def _schedule(
    event: SlotsFired | SchedulesWritten | SchedulesUndeclared | TriggerRefused | BreakerTripped,
) -> None:
    match event:
        case SlotsFired():
            _log.info(
                "slot %s: %d fired, %d skipped, %s late",
                event.slot_at.isoformat(),
                event.fired,
                event.skipped,
                short(event.late),
            )
        case SchedulesWritten():
            _log.info("schedules written: %s", ", ".join(event.names))
        case BreakerTripped():
            _log.error(
                "breaker: slots from %s to %s were shed, the schedule is too far behind: %s",
                event.since.isoformat(),
                event.until.isoformat(),
                event.trigger,
            )
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
            then = "given up" if event.again_in is None else f"again in {short(event.again_in)}"
            _alerts.error("alerts: %s did not take a message: %s; %s", event.target, event.reason, then)
        case PingFailed():
            _alerts.warning("alerts: no ping to %s: %s", event.target, event.reason)


def _trouble(
    event: AlertTold
    | AlertUndelivered
    | PingFailed
    | StoreTrouble
    | HintsMissing
    | StoreRecovered
    | LoopFailed
    | LoopStalled,
) -> None:
    match event:
        case AlertTold() | AlertUndelivered() | PingFailed():
            _alert(event)
        case LoopStalled():
            _log.error("%s: no progress in %s; the pass was ended", event.loop, written(event.after))
        case StoreTrouble():
            _log.warning("%s: %s; again in %s", event.loop, event.reason, short(event.again_in))
        case HintsMissing():
            _log.warning("no hints, so new jobs wait for the next look (worker.poll): %s", event.reason)
        case StoreRecovered():
            _log.info("%s: the store answers again", event.loop)
        case LoopFailed():
            _log.error(
                "%s: unexpected %s; again in %s",
                event.loop,
                type(event.error).__name__,
                short(event.again_in),
                exc_info=event.error,
            )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
