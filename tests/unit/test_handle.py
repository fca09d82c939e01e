"""What `enqueue` gives back, away from any store."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest

from mainspring import JobHandle, Mainspring
from mainspring.duration import Duration
from mainspring.errors import InvalidArgument, UsageError, WaitTimeout


class Told:
    """Somebody who waits, and remembers for what."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Duration | None]] = []

    def result(self, job_id: int, *, timeout: Duration | None = None) -> object:
        self.asked.append((job_id, timeout))
        return "blocking"

    async def aresult(self, job_id: int, *, timeout: Duration | None = None) -> object:  # noqa: ASYNC109
        self.asked.append((job_id, timeout))
        return "awaited"


def test_a_handle_waits_with_the_app_it_came_from() -> None:
    told = Told()
    handle: JobHandle[str] = JobHandle(id=7, task="t", queue="q", results=told)

    assert handle.result() == "blocking"
    assert handle.result("5s") == "blocking"
    assert asyncio.run(handle.aresult(timeout=2)) == "awaited"
    assert told.asked == [(7, None), (7, "5s"), (7, 2)]


def test_two_handles_of_one_job_are_equal_whoever_waits_for_them() -> None:
    one: JobHandle[Any] = JobHandle(id=7, task="t", queue="q", results=Told())
    two: JobHandle[Any] = JobHandle(id=7, task="t", queue="q")

    assert one == two
    assert hash(one) == hash(two)
    assert one != JobHandle(id=8, task="t", queue="q")
    assert one != 7
    assert repr(one) == repr(two) == "JobHandle(id=7, task='t', queue='q')"


def test_a_handle_can_be_sent_anywhere_but_waits_only_where_there_is_an_app() -> None:
    app = Mainspring("sqlite://:memory:")
    handle: JobHandle[Any] = JobHandle(id=7, task="t", queue="q", results=app)

    sent = pickle.loads(pickle.dumps(handle))

    assert sent == handle
    assert copy.copy(handle).results is app
    with pytest.raises(UsageError, match=r"job 7 \(t in q\) has no app to wait with; ask app.job\(7\)"):
        sent.result()
    with pytest.raises(UsageError):
        asyncio.run(sent.aresult())


def test_a_handle_of_an_id_opens_nothing_and_names_what_it_knows() -> None:
    handle = Mainspring("sqlite:////nowhere/at/all.db").job(7)

    assert (handle.id, str(handle)) == (7, "job 7")


@pytest.mark.parametrize("wrong", [0, -1, 2**63, True, "7", None, 7.0], ids=repr)
def test_an_id_is_a_whole_number(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="job_id"):
        Mainspring("sqlite://:memory:").job(wrong)  # type: ignore[arg-type]


def test_a_wait_that_took_too_long_is_a_timeout_error() -> None:
    assert issubclass(WaitTimeout, TimeoutError)
    assert str(WaitTimeout(7, 1.5)) == "job 7 has not ended within 1.5 s; it goes on"
