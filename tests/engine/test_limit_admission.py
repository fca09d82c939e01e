"""Limit keys in a running process: whom a real worker runs at once, in what turn, and what frees a place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Limit, Mainspring
from mainspring.clock import SystemClock
from mainspring.entropy import SeededEntropy
from mainspring.model.job import NewJob
from mainspring.model.limit import LimitKey
from mainspring.process.serve import aserve
from mainspring.scheduler.limit_admission import ASLEEP, WAITING, LimitAdmission
from mainspring.testing.clock import ManualClock
from tests.engine.kit import SECOND

ONE = (LimitKey(name="one", concurrency=1),)


def limit_admission(store: Any, clock: Any, **options: Any) -> LimitAdmission:
    given = {"poll": SECOND, "declared": True, **options}
    return LimitAdmission(store.limits, clock, SeededEntropy(1), **given)


def put(store: Any, clock: ManualClock, run: Any, *jobs: NewJob) -> None:
    run(store.queue.insert(jobs, at=clock.stamp()))


def job(limit_keys: tuple[LimitKey, ...]) -> NewJob:
    return NewJob(task="t", payload=b"{}", limit_keys=limit_keys)


def test_it_rests_when_nobody_waits(store: Any, clock: ManualClock, run: Any) -> None:
    assert run(limit_admission(store, clock).tick()) == SECOND
    assert run(limit_admission(store, clock, declared=False).tick()) == ASLEEP


def test_it_goes_on_while_somebody_passes_and_looks_again_soon_while_somebody_waits(
    store: Any, clock: ManualClock, run: Any
) -> None:
    put(store, clock, run, job(ONE), job(ONE))
    keeper = limit_admission(store, clock)

    assert run(keeper.tick()) == timedelta()
    assert run(keeper.tick()) == WAITING


def test_it_comes_back_when_the_rate_allows(store: Any, clock: ManualClock, run: Any) -> None:
    rate = (LimitKey(name="r", rate=100, period=SECOND * 10),)
    put(store, clock, run, job(rate), job(rate))
    keeper = limit_admission(store, clock)
    run(keeper.tick())

    assert run(keeper.tick()) == timedelta(milliseconds=100)


@pytest.fixture
def burst(database_url: str, run: Any) -> Callable[[Callable[[Mainspring], None]], None]:
    """Declare an app, put its jobs in, and run them all in one burst."""

    def work(declare: Callable[[Mainspring], Any]) -> None:
        async def story() -> None:
            app = Mainspring(database_url)
            jobs = declare(app)
            async with app:
                await app.aenqueue_many(jobs)
                async with asyncio.timeout(60):
                    await aserve(app, scheduler=False, burst=True)

        run(story())

    return work


class Crowd:
    """Counts who is inside."""

    def __init__(self) -> None:
        self.inside, self.most, self.seen = 0, 0, list[Any]()

    async def __call__(self, who: Any) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.seen.append(who)
        await asyncio.sleep(0)  # others may begin
        await asyncio.sleep(0.002)
        self.inside -= 1


def test_a_worker_runs_no_more_at_once_than_the_limit_says(burst: Any) -> None:
    crowd = Crowd()

    def declare(app: Mainspring) -> list[NewJob]:
        @app.task(limits=[Limit("three", concurrency=3)])
        async def visit(who: int) -> None:
            await crowd(who)

        return [visit.job(n) for n in range(60)]

    burst(declare)

    assert sorted(crowd.seen) == list(range(60))
    assert 1 < crowd.most <= 3


def test_a_tenant_that_floods_a_fair_queue_does_not_starve_another(burst: Any) -> None:
    crowd = Crowd()

    def declare(app: Mainspring) -> list[NewJob]:
        app.queue("default", fair_by="tenant")

        @app.task
        async def visit(tenant: str, n: int) -> None:
            crowd.seen.append((tenant, n))

        return [
            *(visit.job("flood", n) for n in range(3000)),
            *(visit.job("few", n) for n in range(10)),
        ]

    burst(declare)

    assert len(crowd.seen) == 3010
    last = max(place for place, (tenant, _) in enumerate(crowd.seen) if tenant == "few")
    assert last < 1000, f"the last of the few was number {last}"


def test_limits_of_a_key_and_of_all_hold_together(burst: Any) -> None:
    all_of_them, each = Crowd(), {"a": Crowd(), "b": Crowd(), "c": Crowd()}

    def declare(app: Mainspring) -> list[NewJob]:
        @app.task(limits=[Limit("all", concurrency=4), Limit("tenant", by="tenant", concurrency=2)])
        async def visit(tenant: str, n: int) -> None:
            await asyncio.gather(all_of_them(n), each[tenant](n))

        return [visit.job(tenant, n) for n in range(20) for tenant in each]

    burst(declare)

    assert 1 < all_of_them.most <= 4
    assert max(crowd.most for crowd in each.values()) <= 2
    assert len(all_of_them.seen) == 60


def test_a_failed_job_frees_its_place_while_it_waits(burst: Any) -> None:
    from mainspring import Retry

    order: list[str] = []

    def declare(app: Mainspring) -> list[NewJob]:
        @app.task(limits=[Limit("one", concurrency=1)], retry=Retry(attempts=2, base="2s", jitter=False))
        async def visit(who: str) -> None:
            order.append(who)
            if order.count("fails") == 1 and who == "fails":
                raise ValueError("not today")

        return [visit.job("fails"), visit.job("waits")]

    burst(declare)

    assert order[:2] == ["fails", "waits"]


def test_clocks_of_hosts_that_are_wrong_do_not_make_it_spin(store: Any, clock: ManualClock, run: Any) -> None:
    rate = (LimitKey(name="r", rate=1, period=SECOND * 3600),)
    put(store, clock, run, job(rate), job(rate))
    keeper = limit_admission(store, SystemClock())  # years away from the store's
    run(keeper.tick())

    assert timedelta() < run(keeper.tick()) <= WAITING
