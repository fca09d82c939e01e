"""A database that goes away and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import JobState, NewJob
from mainspring.model.run import Verdict
from tests.e2e.target import labour, work
from tests.support.postgres import PostgresServer, synced
from tests.support.processes import Effect, Process, Site, until
from tests.support.proxy import Proxy

pytestmark = pytest.mark.e2e

RESTARTS = 4
RESUMES_WITHIN = 5.0
SHORT = ("--lease", "3s", "--heartbeat", "1s")
LONG_OUTAGES = os.environ.get("MAINSPRING_TEST_LONG_OUTAGES") == "1"


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
                self.accepted += await self._site.store.queue.insert([work.job(0.05)] * 2, at=None)
            except StoreUnavailable:
                self.refusals += 1
            except AnswerLost as lost:
                self.in_doubt.update(lost.ids)
            await asyncio.sleep(0.02)

    async def during(self, action: Callable[[], object]) -> None:
        """Enqueue while this goes on in a thread."""
        enqueuing = asyncio.create_task(self.enqueue())
        try:
            await asyncio.to_thread(action)
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


def test_handlers_are_stopped_before_the_lease_ends_when_the_server_hangs(
    server: PostgresServer, server_site: Site
) -> None:
    """A server that does not answer us may answer others."""
    site = server_site
    worker = site.worker("worker", *SHORT)
    ids = site.put([work.job(60, 0.1), labour.job(60, 0.1)])
    until(lambda: len(site.effects.of("start")) == 2, "2 starts")
    lease_until = site.after_a_beat(worker).lease_until
    # A claim may be undone by a crash of the server, and the handlers would take it for their first again.
    site.ask(synced(site.url))

    with _paused(server):
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


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
def test_handlers_go_on_while_the_server_is_down_for_longer_than_a_lease(
    server: PostgresServer, server_site: Site, mode: str
) -> None:
    _handlers_go_on(server_site, _gone(server, mode), 10.0, SHORT)


@pytest.mark.skipif(not LONG_OUTAGES, reason="takes seven minutes: set MAINSPRING_TEST_LONG_OUTAGES=1")
@pytest.mark.timeout(500)
@pytest.mark.parametrize("seconds", [10.0, 60.0, 300.0])
def test_handlers_go_on_through_a_long_outage(
    server: PostgresServer, server_site: Site, seconds: float
) -> None:
    _handlers_go_on(server_site, _gone(server, "fast"), seconds, ())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_handlers_go_on_while_the_file_is_locked_for_longer_than_a_lease(site: Site) -> None:
    # A worker looks at the file for 0.1 s to learn that it is locked, and has half a heartbeat for the look:
    # with SHORT that is too little where four tests share two cores.
    _handlers_go_on(
        site, _locked(site.url.removeprefix("sqlite:///")), 13.0, ("--lease", "6s", "--heartbeat", "2s")
    )


def _handlers_go_on(
    site: Site, outage: AbstractContextManager[None], seconds: float, options: Sequence[str]
) -> None:
    """Of two workers and a scheduler. Some handlers end in the midst of the outage, some after it."""
    workers = [site.worker(f"worker-{number}", "-c", "4", *options) for number in (1, 2)]
    lengths = [seconds / 2, seconds + 6]
    ids = site.put([task.job(length) for task in (work, labour) for length in lengths * 2])
    until(lambda: len(site.effects.of("start")) == len(ids), "all handlers to begin")
    processes = {site.after_a_beat(each).id for each in workers}
    assert {site.job(job_id).worker_id for job_id in ids} == processes
    if site.url.startswith("postgresql:"):
        site.ask(synced(site.url))  # or a crash of the server might undo the claims
    assert not site.effects.of("end"), "the machine is too slow for this"

    with outage:
        ends_at = time.monotonic() + seconds
        until(lambda: time.monotonic() > ends_at, "the outage to last", seconds + 1)
    more = site.ask(_insert_soon(site, work.job(0.01)))
    until(lambda: site.live() == 0, "all jobs to end")

    assert not site.effects.of("cancelled")
    for job_id in [*ids, *more]:
        job = site.job(job_id)
        assert (job.state, job.failures, job.crashes) == (JobState.SUCCEEDED, 0, 0)
        assert site.verdicts(job_id) == [Verdict.SUCCEEDED]
        assert len(site.effects.of("start", jobs=[job_id])) == len(site.effects.of("end", jobs=[job_id])) == 1
    assert {site.member(each).id for each in workers} == processes
    assert not any(each.met_a_defect() or each.says("told to stop") for each in workers)


def test_a_worker_that_dies_in_an_outage_is_found_out_a_lease_after_it(
    server: PostgresServer, server_site: Site
) -> None:
    site = server_site
    victim, other = (site.worker(name, "-c", "1", *SHORT) for name in ("victim", "other"))
    ids = site.put([work.job(20, 0.1)] * 2)
    until(lambda: len(site.effects.of("start")) == 2, "2 starts")
    site.after_a_beat(victim)
    site.ask(synced(site.url))
    [lost] = [each.job for each in site.effects.of("start", by=victim)]

    with _gone(server, "fast"):
        victim.kill()
        ends_at = time.monotonic() + 5
        until(lambda: time.monotonic() > ends_at, "the outage to last")
    back = Moment()
    site.ask(_insert_soon(site, work.job(0.01)))
    until(lambda: site.live() == 0, "all jobs to end")

    [kept] = set(ids) - {lost}
    assert [site.verdicts(job_id) for job_id in (lost, kept)] == [
        [Verdict.CRASHED, Verdict.SUCCEEDED],
        [Verdict.SUCCEEDED],
    ]
    assert len(site.effects.of("end", by=other, jobs=ids)) == 2
    taken = site.ask(site.store.runs.of(lost))[0].finished_at
    # Whoever is alive has the time of a lease, from when the first reaper is back.
    assert timedelta(seconds=3) <= taken - back.wall <= timedelta(seconds=3 + RESUMES_WITHIN)


@pytest.mark.parametrize("fault", [Proxy.fall_silent, Proxy.cut])
def test_a_worker_that_is_cut_off_alone_stops_in_time_and_its_jobs_are_taken_over(
    server: PostgresServer, server_site: Site, fault: Callable[[Proxy], None]
) -> None:
    site = server_site
    with Proxy(site.url) as proxy:
        lonely = site.worker("lonely", "-c", "2", "--database-url", proxy.url, *SHORT)
        ids = site.put([work.job(60, 0.1), labour.job(60, 0.1)])
        until(lambda: len(site.effects.of("start", by=lonely)) == 2, "2 starts")
        other = site.worker("other", "-c", "2", *SHORT)
        watching_since = time.monotonic()
        until(lambda: time.monotonic() > watching_since + 4, "the other to have watched for a lease")
        lease_until = site.after_a_beat(lonely).lease_until
        fault(proxy)
        began = Moment()
        lease_ends_at = began.at + (lease_until - began.wall).total_seconds()
        until(lambda: len(site.effects.of("cancelled")) == 2, "the handlers to be told")
        until(lambda: site.live() == 0, "all jobs to end")
        proxy.mend()
        until(lambda: lonely.joined(times=2), "it to come back")

    assert all(each.at < lease_ends_at for each in site.effects.of("cancelled", by=lonely))
    for job_id in ids:
        assert site.verdicts(job_id) == [Verdict.CRASHED, Verdict.SUCCEEDED]
        [taken] = site.effects.of("start", by=other, jobs=[job_id])
        [stopped] = site.effects.of("cancelled", jobs=[job_id])
        assert stopped.at < taken.at
        crashed_at = site.ask(site.store.runs.of(job_id))[0].finished_at
        assert crashed_at - lease_until <= timedelta(seconds=2)


def test_what_looks_like_an_outage_to_one_worker_alone_costs_a_second_run_and_no_second_settlement(
    server: PostgresServer, server_site: Site
) -> None:
    """A proxy on its own host, which is stopped, refuses sessions like a server that is down."""
    site = server_site
    with Proxy(site.url) as proxy:
        fooled = site.worker("fooled", "-c", "1", "--database-url", proxy.url, *SHORT)
        [job_id] = site.put([work.job(12, 0.1)])
        until(lambda: site.effects.of("start", by=fooled), "the start")
        other = site.worker("other", "-c", "1", *SHORT)
        proxy.vanish()
        until(lambda: site.live() == 0, "the other to do it")
        until(lambda: site.effects.of("end", by=fooled), "the first run to end")
        proxy.mend()
        until(lambda: fooled.says("refused, claim 1 had been lost"), "its settlement to be refused")

    assert site.effects.of("cancelled") == []
    assert site.verdicts(job_id) == [Verdict.CRASHED, Verdict.SUCCEEDED]
    assert len(site.effects.of("end", by=other)) == 1


async def _insert_soon(site: Site, job: NewJob) -> list[int]:
    """The test's own connections broke too, and it has to try again like everybody."""
    while True:
        try:
            return await site.store.queue.insert([job], at=None)
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
def _gone(server: PostgresServer, mode: str) -> Iterator[None]:
    if mode == "kill":
        server.kill()
    else:
        server.halt(mode)
    try:
        yield
    finally:
        server.start()
