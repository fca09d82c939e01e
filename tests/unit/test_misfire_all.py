"""Where every missed slot counts: one by one inside the window, the rest skipped together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.model.schedule import Opening, Skipped, Spec
from mainspring.triggers.intervals import Every
from mainspring.triggers.misfire import open_spec

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
HOURLY = Every(HOUR)
SLOT = datetime(2026, 11, 15, 7, tzinfo=UTC)


def opened(catch_up: timedelta | None, now: datetime, *, tripped: bool = False) -> Opening:
    spec = Spec(
        id=7,
        trigger=HOURLY.encode(),
        next_at=SLOT,
        following_at=SLOT + HOUR,
        one_by_one=True,
        catch_up=catch_up,
        tripped=tripped,
    )
    return open_spec(spec, HOURLY, now)


def test_a_missed_slot_inside_the_window_is_opened_for_itself() -> None:
    opening = opened(10 * HOUR, SLOT + 5 * HOUR)

    assert (opening.slot_at, opening.since, opening.next_at, opening.skip) == (SLOT, None, SLOT + HOUR, None)


def test_without_a_window_every_missed_slot_is_opened_for_itself_however_old() -> None:
    opening = opened(None, SLOT + timedelta(days=400))

    assert (opening.slot_at, opening.since, opening.next_at, opening.skip) == (SLOT, None, SLOT + HOUR, None)


def test_slots_older_than_the_window_are_opened_together_for_each_schedule_to_decide() -> None:
    opening = opened(2 * HOUR, SLOT + 5 * HOUR)

    assert (opening.slot_at, opening.since) == (SLOT + 2 * HOUR, SLOT)
    assert (opening.next_at, opening.skip) == (SLOT + 3 * HOUR, None)


def test_a_single_slot_older_than_the_window_stands_for_itself() -> None:
    opening = opened(HOUR, SLOT + 1.5 * HOUR)

    assert (opening.slot_at, opening.since, opening.skip) == (SLOT, None, None)


def test_where_the_breaker_has_tripped_for_all_the_missed_slots_are_left_out_together() -> None:
    opening = opened(None, SLOT + 50 * HOUR + 5 * SECOND, tripped=True)

    assert (opening.slot_at, opening.since, opening.skip) == (SLOT + 49 * HOUR, SLOT, Skipped.BREAKER)
    assert opening.next_at == SLOT + 50 * HOUR, "that one is late, and not missed"
