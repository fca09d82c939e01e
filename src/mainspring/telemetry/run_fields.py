"""What a log line says of a run: the fields that every logger inside a run knows, the lines of its beginning
and its end, and a failure that another process reported, as an exception."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import datetime
from functools import lru_cache

from mainspring.duration import short_duration
from mainspring.model.job import Claim, Failure, trace_id
from mainspring.model.run import FOREVER, Reason, Verdict
from mainspring.telemetry.events import RunEnded, RunStarted

running: ContextVar[Claim | None] = ContextVar("mainspring_claim", default=None)
"""The claim whose handler this context runs."""
NAMES = (
    "job_id",
    "task",
    "queue",
    "attempt",
    "status",
    "duration",
    "error",
    "schedule_id",
    "slot",
    "workflow_id",
    "trace_id",
)
"""What a record of a run may carry, in the order in which it is written."""


class RunFields(logging.Filter):
    """Puts the run's facts on every record that is made inside it. It lets everything pass, and belongs on a
    handler. In your own dictConfig:

        {"filters": {"run": {"()": "mainspring.telemetry.run_fields.RunFields"}}}
    """

    def filter(self, record: logging.LogRecord) -> bool:
        claim = running.get()
        if claim is not None:
            for name, value in facts(claim).items():
                if not hasattr(record, name):
                    setattr(record, name, value)
        return True


def facts(claim: Claim) -> dict[str, object]:
    """What is known of a run from its claim."""
    return {
        "job_id": claim.job_id,
        "task": claim.task,
        "queue": claim.queue,
        "attempt": claim.attempt,
        **origin(claim.schedule_id, claim.slot_at, claim.trace),
        **({} if claim.workflow_id is None else {"workflow_id": claim.workflow_id}),
    }


def origin(schedule_id: int | None, slot_at: datetime | None, trace: str | None) -> dict[str, object]:
    """Where a run comes from, as far as it has such a thing."""
    found: dict[str, object] = {}
    if schedule_id is not None and slot_at is not None:
        found = {"schedule_id": schedule_id, "slot": slot_at.isoformat()}
    if trace is not None:
        found["trace_id"] = trace_id(trace)
    return found


SUCCEEDED = Verdict.SUCCEEDED  # once a job: before Python 3.12 a member of an enum is as slow as a call
_log = logging.getLogger("mainspring")
_runs = logging.getLogger("mainspring.runs")


def tells_starts() -> bool:
    """Whether the beginning of runs is logged."""
    return _runs.isEnabledFor(logging.DEBUG)


def tells_successes() -> bool:
    """Whether successes are logged."""
    return _runs.isEnabledFor(logging.INFO)


def run_started(event: RunStarted) -> None:
    """It has begun."""
    if tells_starts():
        about = _about(event)
        _runs.debug("job %d %s: attempt %d begins", event.job_id, event.task, event.attempt, extra=about)


def run_ended(event: RunEnded) -> None:
    """How it ended."""
    # Successes are the many: nothing is formatted for them unless they are logged.
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


class Reported(Exception):
    """A failure of which this process has only the report: that of a child process, a timeout in a thread, a
    crash. The class that is raised in its place has the name of the original one."""


class ReportedTraceback(Exception):
    """The cause of a reported failure: its traceback, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def reported(failure: Failure) -> BaseException:
    """An exception that says what the report says, for those who read exceptions."""
    error = _kind(failure.type)(failure.message)
    if failure.traceback:
        error.__cause__ = ReportedTraceback(failure.traceback)
    return error


@lru_cache(maxsize=256)
def _kind(name: str) -> type[Reported]:
    module, _, short_duration = name.rpartition(".")
    return type(short_duration, (Reported,), {"__module__": module or "builtins"})
