"""Changes of schedules against fires and against each other, on real connections and by the database's own
clock: every slot of every version has one row, and its job has that version's arguments."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from mainspring.admin.slot_verification.verifier import SlotVerifier
from mainspring.admin.why.slot import in_force
from mainspring.clock import SystemClock
from mainspring.model.job import JobFilter
from mainspring.model.schedule import Misfire, NewSchedule, Opening, Overlap, Skipped
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from mainspring.telemetry.events import Telemetry
from mainspring.triggers.intervals import Every
from mainspring.waiting import pause

SECOND = timedelta(seconds=1)
BURST = 24
LASTS = 7 * SECOND
TRIGGERS = [
    Every(SECOND),
    Every(2 * SECOND),
    Every(SECOND, anchor=datetime(2020, 1, 1, 0, 0, 0, 500_000, UTC)),
]


@asynccontextmanager
async def _stores(url: str, count: int) -> AsyncIterator[list[Store]]:
    stores = [open_store(url, clock=SystemClock()) for _ in range(count)]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


class Town:
    """Schedulers and operators on one database, each with connections of its own, until it is evening."""

    def __init__(self, evening: datetime, dice: random.Random) -> None:
        self.evening, self.dice = evening, dice
        self.names = [f"s{number:02}" for number in range(BURST)]
        self.told: Counter[str] = Counter()

    def declared(self, names: list[str], now: datetime) -> list[NewSchedule]:
        """One declaration of them all, as a deploy has it."""
        trigger = self.dice.choice(TRIGGERS)
        first = trigger.next_after(now)
        assert first is not None
        return [
            NewSchedule(
                name=name,
                task="t",
                trigger=trigger.encode(),
                payload=f"{self.dice.random()}".encode(),
                misfire=Misfire.ALL if name < "s08" else Misfire.LATEST,
                overlap=Overlap.ALLOW,
                overlap_limit=10_000,
                next_at=first,
                following_at=trigger.next_after(first),
            )
            for name in names
        ]

    async def lasts(self, store: Store) -> bool:
        return await store.now(at=None) < self.evening

    async def schedule(self, store: Store) -> None:
        """One scheduler; now and then it sleeps for a while, as in an outage."""
        scheduler = Scheduler(store, SystemClock(), Telemetry(), poll=SECOND, chunk=5)
        while await self.lasts(store):
            wait = await scheduler.tick()
            asleep = self.dice.random() * SECOND if self.dice.random() < 0.05 else timedelta()
            await pause(max(min(wait, SECOND / 50), asleep))

    async def deploy(self, store: Store) -> None:
        """Redeploys of everything, beside those of others."""
        while await self.lasts(store):
            await store.schedules.put(self.declared(self.names, await store.now(at=None)), at=None)
            self.told["deploys"] += 1
            await pause(0.2 * self.dice.random() * SECOND)

    async def operate(self, store: Store) -> None:
        """Orders to a few."""
        while await self.lasts(store):
            some = self.dice.sample(self.names, self.dice.randint(1, 5))
            order = self.dice.choice(["pause"] * 3 + ["resume"] * 4 + ["skip", "delete"])
            if order == "pause":
                done: object = await store.schedules.pause(some, author="ann", note=None, at=None)
            elif order == "resume":
                done = await store.schedules.resume(self.names, author="ann", at=None)
            elif order == "skip":
                done = await store.schedules.skip(some[0], count=1, author="ann", at=None)
            else:
                done = await store.schedules.delete(some[:1], author="ann", at=None)
            self.told[order] += bool(done)
            await pause(0.05 * self.dice.random() * SECOND)


@pytest.mark.parametrize("seed", [1, 2])
def test_changes_at_any_moment_leave_each_slot_one_row_and_its_version_s_job(
    database_url: str, run: Any, seed: int
) -> None:
    async def story() -> None:
        async with _stores(database_url, 6) as stores:
            first = stores[0]
            begun = await first.now(at=None)
            town = Town(begun + LASTS, random.Random(seed))
            await first.schedules.put(town.declared(town.names, begun), at=None)
            await asyncio.gather(
                town.schedule(stores[0]),
                town.schedule(stores[1]),
                town.deploy(stores[2]),
                town.deploy(stores[3]),
                town.operate(stores[4]),
                town.operate(stores[5]),
            )
            await first.schedules.resume(town.names, author="ann", at=None)
            scheduler = Scheduler(first, SystemClock(), Telemetry(), poll=SECOND, chunk=1000)
            for _ in range(40):
                await scheduler.tick()

            report = await SlotVerifier(first, SystemClock(), keep=timedelta(days=9)).verify(late=SECOND)
            reasons = await _check_jobs(first, town.names)
            sys.stdout.write(f"{report.sentence(strict=False)}; {dict(town.told)}; {dict(reasons)}\n")
            assert report.wrong(strict=False) == []
            assert report.slots > 20
            assert min(town.told[each] for each in ("deploys", "pause", "resume", "skip", "delete")) > 0
            assert reasons[None] > 5

    run(story())


def test_a_schedule_that_is_being_written_is_not_passed_by_a_slot_of_the_trigger_it_shares(
    postgres_url: str, run: Any
) -> None:
    """The slot is later than the schedule and is opened before the schedule is committed: who opens it waits,
    for a fire would not see the schedule."""
    here = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    waiting = f"{here} AND wait_event_type = 'Lock'"

    async def story() -> None:
        async with _stores(postgres_url, 2) as (one, two):
            hourly = Every(timedelta(hours=1))
            made = await one.now(at=None)
            slot = hourly.next_after(made)
            assert slot is not None
            old, young = (
                NewSchedule(name=name, task="t", trigger=hourly.encode(), payload=b"{}", next_at=slot)
                for name in ("old", "young")
            )
            await one.schedules.put([old], at=made)
            _, [spec] = await two.slots.due_specs(limit=1, at=slot)

            async def fire() -> None:
                opening = Opening(spec_id=spec.id, expected=slot, slot_at=slot, since=None, next_at=None)
                assert await two.slots.open_firings([opening], at=slot) == 1
                while await two.slots.fire(limit=10, at=slot):
                    pass

            connection, looker = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
            try:
                hold = connection.transaction()
                await hold.start()
                await connection.execute("LOCK TABLE mainspring.schedule_versions IN EXCLUSIVE MODE")
                async with asyncio.timeout(4):
                    put = asyncio.create_task(one.schedules.put([young], at=slot - SECOND))
                    while await looker.fetchval(waiting) < 1:  # it is about to write its version
                        assert not put.done()
                    firing = asyncio.create_task(fire())
                    while not firing.done() and await looker.fetchval(waiting) < 2:
                        pass
                await hold.rollback()
                await asyncio.gather(put, firing)
            finally:
                await connection.close()
                await looker.close()

            assert [each.slot_at for each in await two.slots.of("old", limit=9)] == [slot]
            assert [each.slot_at for each in await two.slots.of("young", limit=9)] == [slot]

    run(story())


def test_a_fire_that_waited_for_a_change_sees_the_job_that_the_change_made(
    postgres_url: str, run: Any
) -> None:
    """The change decides what was due until then, and a fire of later slots waits for its lock: the job of
    the change is in the way of another, although it is younger than the snapshot of the fire."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    async def story() -> None:
        async with _stores(postgres_url, 2) as (one, two):
            minutely = Every(timedelta(minutes=1))
            made = await one.now(at=None)
            first = minutely.next_after(made)
            assert first is not None
            fourth, fifth = (first + number * timedelta(minutes=1) for number in (3, 4))
            new = NewSchedule(name="s", task="t", trigger=minutely.encode(), payload=b"{}", next_at=first)
            await one.schedules.put([new], at=made)
            _, [spec] = await two.slots.due_specs(limit=1, at=first)
            opening = Opening(
                spec_id=spec.id,
                expected=first,
                slot_at=fifth,
                since=first,
                combined=(fourth,),
                next_at=None,
            )

            async def fire() -> None:
                assert await two.slots.open_firings([opening], at=fifth) == 1
                while await two.slots.fire(limit=10, at=fifth + SECOND):
                    pass

            connection, looker = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
            try:
                hold = connection.transaction()
                await hold.start()
                await connection.execute("LOCK TABLE mainspring.schedule_versions IN EXCLUSIVE MODE")
                async with asyncio.timeout(4):
                    change = asyncio.create_task(
                        one.schedules.skip("s", count=1, author="ann", at=first + SECOND)
                    )
                    while await looker.fetchval(waiting) < 1:  # it is about to write its version
                        assert not change.done()
                    firing = asyncio.create_task(fire())
                    while await looker.fetchval(waiting) < 2:
                        assert not firing.done()
                await hold.rollback()
                await asyncio.gather(change, firing)
            finally:
                await connection.close()
                await looker.close()

            rows = await two.slots.of("s", limit=9)
            assert [(row.slot_at, row.reason) for row in rows] == [(fifth, Skipped.OVERLAP), (first, None)]
            assert rows[0].blocker == rows[1].job_id

    run(story())


async def _check_jobs(store: Store, names: list[str]) -> Counter[Skipped | None]:
    """Each job has the arguments of its slot's version; answers how often each reason is in the ledger."""
    jobs = {job.id: job for job in await store.jobs.find(JobFilter(limit=100_000), at=None)}
    reasons: Counter[Skipped | None] = Counter()
    for name in names:
        versions = await store.schedules.versions(name)
        for row in await store.slots.of(name, limit=100_000):
            reasons[row.reason] += 1
            if row.job_id is not None:
                version = in_force(versions, row.slot_at)
                assert version is not None
                assert jobs[row.job_id].payload == version.schedule.payload, f"{name}: {row}"
    assert len(jobs) == reasons[None]
    return reasons
