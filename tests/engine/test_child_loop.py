"""One event loop for the async handlers of a child, and a new one after whoever left something behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from mainspring.worker.children.runner import Looper

told = contextvars.ContextVar("told", default="")


@pytest.fixture
def looper():
    looper = Looper()
    yield looper
    looper.close()


async def where():
    return asyncio.get_running_loop()


def test_handlers_share_a_loop(looper):
    assert looper.run(where()) is looper.run(where())


def test_a_thread_that_was_waited_for_costs_no_loop(looper):
    async def aside():
        await asyncio.to_thread(threading.get_ident)
        return asyncio.get_running_loop()

    assert looper.run(aside()) is looper.run(where())


def test_a_task_that_is_left_behind_has_ended_when_the_run_has(looper):
    ended = []

    async def leaves():
        async def lasts():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        leaves.task = asyncio.ensure_future(lasts())
        await asyncio.sleep(0)
        return asyncio.get_running_loop()

    used = looper.run(leaves())

    assert ended == [True]
    assert used.is_closed()
    assert looper.run(where()) is not used


def test_a_thread_that_is_left_behind_has_ended_when_the_run_has(looper, monkeypatch):
    go, ended = threading.Event(), threading.Event()

    def lasts():
        go.wait()
        ended.set()

    async def leaves():
        asyncio.get_running_loop().run_in_executor(None, lasts)

    def close():
        go.set()
        Looper.close(looper)

    monkeypatch.setattr(looper, "close", close)
    looper.run(leaves())

    assert ended.is_set()


def test_what_one_run_sets_in_its_context_is_not_the_next_ones(looper):
    async def sets():
        told.set("by the first")

    async def reads():
        return told.get()

    looper.run(sets())

    assert looper.run(reads()) == ""


def test_what_the_caller_has_set_is_there(looper):
    async def reads():
        return told.get()

    def run():
        told.set("by the caller")
        return looper.run(reads())

    assert contextvars.copy_context().run(run) == "by the caller"


def test_a_run_that_raises_is_followed_by_others(looper):
    async def raises():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        looper.run(raises())

    assert not looper.run(where()).is_closed()
