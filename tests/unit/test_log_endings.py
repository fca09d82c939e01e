"""What the log says of the rarer endings, and at which level."""

from __future__ import annotations

import logging
from datetime import timedelta

import msgspec
import pytest

from mainspring.model.job import Failure
from mainspring.model.run import FOREVER, Reason, Verdict
from mainspring.model.schedule import Skipped
from mainspring.telemetry.events import (
    DeadLettersCounted,
    Event,
    JobsExpired,
    JobsQuarantined,
    RunEnded,
    SlotsDropped,
)
from mainspring.telemetry.log import log_event
from mainspring.testing.clock import START

MINUTE = timedelta(minutes=1)
BOOM = Failure(type="ValueError", message="boom")


def ended(verdict: Verdict, reason: Reason | None = None, failure: Failure | None = None) -> RunEnded:
    return RunEnded(
        job_id=7,
        task="t",
        attempt=2,
        verdict=verdict,
        took=MINUTE,
        delay=MINUTE,
        failure=failure,
        reason=reason,
    )


def counted(count: int, grown: int) -> DeadLettersCounted:
    return DeadLettersCounted(count=count, grown=grown, within=MINUTE, most=100)


@pytest.mark.parametrize(
    ("event", "level", "line"),
    [
        (ended(Verdict.SNOOZED), logging.INFO, "job 7 t: attempt 2 snoozed, again in 60.0 s"),
        (
            msgspec.structs.replace(ended(Verdict.SNOOZED), awaits="paid"),
            logging.INFO,
            "job 7 t: attempt 2 snoozed, until event paid comes, at most 60.0 s",
        ),
        (
            msgspec.structs.replace(ended(Verdict.SNOOZED), awaits="paid", delay=FOREVER),
            logging.INFO,
            "job 7 t: attempt 2 snoozed, until event paid comes",
        ),
        (
            ended(Verdict.DISCARDED, failure=BOOM),
            logging.INFO,
            "job 7 t: attempt 2 discarded: ValueError: boom",
        ),
        (
            ended(Verdict.CRASHED, failure=BOOM),
            logging.WARNING,
            "job 7 t: attempt 2 crashed, again in 60.0 s: ValueError: boom",
        ),
        (
            ended(Verdict.CRASHED, Reason.CRASHED),
            logging.ERROR,
            "job 7 t: attempt 2 crashed",
        ),
        (ended(Verdict.DEAD, Reason.EXPIRED), logging.ERROR, "job 7 t: attempt 2 dead (expired)"),
        (ended(Verdict.DEAD, Reason.FAILED), logging.ERROR, "job 7 t: attempt 2 dead"),
        (
            JobsQuarantined(job_ids=(7,)),
            logging.ERROR,
            "job 7: quarantined, for it crashed too often; see `mainspring dead show`",
        ),
        (JobsExpired(job_ids=(7,)), logging.ERROR, "job 7: expired before a worker took it"),
        (counted(3, 2), logging.WARNING, "dead letters: 3, 2 more within 1m"),
        (counted(100, 2), logging.WARNING, "dead letters: at least 100, 2 more within 1m"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_ending_is_one_line(event: Event, level: int, line: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mainspring")

    log_event(event)

    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(level, line)]


def test_a_count_that_did_not_grow_is_for_those_who_plot(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mainspring")

    log_event(counted(3, 0))

    assert caplog.records == []


@pytest.mark.parametrize("reason", [Skipped.TOO_LATE, Skipped.BREAKER])
def test_dropped_slots_are_a_warning_that_names_their_schedules(
    caplog: pytest.LogCaptureFixture, reason: Skipped
) -> None:
    names = tuple(f"s{number}" for number in range(7))
    event = SlotsDropped(slot_at=START, since=START - MINUTE, reason=reason, schedules=9, told=names)

    with caplog.at_level(logging.INFO, "mainspring"):
        log_event(event)
        log_event(msgspec.structs.replace(event, told=()))  # told a moment ago

    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(
        "s0, s1, s2, s3, s4 and 2 more: the missed slots 2029-12-31T23:59:00+00:00 to "
        f"2030-01-01T00:00:00+00:00 were dropped ({reason}): "
    )
    assert ("go-on NAME" in record.getMessage()) == (reason is Skipped.BREAKER)
