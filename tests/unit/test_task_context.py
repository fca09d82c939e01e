"""What a handler learns about its run."""

from __future__ import annotations

import hashlib
import logging
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mainspring.errors import InvalidArgument
from mainspring.tasks.context import Context


def context(**facts: object) -> Context:
    given: dict[str, object] = {
        "job_id": 7, "task": "bill", "queue": "default", "attempt": 1, "max_attempts": 3, "fence": 4,
        "log": logging.LoggerAdapter(logging.getLogger("test"), {}), "stop": threading.Event(),
    }  # fmt: skip
    return Context(**(given | facts))  # type: ignore[arg-type]


SLOT = datetime(2026, 11, 15, 7, tzinfo=UTC)


def test_the_token_of_a_slot_names_database_schedule_and_instant() -> None:
    token = context(database_id="d1", schedule_id=12, slot=SLOT).token

    assert token == hashlib.sha256(b"d1|12|2026-11-15T07:00:00+00:00").hexdigest()
    assert token != context(database_id="d2", schedule_id=12, slot=SLOT).token


def test_the_token_of_a_slot_is_the_same_for_every_job_attempt_and_zone() -> None:
    elsewhere = SLOT.astimezone(timezone(timedelta(hours=9)))

    one = context(schedule_id=12, slot=SLOT).token
    two = context(schedule_id=12, slot=elsewhere, job_id=8, attempt=2, fence=9).token

    assert one == two


def test_the_token_of_a_job_put_in_by_hand_names_database_and_job() -> None:
    one = context(database_id="d1", enqueued_at=SLOT)

    assert one.token == hashlib.sha256(b"d1|job|7|2026-11-15T07:00:00+00:00").hexdigest()
    others = [{"job_id": 8}, {"database_id": "d2"}, {"enqueued_at": SLOT + timedelta(microseconds=1)}]
    found = {context(**{"database_id": "d1", "enqueued_at": SLOT, **facts}).token for facts in [{}, *others]}
    assert len(found) == 4


def test_a_number_that_a_failover_lost_and_gave_anew_has_another_token() -> None:
    lost, given_anew = (context(database_id="d", enqueued_at=SLOT + timedelta(hours=n)) for n in range(2))

    assert lost.job_id == given_anew.job_id
    assert lost.token != given_anew.token


def test_it_is_cancelled_once_the_signal_is_set() -> None:
    stop = threading.Event()
    run = context(stop=stop)

    assert not run.cancelled
    stop.set()
    assert run.cancelled


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        context().attempt = 2  # type: ignore[misc]


def test_progress_reaches_whoever_listens() -> None:
    heard: list[tuple[float, str]] = []
    run = context(on_progress=lambda fraction, note: heard.append((fraction, note)))

    run.progress(0)
    run.progress(0.4, "3 of 7 files")
    run.progress(1, "x" * 200)

    assert heard == [(0.0, ""), (0.4, "3 of 7 files"), (1.0, "x" * 200)]


def test_progress_that_nobody_hears_is_checked_all_the_same() -> None:
    context().progress(0.5, "half")

    with pytest.raises(InvalidArgument):
        context().progress(2)


@pytest.mark.parametrize("fraction", [float("nan"), float("inf"), -0.1, 1.1, 40, True, "0.4", None], ids=repr)
def test_a_fraction_is_a_number_from_0_to_1(fraction: object) -> None:
    with pytest.raises(InvalidArgument, match=r"progress.fraction: expected a number from 0 to 1"):
        context().progress(fraction)  # type: ignore[arg-type]


@pytest.mark.parametrize("note", ["x" * 201, "a\0b", "\ud800", 5, None, b"x"], ids=ascii)
def test_a_note_is_short_text_that_can_be_stored(note: object) -> None:
    with pytest.raises(InvalidArgument, match=r"progress.note: expected text of at most 200"):
        context().progress(0.5, note)  # type: ignore[arg-type]
