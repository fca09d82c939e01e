"""Those who send events and those who begin to wait, at the same time, on stores of their own: nobody's
wake-up is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainspring.model.checkpoint import EVERYBODY, Event
from mainspring.model.job import Claim, JobState
from mainspring.model.run import FOREVER, Settlement, Verdict
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.support.desk import DAY, Desk, settlement

HOLD = """
INSERT INTO mainspring.events (job_id, name) VALUES ($1, 'approved')
ON CONFLICT (job_id, name) DO UPDATE SET name = excluded.name
"""


@pytest.fixture
def new_store(database_url: str, run: Any, clock: ManualClock) -> Iterator[Callable[[], Any]]:
    """A factory of stores on one database, once per backend."""
    stores: list[Any] = []

    def make() -> Any:
        stores.append(open_store(database_url, clock=clock))
        return stores[-1]

    yield make
    for store in stores:
        run(store.close())


@pytest.fixture
def desk(new_store: Callable[[], Any], run: Any, clock: ManualClock) -> Desk:
    return Desk(new_store(), clock, run)


def waits(claim: Claim, name: str = "approved") -> Settlement:
    return settlement(claim, Verdict.SNOOZED, awaits=name, delay=FOREVER)


def awaited(desk: Desk, *job_ids: int) -> dict[int, str]:
    return dict(desk.run(desk.store.events.awaited(job_ids)))


def claimed(desk: Desk, worker: int, count: int) -> list[Claim]:
    desk.join(worker)
    for _ in range(count):
        desk.put()
    claims = desk.claim(worker, limit=count)
    assert len(claims) == count
    return claims


async def later(store: Any, event: Event, seconds: float, desk: Desk) -> bool:
    await asyncio.sleep(seconds)
    return bool(await store.events.send(event, at=desk.clock.stamp()))


@pytest.mark.parametrize("backend", ["postgres"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("first", ["sender", "waiter"])
@pytest.mark.parametrize("met_before", [True, False])
def test_both_wait_for_the_row_and_whoever_comes_second_sees_the_first(
    desk: Desk, new_store: Any, own: bool, first: str, met_before: bool
) -> None:
    claim = desk.started()
    if met_before:
        assert desk.settle(waits(claim)) == []
        desk.hasten(claim.job_id)
        claim = desk.take()
    event = Event(name="approved", payload=b"1", job_id=claim.job_id if own else EVERYBODY)
    sending, calls = new_store(), {}
    calls["sender"] = lambda: sending.events.send(event, at=desk.clock.stamp())
    calls["waiter"] = lambda: desk.store.queue.settle([waits(claim)], at=desk.clock.stamp())
    second = "waiter" if first == "sender" else "sender"

    async def story() -> None:
        blocker = await desk.store.effects.lend()
        await blocker.connection.execute(HOLD, event.job_id)
        tasks = []
        for name in (first, second):
            tasks.append(asyncio.create_task(calls[name]()))
            _, left = await asyncio.wait(tasks, timeout=0.3)
            assert left == set(tasks), "nobody gets past the row"
        await blocker.rollback()
        done = dict(zip((first, second), await asyncio.gather(*tasks), strict=True))
        assert done == {"sender": True, "waiter": []}

    desk.run(story())

    assert desk.job(claim.job_id).state is JobState.READY
    assert awaited(desk, claim.job_id) == {}


@pytest.mark.parametrize("shared", [True, False])
def test_no_wake_up_is_lost_however_they_meet(desk: Desk, new_store: Any, shared: bool) -> None:
    """Waiters of two workers, in batches and alone, and a sender that comes at every moment between them:
    one event for all of them, or one for each."""
    rounds, each = 30, 5
    claims = {worker: claimed(desk, worker, rounds * each) for worker in (1, 2)}
    stores = {worker: new_store() for worker in (1, 2, 3)}

    async def settle(worker: int, batch: list[Settlement]) -> None:
        assert await stores[worker].queue.settle(batch, at=desk.clock.stamp()) == []

    async def story() -> None:
        for number in range(rounds):
            name = f"e{number}" if shared else "approved"
            one, two = (claims[worker][number * each : (number + 1) * each] for worker in (1, 2))
            whose = [EVERYBODY] if shared else [claim.job_id for claim in (*one, *two)]
            sends = [
                later(stores[3], Event(name=name, payload=b"1", job_id=job_id), (number + n) % 9 / 2000, desk)
                for n, job_id in enumerate(whose)
            ]
            settles = [
                settle(1, [waits(claim, name) for claim in one]),
                *(settle(2, [waits(claim, name)]) for claim in two),
            ]
            answers = await asyncio.gather(*sends, *settles)
            assert answers[: len(sends)] == [True] * len(sends)

    desk.run(story())

    every = [claim.job_id for worker in (1, 2) for claim in claims[worker]]
    assert awaited(desk, *every) == {}
    assert {desk.job(job_id).state for job_id in every} == {JobState.READY}


@pytest.mark.parametrize("backend", ["postgres"])
def test_of_many_senders_one_is_the_first_and_its_payload_counts(desk: Desk, new_store: Any) -> None:
    [claim], stores = claimed(desk, 1, 1), [new_store() for _ in range(3)]
    desk.settle(waits(claim))

    async def send(number: int) -> bool:
        event = Event(name="approved", payload=b"%d" % number)
        return bool(await stores[number % 3].events.send(event, at=desk.clock.stamp()))

    async def story() -> list[bool]:
        return list(await asyncio.gather(*(send(number) for number in range(12))))

    sent = desk.run(story())

    assert sent.count(True) == 1
    assert desk.run(desk.store.events.get(claim.job_id, "approved")) == b"%d" % sent.index(True)
    assert desk.job(claim.job_id).state is JobState.READY


@pytest.mark.parametrize("backend", ["postgres"])
def test_a_meeting_place_that_is_pruned_meanwhile_is_made_anew(desk: Desk, new_store: Any) -> None:
    claims, sending, pruning = claimed(desk, 1, 40), new_store(), new_store()

    async def prune(passes: int) -> None:
        for _ in range(passes):
            await pruning.events.prune(before=desk.now - DAY, limit=100)

    async def story() -> None:
        for number, claim in enumerate(claims):
            event = Event(name=f"e{number}", payload=b"1")
            await asyncio.gather(
                desk.store.queue.settle([waits(claim, event.name)], at=desk.clock.stamp()),
                later(sending, event, number % 9 / 1000, desk),
                prune(5),
            )

    desk.run(story())

    assert {desk.job(claim.job_id).state for claim in claims} == {JobState.READY}


@pytest.mark.parametrize("backend", ["postgres"])
def test_those_who_wait_for_the_same_event_do_not_wait_for_one_another(desk: Desk, new_store: Any) -> None:
    """One waiter's transaction stays open; another's goes through."""
    first, second = claimed(desk, 1, 2)
    desk.settle(waits(first))

    async def story() -> list[int]:
        blocker = await desk.store.effects.lend()
        share = "SELECT 1 FROM mainspring.events WHERE job_id = 0 AND name = 'approved' FOR SHARE"
        await blocker.connection.execute(share)
        async with asyncio.timeout(10):
            refused = await new_store().queue.settle([waits(second)], at=desk.clock.stamp())
        await blocker.rollback()
        return list(refused)

    assert desk.run(story()) == []
    assert len(awaited(desk, first.job_id, second.job_id)) == 2
