"""Missed slots and business calendars together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mainspring.model.schedule import Skipped, Spec
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.intervals import Every
from mainspring.triggers.misfire import open_spec
from mainspring.triggers.rolled import Roll, Rolled

WEEKDAYS = Calendar(name="weekdays", version=1)
FRIDAY = datetime(2026, 11, 13, 22, tzinfo=UTC)
SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def spec(trigger: Rolled, next_at: datetime) -> Spec:
    following = trigger.next_after(next_at)
    return Spec(id=7, trigger=trigger.encode(), next_at=next_at, following_at=following, planned=True)


def test_fridays_missed_slot_is_not_lost_over_the_weekend() -> None:
    hourly = Rolled(Every(HOUR), WEEKDAYS, Roll.SKIP)

    opening = open_spec(spec(hourly, FRIDAY), hourly, SUNDAY)

    assert (opening.slot_at, opening.since, opening.skip) == (FRIDAY + HOUR, FRIDAY, None)
    assert opening.next_at == FRIDAY + 2 * HOUR


def test_slots_that_are_all_on_holidays_are_skipped_together() -> None:
    hourly = Rolled(Every(HOUR), WEEKDAYS, Roll.SKIP)
    saturday = FRIDAY + 2 * HOUR

    opening = open_spec(spec(hourly, saturday), hourly, SUNDAY)

    assert (opening.slot_at, opening.since, opening.skip) == (SUNDAY, saturday, Skipped.CALENDAR)


def test_a_punctual_slot_on_a_holiday_is_skipped() -> None:
    hourly = Rolled(Every(HOUR), WEEKDAYS, Roll.SKIP)

    assert open_spec(spec(hourly, SUNDAY), hourly, SUNDAY).skip is Skipped.CALENDAR


@given(
    period=st.integers(60, 5 * 86_400), back=st.integers(0, 30 * 86_400), ahead=st.integers(0, 30 * 86_400)
)
def test_the_newest_kept_slot_is_the_one_a_walk_finds(period: int, back: int, ahead: int) -> None:
    trigger = Rolled(Every(timedelta(seconds=period)), WEEKDAYS, Roll.SKIP)
    first = trigger.next_after(SUNDAY - timedelta(seconds=back))
    assert first is not None
    now = SUNDAY + timedelta(seconds=ahead)
    slots, slot = [], first
    while slot <= now:
        slots.append(slot)
        following = trigger.next_after(slot)
        assert following is not None
        slot = following
    if len(slots) < 2 or now - first <= timedelta(seconds=10):
        return
    kept = [each for each in slots if not trigger.is_skipped(each)]

    opening = open_spec(spec(trigger, first), trigger, now)

    assert opening.slot_at == (kept[-1] if kept else slots[-1])
    assert opening.skip == (None if kept else Skipped.CALENDAR)
