"""Log lines of runs, which are most of what there is to say."""

from __future__ import annotations

import logging

from mainspring.duration import short_duration
from mainspring.engine.failures import reported
from mainspring.engine.fields import origin
from mainspring.model.run import FOREVER, Reason, Verdict
from mainspring.telemetry import RunEnded, RunStarted

SUCCEEDED = Verdict.SUCCEEDED  # once a job: before Python 3.12 a member of an enum is as slow as a call
_log = logging.getLogger("mainspring")
_runs = logging.getLogger("mainspring.runs")


def tells_starts() -> bool:
    """Whether anybody reads that runs begin."""
    return _runs.isEnabledFor(logging.DEBUG)


def tells_successes() -> bool:
    """Whether anybody reads that runs end well."""
    return _runs.isEnabledFor(logging.INFO)


def run_started(event: RunStarted) -> None:
    """It has begun."""
    if tells_starts():
        about = _about(event)
        _runs.debug("job %d %s: attempt %d begins", event.job_id, event.task, event.attempt, extra=about)


def run_ended(event: RunEnded) -> None:
    """How it ended."""
    # Successes are the many: nothing is formatted for them unless somebody listens.
    if event.verdict is SUCCEEDED:
        if tells_successes():
            took = short_duration(event.took)
            _runs.info("job %d %s: succeeded in %s", event.job_id, event.task, took, extra=_ended(event))
        return
    why = f": {event.failure.type}: {event.failure.message}" if event.failure else ""
    again = event.reason is None and event.verdict in (Verdict.FAILED, Verdict.CRASHED, Verdict.SNOOZED)
    after = f", {_again(event)}" if again else ""
    if event.reason not in (None, Reason.FAILED, Reason.CRASHED):
        after = f" ({event.reason})"  # of the other two, the verdict says it
    _log.log(
        _level(event),
        "job %d %s: attempt %d %s%s%s",
        event.job_id,
        event.task,
        event.attempt,
        event.verdict,
        after,
        why,
        extra=_ended(event),
        exc_info=_raised(event),
    )


def _raised(event: RunEnded) -> BaseException | None:
    """What trackers that read the log group by, with its stack. A discard was asked for and is no error."""
    if event.failure is None or event.verdict is Verdict.DISCARDED:
        return None
    return event.error or reported(event.failure)


def _again(event: RunEnded) -> str:
    if event.awaits is None:
        return f"again in {short_duration(event.delay)}"
    most = "" if event.delay >= FOREVER else f", at most {short_duration(event.delay)}"
    return f"until event {event.awaits} comes{most}"


def _level(event: RunEnded) -> int:
    if event.reason is not None or event.verdict is Verdict.DEAD:
        return logging.ERROR
    asked_for = event.verdict in (Verdict.SNOOZED, Verdict.DISCARDED, Verdict.STARTED)
    return logging.INFO if asked_for else logging.WARNING


def _about(event: RunStarted | RunEnded) -> dict[str, object]:
    """For those who read the log by machine."""
    return {
        "job_id": event.job_id,
        "task": event.task,
        "queue": event.queue,
        "attempt": event.attempt,
        **({} if event.workflow_id is None else {"workflow_id": event.workflow_id}),
        **origin(event.schedule_id, event.slot_at, event.trace),
    }


def _ended(event: RunEnded) -> dict[str, object]:
    about = _about(event) | {"status": event.verdict.value, "duration": event.took.total_seconds()}
    if event.failure is not None:
        about["error"] = f"{event.failure.type}: {event.failure.message}"
    return about
