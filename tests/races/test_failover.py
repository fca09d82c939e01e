"""A failover to a standby that had not heard of the last commits: what comes later must not be lost, too."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.model.limit import LimitKey
from mainspring.model.process import NewProcess, Role
from mainspring.store.opener import open_store
from mainspring.store.postgres import limits
from tests.engine.kit import until_async
from tests.support.postgres import PostgresServer

LEASE = timedelta(minutes=1)
ONE = LimitKey(name="tenant", key="acme", concurrency=1)


def job(name: str, **fields: Any) -> NewJob:
    """One whose queue and task are both called so."""
    return NewJob(task=name, queue=name, payload=b'{"args":["%s"]}' % name.encode(), **fields)


def test_names_and_numbers_that_a_failover_lost_are_given_anew(server: PostgresServer, run: Any) -> None:
    async def stored(store: Any, new: NewJob) -> bool:
        try:
            await store.queue.insert([new], at=None)
        except (StoreUnavailable, AnswerLost):
            return False
        return True

    async def story() -> None:
        producer, other = (open_store(server.url(), clock=SystemClock()) for _ in range(2))
        await producer.migrate()
        await producer.queue.insert([job("known")], at=None)
        await asyncio.to_thread(server.stand_by)
        for lost in (job("mine"), job("limited", limit_keys=(ONE,))):
            await until_async(lambda lost=lost: stored(producer, lost))
        await asyncio.to_thread(server.fail_over)

        # The numbers that were lost are somebody else's now.
        for taken in (
            job("theirs"),
            job("theirs", limit_keys=(LimitKey(name="tenant", key="beta", concurrency=1),)),
        ):
            await until_async(lambda taken=taken: stored(other, taken))
        for again in (job("mine"), job("limited", limit_keys=(ONE,))):
            await until_async(lambda again=again: stored(producer, again))

        worker = open_store(server.url(), clock=SystemClock())
        await worker.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=LEASE, at=None)
        await worker.limits.admit(at=None)
        names = ["known", "mine", "limited", "theirs"]
        claims = await worker.queue.claim(1, queues=names, tasks=names, limit=9, at=None)
        assert sorted(claim.task for claim in claims) == ["known", "limited", "mine", "theirs", "theirs"]
        assert all(claim.payload == job(claim.task).payload for claim in claims)
        assert all(claim.queue == claim.task for claim in claims)
        for store in (producer, other, worker):
            await store.close()

    run(story())


def test_lines_that_are_known_are_found_though_the_cache_is_emptied_meanwhile(
    postgres_url: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_KNOWN", 0)

    async def story() -> None:
        store = open_store(postgres_url, clock=SystemClock())
        await store.queue.insert([job("one", limit_keys=(ONE,))], at=None)
        another = LimitKey(name="tenant", key="beta", concurrency=1)
        ids = await store.queue.insert(
            [job("one", limit_keys=(ONE,)), job("two", limit_keys=(another,))], at=None
        )
        assert len(ids) == 2
        await store.close()

    run(story())
