"""Operators, workers and passes at once on the same workflows."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import pytest

from mainspring.errors import UsageError
from mainspring.model.job import JobFilter
from mainspring.model.run import Verdict
from mainspring.model.workflow import Constant, NodeKind, Stopping, When, WorkflowState
from mainspring.store.store import Store
from tests.support.desk import settlement
from tests.support.flows import definition
from tests.support.rivals import audit, begin, insist, join, open_stores, resolve_all, the_workflow


class Brawl:
    """Operators, a worker and passes, all at once on the same few workflows."""

    drawn = definition(
        a={},
        parts={"kind": NodeKind.MAP, "over": Constant(value=[1, 2, 3]), "parents": ["a"]},
        b={"parents": ["parts"]},
        alarm={"parents": ["b"], "when": When.FAILURE},
        tidy={"takes": ["b"], "when": When.ALWAYS},
        spread={"kind": NodeKind.MAP, "over": Constant(value=[1, 2]), "parents": ["a"], "when": When.ALWAYS},
    )

    def __init__(self, stores: list[Store], ids: list[int], dice: random.Random) -> None:
        self.stores, self.ids, self.dice = stores, ids, dice
        self.acting = True

    async def fight(self) -> None:
        one, two, three = self.stores
        operators = asyncio.gather(self.operate(two), self.operate(three))
        others = asyncio.gather(self.work(one), self.resolve(two), self.resolve(three))
        await operators
        self.acting = False
        await others

    async def make_peace(self) -> None:
        """Nobody interferes any more, and nothing fails, until nothing is left to do."""
        store = self.stores[0]
        for each in self.ids:
            await insist(lambda each=each: store.workflows.resume(each, author="ann", note=None, at=None))
        while await insist(lambda: resolve_all(store)) or await self.settle([Verdict.SUCCEEDED]):
            pass

    async def resolve(self, store: Store) -> None:
        while self.acting:
            await insist(lambda: store.workflows.resolve(limit=self.dice.choice([1, 3, 1000]), at=None))

    async def work(self, _store: Store) -> None:
        while self.acting:
            await self.settle([Verdict.SUCCEEDED] * 4 + [Verdict.DEAD])

    async def settle(self, verdicts: list[Verdict]) -> int:
        store = self.stores[0]
        claims = await insist(
            lambda: store.queue.claim(1, queues=["default"], tasks=["t"], limit=50, at=None)
        )
        told = [settlement(each, self.dice.choice(verdicts)) for each in claims]
        await insist(lambda: store.queue.settle(told, at=None))
        return len(told)

    async def operate(self, store: Store) -> None:
        for _ in range(40):
            with contextlib.suppress(UsageError):
                await self.action(store, self.dice.choice(self.ids))

    async def action(self, store: Store, each: int) -> None:
        what = self.dice.choice(["stop", "kill", "cancel", "pause", "resume", "retry", "retry", "retry"])
        how: dict[str, Any] = {"author": "ann", "note": None, "at": None}
        if what == "cancel":
            await insist(lambda: store.jobs.cancel([each], at=None))
        elif what in ("stop", "kill"):
            kind = Stopping.KILLED if what == "kill" else Stopping.CANCELLED
            await insist(lambda: store.workflows.stop(each, kind, **how))
        elif what == "retry":
            await insist(lambda: store.workflows.retry(each, steps=None, **how))
        else:
            await insist(lambda: getattr(store.workflows, what)(each, **how))


@pytest.mark.parametrize("seed", range(3))
def test_operators_workers_and_passes_at_once_leave_nothing_hanging(
    database_url: str, run: Any, seed: int
) -> None:
    """Whatever comes first, each workflow ends, no job is left behind, and the counters are right."""

    async def story() -> None:
        async with open_stores(database_url, 3) as stores:
            await join(stores[0], 1)
            ids = await begin(stores[0], 1, Brawl.drawn, 12)
            brawl = Brawl(stores, ids, random.Random(seed))
            async with asyncio.timeout(100):
                await brawl.fight()
                await brawl.make_peace()
            for workflow_id in ids:
                assert (await the_workflow(stores[0], workflow_id)).state is not WorkflowState.RUNNING
                await audit(stores[0], workflow_id, Brawl.drawn)
            assert await stores[0].jobs.find(JobFilter(limit=1000), at=None) == []

    run(story())
