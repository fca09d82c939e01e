"""On PostgreSQL a burst, many schedules with one slot, is fired by several schedulers at once."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from mainspring.model.schedule import NewSchedule, Opening, Overlap
from mainspring.store.opener import open_store
from tests.support.desk import MINUTE

BURST = 1200
CHUNK = 50


@pytest.fixture
def stores(postgres_url, clock, run):
    opened = [open_store(postgres_url, clock=clock) for _ in range(2)]
    yield opened
    for store in opened:
        run(store.close())


async def put_burst(store, clock, slots):
    """Schedules of one trigger, and this many of its slots open."""
    first = clock.now() + MINUTE
    await store.schedules.put(
        [
            NewSchedule(
                name=f"burst-{n:05}",
                task="t",
                trigger="every",
                payload=b"{}",
                overlap=Overlap.ALLOW,
                next_at=first,
                following_at=first + MINUTE,
            )
            for n in range(BURST)
        ],
        at=clock.stamp(),
    )
    clock.advance(slots * MINUTE)
    for n in range(slots):
        _, [spec] = await store.slots.due_specs(limit=10, at=clock.stamp())
        slot = first + n * MINUTE
        opening = Opening(spec_id=spec.id, expected=slot, slot_at=slot, since=None, next_at=slot + MINUTE)
        assert await store.slots.open_firings([opening], at=clock.stamp()) == 1


async def fired(store, clock):
    chunks = []
    while chunk := await store.slots.fire(limit=CHUNK, at=clock.stamp()):
        chunks.append(chunk)
    return chunks


async def asked(url, sql):
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def test_two_schedulers_share_a_herd_and_every_schedule_has_its_slot_once(stores, clock, run, postgres_url):
    async def story():
        await put_burst(stores[0], clock, 1)
        # Each has had a part; who gets how much of the rest, the machine decides.
        shares = [[await store.slots.fire(limit=CHUNK, at=clock.stamp())] for store in stores]
        assert [chunk.fired for [chunk] in shares] == [CHUNK, CHUNK]

        async def share(store, chunks):
            # One that finds everything in hand looks again, as a scheduler does.
            while sum(chunk.fired for each in shares for chunk in each) < BURST:
                if chunk := await store.slots.fire(limit=CHUNK, at=clock.stamp()):
                    chunks.append(chunk)

        async with asyncio.timeout(60):
            await asyncio.gather(*map(share, stores, shares))

        assert sum(chunk.fired for chunks in shares for chunk in chunks) == BURST
        assert await asked(postgres_url, "SELECT count(*) FROM mainspring.slots") == BURST
        assert await asked(postgres_url, "SELECT count(DISTINCT schedule_id) FROM mainspring.jobs") == BURST
        assert await asked(postgres_url, "SELECT count(*) FROM mainspring.firings") == 0

    run(story())


def test_a_range_that_somebody_has_in_hand_holds_up_the_next_slot_and_not_the_rest(
    stores, clock, run, postgres_url
):
    async def story():
        await put_burst(stores[0], clock, 2)
        first = (await stores[0].slots.fire(limit=CHUNK, at=clock.stamp())).slot_at
        holder = await asyncpg.connect(postgres_url)
        async with holder.transaction():
            # As a scheduler does that is in the middle of it, or frozen.
            held = "SELECT 1 FROM mainspring.firings WHERE slot_at = $1 ORDER BY last_id LIMIT 1 FOR UPDATE"
            assert await holder.fetchval(held, first) == 1
            chunks = await fired(stores[1], clock)
            assert {chunk.slot_at for chunk in chunks} == {first}
            assert 0 < sum(chunk.fired for chunk in chunks) < BURST - CHUNK
            assert (await stores[1].slots.next_due(at=clock.stamp())).total_seconds() <= 0.01, (
                "it is looked at again"
            )
        await holder.close()

        slots = [chunk.slot_at for chunk in await fired(stores[1], clock)]
        assert slots == sorted(slots)
        assert await asked(postgres_url, "SELECT count(*) FROM mainspring.slots") == 2 * BURST

    run(story())
