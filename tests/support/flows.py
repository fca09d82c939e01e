"""Workflows told as stories: started, their steps claimed and ended by name, on any store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from mainspring.model.job import Claim
from mainspring.model.run import Verdict
from mainspring.model.workflow import (
    Definition,
    Input,
    NewWorkflow,
    Node,
    Resolved,
    StepRecord,
    StepResult,
    Stopping,
    WorkflowRecord,
)
from mainspring.rules.graph import Graph
from tests.support.desk import Desk

WORKER = 7


def definition(name: str = "flow", returns: Input | None = None, **nodes: dict[str, Any]) -> Definition:
    """Each node by name; its `parents`, and the steps in `takes`, are names too."""
    places = {each: place for place, each in enumerate(nodes)}
    built = []
    for each, fields in nodes.items():
        given = dict(fields)
        takes = given.pop("takes", ())
        parents = [places[parent] for parent in (*given.pop("parents", ()), *takes)]
        args = tuple(StepResult(step=places[taken]) for taken in takes)
        built.append(
            Node(
                name=each,
                task=given.pop("task", "t"),
                parents=tuple(dict.fromkeys(parents)),
                args=given.pop("args", args),
                **given,
            )
        )
    return Definition(name=name, nodes=tuple(built), returns=returns)


class Story:
    """One workflow on a desk."""

    def __init__(
        self, desk: Desk, drawn: Definition, params: Mapping[str, object] | None = None, **job: Any
    ) -> None:
        self.desk, self.drawn, self.graph = desk, drawn, Graph(drawn)
        self.claims: dict[int, Claim] = {}
        if WORKER not in [member.id for member in desk.processes()]:
            desk.join(WORKER, lease=timedelta(days=365))
        self.id = desk.put(task="root", **job)
        self.begin(params)
        self.resolve()

    def begin(self, params: Mapping[str, object] | None = None) -> None:
        """Claim the workflow's own job and settle it as started."""
        [claim] = self.desk.claim(WORKER, tasks=("root",))
        assert claim.job_id == self.id
        new = NewWorkflow(definition=self.drawn, params=dict(params or {}))
        self.desk.end(claim, Verdict.STARTED, start=new)

    def resolve(self, limit: int = 1000) -> list[Resolved]:
        """Passes until nothing is left to deal with."""
        done = []
        while (one := self.resolve_once(limit)).taken:
            done.append(one)
        return done

    def resolve_once(self, limit: int = 1000) -> Resolved:
        resolved: Resolved = self.desk.run(
            self.desk.store.workflows.resolve(limit=limit, at=self.desk.clock.stamp())
        )
        return resolved

    def claimed(self) -> dict[int, Claim]:
        """Every job of a step that is in hand."""
        for claim in self.desk.claim(WORKER, tasks=("t",), limit=1000):
            self.claims[claim.job_id] = claim
        return self.claims

    def end(
        self, name: str, verdict: Verdict = Verdict.SUCCEEDED, *, item: int | None = None, **fields: Any
    ) -> None:
        """End the job of a step, which must be in the queue, and deal with it."""
        step = self.step(name, item)
        self.desk.end(self.claimed().pop(step.id), verdict, **fields)
        self.resolve()

    def steps(self) -> list[StepRecord]:
        return list(self.desk.run(self.desk.store.workflows.steps_of(self.id, most=20_000)))

    def step(self, name: str, item: int | None = None) -> StepRecord:
        place = self.graph.place(name)
        [found] = [each for each in self.steps() if (each.place, each.item) == (place, item)]
        return found

    def states(self) -> dict[str, str]:
        """The state of each node, and why it was skipped."""
        return {
            self.drawn.nodes[each.place].name: f"{each.state}:{each.cause}"
            if each.cause
            else each.state.value
            for each in self.steps()
            if each.item is None
        }

    @property
    def workflow(self) -> WorkflowRecord:
        found = self.desk.run(self.desk.store.workflows.get(self.id))
        assert found is not None
        return found  # type: ignore[no-any-return]

    def action(self, verb: str, *args: Any, **fields: Any) -> Any:
        """What an operator does, by ann."""
        call = getattr(self.desk.store.workflows, verb)
        done = self.desk.run(
            call(self.id, *args, **{"author": "ann", "note": None, **fields}, at=self.desk.clock.stamp())
        )
        self.resolve()
        return done

    def stop(self, stopping: Stopping = Stopping.CANCELLED) -> bool:
        return bool(self.action("stop", stopping))
