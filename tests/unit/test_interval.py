"""Intervals count real time from a fixed anchor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.codec import decode
from mainspring.triggers.intervals import EPOCH, Every

PERIOD = st.timedeltas(timedelta(seconds=1), timedelta(days=400))
MOMENT = st.datetimes(datetime(1960, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  bounds are naive


@given(PERIOD, MOMENT, MOMENT)
def test_slots_are_whole_periods_from_the_anchor_and_strictly_ahead(
    period: timedelta, anchor: datetime, moment: datetime
) -> None:
    slot = Every(period, anchor).next_after(moment)

    assert slot is not None
    assert moment < slot <= moment + period
    assert (slot - anchor) % period == timedelta()


@given(PERIOD, MOMENT)
def test_an_encoded_interval_is_read_back_equal(period: timedelta, anchor: datetime) -> None:
    every = Every(period, anchor)

    assert decode(every.encode()) == every


@given(PERIOD, MOMENT, st.integers(-5, 5))
def test_anchors_that_give_the_same_slots_give_the_same_text(
    period: timedelta, anchor: datetime, periods: int
) -> None:
    assert Every(period, anchor).encode() == Every(period, anchor + periods * period).encode()


def test_a_slot_is_followed_by_the_next_one() -> None:
    assert Every(timedelta(minutes=5)).next_after(EPOCH) == EPOCH + timedelta(minutes=5)


def test_there_is_nothing_after_the_end_of_time() -> None:
    assert Every(timedelta(days=1)).next_after(datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize(
    "period", [timedelta(), timedelta(seconds=-5), timedelta(milliseconds=999), timedelta.max, 5]
)
def test_a_period_below_a_second_or_beyond_a_century_is_refused(period: timedelta) -> None:
    with pytest.raises(InvalidArgument, match="every"):
        Every(period)


def test_an_anchor_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="anchor"):
        Every(timedelta(hours=1), datetime(2026, 1, 1))  # noqa: DTZ001
