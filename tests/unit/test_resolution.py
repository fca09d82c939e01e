"""One workflow's pass, without a store: a table of rows stands in for what it reads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from mainspring.model.run import Verdict
from mainspring.model.workflow import (
    WIDEST,
    Cause,
    Condition,
    Constant,
    Definition,
    NodeKind,
    Param,
    StepRecord,
    StepResult,
    StepState,
    Stopping,
    When,
    WorkflowRecord,
    WorkflowState,
)
from mainspring.rules.graph import Graph
from mainspring.rules.resolution import Resolution, StepEnding
from tests.support.flows import definition

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OK, DEAD = Verdict.SUCCEEDED, Verdict.DEAD


class Rows:
    """The rows of one workflow. Node n has id n + 1; items come after."""

    def __init__(self, drawn: Definition, **fields: Any) -> None:
        self.graph = Graph(drawn)
        self.steps = {
            place + 1: StepRecord(id=place + 1, workflow_id=99, place=place, waits=len(set(node.parents)))
            for place, node in enumerate(drawn.nodes)
        }
        self.workflow = WorkflowRecord(
            **{
                "id": 99,
                "name": drawn.name,
                "definition_id": 1,
                "version": 1,
                "state": WorkflowState.RUNNING,
                "params": b"{}",
                "left": len(drawn.nodes),
                "failed": 0,
                "started_at": NOW,
                "step_ids": tuple(self.steps),
                **fields,
            }
        )
        self.last = Resolution(self.workflow, self.graph, NOW)

    def change(self, **fields: Any) -> None:
        self.workflow = msgspec.structs.replace(self.workflow, **fields)

    def go(self, *endings: StepEnding, look: bool = False, stop: Stopping | None = None) -> Resolution:
        """A pass, and its writes."""
        resolution = self.last = Resolution(self.workflow, self.graph, NOW)
        if look:
            resolution.look()
        if stop is not None:
            resolution.stop(stop)
        resolution.end(endings)
        turns = 0
        while resolution.need():
            turns += 1
            assert turns < 50, "it asks for ever"
            needed = resolution.needed
            resolution.supply(self.steps[each] for each in needed.ids if each in self.steps)
            for place in needed.items:
                items = [
                    step for step in self.steps.values() if step.place == place and step.item is not None
                ]
                resolution.supply_items(place, items)
            if needed.live:
                resolution.supply_live(step for step in self.steps.values() if step.state is StepState.LIVE)
        self.steps |= {step.id: step for step in resolution.changed}
        numbered = resolution.numbered(
            range(len(self.steps) + 1, len(self.steps) + 1 + len(resolution.items))
        )
        self.steps |= {step.id: step for step, _ in numbered}
        self.workflow = resolution.workflow
        return resolution

    def states(self) -> list[str]:
        return [
            f"{step.state}:{step.cause}" if step.cause else step.state.value
            for step in self.steps.values()
            if step.item is None
        ]


def ended(job_id: int, verdict: Verdict | None = OK, result: bytes | None = None) -> StepEnding:
    return StepEnding(job_id=job_id, verdict=verdict, result=result)


def begun(drawn: Definition, **fields: Any) -> Rows:
    rows = Rows(drawn, **fields)
    rows.go(look=True)
    return rows


def test_a_second_ending_of_the_same_job_changes_nothing() -> None:
    rows = begun(definition(a={}, b={}, join={"parents": ["a", "b"]}))
    rows.go(ended(1), ended(1, DEAD), ended(1))
    assert rows.states() == ["succeeded", "live", "waiting"]
    assert rows.steps[3].waits == 1
    before = dict(rows.steps)
    again = rows.go(ended(1, DEAD))
    assert (again.changed, again.jobs, rows.steps) == ([], [], before)


def test_an_ending_of_a_step_that_has_not_been_released_is_ignored() -> None:
    rows = begun(definition(a={}, b={"parents": ["a"]}))
    rows.go(ended(2))
    assert rows.states() == ["live", "waiting"]


def test_an_ending_of_a_job_that_is_no_step_is_ignored_and_nobody_asks_for_ever() -> None:
    rows = begun(definition(a={}, b={"parents": ["a"]}))
    rows.go(ended(12345), ended(1))
    assert rows.states() == ["succeeded", "live"]


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict.SUCCEEDED, "succeeded"),
        (Verdict.DEAD, "failed"),
        (Verdict.CRASHED, "failed"),
        (Verdict.DISCARDED, "skipped:itself"),
        (Verdict.CANCELLED, "cancelled"),
        (None, "cancelled"),  # somebody deleted its row
    ],
)
def test_how_a_job_ended_is_how_its_step_did(verdict: Verdict | None, state: str) -> None:
    rows = begun(definition(a={}))
    rows.go(ended(1, verdict, b'"made"'))
    assert rows.states() == [state]
    assert rows.steps[1].result == (b'"made"' if verdict is OK else None)
    assert rows.workflow.ended_at == NOW


def test_a_workflow_of_no_steps_succeeds_at_once() -> None:
    rows = begun(Definition(name="none", nodes=(), returns=Param(name="x")), params=b'{"x":[1]}')
    assert (rows.workflow.state, rows.last.result) == (WorkflowState.SUCCEEDED, b"[1]")


def test_maps_over_nothing_end_one_after_another_in_one_pass() -> None:
    empty = {"kind": NodeKind.MAP, "over": Constant(value=[])}
    chained = {"kind": NodeKind.MAP}
    drawn = definition(
        a=empty,
        b={**chained, "over": StepResult(step=0), "parents": ["a"]},
        c={**chained, "over": StepResult(step=1), "parents": ["b"]},
        end={"takes": ["c"]},
    )
    rows = begun(drawn)
    assert rows.states() == ["succeeded", "succeeded", "succeeded", "live"]
    assert [job.payload for _, job in rows.last.jobs] == [b'{"args":[[]]}']


def test_a_chain_of_skipped_steps_is_gone_through_in_one_pass() -> None:
    names = [f"n{n}" for n in range(300)]
    drawn = definition(**{name: {"parents": names[max(0, n - 1) : n]} for n, name in enumerate(names)})
    rows = begun(drawn)
    rows.go(ended(1, DEAD))
    assert rows.states() == ["failed"] + ["skipped:failure"] * 299
    assert (rows.workflow.state, rows.workflow.left, rows.workflow.failed) == (WorkflowState.FAILED, 0, 1)
    assert rows.last.failure is not None
    assert rows.last.failure.message == "failed: n0"


def test_a_map_over_too_many_fails_before_any_of_it_runs() -> None:
    rows = begun(
        definition(a={"kind": NodeKind.MAP, "over": Param(name="all")}), params=b"[]".join([b'{"all":', b"}"])
    )
    assert rows.states() == ["succeeded"]
    many = msgspec.json.encode({"all": list(range(WIDEST + 1))})
    rows = begun(definition(a={"kind": NodeKind.MAP, "over": Param(name="all")}), params=many)
    assert (rows.states(), rows.last.items) == (["failed"], [])
    error = rows.steps[1].error
    assert error is not None
    assert error.message == f"over: expected at most {WIDEST} items, got {WIDEST + 1}"


def test_one_item_that_is_too_large_fails_the_whole_map_before_any_of_it_runs() -> None:
    large = msgspec.json.encode({"all": [1, "x" * 2_000_000, 3]})
    rows = begun(definition(a={"kind": NodeKind.MAP, "over": Param(name="all")}), params=large)
    assert (rows.states(), rows.last.items, rows.last.jobs) == (["failed"], [], [])


@pytest.mark.parametrize(
    ("node", "type_", "told"),
    [
        ({"args": (StepResult(step=0, path=("k", 1)),)}, "InputError", "its result has no ['k']['k']"),
        ({"only_if": Condition(text="x > 1", names={"x": StepResult(step=0)})}, "ConditionError", ""),
    ],
)
def test_what_cannot_be_given_or_said_fails_the_step_and_not_the_pass(
    node: dict[str, Any], type_: str, told: str
) -> None:
    rows = begun(definition(a={}, b={"parents": ["a"], **node}, c={"parents": ["b"], "when": When.FAILURE}))
    rows.go(ended(1, result=b'{"other":[1]}'))
    assert rows.states() == ["succeeded", "failed", "live"]
    error = rows.steps[2].error
    assert error is not None
    assert error.type == type_
    assert error.message.startswith(told[:16])


def test_a_result_that_cannot_be_returned_fails_the_workflow() -> None:
    rows = begun(definition(a={}, returns=StepResult(step=0, path=("k",))))
    rows.go(ended(1, result=b"7"))
    assert (rows.states(), rows.workflow.state) == (["succeeded"], WorkflowState.FAILED)
    assert rows.last.failure is not None
    assert rows.last.failure.message == "its result has no ['k']: it is 7"


def test_a_kill_after_a_cancel_takes_away_what_the_cancel_let_run() -> None:
    rows = begun(
        definition(
            a={},
            tidy={"parents": ["a"], "when": When.ALWAYS},
            last={"parents": ["tidy"], "when": When.ALWAYS},
        )
    )
    assert rows.go(stop=Stopping.CANCELLED).cancelled == [1]
    rows.go(ended(1, Verdict.CANCELLED))
    assert rows.states() == ["cancelled", "live", "waiting"]
    rows.change(stopping=Stopping.KILLED)
    assert rows.go(look=True).cancelled == [2]
    rows.go(ended(2, Verdict.CANCELLED))
    assert rows.states() == ["cancelled", "cancelled", "skipped:stopped"]
    assert rows.workflow.state is WorkflowState.CANCELLED


def test_the_first_reason_to_stop_stands() -> None:
    rows = begun(definition(a={}))
    rows.change(stopping=Stopping.KILLED)
    rows.go(stop=Stopping.CANCELLED)
    assert rows.workflow.stopping is Stopping.KILLED


def test_a_stop_ends_a_pause_and_what_it_held_back() -> None:
    rows = begun(definition(a={}, b={"parents": ["a"]}))
    rows.change(paused_at=NOW)
    rows.go(ended(1))
    assert rows.states() == ["succeeded", "waiting"]
    rows.go(stop=Stopping.EXPIRED)
    assert rows.states() == ["succeeded", "skipped:stopped"]
    assert rows.workflow.paused_at is None
    assert rows.last.failure is not None
    assert rows.last.failure.message == "its deadline passed"


def test_a_child_that_runs_already_is_not_counted_down_when_its_parent_ends_again() -> None:
    drawn = definition(
        a={}, m={"kind": NodeKind.MAP, "over": Constant(value=[1]), "parents": ["a"], "when": When.ALWAYS}
    )
    rows = begun(drawn)
    rows.go(ended(1, DEAD))
    rows.steps[1] = msgspec.structs.replace(rows.steps[1], state=StepState.LIVE, ended_at=None)
    rows.change(left=2, failed=0)
    again = rows.go(ended(1))
    assert (again.items, rows.steps[2].waits, rows.states()) == ([], 1, ["succeeded", "live"])


def test_items_are_counted_and_their_results_are_kept_in_order() -> None:
    drawn = definition(m={"kind": NodeKind.MAP, "over": Constant(value=[7, 8, 9])}, end={"takes": ["m"]})
    rows = begun(drawn)
    items = [step.id for step in rows.steps.values() if step.item is not None]
    rows.go(ended(items[2], result=b"9"), ended(items[0], Verdict.DISCARDED))
    assert (rows.steps[1].waits, rows.steps[1].failed) == (1, 0)
    rows.go(ended(items[1], result=b"8"), ended(items[1], DEAD))
    assert rows.states() == ["succeeded", "live"]
    assert [job.payload for _, job in rows.last.jobs] == [b'{"args":[[null,8,9]]}']
    assert rows.steps[items[0]].cause is Cause.ITSELF


def test_more_than_ten_failures_are_told_in_short() -> None:
    rows = begun(definition(**{f"n{n}": {} for n in range(12)}))
    rows.go(*(ended(n + 1, DEAD) for n in range(12)))
    assert rows.last.failure is not None
    assert rows.last.failure.message.endswith("n8, n9 and 2 more")
