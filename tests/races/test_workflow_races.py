"""Endings, passes and operators against each other, on real connections."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.job import JobFilter, JobState, NewJob
from mainspring.model.run import Verdict
from mainspring.model.workflow import (
    Constant,
    NewWorkflow,
    NodeKind,
    StepResult,
    StepState,
    WorkflowState,
)
from mainspring.store.postgres.connection import SQL
from mainspring.store.store import Store
from mainspring.waiting import pause
from tests.support.desk import settlement
from tests.support.flows import definition
from tests.support.rivals import audit, begin, connected, insist, join, open_stores, resolve_all, the_workflow

BLOCKED = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
OURS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'mainspring' AND state <> 'idle'
"""


def test_a_join_is_released_once_though_its_parents_end_at_once_and_everybody_looks(
    database_url: str, run: Any
) -> None:
    parents = [f"p{n}" for n in range(4)]
    drawn = definition(**{name: {} for name in parents}, join={"takes": parents})
    rounds = 40

    async def story() -> None:
        async with open_stores(database_url, 4) as stores:
            await join(stores[0], 1)
            ids = await begin(stores[0], 1, drawn, rounds)
            assert await resolve_all(stores[0]) == rounds * len(parents)
            claims = await stores[0].queue.claim(1, queues=["default"], tasks=["t"], limit=1000, at=None)
            random.Random(3).shuffle(claims)
            shares = [claims[n::4] for n in range(4)]
            ended = 0

            async def settle(store: Store, share: list[Any]) -> int:
                nonlocal ended
                released = 0
                for claim in share:
                    told = settlement(claim, Verdict.SUCCEEDED, result=b"%d" % claim.job_id)
                    assert await insist(lambda told=told: store.queue.settle([told], at=None)) == []
                    released += (await insist(lambda: store.workflows.resolve(limit=3, at=None))).released
                ended += 1
                while ended < 4:
                    released += (await insist(lambda: store.workflows.resolve(limit=3, at=None))).released
                return released

            counts = await asyncio.gather(*map(settle, stores, shares))
            counts.append(await resolve_all(stores[0]))

            joins = await stores[0].queue.claim(1, queues=["default"], tasks=["t"], limit=1000, at=None)
            assert sorted(claim.workflow_id or 0 for claim in joins) == sorted(ids)
            assert sum(counts) == rounds
            for claim in joins:
                steps = await stores[0].workflows.steps_of(claim.workflow_id or 0, most=100)
                expected = ",".join(str(step.id) for step in steps[:4])
                assert claim.payload == b'{"args":[%s]}' % expected.encode()
            await stores[0].queue.settle([settlement(each, Verdict.SUCCEEDED) for each in joins], at=None)
            await resolve_all(stores[1])
            for workflow_id in ids:
                assert (await the_workflow(stores[0], workflow_id)).state is WorkflowState.SUCCEEDED
            assert await stores[0].jobs.find(JobFilter(), at=None) == []

    run(story())


def test_a_pass_that_is_killed_in_the_middle_leaves_everything_as_it_was(postgres_url: str, run: Any) -> None:
    drawn = definition(
        raw={},
        parts={"kind": NodeKind.MAP, "over": Constant(value=[1, 2, 3]), "parents": ["raw"]},
        end={"takes": ["parts"]},
    )

    async def story() -> None:
        async with open_stores(postgres_url, 2) as (one, two), connected(postgres_url) as hand:
            await join(one, 1)
            [workflow_id] = await begin(one, 1, drawn)
            await resolve_all(one)
            [claim] = await one.queue.claim(1, queues=["default"], tasks=["t"], limit=10, at=None)
            await one.queue.settle([settlement(claim, Verdict.SUCCEEDED, result=b"1")], at=None)
            before = await the_workflow(one, workflow_id), await one.workflows.steps_of(workflow_id, most=100)

            # Each is written later in a pass than the one before it.
            for obstacle in (
                "SELECT 1 FROM mainspring.workflow_steps WHERE place = 0 FOR UPDATE",
                "LOCK TABLE mainspring.workflow_steps IN SHARE MODE",
                "LOCK TABLE mainspring.jobs IN SHARE MODE",
            ):
                held = hand.transaction()
                await held.start()
                await hand.execute(obstacle)
                passing = asyncio.ensure_future(two.workflows.resolve(limit=100, at=None))
                async with asyncio.timeout(20), connected(postgres_url) as killer:
                    while not (blocked := await killer.fetch(BLOCKED)):
                        assert not passing.done(), "it met no obstacle"
                        await pause(timedelta(milliseconds=5))
                    for row in blocked:
                        await killer.execute("SELECT pg_terminate_backend($1)", row["pid"])
                with pytest.raises((AnswerLost, StoreUnavailable)):
                    await passing
                await held.rollback()
                assert (
                    await the_workflow(one, workflow_id),
                    await one.workflows.steps_of(workflow_id, most=100),
                ) == before
                assert len(await one.jobs.find(JobFilter(), at=None)) == 1  # the workflow's own

            assert await resolve_all(two) == 3
            items = await one.queue.claim(1, queues=["default"], tasks=["t"], limit=10, at=None)
            assert sorted(each.payload for each in items) == [b'{"args":[%d]}' % n for n in (1, 2, 3)]

    run(story())


class Shift:
    """One worker on one store, which goes on whatever is done to its sessions."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.accepted: Counter[int] = Counter()

    async def work(self) -> bool:
        """Settle what it holds; whether anything is left in the queue."""
        with contextlib.suppress(StoreError):  # a claim whose answer is lost comes with `held`
            await self.store.queue.claim(1, queues=["default"], tasks=["t"], limit=20, at=None)
        for claim in await insist(lambda: self.store.queue.held(1, at=None)):
            told = settlement(claim, Verdict.SUCCEEDED, result=b"%d" % claim.job_id)
            refused = await insist(lambda told=told: self.store.queue.settle([told], at=None))
            recorded = await insist(lambda told=told: self.store.queue.recorded([told]))
            assert not refused or recorded == [claim.job_id]
            self.accepted[claim.job_id] += 1
        return bool(await insist(lambda: self.store.jobs.find(JobFilter(limit=1), at=None)))


def test_sessions_that_are_killed_again_and_again_lose_and_double_nothing(
    postgres_url: str, run: Any
) -> None:
    wide, count = 12, 8
    drawn = definition(
        first={"kind": NodeKind.MAP, "over": Constant(value=list(range(wide)))},
        second={"kind": NodeKind.MAP, "over": StepResult(step=0), "parents": ["first"]},
        end={"takes": ["second"]},
        returns=StepResult(step=2),
    )

    async def story() -> None:
        async with open_stores(postgres_url, 3) as stores, connected(postgres_url) as killer:
            dice = random.Random(5)
            await join(stores[0], 1)
            ids = await begin(stores[0], 1, drawn, count)
            shift, done = Shift(stores[0]), asyncio.Event()

            async def kill() -> int:
                killed = 0
                while not done.is_set():
                    for row in (await killer.fetch(OURS))[: dice.randint(0, 2)]:
                        killed += await killer.fetchval("SELECT pg_terminate_backend($1)", row["pid"])
                    await pause(timedelta(milliseconds=dice.randint(5, 80)))
                return killed

            async def resolve(store: Store) -> None:
                while not done.is_set():
                    await insist(lambda: store.workflows.resolve(limit=dice.choice([1, 5, 1000]), at=None))

            async def work() -> None:
                while await shift.work():
                    pass
                done.set()

            async with asyncio.timeout(100):
                killed, *_ = await asyncio.gather(kill(), work(), *map(resolve, stores[1:]))

            assert killed, "nobody was killed"
            assert set(shift.accepted.values()) == {1}
            assert len(shift.accepted) == count * (2 * wide + 1)
            for workflow_id in ids:
                assert (await the_workflow(stores[0], workflow_id)).state is WorkflowState.SUCCEEDED
                await audit(stores[0], workflow_id, drawn)
                job = await stores[0].jobs.get(workflow_id, at=None)
                assert job is not None
                assert job.state is JobState.SUCCEEDED
                steps = await stores[0].workflows.steps_of(workflow_id, most=100)
                assert [step.state for step in steps] == [StepState.SUCCEEDED] * (2 * wide + 3)

    run(story())


def test_a_workflow_that_somebody_has_in_hand_is_left_to_them_and_holds_up_no_other(
    postgres_url: str, run: Any
) -> None:
    drawn = definition(a={}, b={"parents": ["a"]})

    async def story() -> None:
        async with open_stores(postgres_url, 1) as [store], connected(postgres_url) as hand:
            await join(store, 1)
            held, free = await begin(store, 1, drawn, 2)
            await resolve_all(store)
            claims = await store.queue.claim(1, queues=["default"], tasks=["t"], limit=10, at=None)
            await store.queue.settle([settlement(each, Verdict.SUCCEEDED) for each in claims], at=None)
            retrying = hand.transaction()
            await retrying.start()
            sql, _ = SQL["lock_workflow"]
            await hand.fetch(sql, held)

            done = await store.workflows.resolve(limit=100, at=None)
            assert (done.taken, done.released, done.busy) == (1, 1, False)
            assert (await store.workflows.resolve(limit=100, at=None)).busy
            assert [(await the_workflow(store, each)).left for each in (held, free)] == [2, 1]
            await retrying.rollback()
            assert await resolve_all(store) == 1
            assert (await the_workflow(store, held)).left == 1

    run(story())


def test_many_may_begin_and_fork_workflows_in_one_process_at_once(postgres_url: str, run: Any) -> None:
    """More than the process has sessions: none waits for a session that another of them holds."""

    async def story() -> None:
        async with open_stores(postgres_url, 1) as [store]:
            await join(store, 1)
            [source] = await begin(store, 1, definition(a={}, b={"parents": ["a"]}))
            await resolve_all(store)

            async def fork(_: int) -> int:
                store.queue._batches._spare_ids.clear()  # type: ignore[attr-defined] # so that each has to ask for ids
                return await store.workflows.fork(source, "a", author="ann", note=None, at=None)

            async with asyncio.timeout(20):
                made = await asyncio.gather(*map(fork, range(20)))
            assert len(set(made)) == 20

            jobs = [NewJob(task=f"root{n}", payload=b"{}") for n in range(20)]
            await store.queue.insert(jobs, at=None)
            tasks = [job.task for job in jobs]
            claims = await store.queue.claim(1, queues=["default"], tasks=tasks, limit=100, at=None)
            told = [
                settlement(each, Verdict.STARTED, start=NewWorkflow(definition=definition(each.task, a={})))
                for each in claims
            ]
            async with asyncio.timeout(20):
                answers = await asyncio.gather(*(store.queue.settle([each], at=None) for each in told))
            assert answers == [[]] * 20

    run(story())
