"""What a raised exception says about its run."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from mainspring.errors import InvalidArgument
from mainspring.model.run import Discarded, Failed, Snoozed
from mainspring.tasks.context import Discard, Snooze
from mainspring.tasks.retry import On, Retry
from mainspring.worker.outcomes import outcome_of

RETRY = Retry(rules=[On(KeyError, give_up=True), On(OSError, attempts=9)])
SENT = "Sun, 15 Nov 2026 12:00:00 GMT"


class Told(Exception):
    """An exception with whatever attributes the test gives it."""

    def __init__(self, **said: Any) -> None:
        super().__init__("told")
        self.__dict__.update(said)


def failed(error: BaseException) -> Failed:
    outcome = outcome_of(error, RETRY)
    assert isinstance(outcome, Failed)
    return outcome


def seconds(error: BaseException) -> float | None:
    wait = failed(error).retry_after
    return None if wait is None else wait.total_seconds()


def answered(headers: object) -> Told:
    return Told(response=SimpleNamespace(headers=headers))


def test_a_plain_exception_says_nothing() -> None:
    outcome = failed(RuntimeError("boom"))

    assert (outcome.permanent, outcome.retry_after, outcome.rule) == (False, None, None)
    assert (outcome.failure.type, outcome.failure.message) == ("RuntimeError", "boom")


def test_a_rule_is_named_by_its_place() -> None:
    assert (failed(KeyError()).permanent, failed(KeyError()).rule) == (True, 0)
    assert (failed(ConnectionError()).permanent, failed(ConnectionError()).rule) == (False, 1)


@pytest.mark.parametrize(("value", "permanent"), [(True, True), (False, False), (1, False), ("yes", False)])
def test_only_true_is_permanent(value: object, permanent: bool) -> None:
    assert failed(Told(permanent=value)).permanent is permanent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (timedelta(minutes=2), 120),
        (30, 30),
        (1.5, 1.5),
        (0, 0),
        (timedelta(seconds=-1), None),
        (-1, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**30, None),
        ("30", None),
        ([], None),
    ],
    ids=str,
)
def test_an_exception_may_say_how_long_to_wait(value: object, expected: float | None) -> None:
    assert seconds(Told(retry_after=value)) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": " 7 "}, 7),
        ({"Retry-After": "Sun, 15 Nov 2026 12:05:00 GMT", "Date": SENT}, 300),
        ({"Retry-After": "Sun, 15 Nov 2026 11:00:00 GMT", "Date": SENT}, None),
        ({"Retry-After": "Sun, 15 Nov 2026 12:05:00 GMT"}, None),
        ({"Retry-After": "soon", "Date": SENT}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": b"120"}, None),
        ({}, None),
        (None, None),
        ("Retry-After: 5", None),
        (42, None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_response_may_say_it_in_its_headers(headers: object, expected: float | None) -> None:
    assert seconds(answered(headers)) == expected


def test_what_the_exception_says_itself_goes_before_its_response() -> None:
    told = answered({"Retry-After": "120"})
    told.retry_after = 5  # type: ignore[attr-defined]

    assert seconds(told) == 5


class Hostile(Exception):
    """Raises whenever it is asked something."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("permanent", "retry_after", "response"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


def test_an_exception_that_does_not_want_to_be_asked_says_nothing() -> None:
    outcome = failed(Hostile())

    assert (outcome.permanent, outcome.retry_after) == (False, None)


def test_headers_that_raise_say_nothing() -> None:
    class Headers:
        def get(self, name: str) -> str:
            raise KeyError(name)

    assert seconds(answered(Headers())) is None


def test_a_snooze_is_no_failure() -> None:
    assert outcome_of(Snooze("10m"), RETRY) == Snoozed(delay=timedelta(minutes=10))


def test_a_discard_keeps_its_reason() -> None:
    outcome = outcome_of(Discard("the order was withdrawn"), RETRY)

    assert isinstance(outcome, Discarded)
    assert (outcome.failure.type, outcome.failure.message) == ("Discard", "the order was withdrawn")
    assert outcome.failure.traceback == ""


@pytest.mark.parametrize("delay", ["soon", 0, -1, "0s", None])
def test_a_snooze_must_be_a_while(delay: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^snooze: "):
        Snooze(delay)


@pytest.mark.parametrize("reason", ["", "  ", None, 7])
def test_a_discard_wants_a_reason(reason: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^discard: "):
        Discard(reason)
