"""One side of a story about workflows: a real store behind calls that get lost, and a settler on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import Claim
from mainspring.model.workflow import Definition, NodeKind, StepRecord, StepState, WorkflowState
from mainspring.signals import Signals
from mainspring.store.around import around
from mainspring.store.store import Store
from mainspring.telemetry.events import Event, SettlementRefused, Telemetry
from mainspring.worker.result_writer import ResultWriter
from tests.support.cells import BAD, OPEN, JobKey, Key

T = TypeVar("T")

EVERYTHING = 100_000


class Flaky:
    """A way to a real store on which calls get lost: before the store has heard of them, after it has done
    what was asked, or after it has done so twice."""

    def __init__(self, store: Store, dice: Random, often: float) -> None:
        self._store, self._dice, self._often = around(store, self._call), dice, often
        self.told: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def _call(self, name: str, method: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._dice.random() >= self._often:
            return await method(*args, **named)
        way = self._dice.choice(["before", "after", "twice"])
        self.told[f"{way} {name}"] += 1
        if way == "before":
            raise StoreUnavailable("on order")
        await method(*args, **named)
        if way == "twice":
            await method(*args, **named)
        raise AnswerLost(name)


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Call until there is an answer."""
    while True:
        try:
            return await call()
        except (AnswerLost, StoreUnavailable):
            continue


class Side:
    """One store, its ids, and an engine's settler on it."""

    def __init__(self, store: Store, clock: Clock, dice: Random, *, often: float) -> None:
        self.store, self.clock = store, clock
        self.flaky: Any = Flaky(store, dice, often)
        self.refused: list[SettlementRefused] = []
        self.result_writer = ResultWriter(self.flaky.queue, clock, Telemetry(self._hear), Signals())
        self.flows: dict[Key, int] = {}
        self.jobs: dict[JobKey, int] = {}
        self.claims: dict[JobKey, Claim] = {}
        self.fences: dict[int, int] = {}
        self.released = 0

    def _hear(self, event: Event) -> None:
        if isinstance(event, SettlementRefused):
            self.refused.append(event)

    async def steps(self, key: Key) -> list[StepRecord]:
        found = await self.store.workflows.steps_of(self.flows[key], most=EVERYTHING)
        self.jobs |= {(key, step.place, step.item): step.id for step in found}
        return found

    async def settle(self) -> None:
        while self.result_writer.pending:
            await insist(self.result_writer.tick)

    async def resolve(self, limit: int) -> int:
        done = await insist(lambda: self.flaky.workflows.resolve(limit=limit, at=self.clock.stamp()))
        self.released += done.released
        return int(done.taken)

    async def recount(self, key: Key, drawn: Definition, *, quiet: bool = False) -> list[StepRecord]:
        """The counters say what the rows do; and a workflow has ended exactly when its steps have."""
        workflow = await self.store.workflows.get(self.flows[key])
        assert workflow is not None
        steps = await self.steps(key)
        nodes = {step.place: step for step in steps if step.item is None}
        assert list(nodes) == list(range(len(drawn.nodes)))
        assert workflow.step_ids == tuple(step.id for step in nodes.values())
        assert workflow.left == sum(step.state in OPEN for step in nodes.values())
        assert workflow.failed == sum(step.state in BAD for step in nodes.values())
        if quiet or workflow.left:  # its own job may have been taken away as it ended: the next pass says how
            assert (workflow.left == 0) == (workflow.state is not WorkflowState.RUNNING)
        assert (workflow.ended_at is None) == (workflow.state is WorkflowState.RUNNING)
        for place, step in nodes.items():
            items = [each for each in steps if each.place == place and each.item is not None]
            if step.state is StepState.WAITING:
                assert not items
                assert step.waits == sum(
                    nodes[each].state in OPEN for each in set(drawn.nodes[place].parents)
                )
            elif drawn.nodes[place].kind is NodeKind.MAP and step.state is StepState.LIVE:
                assert step.waits == sum(each.state in OPEN for each in items) > 0
                assert step.failed == sum(each.state in BAD for each in items)
            else:
                assert all(each.state not in OPEN for each in items)
            assert (step.ended_at is None) == (step.state in OPEN)
        return steps
