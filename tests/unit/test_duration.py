"""Lengths of time as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.duration import duration, format_duration
from mainspring.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("0s", 0),
        (5, 5),
        (0.5, 0.5),
        (timedelta(minutes=1), 60),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert duration(text, "delay") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["-5m", "5 m", "m", "99999999999h", "\u0663m", "P1Y", "PT", "1_000s", "0x5s", "5mm", "inf", "nan", "",
     "5", 1e308, float("nan"), float("inf"), True, None, [], timedelta.max],
)  # fmt: skip
def test_what_is_not_a_duration_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        duration(text, "delay")  # type: ignore[arg-type]

    assert refusal.value.field == "delay"


def test_less_than_the_least_is_refused_with_the_least() -> None:
    with pytest.raises(InvalidArgument, match="at least 1m30s"):
        duration("5s", "lease", least=timedelta(seconds=90))


@given(st.integers(0, 10**12).map(lambda count: timedelta(milliseconds=count)))
def test_what_is_written_is_read_back(length: timedelta) -> None:
    assert duration(format_duration(length), "delay") == length
