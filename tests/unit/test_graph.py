"""Which step runs once its parents have ended, and which is skipped and why."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mainspring.model.workflow import (
    Cause,
    Condition,
    Constant,
    Fields,
    Items,
    Node,
    NodeKind,
    Param,
    StepRecord,
    StepResult,
    StepState,
    Stopping,
    When,
)
from mainspring.rules.graph import Graph, ends_with_the_workflow, steps_read
from tests.support.flows import definition

STATES = {
    "succeeded": (StepState.SUCCEEDED, None),
    "failed": (StepState.FAILED, None),
    "cancelled": (StepState.CANCELLED, None),
    "skipped by its condition": (StepState.SKIPPED, Cause.CONDITION),
    "skipped by itself": (StepState.SKIPPED, Cause.ITSELF),
    "skipped for its input": (StepState.SKIPPED, Cause.INPUT),
    "skipped for a failure": (StepState.SKIPPED, Cause.FAILURE),
    "skipped when stopped": (StepState.SKIPPED, Cause.STOPPED),
}
BAD = ("failed", "cancelled", "skipped for a failure", "skipped when stopped")


def barred(parent: str, *, stopping: Stopping | None = None, failed: int = 0, **node: Any) -> Cause | None:
    """What is said of a step after one that ended like this."""
    graph = Graph(definition(a={}, b={"parents": ["a"], **node}))
    state, cause = STATES[parent]
    step = StepRecord(id=1, workflow_id=9, place=0, state=state, cause=cause)
    return graph.barred(1, {0: step}, failed=failed, stopping=stopping)


@pytest.mark.parametrize("parent", STATES)
def test_success_wants_no_failure_before_it(parent: str) -> None:
    assert barred(parent) is (Cause.FAILURE if parent in BAD else None)


@pytest.mark.parametrize("parent", STATES)
def test_what_a_step_reads_must_be_there_unless_it_runs_anyway(parent: str) -> None:
    skipped = parent.startswith("skipped") and parent not in BAD
    expected = Cause.FAILURE if parent in BAD else Cause.INPUT if skipped else None
    assert barred(parent, takes=["a"]) is expected
    assert barred(parent, takes=["a"], when=When.ALWAYS) is None


@pytest.mark.parametrize("parent", STATES)
def test_failure_wants_one_before_it(parent: str) -> None:
    assert barred(parent, when=When.FAILURE) is (None if parent in BAD else Cause.CONDITION)


@pytest.mark.parametrize("parent", STATES)
def test_a_barrier_waits_and_no_more(parent: str) -> None:
    for stopping in (None, Stopping.CANCELLED, Stopping.EXPIRED):
        assert barred(parent, kind=NodeKind.BARRIER, stopping=stopping) is None
    assert barred(parent, kind=NodeKind.BARRIER, stopping=Stopping.KILLED) is Cause.STOPPED


def test_only_what_succeeded_is_undone_and_only_if_the_whole_did_not() -> None:
    undo: dict[str, Any] = {"kind": NodeKind.UNDO, "of": 0}
    assert barred("succeeded", **undo) is Cause.CONDITION
    assert barred("succeeded", **undo, failed=1) is None
    assert barred("succeeded", **undo, stopping=Stopping.CANCELLED) is None
    assert barred("succeeded", **undo, stopping=Stopping.KILLED) is Cause.STOPPED
    for parent in set(STATES) - {"succeeded"}:
        assert barred(parent, **undo, failed=1) is Cause.CONDITION


@pytest.mark.parametrize(("when", "stopping"), list(product(When, Stopping)))
def test_what_is_taken_away_is_what_would_not_be_released(when: When, stopping: Stopping) -> None:
    """So that a second look at a stopped workflow takes away nothing that the first one released."""
    bad = barred("failed", when=when, stopping=stopping)
    node = Node(name="b", task="t", when=when)
    assert ends_with_the_workflow(node, stopping) is (bad is not None)
    undo = Node(name="b", task="t", kind=NodeKind.UNDO, of=0)
    assert ends_with_the_workflow(undo, stopping) is (stopping is Stopping.KILLED)


def test_a_node_that_names_a_parent_twice_is_its_child_once() -> None:
    node = Node(name="b", task="t", parents=(0, 0))
    graph = Graph(definition(a={}))
    doubled = Graph(type(graph.definition)(name="flow", nodes=(*graph.nodes, node)))
    assert doubled.children == ((1,), ())


def test_descendants_are_everything_after_and_the_places_themselves() -> None:
    graph = Graph(
        definition(a={}, b={"parents": ["a"]}, c={"parents": ["b"]}, d={}, e={"parents": ["c", "d"]})
    )
    assert graph.descendants(frozenset({1})) == {1, 2, 4}
    assert graph.descendants(frozenset({3})) == {3, 4}
    assert graph.descendants(frozenset()) == frozenset()


def test_what_is_read_is_found_wherever_it_is_said() -> None:
    deep = Fields(
        fields={"x": Items(items=(StepResult(step=2), Constant(value=[StepResult]))), "y": Param(name="p")}
    )
    assert set(steps_read(deep)) == {2}
    node = Node(
        name="b",
        task="t",
        args=(StepResult(step=0),),
        kwargs={"k": StepResult(step=1)},
        over=StepResult(step=2),
        only_if=Condition(text="x == 1", names={"x": StepResult(step=3, path=("k",))}),
        parents=(0, 1, 2, 3),
    )
    plain = definition(a={}, b={}, c={}, d={})
    assert Graph(type(plain)(name="f", nodes=(*plain.nodes, node))).reads[4] == {0, 1, 2, 3}
    assert Graph(definition(a={}, returns=Items(items=(StepResult(step=0),)))).returned == {0}


def test_places_are_found_by_name() -> None:
    graph = Graph(definition(a={}, b={}))
    assert (graph.place("b"), graph.place("c")) == (1, None)
