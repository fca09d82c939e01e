"""Triggers between a start and an end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.codec import decode
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import EPOCH, Every, Instants
from mainspring.triggers.trigger import Bounded

HOURLY = Every(timedelta(hours=1))
DAY, HOUR, TICK = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MOMENT = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(MOMENT, st.timedeltas(HOUR, 90 * DAY), MOMENT)
def test_its_slots_are_those_of_the_trigger_inside_the_bounds(
    start: datetime, length: timedelta, moment: datetime
) -> None:
    trigger = Bounded(HOURLY, start, start + length)
    expected = HOURLY.next_after(max(moment, start - TICK))

    assert trigger.next_after(moment) == (expected if expected and expected < start + length else None)
    assert decode(trigger.encode()) == trigger


def test_a_slot_at_the_start_counts_and_one_at_the_end_does_not() -> None:
    trigger = Bounded(HOURLY, NOON, NOON + HOUR)

    assert trigger.next_after(EPOCH) == NOON
    assert trigger.next_after(NOON) is None


def test_bounds_around_bounds_are_one() -> None:
    nested = Bounded(Bounded(HOURLY, NOON, NOON + 9 * HOUR), NOON - DAY, NOON + DAY)

    assert nested == Bounded(HOURLY, NOON, NOON + 9 * HOUR)


def test_one_bound_is_enough() -> None:
    assert Bounded(Cron("@daily"), start=NOON).next_after(EPOCH) == datetime(2026, 11, 16, tzinfo=UTC)
    assert Bounded(Cron("@daily"), end=NOON).next_after(NOON) is None


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        (None, None, "start"),
        (NOON, NOON, "end"),
        (NOON + HOUR, NOON, "end"),
        (NOON + TICK, NOON + HOUR, "end"),
        (datetime(2026, 1, 1), None, "start"),  # noqa: DTZ001
        (None, "2026-01-01", "end"),
    ],
)
def test_bounds_that_hold_nothing_are_refused(start: datetime, end: datetime, field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Bounded(HOURLY, start, end)

    assert refusal.value.field == field


def test_a_start_after_the_last_slot_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="room for at least one slot"):
        Bounded(Instants((NOON,)), start=NOON + HOUR)
