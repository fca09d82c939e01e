"""What may be asked of steps, sleeps, waits and events, before any store is."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import InvalidArgument, UsageError
from mainspring.model.checkpoint import EVERYBODY, CheckpointKind
from mainspring.model.run import FOREVER, Failed, Snoozed
from mainspring.tasks.context import Context, Suspended, valid_length, valid_step, valid_wait
from mainspring.tasks.enqueue import JobHandle, new_event
from mainspring.tasks.retry import Retry
from mainspring.worker.outcomes import outcome_of

HOUR = timedelta(hours=1)
BAD_NAMES = ["", " ", "a b", "-a", "a-", "__a", "a..b", "ä", "a" * 201, "a\n", None, 5, b"a"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    for call in (
        lambda: valid_step(name, int),
        lambda: valid_wait(name, None),
        lambda: new_event(name, None, None),
    ):
        with pytest.raises(InvalidArgument) as refused:
            call()
        assert refused.value.field == "name"
    if name is not None:
        with pytest.raises(InvalidArgument, match="name"):
            valid_length("1h", name)


@pytest.mark.parametrize("function", [None, 5, "int", [int]])
def test_what_cannot_be_called_is_no_step(function: Any) -> None:
    with pytest.raises(InvalidArgument, match="a function, a coroutine function or a task"):
        valid_step("a", function)


def test_a_call_is_no_step_but_its_function_is() -> None:
    async def charge() -> None: ...

    made = charge()
    try:
        with pytest.raises(InvalidArgument, match="then its arguments: no call of it"):
            valid_step("a", made)
    finally:
        made.close()
    valid_step("a", charge)


@pytest.mark.parametrize(
    "length", ["", "-1s", -1, None, "soon", float("inf"), float("nan"), True, "200y", 1e12]
)
def test_what_is_no_length_is_refused(length: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        valid_length(length, None)
    assert refused.value.field == "length"


@pytest.mark.parametrize("timeout", ["", 0, "0s", -1, "soon", True])
def test_what_is_no_timeout_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        valid_wait("a", timeout)
    assert refused.value.field == "timeout"


def test_what_is_asked_for_is_read() -> None:
    assert valid_length("1h", None) == (HOUR, None)
    assert valid_length(0, "nap") == (timedelta(), "nap")
    assert valid_wait("paid:7", "1h") == ("paid:7", HOUR)
    assert valid_wait("paid", None) == ("paid", None)


@pytest.mark.parametrize("job", [0, -1, True, 2**63, "7", 1.0])
def test_an_event_is_for_a_job_that_can_be(job: Any) -> None:
    with pytest.raises(InvalidArgument, match="the id of a job"):
        new_event("a", None, job)


@pytest.mark.parametrize("payload", [object(), (1,), {1: 2}, float("nan"), "x" * 300_000, 2**70, "\0", b"a"])
def test_a_payload_is_json(payload: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        new_event("a", payload, None)
    assert refused.value.field.startswith("payload")


def test_an_event_is_for_everybody_or_for_one() -> None:
    assert (new_event("a", None, None).job_id, new_event("a", None, None).payload) == (EVERYBODY, b"null")
    assert new_event("a", {"b": [1]}, 7).job_id == new_event("a", 1, JobHandle(id=7)).job_id == 7


def test_kinds_have_names_of_their_own_and_none_is_one_of_once() -> None:
    keys = {kind.key("a") for kind in CheckpointKind}

    assert len(keys) == len(CheckpointKind)
    for key in keys:
        with pytest.raises(InvalidArgument):
            valid_step(key, int)


def test_a_context_made_by_hand_says_so() -> None:
    ctx = Context(job_id=1, task="t", queue="q", attempt=1, max_attempts=1, fence=1, log=None, stop=None)  # type: ignore[arg-type]

    for call in (lambda: ctx.astep("a", int), lambda: ctx.asleep("1h"), lambda: ctx.await_event("a")):
        with pytest.raises(UsageError, match="made by hand"):
            asyncio.run(call())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="made by hand"):
        ctx.sleep("1h")


# What it comes to.


def test_a_suspension_is_a_snooze_also_from_a_task_group() -> None:
    sleeping, waiting = Suspended(HOUR), Suspended(FOREVER, awaits="paid")
    group = BaseExceptionGroup("a", [BaseExceptionGroup("b", [waiting]), waiting])

    assert outcome_of(sleeping, Retry()) == Snoozed(delay=HOUR)
    assert outcome_of(waiting, Retry()) == Snoozed(delay=FOREVER, awaits="paid")
    assert outcome_of(group, Retry()) == Snoozed(delay=FOREVER, awaits="paid")


def test_a_suspension_beside_an_error_is_an_error() -> None:
    group = BaseExceptionGroup("a", [Suspended(HOUR), ValueError("no")])

    assert isinstance(outcome_of(group, Retry()), Failed)
    assert not isinstance(Suspended(HOUR), Exception)
