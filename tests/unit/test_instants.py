"""Instants one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.codec import decode
from mainspring.triggers.intervals import MOST_INSTANTS, Instants

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MOMENTS = st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1, max_size=20)


@given(MOMENTS, st.datetimes(timezones=st.just(UTC)))
def test_the_next_is_the_least_that_is_later(moments: list[datetime], moment: datetime) -> None:
    assert Instants(tuple(moments)).next_after(moment) == min(
        (each for each in moments if each > moment), default=None
    )


@given(MOMENTS)
def test_encoded_instants_are_read_back_equal(moments: list[datetime]) -> None:
    trigger = Instants(tuple(moments))

    assert decode(trigger.encode()) == trigger


def test_order_repetition_and_offset_do_not_count() -> None:
    berlin = NOON.astimezone(timezone(HOUR))

    assert Instants((NOON + HOUR, berlin, NOON)).encode() == Instants((NOON, NOON + HOUR)).encode()


@pytest.mark.parametrize(
    "moments",
    [(), (datetime(2026, 1, 1),), ("2026-01-01",), tuple(NOON + n * HOUR for n in range(MOST_INSTANTS + 1))],  # noqa: DTZ001
    ids=["none", "naive", "text", "too many"],
)
def test_what_names_no_instants_is_refused(moments: tuple[datetime, ...]) -> None:
    with pytest.raises(InvalidArgument, match="at:"):
        Instants(moments)
