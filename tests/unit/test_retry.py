"""The retry language: shapes, rules by exception, and what is refused where it is written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.rules.backoff import LONGEST_RETRY_AFTER, delay
from mainspring.tasks.retry import On, Retry

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def waits(retry: Retry, count: int = 5) -> list[float]:
    return [delay(retry, failures, 0.5) / SECOND for failures in range(1, count + 1)]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("exponential", [10, 20, 40, 60, 60]),
        ("linear", [10, 20, 30, 40, 50]),
        ("fixed", [10, 10, 10, 10, 10]),
        (["5s", "1m", "30s"], [5, 60, 30, 30, 30]),
        ((2,), [2, 2, 2, 2, 2]),
    ],
)
def test_each_shape_has_its_waits(shape: Any, expected: list[float]) -> None:
    assert waits(Retry(base="10s", cap="60s", shape=shape, jitter=False)) == expected


def test_a_list_of_delays_is_one_attempt_longer_and_kept_to_exactly() -> None:
    retry = Retry(shape=["10s", "1m", "3h"])

    assert (retry.attempts, retry.jitter) == (4, False)
    assert waits(retry, 3) == [10, 60, 3 * 3600]


def test_what_is_asked_for_beside_a_list_counts() -> None:
    retry = Retry(attempts=2, shape=["10s", "3h"], cap="1m", jitter=True)

    assert (retry.attempts, retry.jitter) == (2, True)
    assert waits(retry, 2) == [7.5, 45]


@given(st.integers(1, 10**12), st.sampled_from(["exponential", "linear", "fixed", ["1s", "9h"]]))
def test_no_shape_goes_beyond_its_cap(failures: int, shape: Any) -> None:
    retry = Retry(base="1s", cap="1h", shape=shape)

    assert (
        timedelta() <= delay(retry, failures, 0.999) <= timedelta(hours=9 if isinstance(shape, list) else 1)
    )


@pytest.mark.parametrize(("asked", "waited"), [(None, 10), (3, 10), (90, 90), (10**8, DAY / SECOND)], ids=str)
def test_a_failure_may_ask_for_a_longer_wait_up_to_a_day(asked: int | None, waited: float) -> None:
    retry = Retry(base="10s", jitter=False)
    at_least = None if asked is None else timedelta(seconds=asked)

    assert delay(retry, 1, 0.5, at_least=at_least) / SECOND == waited
    assert LONGEST_RETRY_AFTER == DAY


class Flaky(ConnectionError):
    """A subclass, for isinstance."""


POLICY = Retry(
    attempts=3,
    base="2s",
    rules=[
        On((ConnectionError, TimeoutError), attempts=10, base="5s", cap="2h"),
        On(ValueError, give_up=True),
        On(LookupError, shape="fixed", jitter=False),
        On(OSError, shape=["1s", "5h"]),
    ],
)


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (Flaky(), 0),
        (TimeoutError(), 0),
        (UnicodeDecodeError("utf-8", b"", 0, 1, ""), 1),
        (KeyError(), 2),
        (FileNotFoundError(), 3),
        (RuntimeError(), None),
        (SystemExit(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_first_rule_that_names_the_class_or_one_above_it_counts(
    error: BaseException, rule: int | None
) -> None:
    assert POLICY.match(error) == rule


def test_a_rule_changes_what_it_names_and_leaves_the_rest() -> None:
    ruled = POLICY.under(0)

    assert (ruled.attempts, ruled.base, ruled.cap) == (10, 5 * SECOND, timedelta(hours=2))
    assert (ruled.factor, ruled.jitter, ruled.shape) == (2.0, True, "exponential")
    assert POLICY.under(None) is POLICY
    assert [POLICY.gives_up(place) for place in (None, 0, 1)] == [False, False, True]


def test_a_rule_with_a_list_brings_its_own_attempts_and_cap() -> None:
    ruled = POLICY.under(3)

    assert (ruled.attempts, ruled.jitter) == (3, False)
    assert waits(ruled, 2) == [1, 5 * 3600]


@pytest.mark.parametrize(
    ("write", "field"),
    [
        (lambda: On("ConnectionError"), "rule"),
        (lambda: On(()), "rule"),
        (lambda: On((ValueError, int)), "rule"),
        (lambda: On(ValueError()), "rule"),
        (lambda: On(ValueError, attempts=0), "rule.attempts"),
        (lambda: On(ValueError, base="soon"), "rule.base"),
        (lambda: On(ValueError, factor=0), "rule.factor"),
        (lambda: On(ValueError, cap=-1), "rule.cap"),
        (lambda: On(ValueError, shape="wild"), "rule.shape"),
        (lambda: On(ValueError, give_up=True, attempts=3), "rule.give_up"),
        (lambda: Retry(shape="wild"), "retry.shape"),
        (lambda: Retry(shape=[]), "retry.shape"),
        (lambda: Retry(shape=["soon"]), "retry.shape"),
        (lambda: Retry(shape=[1] * 5000), "retry.shape"),
        (lambda: Retry(jitter="no"), "retry.jitter"),
        (lambda: On(ValueError, jitter=0), "rule.jitter"),
        (lambda: On(ValueError, give_up="no"), "rule.give_up"),
        (lambda: Retry(rules=On(ValueError)), "retry.rules"),
        (lambda: Retry(rules="rules"), "retry.rules"),
        (lambda: Retry(rules=[ValueError]), "retry.rules"),
        (lambda: Retry(rules=[On(Exception), On(ValueError, give_up=True)]), "retry.rules"),
        (lambda: Retry(rules=[On(ValueError), On(ValueError)]), "retry.rules"),
        (lambda: Retry(rules=[On(ValueError, base="2h")]), "rule.cap"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(write: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        write()

    assert refusal.value.field == field


def test_a_rule_that_adds_a_class_to_an_earlier_one_can_be_reached() -> None:
    retry = Retry(rules=[On(ConnectionError, give_up=True), On((ConnectionError, KeyError), attempts=9)])

    assert (retry.match(ConnectionError()), retry.match(KeyError())) == (0, 1)
