"""A database that goes away and comes back."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import asyncpg
import pytest

from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import JobState, NewJob
from mainspring.model.settlement import Verdict
from tests.e2e.target import labour, work
from tests.support.postgres import PostgresServer
from tests.support.processes import Effect, Process, Site, until

pytestmark = pytest.mark.e2e

RESTARTS = 4
RESUMES_WITHIN = 5.0


class Client:
    """Enqueues one small job after another, and keeps what it was told."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.accepted: list[int] = []
        self.in_doubt: set[int] = set()
        self.refusals = 0
        self._ended = False

    async def enqueue(self) -> None:
        while not self._ended:
            try:
                self.accepted += await self._site.store.insert([work.job(0.05)] * 2, at=None)
            except StoreUnavailable:
                self.refusals += 1
            except AnswerLost as lost:
                self.in_doubt.update(lost.ids)
            await asyncio.sleep(0.02)

    async def during(self, act: Callable[[], object]) -> None:
        """Enqueue while this goes on in a thread."""
        enqueuing = asyncio.create_task(self.enqueue())
        try:
            await asyncio.to_thread(act)
        finally:
            self._ended = True
            await enqueuing


@dataclass(frozen=True)
class Moment:
    """One instant on both clocks."""

    at: float = field(default_factory=time.monotonic)
    wall: datetime = field(default_factory=lambda: datetime.now(UTC))


def test_a_restart_of_postgresql_under_load_loses_nothing(
    server: PostgresServer, server_site: Site, record_property: Callable[[str, object], None]
) -> None:
    site = server_site
    workers = [site.worker(f"worker-{number}", "-c", "4") for number in (1, 2)]
    scheduler = site.scheduler("scheduler")
    client = Client(site)
    ready: list[Moment] = []

    def restarts() -> None:
        everybody_works(Moment())
        for _ in range(RESTARTS):
            server.restart("immediate")
            ready.append(Moment())
            everybody_works(ready[-1])

    def everybody_works(since: Moment) -> None:
        until(lambda: all(_firsts(site, workers, since)), "everybody to work")

    site.ask(client.during(restarts))
    all_live = all(each.lives for each in [*workers, scheduler])
    scheduler.signal(signal.SIGTERM)
    assert scheduler.exit_code() == 0
    until(lambda: site.live() == 0, "all jobs to end")

    assert all_live
    for moment in ready:
        for first in _firsts(site, workers, moment):
            assert first is not None
            record_property("seconds until work resumed", first.at - moment.at)
            assert first.at - moment.at <= RESUMES_WITHIN
    assert len(client.accepted) > 50
    for job_id in client.accepted:
        assert site.job(job_id).state is JobState.SUCCEEDED
        assert site.verdicts(job_id).count(Verdict.SUCCEEDED) == 1
        assert site.job(job_id).failures == 0
    assert not any(each.met_a_defect() for each in [*workers, scheduler])


def _firsts(site: Site, workers: Sequence[Process], since: Moment) -> list[Effect | None]:
    """The first job that each worker began since then, and the first of a slot that came since then."""
    starts = [each for each in site.effects.of("start") if each.at > since.at]
    ticks = [each for each in starts if each.slot and datetime.fromisoformat(each.slot) > since.wall]
    return [
        *(next((each for each in starts if each.pid == worker.pid), None) for worker in workers),
        next(iter(ticks), None),
    ]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_handlers_are_stopped_before_the_lease_ends_when_the_file_is_locked(site: Site) -> None:
    _stops_in_time_and_works_again(site, _locked(site.url.removeprefix("sqlite:///")))


def test_handlers_are_stopped_before_the_lease_ends_when_the_server_hangs(
    server: PostgresServer, server_site: Site
) -> None:
    _stops_in_time_and_works_again(server_site, _paused(server))


def test_handlers_are_stopped_before_the_lease_ends_when_the_server_is_gone(
    server: PostgresServer, server_site: Site
) -> None:
    _stops_in_time_and_works_again(server_site, _gone(server))


def _stops_in_time_and_works_again(site: Site, outage: AbstractContextManager[None]) -> None:
    worker = site.worker("worker", "--lease", "3s", "--heartbeat", "1s")
    ids = site.put([work.job(60, 0.1), labour.job(60, 0.1)])
    until(lambda: len(site.effects.of("start")) == 2, "2 starts")
    lease_until = site.after_a_beat(worker).lease_until
    # A claim may be undone by a crash of the server, and the handlers would take it for their first again.
    if site.url.startswith("postgresql:"):
        site.ask(_synced(site.url))

    with outage:
        began = Moment()
        lease_ends_at = began.at + (lease_until - began.wall).total_seconds()
        until(lambda: len(site.effects.of("cancelled")) == 2, "the handlers to be told")
        until(lambda: time.monotonic() > lease_ends_at + 1, "the lease to end")
    ids += site.ask(_insert_soon(site, work.job(0.01)))
    until(lambda: site.live() == 0, "all jobs to end")

    assert all(each.at < lease_ends_at for each in site.effects.of("cancelled"))
    assert worker.says("cannot be renewed; 2 handlers told to stop before it ends")
    for job_id in ids:
        assert site.job(job_id).state is JobState.SUCCEEDED
        assert site.verdicts(job_id).count(Verdict.SUCCEEDED) == 1
        assert site.job(job_id).failures == 0
        assert len(site.effects.of("end", by=worker, jobs=[job_id])) == 1
    assert not worker.met_a_defect()


async def _synced(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def _insert_soon(site: Site, job: NewJob) -> list[int]:
    """The test's own connections broke too, and it has to try again like everybody."""
    while True:
        try:
            return await site.store.insert([job], at=None)
        except StoreUnavailable:
            await asyncio.sleep(0.02)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Somebody else writes, and does not end."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
    finally:
        connection.close()


@contextmanager
def _paused(server: PostgresServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


@contextmanager
def _gone(server: PostgresServer) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()
