"""Exceptions of users whose methods and attributes raise what ends a program: no place that asks one may pass
that on."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring.entropy import SeededEntropy
from mainspring.model.job import Failure
from mainspring.model.run import Discarded, Failed
from mainspring.process.loop import Cycle
from mainspring.tasks.context import Discard
from mainspring.tasks.retry import On, Retry
from mainspring.telemetry.events import LeaseRenewed, LoopFailed, Telemetry
from mainspring.telemetry.run_fields import reported
from mainspring.worker.children import runner
from mainspring.worker.outcomes import failed, failure_of, outcome_of, shown_in_log, suspension
from tests.engine.kit import Heard

ENDS: list[type[BaseException]] = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    BaseException,
]
ASKED = [
    "__str__",
    "__repr__",
    "__getattribute__",
    "__cause__",
    "__context__",
    "__notes__",
    "__traceback__",
    "__suppress_context__",
    "__class__",
    "args",
    "with_traceback",
    "retry_after",
    "permanent",
    "response",
]


def hostile(name: str, ending: type[BaseException], base: type[BaseException] = Exception) -> BaseException:
    """An exception that was raised, and raises that when it is asked for this."""

    def raises(self: object, *_: object) -> Any:
        raise ending

    methods = ("__str__", "__repr__", "__getattribute__", "with_traceback")
    kind = type("Hostile", (base,), {name: raises if name in methods else property(raises)})
    error = kind("boom") if base is Exception else kind("a", [ValueError("inner")])
    try:
        raise error
    except BaseException:
        return sys.exc_info()[1]  # type: ignore[return-value]


EVERY = pytest.mark.parametrize("ending", ENDS), pytest.mark.parametrize("name", ASKED)


def every(test: Any) -> Any:
    """For each thing that may be asked of an exception, and each way to end a program."""
    for mark in EVERY:
        test = mark(test)
    return test


@every
def test_a_hostile_exception_becomes_a_failure_with_its_type(name: str, ending: type[BaseException]) -> None:
    error = hostile(name, ending)
    failure = failure_of(error, frames_to_hide=1)

    assert failure.type.endswith("Hostile")
    assert failure.message in ("boom", f"(its message could not be had: {_said(failure.message)})")
    shown = shown_in_log(error, failure)
    assert shown is None or shown is error


def _said(message: str) -> str:
    return message.rpartition(" ")[2].rstrip(")")


@every
def test_a_hostile_exception_is_a_failed_run(name: str, ending: type[BaseException]) -> None:
    error = hostile(name, ending)
    outcome = outcome_of(error, Retry(rules=[On(KeyError, give_up=True)]), frames_to_hide=1)

    assert isinstance(outcome, Failed)
    assert outcome.failure.type.endswith("Hostile")
    assert failed(outcome.failure, error, Retry()).permanent is False
    assert runner._raised(error, Retry())[0].failure == outcome.failure  # type: ignore[union-attr]


@every
def test_a_hostile_group_is_a_failed_run(name: str, ending: type[BaseException]) -> None:
    assert isinstance(outcome_of(hostile(name, ending, ExceptionGroup), Retry()), Failed)


def test_a_group_that_will_not_be_split_is_a_failed_run() -> None:
    class Whole(ExceptionGroup[Any]):
        def split(self, *_: object) -> Any:
            raise SystemExit

    error = Whole("a", [ValueError("b")])
    with pytest.raises(SystemExit):
        suspension(error)
    assert isinstance(outcome_of(error, Retry()), Failed)


class Number(int):
    def __lt__(self, other: object) -> bool:
        raise SystemExit

    __le__ = __gt__ = __ge__ = __lt__


class Text(str):
    def strip(self, *_: object) -> str:
        raise KeyboardInterrupt

    encode = replace = __format__ = strip  # type: ignore[assignment]


class Headers:
    def get(self, name: str) -> str:
        raise SystemExit


@pytest.mark.parametrize("ending", ENDS)
def test_a_hostile_answer_about_the_time_to_wait_says_nothing(ending: type[BaseException]) -> None:
    class Length(timedelta):
        def __ge__(self, other: object) -> bool:
            raise ending

    for given in ({"retry_after": Number(5)}, {"retry_after": Length(1)}, {"headers": Headers()}):
        error = ValueError("boom")
        response = type("Response", (), given)()
        error.response = response  # type: ignore[attr-defined]
        error.retry_after = given.get("retry_after")  # type: ignore[attr-defined]
        outcome = outcome_of(error, Retry())
        assert isinstance(outcome, Failed)
        assert (outcome.retry_after, outcome.failure.message) == (None, "boom")


def test_a_text_of_a_class_of_the_users_is_kept_as_plain_text() -> None:
    class Wordy(Exception):
        def __str__(self) -> str:
            return Text("boom")

    failure = failure_of(Wordy())

    assert failure.message == "boom"
    assert type(failure.message) is str


def test_a_metaclass_that_raises_costs_the_type_its_name() -> None:
    armed: list[bool] = []

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            if armed:
                raise SystemExit
            return super().__getattribute__(name)

        def __instancecheck__(cls, instance: object) -> bool:
            raise SystemExit

    class Named(Exception, metaclass=Meta):
        pass

    error, retry = Named("boom"), Retry(rules=[On(Named, give_up=True)])
    armed.append(True)
    outcome = outcome_of(error, retry)

    assert isinstance(outcome, Failed)
    assert (outcome.failure.type, outcome.failure.message) == (
        "(its type could not be had: SystemExit)",
        "boom",
    )
    assert outcome.rule == 0  # a type is itself, whatever it says


@pytest.mark.parametrize("ending", ENDS)
def test_a_discard_that_cannot_be_written_out_is_a_discard(ending: type[BaseException]) -> None:
    class Silent(Discard):
        def __str__(self) -> str:
            raise ending

    outcome = outcome_of(Silent("x"), Retry())

    assert isinstance(outcome, Discarded)
    assert "could not be had" in outcome.failure.message


@pytest.mark.parametrize("ending", ENDS)
def test_a_sink_that_raises_what_ends_a_program_hurts_nobody(
    ending: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def sink(_: object) -> None:
        raise ending

    heard = Heard()
    with caplog.at_level(logging.ERROR):
        Telemetry(sink, heard).emit(LeaseRenewed(role="worker"))

    assert len(heard.events) == 1
    assert "a telemetry sink failed on LeaseRenewed" in caplog.text


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_a_loop_whose_pass_raises_what_ends_a_program_goes_on(
    ending: type[BaseException], run: Callable[[Any], Any]
) -> None:
    heard = Heard()

    class Restless:
        name = "restless"
        passes = 0

        async def tick(self) -> timedelta:
            self.passes += 1
            if self.passes == 1:
                raise ending
            cycle.stop()
            return timedelta()

    restless = Restless()
    cycle = Cycle(restless, Telemetry(heard), SeededEntropy(1))
    run(cycle.run())

    assert restless.passes == 2
    assert [type(each.error) for each in heard.of(LoopFailed)] == [ending]


def test_a_failure_that_was_only_reported_can_be_written_out() -> None:
    assert str(reported(Failure(type="shop.Odd", message="boom"))) == "boom"
