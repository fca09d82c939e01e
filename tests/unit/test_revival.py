"""What a retry runs again and what a fork keeps."""

from __future__ import annotations

import msgspec
import pytest

from mainspring.errors import UsageError
from mainspring.model.workflow import (
    Cause,
    Constant,
    Definition,
    NodeKind,
    StepRecord,
    StepState,
    Stopping,
    When,
    WorkflowRecord,
    WorkflowState,
)
from mainspring.rules.graph import Graph, Revival, failed_places, forked, retried
from tests.support.flows import definition
from tests.unit.test_resolution import NOW

SPREAD = definition(
    m={"kind": NodeKind.MAP, "over": Constant(value=[1, 2, 3])},
    n={"takes": ["m"]},
    other={},
    last={"parents": ["n", "other"]},
)


def rows(*states: str) -> dict[int, StepRecord]:
    """A row for each node; "skipped:failure" is a state and its cause."""
    found = {}
    for place, text in enumerate(states):
        state, _, cause = text.partition(":")
        found[place] = StepRecord(
            id=place + 1,
            workflow_id=99,
            place=place,
            state=StepState(state),
            cause=Cause(cause) if cause else None,
            ended_at=None if state in ("waiting", "live") else NOW,
        )
    return found


def items(*states: str) -> list[StepRecord]:
    return [
        StepRecord(id=100 + item, workflow_id=99, place=0, item=item, state=StepState(state), ended_at=NOW)
        for item, state in enumerate(states)
    ]


def again(
    drawn: Definition,
    steps: dict[int, StepRecord],
    *,
    chosen: set[int] | None = None,
    map_items: dict[int, list[StepRecord]] | None = None,
    revivable: set[int] | None = None,
) -> Revival | None:
    workflow = WorkflowRecord(
        id=99,
        name="f",
        definition_id=1,
        version=1,
        state=WorkflowState.FAILED,
        params=b"{}",
        left=0,
        failed=1,
        started_at=NOW,
        ended_at=NOW,
        stopping=Stopping.CANCELLED,
        step_ids=tuple(step.id for step in steps.values()),
    )
    picked = failed_places(steps) if chosen is None else frozenset(chosen)
    everything = {step.id for step in steps.values()} | set(range(100, 200))
    known = everything if revivable is None else revivable
    return retried(Graph(drawn), workflow, steps, map_items or {}, picked, revivable=known)


def told(plan: Revival | None) -> dict[int, str]:
    assert plan is not None
    return {step.id: f"{step.state}:{step.waits}" for step in plan.steps}


def test_of_a_map_that_failed_in_part_only_that_part_runs_again() -> None:
    steps = rows("failed", "skipped:failure", "succeeded", "skipped:failure")
    plan = again(SPREAD, steps, map_items={0: items("failed", "succeeded", "cancelled")})
    assert told(plan) == {1: "live:2", 2: "waiting:1", 4: "waiting:1", 100: "live:0", 102: "live:0"}
    assert plan is not None
    assert (plan.revived, plan.anew, plan.emptied) == ((100, 102), (2, 4), ())
    assert (plan.workflow.state, plan.workflow.left, plan.workflow.failed) == (WorkflowState.RUNNING, 3, 0)
    assert (plan.workflow.stopping, plan.workflow.ended_at) == (None, None)


def test_an_item_of_which_nothing_is_on_record_is_named() -> None:
    steps = rows("failed", "skipped:failure", "succeeded", "skipped:failure")
    with pytest.raises(UsageError, match="m: what items 0 were given"):
        again(SPREAD, steps, map_items={0: items("failed", "succeeded", "failed")}, revivable={102})


def test_a_map_that_failed_before_it_spread_out_is_spread_out_anew() -> None:
    plan = again(SPREAD, rows("failed", "skipped:failure", "succeeded", "skipped:failure"), revivable=set())
    assert plan is not None
    assert told(plan)[1] == "waiting:0"
    assert (plan.revived, plan.anew, plan.emptied) == ((), (1, 2, 4), (0,))


def test_what_comes_after_another_that_runs_again_waits_for_it_though_it_failed_too() -> None:
    drawn = definition(
        a={},
        m={"kind": NodeKind.MAP, "over": Constant(value=[1]), "parents": ["a"], "when": When.ALWAYS},
        z={"parents": ["m"], "when": When.ALWAYS},
    )
    plan = again(drawn, rows("failed", "failed", "failed"), map_items={1: items("failed")})
    assert told(plan) == {1: "live:0", 2: "waiting:1", 3: "waiting:1"}
    assert plan is not None
    assert (plan.revived, plan.anew, plan.emptied) == ((1,), (2, 3), (1,))


def test_what_still_runs_after_a_step_that_is_retried_is_left_alone() -> None:
    drawn = definition(a={}, tidy={"parents": ["a"], "when": When.ALWAYS}, z={"parents": ["tidy"]})
    plan = again(drawn, rows("failed", "live", "waiting"))
    assert plan is not None
    assert told(plan) == {1: "live:0", 3: "waiting:1"}
    assert plan.workflow.left == 3


def test_what_was_cut_off_runs_again_only_if_all_that_failed_does() -> None:
    drawn = definition(a={}, b={}, c={"parents": ["b"]}, d={"parents": ["a"]})
    steps = rows("failed", "failed", "skipped:failure", "skipped:failure")
    assert told(again(drawn, steps, chosen={0})) == {1: "live:0", 4: "waiting:1"}
    assert told(again(drawn, steps)) == {1: "live:0", 2: "live:0", 3: "waiting:1", 4: "waiting:1"}


def test_nothing_to_run_again_is_no_plan() -> None:
    drawn = definition(a={}, b={"parents": ["a"]})
    assert again(drawn, rows("succeeded", "skipped:condition")) is None
    assert again(drawn, rows("failed", "skipped:failure"), chosen=set()) is None


def test_a_cancelled_step_is_made_anew_and_goes_on_counting_its_claims() -> None:
    plan = again(definition(a={}, b={}), rows("cancelled", "succeeded"))
    assert plan is not None
    assert (plan.revived, plan.anew) == ((), (1,))
    [step] = plan.changed({1: 4})
    assert (step.fence, step.state, step.ended_at) == (4, "waiting", None)


@pytest.mark.parametrize("undo", ["live", "succeeded", "failed", "cancelled"])
def test_what_has_begun_to_be_undone_is_not_retried_and_a_fork_does_it_again(undo: str) -> None:
    drawn = definition(
        a={},
        b={"parents": ["a"]},
        end={"kind": NodeKind.BARRIER, "parents": ["b"]},
        no_a={"kind": NodeKind.UNDO, "of": 0, "parents": ["end", "a"]},
    )
    steps = rows("succeeded", "failed", "succeeded", undo)
    with pytest.raises(UsageError, match="no_a"):
        again(drawn, steps)
    kept = forked(Graph(drawn), steps, 1)
    assert [step.state for step in kept.values()] == ["waiting"] * 4
    assert again(drawn, rows("succeeded", "failed", "succeeded", "skipped:condition")) is not None


def test_a_fork_keeps_what_stands_and_runs_the_rest() -> None:
    drawn = definition(a={}, b={"parents": ["a"]}, c={"parents": ["b"]}, d={}, e={"parents": ["d"]})
    steps = rows("succeeded", "skipped:condition", "succeeded", "live", "waiting")
    steps[0] = msgspec.structs.replace(steps[0], result=b"1", fence=3)
    kept = forked(Graph(drawn), steps, 2)
    assert [f"{step.state}:{step.waits}" for step in kept.values()] == [
        "succeeded:0",
        "skipped:0",
        "waiting:0",
        "waiting:0",
        "waiting:1",
    ]
    assert (kept[0].result, kept[0].fence) == (b"1", 0)
