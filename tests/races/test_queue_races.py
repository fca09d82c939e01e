"""Claims, settlements, cancels and reapers against each other, on real connections."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import asyncpg

from mainspring.clock import SystemClock
from mainspring.errors import StoreUnavailable
from mainspring.model.job import Claim, Job, JobEdit, JobFilter, NewJob
from mainspring.model.limit import LimitKey
from mainspring.model.process import NewProcess, Reaped, Role
from mainspring.model.run import Settlement, Verdict
from mainspring.model.schedule import NewSchedule, Opening, Overlap
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.opener import open_store
from mainspring.store.postgres.connection import SQL
from mainspring.store.store import Store
from mainspring.telemetry.events import Telemetry
from mainspring.triggers.intervals import Every
from mainspring.waiting import pause

LEASE = timedelta(seconds=30)
ORPHANS = """
SELECT j.id FROM mainspring.jobs j WHERE j.worker_id <> 0
AND NOT EXISTS (SELECT 1 FROM mainspring.processes m WHERE m.id = j.worker_id)
"""
_OPEN = "SELECT count(*) FROM mainspring.firings"


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        connection.terminate()


@asynccontextmanager
async def _stores(url: str, count: int) -> AsyncIterator[list[Store]]:
    stores = [open_store(url, clock=SystemClock()) for _ in range(count)]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


async def _join(store: Store, worker: int, lease: timedelta = LEASE) -> None:
    await store.processes.join(
        NewProcess(id=worker, role=Role.WORKER, name=f"w{worker}"), lease=lease, at=None
    )


async def _claim(store: Store, worker: int, limit: int = 10) -> list[Claim]:
    return await store.queue.claim(worker, queues=["default"], tasks=["t"], limit=limit, at=None)


async def _insert(store: Store, count: int) -> list[int]:
    return await store.queue.insert([NewJob(task="t", payload=b"{}", max_attempts=5)] * count, at=None)


def _settled(claim: Claim, verdict: Verdict = Verdict.SUCCEEDED) -> Settlement:
    return Settlement(job_id=claim.job_id, worker_id=claim.worker_id, fence=claim.fence, verdict=verdict)


async def _insist(call: Callable[[], Awaitable[Any]]) -> Any:
    """A deadlock or a lock not had in time is an answer too: nothing happened, try again."""
    while True:
        try:
            return await call()
        except StoreUnavailable:
            continue


def test_four_claimers_share_two_thousand_jobs_and_none_is_handed_out_twice(
    database_url: str, run: Any
) -> None:
    async def story() -> None:
        async with _stores(database_url, 4) as stores:
            ids = await _insert(stores[0], 2000)
            taken: list[int] = []

            async def work(store: Store, worker: int) -> None:
                await _join(store, worker)
                empty = 0
                while empty < 3:
                    claims = await _claim(store, worker, limit=37)
                    empty = 0 if claims else empty + 1
                    taken.extend(claim.job_id for claim in claims)
                    assert await store.queue.settle([_settled(claim) for claim in claims], at=None) == []

            await asyncio.gather(*(work(store, n + 1) for n, store in enumerate(stores)))

            assert Counter(taken) == Counter(ids)
            assert await stores[0].jobs.find(JobFilter(), at=None) == []

    run(story())


def test_a_reaper_and_the_dying_workers_own_claim_leave_no_orphan(postgres_url: str, run: Any) -> None:
    """The claim holds its member's row with KEY SHARE, and the reaper judges it FOR UPDATE: either it
    sees the claims or they see its verdict."""

    async def story() -> None:
        async with _connection(postgres_url) as looker, _stores(postgres_url, 3) as (one, two, three):
            await _insert(one, 40)
            dice = random.Random(7)
            hit = missed = 0
            for turn in range(150):
                worker = turn + 1
                await _join(one, worker, lease=timedelta(milliseconds=8))

                async def reap(store: Store) -> None:
                    await asyncio.sleep(0.004 + 0.006 * dice.random())
                    for _ in range(3):
                        await _insist(lambda: store.processes.reap(limit=1000, at=None))

                async def claim(worker: int = worker) -> int:
                    await asyncio.sleep(0.008 * dice.random())
                    return len(await _claim(one, worker, limit=5))

                claimed, *_ = await asyncio.gather(claim(), reap(two), reap(three))
                hit, missed = hit + bool(claimed), missed + (not claimed)
                assert await looker.fetch(ORPHANS) == []
            await asyncio.sleep(0.02)
            while await _insist(lambda: two.processes.reap(limit=1000, at=None)) != Reaped():
                pass

            assert await looker.fetch(ORPHANS) == []
            assert await looker.fetchval("SELECT count(*) FROM mainspring.jobs WHERE worker_id <> 0") == 0
            assert await looker.fetchval("SELECT count(*) FROM mainspring.processes") == 0
            assert hit and missed, f"one side never won: {hit} claims, {missed} verdicts"

    run(story())


async def _open_claim(connection: asyncpg.Connection, worker: int) -> list[asyncpg.Record]:
    """A claim whose transaction is still open: its commit is on the way."""
    sql, names = SQL["claim_jobs"]
    queue = await connection.fetchval("SELECT id FROM mainspring.queues WHERE name = 'default'")
    task = await connection.fetchval("SELECT id FROM mainspring.tasks WHERE name = 't'")
    values: dict[str, Any] = {
        "worker_id": worker,
        "queue_ids": [queue],
        "task_ids": [task],
        "limit": 5,
        "at": None,
    }
    nothing = {name: [] if name.startswith("hint_") else None for name in names} | {"before": False}
    return await connection.fetch(sql, *(nothing | values).values())


def test_a_lease_that_ends_while_a_claim_commits_is_not_judged_before_it(postgres_url: str, run: Any) -> None:
    async def story() -> None:
        async with _connection(postgres_url) as slow, _stores(postgres_url, 1) as (store,):
            await _insert(store, 3)
            await _join(store, 1, lease=timedelta(milliseconds=200))
            transaction = slow.transaction()
            await transaction.start()
            assert len(await _open_claim(slow, 1)) == 3
            await asyncio.sleep(0.25)
            assert await store.processes.reap(limit=10, at=None) == Reaped()
            await transaction.commit()

            assert (await store.processes.reap(limit=10, at=None)).jobs == 3
            await store.processes.reap(limit=10, at=None)
            assert await slow.fetch(ORPHANS) == []

    run(story())


def test_a_worker_that_leaves_while_its_own_claim_commits_leaves_no_orphan(
    postgres_url: str, run: Any
) -> None:
    """Its claimer was cut off in mid-claim, so it leaves unclean; the session may still commit."""

    async def story() -> None:
        async with (
            _connection(postgres_url) as slow,
            _connection(postgres_url) as looker,
            _stores(postgres_url, 2) as (store, other),
        ):
            await _insert(store, 3)
            await _join(store, 1)
            transaction = slow.transaction()
            await transaction.start()
            assert len(await _open_claim(slow, 1)) == 3
            leaving = asyncio.create_task(_insist(lambda: store.processes.leave(1, clean=False, at=None)))
            await asyncio.sleep(0.2)
            reaping = asyncio.create_task(_insist(lambda: other.processes.reap(limit=10, at=None)))
            await asyncio.sleep(0.3)
            await transaction.commit()
            await asyncio.gather(leaving, reaping)
            while await other.processes.reap(limit=10, at=None) != Reaped():
                pass
            assert await looker.fetch(ORPHANS) == []

    run(story())


def test_of_settle_cancel_and_reap_on_one_job_exactly_one_wins(database_url: str, run: Any) -> None:
    async def story() -> None:
        async with _stores(database_url, 3) as (one, two, three):
            await _join(two, 999_999)
            won: Counter[str] = Counter()
            for turn in range(60):
                worker = turn + 1
                [job_id] = await _insert(one, 1)
                await _join(one, worker)
                [claim] = await _claim(one, worker)
                await one.processes.leave(worker, clean=False, at=None)  # its claims are the reaper's
                settle = _insist(lambda claim=claim: one.queue.settle([_settled(claim)], at=None))
                cancel = _insist(lambda job_id=job_id: two.jobs.cancel([job_id], at=None))
                reap = _insist(lambda: three.processes.reap(limit=10, at=None))
                calls = [settle, cancel, reap]
                order = random.Random(turn).sample(range(3), 3)
                answers = dict(zip(order, await asyncio.gather(*(calls[n] for n in order)), strict=True))

                refused, [cancelled], _ = answers[0], answers[1], answers[2]
                verdicts = [each.verdict for each in await one.runs.of(job_id)]
                if refused == []:
                    assert (verdicts, cancelled.was) == ([Verdict.SUCCEEDED], None)
                else:
                    # Reaped first or not, the cancel takes it; a reaped job may be cancelled after.
                    assert cancelled.was is not None
                    # A run has the moment at which its transaction began: a cancel that waited for the
                    # reaper may have begun before it.
                    assert sorted(verdicts) in ([Verdict.CANCELLED], [Verdict.CANCELLED, Verdict.CRASHED])
                won[verdicts[0]] += 1
                assert await one.jobs.find(JobFilter(), at=None) == []
            assert len(won) >= 2, f"the same one always won: {won}"

    run(story())


def test_two_migrators_at_once_make_one_schema(empty_database_url: str, run: Any) -> None:
    async def story() -> None:
        async with _stores(empty_database_url, 4) as stores:
            applied = await asyncio.gather(*(store.migrate() for store in stores))
            for store in stores:
                await store.verify()

            names = [name for each in applied for name in each]
            assert names and len(names) == len(set(names)), "a step was applied twice"

    run(story())


def test_two_schedulers_fire_a_herd_in_chunks_and_each_schedule_once(database_url: str, run: Any) -> None:
    async def story() -> None:
        async with _stores(database_url, 3) as (one, two, three):
            hourly = Every(timedelta(hours=1))
            made = await one.now(at=None)
            slot = hourly.next_after(made)
            assert slot is not None
            burst = [
                NewSchedule(
                    name=f"s{n}",
                    task="t",
                    trigger=hourly.encode(),
                    payload=b"{}",
                    next_at=slot,
                    following_at=hourly.next_after(slot),
                )
                for n in range(500)
            ]
            await one.schedules.put(burst, at=made)

            class Later(SystemClock):
                def stamp(self) -> Any:
                    return slot

            schedulers = [
                Scheduler(store, Later(), Telemetry(), poll=timedelta(seconds=1), chunk=50)
                for store in (one, two, three)
            ]
            await asyncio.gather(*(_insist(each.tick) for each in schedulers))
            await schedulers[0].tick()

            jobs = await one.jobs.find(JobFilter(limit=10_000), at=slot)
            assert len(jobs) == 500
            assert len({job.schedule_id for job in jobs}) == 500
            for n in range(0, 500, 50):
                assert len(await one.slots.of(f"s{n}", limit=10)) == 1

    run(story())


def test_the_same_schedules_written_in_opposite_orders_at_once_are_written(
    database_url: str, run: Any
) -> None:
    async def story() -> None:
        async with _stores(database_url, 2) as (one, two):
            hourly = Every(timedelta(hours=1))
            slot = hourly.next_after(await one.now(at=None))
            schedules = [
                NewSchedule(name=f"s{n}", task="t", trigger=hourly.encode(), payload=b"{}", next_at=slot)
                for n in range(200)
            ]
            await asyncio.gather(
                _insist(lambda: one.schedules.put(schedules, at=None)),
                _insist(lambda: two.schedules.put(schedules[::-1], at=None)),
            )

            assert len(await one.schedules.all()) == 200

    run(story())


def test_once_a_pause_has_returned_no_slot_is_fired_any_more(postgres_url: str, run: Any) -> None:
    """A fire holds its schedules FOR SHARE and a pause locks them in the same order: the pause waits for
    the chunk under way, and the next chunk sees it. Nobody is told to try again."""
    count = "SELECT count(*) FROM mainspring.slots WHERE disposition = 0"

    async def story() -> None:
        async with _connection(postgres_url) as looker, _stores(postgres_url, 3) as (one, two, three):
            made = await one.now(at=None)
            slots = [made + n * timedelta(hours=1) for n in range(1, 8)]
            # Named against the order of their ids: a pause that locked by name would meet the fire head on.
            names = [f"s{n:03}" for n in reversed(range(500))]
            for start in range(0, 500, 100):
                batch = [
                    NewSchedule(
                        name=name,
                        task="t",
                        trigger="hourly",
                        payload=b"{}",
                        overlap=Overlap.ALLOW,
                        overlap_limit=100,
                        max_fires=100,
                        next_at=slots[0],
                    )
                    for name in names[start : start + 100]
                ]
                await one.schedules.put(batch, at=made)
            dice = random.Random(11)
            cut = 0
            for slot, following in pairwise(slots):
                _, [spec] = await one.slots.due_specs(limit=10, at=slot)
                opening = Opening(spec_id=spec.id, expected=slot, slot_at=slot, since=None, next_at=following)
                assert await one.slots.open_firings([opening], at=slot) == 1

                async def fire(store: Store, slot: Any = slot) -> None:
                    async with _connection(postgres_url) as own:
                        while await own.fetchval(_OPEN):
                            await store.slots.fire(limit=20, at=slot)

                async def pause(slot: Any = slot) -> int:
                    await asyncio.sleep(0.05 * dice.random())
                    paused = await three.schedules.pause(names, author="ann", note=None, at=slot)
                    assert len(paused) == 500
                    return int(await looker.fetchval(count))

                before = int(await looker.fetchval(count))
                at_pause, _, _ = await asyncio.gather(pause(), fire(one), fire(two))

                assert await looker.fetchval(count) == at_pause
                cut += 0 < at_pause - before < 500
                await three.schedules.resume(names, author="ann", at=slot)
            assert cut, "no pause ever came in the middle of a fire"

    run(story())


def test_a_process_that_is_frozen_at_the_gates_does_not_close_them_for_long(
    postgres_url: str, run: Callable[[Any], Any]
) -> None:
    async def story() -> None:
        async with _stores(postgres_url, 1) as [store], _connection(postgres_url) as frozen:
            await store.queue.insert(
                [NewJob(task="t", payload=b"{}", limit_keys=(LimitKey(name="g", concurrency=1),))], at=None
            )
            await frozen.execute("BEGIN")
            assert (await frozen.fetchrow(SQL["lock_limit_keys"][0]))[
                "ours"
            ]  # and nothing more comes from it
            assert (await store.limits.admit(at=None)).busy
            async with asyncio.timeout(20):  # sessions of ours may stand in a transaction for 30 s elsewhere
                while not (await store.limits.admit(at=None)).admitted:
                    await pause(timedelta(milliseconds=50))

    run(story())


def test_a_pause_waits_for_the_claims_that_began_before_it(postgres_url: str, clock: Any, run: Any) -> None:
    """On PostgreSQL; in SQLite one transaction writes at a time."""

    async def story() -> None:
        store = open_store(postgres_url, clock=clock)
        claiming = await asyncpg.connect(postgres_url, server_settings={"application_name": "mainspring"})
        await store.queue.insert([NewJob(task="t", payload=b"{}")], at=clock.stamp())
        under_way = claiming.transaction()
        await under_way.start()
        sql, names = SQL["held_jobs"]  # begins as a claim does, and needs no more than its worker
        await claiming.fetch(sql, *[{"worker_id": 1}.get(name) for name in names])

        pausing = asyncio.ensure_future(
            store.queues.pause("default", author="ann", note=None, at=clock.stamp())
        )
        looks = await asyncpg.connect(postgres_url)
        async with asyncio.timeout(20):
            while not await looks.fetchval("SELECT count(*) FROM mainspring.queue_pauses"):
                await pause(timedelta(milliseconds=5))
        assert not (await asyncio.wait([pausing], timeout=0.2))[0], "it did not wait"
        await under_way.commit()
        async with asyncio.timeout(20):
            assert await pausing
        for each in (claiming, looks):
            await each.close()
        await store.close()

    run(story())


class _Scramble:
    """Jobs that are claimed, moved to tomorrow and edited at the same time."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.claims: dict[int, Claim] = {}
        self.moved: set[int] = set()
        self.edited: set[int] = set()

    async def claim(self, store: Store, worker: int) -> None:
        while found := await _insist(lambda: _claim(store, worker, limit=3)):
            for each in found:
                assert each.job_id not in self.claims
                self.claims[each.job_id] = each

    async def move(self, store: Store) -> None:
        far = datetime.now(UTC) + timedelta(days=1)
        for job in self.jobs[::-3]:
            self.moved.update(
                await _insist(lambda job=job: store.jobs.reschedule([job.id], run_at=far, at=None))
            )

    async def edit(self, store: Store) -> None:
        change = JobEdit(payload=b"[9]", priority=-1)
        for job in self.jobs[::-2]:
            if await _insist(lambda job=job: store.jobs.edit(job, change, at=None)):
                self.edited.add(job.id)


def test_a_job_is_claimed_or_moved_and_never_both(postgres_url: str, run: Any) -> None:
    """Of a claim, a reschedule and an edit of one job, each finds it as the one before left it."""

    async def story() -> None:
        async with _stores(postgres_url, 4) as stores:
            for worker in (1, 2):
                await _join(stores[0], worker)
            ids = await _insert(stores[0], 300)
            jobs = [await stores[0].jobs.get(job_id, at=None) for job_id in ids]
            scramble = _Scramble([job for job in jobs if job is not None])
            await asyncio.gather(
                scramble.claim(stores[0], 1),
                scramble.claim(stores[1], 2),
                scramble.move(stores[2]),
                scramble.edit(stores[3]),
            )
            await scramble.claim(stores[0], 1)

            claims = scramble.claims
            assert not scramble.moved & claims.keys()
            assert scramble.moved | claims.keys() == set(ids)
            for job_id in ids:
                job = await stores[0].jobs.get(job_id, at=None)
                assert job is not None
                new = (b"[9]", -1) if job_id in scramble.edited else (b"{}", 0)
                assert (job.payload, job.priority) == new
                assert job_id not in claims or claims[job_id].payload == job.payload
            settled = [_settled(each) for each in claims.values()]
            assert await stores[0].queue.settle(settled, at=None) == []

    run(story())
