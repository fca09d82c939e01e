"""What a handler learns about its run."""

from __future__ import annotations

import hashlib
import logging
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mainspring.declare.context import Context


def context(**facts: object) -> Context:
    given: dict[str, object] = {
        "job_id": 7, "task": "bill", "queue": "default", "attempt": 1, "max_attempts": 3, "fence": 4,
        "log": logging.LoggerAdapter(logging.getLogger("test"), {}), "stop": threading.Event(),
    }  # fmt: skip
    return Context(**(given | facts))  # type: ignore[arg-type]


SLOT = datetime(2026, 11, 15, 7, tzinfo=UTC)


def test_the_token_of_a_slot_names_schedule_and_instant() -> None:
    token = context(schedule_id=12, slot=SLOT).token

    assert token == hashlib.sha256(b"12|2026-11-15T07:00:00+00:00").hexdigest()


def test_the_token_of_a_slot_is_the_same_for_every_job_attempt_and_zone() -> None:
    elsewhere = SLOT.astimezone(timezone(timedelta(hours=9)))

    one = context(schedule_id=12, slot=SLOT).token
    two = context(schedule_id=12, slot=elsewhere, job_id=8, attempt=2, fence=9).token

    assert one == two


def test_the_token_of_a_job_put_in_by_hand_names_the_job() -> None:
    assert context().token == hashlib.sha256(b"job|7").hexdigest()
    assert context(job_id=8).token != context().token


def test_it_is_cancelled_once_the_signal_is_set() -> None:
    stop = threading.Event()
    run = context(stop=stop)

    assert not run.cancelled
    stop.set()
    assert run.cancelled


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        context().attempt = 2  # type: ignore[misc]
