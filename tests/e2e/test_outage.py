"""A database that goes away and comes back."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import JobState
from mainspring.model.settlement import Verdict
from tests.e2e.target import labour, work
from tests.support.postgres import PostgresServer
from tests.support.processes import Effect, Process, Site, until

pytestmark = pytest.mark.e2e

RESUMES_WITHIN = 5.0
LEASE = 3.0
OPTIONS = ["--lease", "3s", "--heartbeat", "1s"]


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


def test_a_restart_of_postgresql_under_load_loses_nothing(server: PostgresServer, server_site: Site) -> None:
    site = server_site
    workers = [site.worker(f"worker-{number}", "-c", "4") for number in (1, 2)]
    processes = [*workers, site.scheduler("scheduler")]
    client = Client(site)
    ready_at: list[float] = []

    def restarts() -> None:
        for _ in range(2):
            since = time.monotonic()
            until(lambda since=since: _all_work(site, workers, since), "everybody to work")
            server.restart("immediate")
            ready_at.append(time.monotonic())
        until(lambda: _all_work(site, workers, ready_at[-1]), "everybody to work again")

    site.ask(client.during(restarts))
    until(lambda: _untimed(site) == 0, "all jobs to end")

    assert all(each.lives for each in processes)
    for moment in ready_at:
        for first in _firsts_after(site, workers, moment):
            assert first.at - moment <= RESUMES_WITHIN
    assert len(client.accepted) > 50
    for job_id in client.accepted:
        assert site.job(job_id).state is JobState.SUCCEEDED
        assert site.verdicts(job_id).count(Verdict.SUCCEEDED) == 1
        assert site.job(job_id).failures == 0
    assert not any(each.says("unexpected") for each in processes)


def test_handlers_are_stopped_before_a_lease_that_cannot_be_renewed_ends(
    site: Site, backend: str, request: pytest.FixtureRequest
) -> None:
    """SQLite's twin of a server that does not answer: somebody holds the write lock."""
    if backend == "postgres":
        pytest.skip("has a server of its own below")
    _stops_in_time_and_works_again(site, lambda: _locked(site))


def test_handlers_are_stopped_before_the_lease_ends_when_the_server_hangs(
    server: PostgresServer, server_site: Site
) -> None:
    _stops_in_time_and_works_again(server_site, lambda: _paused(server))


def test_handlers_are_stopped_before_the_lease_ends_when_the_server_is_gone(
    server: PostgresServer, server_site: Site
) -> None:
    _stops_in_time_and_works_again(server_site, lambda: _gone(server))
