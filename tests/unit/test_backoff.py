"""How long a failed job waits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.rules.backoff import delay
from mainspring.tasks.retry import Retry

SECOND = timedelta(seconds=1)


def test_the_wait_grows_by_the_factor_up_to_the_cap() -> None:
    retry = Retry(attempts=9, base="1s", factor=3, cap="20s", jitter=False)

    waits = [delay(retry, failures, 0.5) / SECOND for failures in range(1, 6)]

    assert waits == [1, 3, 9, 20, 20]


def test_jitter_leaves_one_half_certain() -> None:
    retry = Retry(base="8s", factor=1, cap="8s")

    assert delay(retry, 1, 0.0) == 4 * SECOND
    assert delay(retry, 1, 0.5) == 6 * SECOND


@given(st.integers(1, 10**9), st.floats(0, 1, exclude_max=True), st.floats(1, 100))
def test_no_number_of_failures_breaks_the_bounds(failures: int, fraction: float, factor: float) -> None:
    retry = Retry(base="2s", factor=factor, cap="1h")

    assert SECOND <= delay(retry, failures, fraction) <= timedelta(hours=1)


def test_a_base_of_zero_tries_again_at_once() -> None:
    assert delay(Retry(base=0), 5, 0.9) == timedelta()


def test_the_defaults_try_for_about_a_day() -> None:
    assert Retry() == Retry(attempts=42, base="5s", factor=2.0, cap="1h", jitter=True)

    shortest, average, longest = (
        sum((delay(Retry(), n, fraction) for n in range(1, 42)), timedelta()) for fraction in (0, 0.5, 1)
    )
    assert timedelta(hours=24) < average < timedelta(hours=24, minutes=30)
    assert timedelta(hours=16) < shortest < longest < timedelta(hours=33)


@given(st.floats(0, 1))
def test_the_first_retry_of_the_defaults_comes_within_seconds(fraction: float) -> None:
    assert 2.5 * SECOND <= delay(Retry(), 1, fraction) <= 5 * SECOND


@given(st.integers(1, 60), st.floats(0, 1))
def test_two_attempts_of_the_defaults_are_never_more_than_an_hour_apart(
    failures: int, fraction: float
) -> None:
    assert delay(Retry(), failures, fraction) <= timedelta(hours=1)


def test_three_attempts_alone_are_three_attempts_within_seconds() -> None:
    retry = Retry(attempts=3)

    assert retry.attempts == 3
    assert delay(retry, 1, 1.0) + delay(retry, 2, 1.0) == 15 * SECOND


def test_a_short_cap_alone_shortens_the_base() -> None:
    assert Retry(cap="2s") == Retry(base="2s", cap="2s")


@given(st.integers(1, 200_000), st.floats(0, 1))
def test_attempts_within_a_period_begin_within_it_whatever_the_jitter(seconds: int, fraction: float) -> None:
    period = seconds * SECOND
    attempts = Retry().within(period)

    assert sum((delay(Retry(), n, fraction) for n in range(1, attempts)), timedelta()) < period
    assert attempts == 42 or Retry(attempts=attempts + 1).within(period) == attempts


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"attempts": 0}, "retry.attempts"),
        ({"attempts": 1_000_000}, "retry.attempts"),
        ({"attempts": True}, "retry.attempts"),
        ({"attempts": "3"}, "retry.attempts"),
        ({"base": "soon"}, "retry.base"),
        ({"base": "-1s"}, "retry.base"),
        ({"base": timedelta(seconds=-1)}, "retry.base"),
        ({"factor": 0.5}, "retry.factor"),
        ({"factor": float("nan")}, "retry.factor"),
        ({"factor": float("inf")}, "retry.factor"),
        ({"factor": True}, "retry.factor"),
        ({"cap": "-1s"}, "retry.cap"),
        ({"base": "1m", "cap": "1s"}, "retry.cap"),
    ],
)
def test_an_impossible_policy_is_refused_where_it_is_written(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Retry(**options)  # type: ignore[arg-type]

    assert refusal.value.field == field
