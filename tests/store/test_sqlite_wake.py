"""On SQLite a worker hears of what others commit: from the system where it tells, else by looking."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest

from mainspring.clock import SystemClock
from mainspring.model.job import NewJob
from mainspring.store.opener import open_store
from mainspring.store.sqlite import wake
from mainspring.store.sqlite.connection import wal
from mainspring.store.sqlite.wake import stirs
from mainspring.waiting import pause
from tests.engine.kit import until

JOB = NewJob(task="t", payload=b"x")
WITHIN = 20.0
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="nobody tells of writes here")


def test_the_log_of_a_linked_file_is_where_the_file_is(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "file.db")

    assert wal(str(tmp_path / "link.db")) == str(tmp_path / "file.db-wal")


def _files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def stores(tmp_path, run):
    """The one that listens, and another on the same file."""
    url = f"sqlite:///{tmp_path / 'file.db'}"
    opened = [open_store(url, clock=SystemClock()) for _ in range(2)]
    run(opened[0].migrate())
    yield opened
    for store in opened:
        run(store.close())


class Ears:
    """A waker at work, and what it heard."""

    def __init__(self, store):
        self.news = asyncio.Event()
        self.waker = store.waker(self.news.set)

    async def heard(self):
        async with asyncio.timeout(WITHIN):
            await self.news.wait()
        self.news.clear()

    async def listen(self):
        while True:
            await pause(await self.waker.tick())


@asynccontextmanager
async def listening(store):
    ears = Ears(store)
    task = asyncio.create_task(ears.listen())
    try:
        await ears.heard()  # the first look always tells
        yield ears
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await ears.waker.close()


@pytest.mark.parametrize("told", [True, False], ids=["told", "looking"])
def test_every_commit_of_another_is_heard_of(stores, run, monkeypatch, told):
    listener, other = stores
    if not told:
        monkeypatch.setattr(wake, "stirs", lambda path: None)

    async def story():
        async with listening(listener) as ears:
            for _ in range(20):
                await other.queue.insert([JOB], at=None)
                await ears.heard()

    run(story())


@on_linux
def test_whoever_is_told_looks_seldom(stores, run, monkeypatch):
    listener, other = stores
    monkeypatch.setattr(wake, "PASSES", 10**9)

    async def story():
        async with listening(listener) as ears:
            await other.queue.insert([JOB], at=None)
            await ears.heard()
            # A look would begin the count anew.
            await until(lambda: ears.waker._quiet >= 5)
            await other.queue.insert([JOB], at=None)
            await ears.heard()

    run(story())


@on_linux
def test_a_write_that_nobody_tells_of_is_found_by_looking_all_the_same(stores, run, monkeypatch, tmp_path):
    listener, other = stores
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    monkeypatch.setattr(wake, "stirs", lambda path: stirs(str(elsewhere)))

    async def story():
        async with listening(listener) as ears:
            await until(lambda: ears.waker._quiet)  # it waits to be told
            await other.queue.insert([JOB], at=None)
            await ears.heard()

    run(story())


class Told:
    """Instead of what the system says: a test tells of writes."""

    gone = False

    def __init__(self):
        self.event = asyncio.Event()

    def close(self):
        pass


def test_a_commit_that_comes_after_the_one_before_it_was_seen_is_heard_of(stores, run, monkeypatch):
    listener, other = stores
    told = Told()
    monkeypatch.setattr(wake, "stirs", lambda path: told)
    monkeypatch.setattr(wake, "PASSES", 10**9)
    long, short = wake.AGAIN * 20, wake.AGAIN[:1]
    monkeypatch.setattr(wake, "AGAIN", short)

    async def story():
        async with listening(listener) as ears:
            await until(lambda: ears.waker._quiet)  # it waits to be told
            monkeypatch.setattr(wake, "AGAIN", long)
            await other.queue.insert([JOB], at=None)
            told.event.set()  # of the second one's write, while its disk is slow
            await ears.heard()
            await other.queue.insert([JOB], at=None)
            await ears.heard()

    run(story())


def test_a_write_is_heard_while_the_commit_of_another_is_waited_for(stores, run, monkeypatch):
    listener, other = stores
    told = Told()
    monkeypatch.setattr(wake, "stirs", lambda path: told)
    monkeypatch.setattr(wake, "AGAIN", [timedelta(hours=1)])

    async def story():
        async with listening(listener) as ears:
            told.event.set()
            await until(lambda: not told.event.is_set())  # it looks, and then waits for an hour
            await other.queue.insert([JOB], at=None)
            told.event.set()
            await ears.heard()

    run(story())


@on_linux
def test_a_file_that_is_gone_is_no_longer_listened_to(tmp_path, run):
    path = tmp_path / "log"
    path.touch()

    async def story():
        found = stirs(str(path))
        path.write_bytes(b"x")
        async with asyncio.timeout(WITHIN):
            await found.event.wait()
        assert not found.gone
        path.unlink()
        found.event.clear()
        async with asyncio.timeout(WITHIN):
            await found.event.wait()
        assert found.gone
        found.close()

    run(story())


@on_linux
def test_what_cannot_be_watched_is_not(tmp_path, run):
    async def story():
        before = _files()
        assert stirs(str(tmp_path / "nothing")) is None
        assert _files() == before

    run(story())
