"""Where every missed slot counts: one by one inside the window, the rest skipped together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.model.schedule import Opening, Skipped, Spec
from mainspring.trigger.interval import Every
from mainspring.trigger.misfire import open_spec

HOUR = timedelta(hours=1)
HOURLY = Every(HOUR)
SLOT = datetime(2026, 11, 15, 7, tzinfo=UTC)


def spec(catch_up: timedelta) -> Spec:
    return Spec(
        id=7, trigger=HOURLY.encode(), next_at=SLOT, following_at=SLOT + HOUR, planned=True, catch_up=catch_up
    )


def opened(catch_up: timedelta, now: datetime, breaker: timedelta = 100 * HOUR) -> Opening:
    return open_spec(spec(catch_up), HOURLY, now, breaker=breaker)


def test_a_missed_slot_inside_the_window_is_opened_for_itself() -> None:
    opening = opened(10 * HOUR, SLOT + 5 * HOUR)

    assert (opening.slot_at, opening.since, opening.next_at, opening.skip) == (SLOT, None, SLOT + HOUR, None)


def test_slots_older_than_the_window_are_skipped_together() -> None:
    opening = opened(2 * HOUR, SLOT + 5 * HOUR)

    assert (opening.slot_at, opening.since) == (SLOT + 2 * HOUR, SLOT)
    assert (opening.next_at, opening.skip) == (SLOT + 3 * HOUR, Skipped.MISFIRE)


def test_a_single_slot_older_than_the_window_stands_for_itself() -> None:
    opening = opened(HOUR, SLOT + 1.5 * HOUR)

    assert (opening.slot_at, opening.since, opening.skip) == (SLOT, None, Skipped.MISFIRE)


def test_the_breaker_sheds_what_the_window_would_let_through() -> None:
    opening = opened(100 * HOUR, SLOT + 50 * HOUR, breaker=3 * HOUR)

    assert (opening.slot_at, opening.skip) == (SLOT + 46 * HOUR, Skipped.BREAKER)
