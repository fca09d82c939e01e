"""Random workflows through random trouble, on both stores: each step after its parents, one result each,
joins released once, counters that count, and in the end what the rules say, as the oracle reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mainspring.model.workflow import WorkflowState
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.support.drawing import draw
from tests.support.sides import Side
from tests.support.stage import FINAL, Stage

TIMES = int(os.environ.get("MAINSPRING_TEST_WORKFLOWS", "1"))
"""How many times as many stories as usual."""
TABLES = (
    "jobs",
    "runs",
    "dead_jobs",
    "processes",
    "workflows",
    "workflow_steps",
    "workflow_orders",
    "ended_steps",
)

seeds = st.integers(0, 2**32)


def told(examples: int) -> Any:
    return settings(
        max_examples=examples * TIMES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
    )


class Theatre:
    """Stores that are emptied between stories."""

    def __init__(self, run: Any, postgres_url: str) -> None:
        self.run = run
        self.clock = ManualClock()
        self.postgres: Any = open_store(postgres_url, clock=self.clock, hints=False)
        self.admin = run(asyncpg.connect(postgres_url))

    async def stage(self, dice: Random, *, postgres: bool, often: float, inner: Any) -> tuple[Stage, Any]:
        sqlite: Any = open_store("sqlite://:memory:", clock=self.clock)
        await sqlite.migrate()
        stores = [sqlite]
        if postgres:
            await self.admin.execute(";".join(f"DELETE FROM mainspring.{table}" for table in TABLES))
            await self.admin.execute("DELETE FROM mainspring.ended_steps")  # of the jobs just deleted
            stores.append(self.postgres)
        sides = [Side(store, self.clock, dice, often=often) for store in stores]
        return Stage(sides, self.clock, dice, inner), sqlite

    def close(self) -> None:
        self.run(self.postgres.close())
        self.run(self.admin.close())


@pytest.fixture
def theatre(run: Any, postgres_url: str) -> Iterator[Theatre]:
    opened = Theatre(run, postgres_url)
    yield opened
    opened.close()


def play(
    theatre: Theatre, dice: Random, *, steps: int, rounds: int, postgres: bool = False, often: float = 0.0
) -> None:
    inner = draw(dice, steps=dice.randint(1, 4), name="inner") if dice.random() < 0.5 else None
    drawn = draw(dice, steps=steps, inner=None if inner is None else "sub")

    async def story() -> None:
        stage, sqlite = await theatre.stage(dice, postgres=postgres, often=often, inner=inner)
        try:
            await stage.begin(drawn)
            await stage.play(rounds)
            await compare(stage)
        finally:
            await sqlite.close()

    theatre.run(story())


async def compare(stage: Stage) -> None:
    """What is on record once all has ended."""
    first, *others = [await stage.record(side) for side in stage.sides]
    for other in others:
        assert other == first
    side = stage.sides[0]
    retried = stage.told["retry"] or stage.told["retry some"] or stage.told["fork"]
    for key, flow in stage.oracle.flows.items():
        workflow = await side.store.workflows.get(side.flows[key])
        assert workflow is not None
        assert workflow.state is not WorkflowState.RUNNING
        if retried:
            continue
        ends = {step.place: step.ended_at for step in await side.steps(key) if step.item is None}
        for step in await side.steps(key):
            runs = await side.store.runs.of(step.id)
            assert sum(run.verdict in FINAL for run in runs) <= 1
            began = [run.started_at or run.finished_at for run in runs[:1]]
            parents = [ends[parent] for parent in flow.drawn.nodes[step.place].parents]
            assert all(parent <= first for first in began for parent in parents)


@pytest.mark.timeout(600)
@told(180)
@given(seed=seeds)
def test_small_graphs_in_trouble_come_to_what_the_rules_say(theatre: Theatre, seed: int) -> None:
    dice = Random(seed)
    play(theatre, dice, steps=dice.randint(1, 9), rounds=dice.randint(2, 10))


@pytest.mark.timeout(600)
@told(150)
@given(seed=seeds)
def test_calls_that_get_lost_or_come_twice_change_nothing(theatre: Theatre, seed: int) -> None:
    dice = Random(seed)
    play(theatre, dice, steps=dice.randint(1, 10), rounds=dice.randint(1, 6), often=0.2)


@pytest.mark.timeout(600)
@told(45)
@given(seed=seeds)
def test_both_stores_come_to_the_same(theatre: Theatre, seed: int) -> None:
    dice = Random(seed)
    play(theatre, dice, steps=dice.randint(1, 10), rounds=dice.randint(1, 6), postgres=True, often=0.1)


@pytest.mark.timeout(600)
@told(12)
@given(seed=seeds)
def test_large_graphs(theatre: Theatre, seed: int) -> None:
    dice = Random(seed)
    play(theatre, dice, steps=dice.randint(60, 200), rounds=4, postgres=dice.random() < 0.5, often=0.05)
