"""Workflows whose retries, stops and endings get in each other's way. Every test runs on both dialects."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import UsageError
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.workflow import (
    Constant,
    Definition,
    NodeKind,
    StepResult,
    Stopping,
    When,
    WorkflowState,
)
from tests.support.desk import Desk
from tests.support.flows import Story, definition

DEAD = Verdict.DEAD
TIDY = definition(a={}, tidy={"takes": ["a"], "when": When.ALWAYS})


class Inner(Story):
    """The workflow that the step `sub` of another is."""

    def __init__(self, desk: Desk, outer: Story, drawn: Definition) -> None:
        self.desk, self.drawn, self.claims = desk, drawn, {}
        self.graph = type(outer.graph)(drawn)
        self.id = outer.step("sub").id
        self.begin()
        self.resolve()


def test_a_retry_waits_with_what_comes_after_another_that_runs_again(desk: Desk) -> None:
    story = Story(desk, TIDY)
    story.end("a", DEAD)
    story.end("tidy", DEAD)
    assert story.action("retry", steps=None) == ["a", "tidy"]
    assert story.states() == {"a": "live", "tidy": "waiting"}
    story.end("a", result=b'"A"')
    tidy = story.claimed()[story.step("tidy").id]
    assert (tidy.payload, tidy.fence) == (b'{"args":["A"]}', 2)
    story.end("tidy")
    assert story.workflow.state is WorkflowState.SUCCEEDED
    assert desk.dead() == []


def test_a_step_that_is_made_anew_may_die_again(desk: Desk) -> None:
    story = Story(desk, TIDY)
    story.end("a", DEAD)
    story.end("tidy", DEAD)
    assert story.action("retry", steps=["a"]) == ["a"]
    story.end("a")
    story.end("tidy", DEAD)
    assert story.states() == {"a": "succeeded", "tidy": "failed"}
    assert [letter.id for letter in desk.dead(ids=[story.step("tidy").id])] == [story.step("tidy").id]


def test_what_runs_while_its_parent_is_retried_is_not_counted_down_by_it(desk: Desk) -> None:
    drawn = definition(
        a={},
        spread={"kind": NodeKind.MAP, "over": Constant(value=[1, 2]), "parents": ["a"], "when": When.ALWAYS},
        end={"takes": ["spread"]},
    )
    story = Story(desk, drawn)
    story.end("a", DEAD)
    story.end("spread", item=0)
    story.action("retry", steps=None)
    assert story.states() == {"a": "live", "spread": "live", "end": "waiting"}
    story.end("a")
    assert (story.step("spread").state, story.step("spread").waits) == ("live", 1)
    assert story.states()["end"] == "waiting"
    story.end("spread", item=1)
    story.end("end")
    assert story.workflow.state is WorkflowState.SUCCEEDED


def test_a_workflow_that_is_being_stopped_is_not_retried_before_it_has_ended(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={}, tidy={"parents": ["a", "b"], "when": When.ALWAYS}))
    story.end("a", DEAD)
    story.stop()
    with pytest.raises(UsageError, match="being stopped"):
        story.action("retry", steps=None)
    story.end("tidy")
    assert story.action("retry", steps=None) == ["a", "b"]


@pytest.mark.parametrize("way", ["cancel", "expire"])
def test_nor_is_one_whose_own_job_was_taken_away_and_nobody_has_looked_since(desk: Desk, way: str) -> None:
    story = Story(desk, definition(a={}, b={}), expires=timedelta(hours=1))
    story.end("a", DEAD)
    if way == "cancel":
        desk.cancel(story.id)
    else:
        desk.advance(timedelta(hours=1))
        assert desk.expire() == [story.id]
    with pytest.raises(UsageError, match="being stopped"):
        story.action("retry", steps=None)
    story.resolve()
    assert story.workflow.state is (WorkflowState.CANCELLED if way == "cancel" else WorkflowState.FAILED)
    assert story.action("retry", steps=None) == ["a", "b"]
    assert desk.job(story.id).state is JobState.RUNNING


def test_a_retry_of_a_step_that_did_not_fail_does_nothing(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"parents": ["a"]}))
    story.action("pause")
    story.end("a")
    story.stop()
    assert story.states() == {"a": "succeeded", "b": "skipped:stopped"}
    assert story.action("retry", steps=["a"]) == []
    assert story.workflow.state is WorkflowState.CANCELLED
    assert story.action("retry", steps=None) == ["what was cut off"]
    assert story.states() == {"a": "succeeded", "b": "live"}


def test_a_workflow_that_is_a_step_is_retried_with_the_one_it_belongs_to(desk: Desk) -> None:
    outer = Story(desk, definition("outer", sub={"task": "root"}))
    inner = Inner(desk, outer, definition("inner", x={}))
    inner.end("x", DEAD)
    with pytest.raises(UsageError, match=f"a step of workflow {outer.id}"):
        inner.action("retry", steps=None)
    assert outer.action("retry", steps=None) == ["sub"]
    assert inner.states() == {"x": "live"}


def test_a_kill_reaches_the_workflows_inside(desk: Desk) -> None:
    drawn = definition("inner", x={}, tidy={"parents": ["x"], "when": When.ALWAYS})
    outer = Story(desk, definition("outer", sub={"task": "root"}))
    inner = Inner(desk, outer, drawn)
    outer.stop(Stopping.KILLED)
    assert inner.states() == {"x": "cancelled", "tidy": "skipped:stopped"}
    assert inner.workflow.state is WorkflowState.CANCELLED


def test_after_a_deadline_a_second_look_takes_away_nothing_that_is_for_failures(desk: Desk) -> None:
    drawn = definition(a={}, alarm={"parents": ["a"], "when": When.FAILURE})
    story = Story(desk, drawn, expires=timedelta(hours=1))
    story.action("pause")
    story.end("a", DEAD)
    desk.advance(timedelta(hours=1))
    assert desk.expire() == [story.id]
    desk.run(
        desk.store.workflows.resume(story.id, author="ann", note=None, at=desk.clock.stamp())
    )  # after the end of its job, and before anybody has looked
    story.resolve(limit=1)
    assert story.states() == {"a": "failed", "alarm": "live"}
    story.end("alarm")
    assert story.workflow.state is WorkflowState.FAILED


def test_a_fork_runs_what_was_undone_again(desk: Desk) -> None:
    drawn = definition(
        flight={},
        pay={"parents": ["flight"]},
        end={"kind": NodeKind.BARRIER, "parents": ["pay"], "task": ""},
        no_flight={"kind": NodeKind.UNDO, "of": 0, "parents": ["end", "flight"]},
    )
    story = Story(desk, drawn)
    story.end("flight")
    story.end("pay", DEAD)
    story.end("no_flight")
    fork = object.__new__(Story)
    fork.desk, fork.drawn, fork.graph, fork.claims = desk, drawn, story.graph, {}
    fork.id = story.action("fork", "pay")
    assert fork.states() == {"flight": "live", "pay": "waiting", "end": "waiting", "no_flight": "waiting"}


def test_the_fence_of_a_step_rises_through_every_retry(desk: Desk) -> None:
    drawn = definition(parts={"kind": NodeKind.MAP, "over": Constant(value=[1])})
    story = Story(desk, drawn)
    step = story.step("parts", 0)
    fences = [story.claimed()[step.id].fence]
    desk.cancel(step.id)
    story.resolve()
    story.action("retry", steps=None)
    fences.append(story.claimed()[step.id].fence)
    story.end("parts", DEAD, item=0)
    desk.purge(step.id)
    story.action("retry", steps=None)
    fences.append(story.claimed()[step.id].fence)
    assert fences == [1, 2, 3]


def test_a_step_that_was_a_workflow_and_begins_anew_is_another_one(desk: Desk) -> None:
    outer = Story(
        desk, definition("outer", sub={"task": "root"}, after={"parents": ["sub"], "when": When.ALWAYS})
    )
    first = Inner(desk, outer, definition("inner", x={}))
    old = outer.step("sub").id
    desk.cancel(old)
    outer.resolve()
    assert outer.states() == {"sub": "cancelled", "after": "live"}
    outer.action("retry", steps=None)
    assert outer.step("sub").id != old
    assert outer.states() == {"sub": "live", "after": "live"}
    second = Inner(desk, outer, definition("inner", x={}))
    outer.end("after")
    second.claims = outer.claims  # of the same worker
    second.end("x")
    assert outer.workflow.state is WorkflowState.SUCCEEDED
    assert (first.workflow.state, second.workflow.state) == (WorkflowState.CANCELLED, WorkflowState.SUCCEEDED)


def test_a_map_of_thousands_has_all_that_its_node_says(desk: Desk) -> None:
    """So many are written in another way."""
    wide = 1200
    drawn = definition(
        parts={
            "kind": NodeKind.MAP,
            "over": Constant(value=list(range(wide))),
            "max_attempts": 3,
            "priority": 2,
            "delay": timedelta(minutes=1),
            "expires": timedelta(minutes=5),
        },
        total={"takes": ["parts"]},
        returns=StepResult(step=0, path=(wide - 1,)),
    )
    story = Story(desk, drawn)
    assert desk.claim(7, limit=2 * wide) == []
    desk.advance(timedelta(minutes=1))
    claims = sorted(desk.claim(7, limit=2 * wide), key=lambda claim: claim.job_id)
    assert [claim.payload for claim in claims] == [b'{"args":[%d]}' % n for n in range(wide)]
    told = {(each.max_attempts, each.fence, each.workflow_id, each.expires_in) for each in claims}
    assert told == {(3, 1, story.id, timedelta(minutes=5))}
    assert desk.job(claims[-1].job_id).priority == 2
    for claim in claims:
        desk.end(claim, Verdict.SUCCEEDED, result=b"1")
    assert sum(done.taken for done in story.resolve()) == wide
    assert story.claimed()[story.step("total").id].payload == b'{"args":[[%s]]}' % b",".join([b"1"] * wide)
    story.end("total")
    assert (story.workflow.state, desk.job(story.id).result) == (WorkflowState.SUCCEEDED, b"1")
