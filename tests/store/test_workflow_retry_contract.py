"""Retries and forks of workflows. Every test runs on both dialects."""

from __future__ import annotations

import pytest

from mainspring.errors import NotFound, UsageError
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.workflow import NodeKind, Param, StepResult, When, WorkflowState
from tests.support.desk import Desk
from tests.support.flows import WORKER, Story, definition

DEAD = Verdict.DEAD
CHAIN = definition(
    a={},
    b={"takes": ["a"]},
    c={"takes": ["b"]},
    tidy={"parents": ["c"], "when": When.ALWAYS},
    returns=StepResult(step=2),
)


def failed_chain(desk: Desk) -> Story:
    story = Story(desk, CHAIN)
    story.end("a", result=b'"A"')
    story.end("b", DEAD)
    story.end("tidy")
    assert story.workflow.state is WorkflowState.FAILED
    return story


def test_a_retry_runs_what_failed_and_what_came_after_it(desk: Desk) -> None:
    story = failed_chain(desk)
    before = story.step("b")
    assert story.action("retry", steps=None) == ["b"]
    assert story.states() == {"a": "succeeded", "b": "live", "c": "waiting", "tidy": "waiting"}
    assert (story.workflow.state, story.workflow.failed, story.workflow.left) == (WorkflowState.RUNNING, 0, 3)
    assert desk.job(story.id).state is JobState.RUNNING
    again = story.claimed()[before.id]
    assert (again.payload, again.fence, again.failures) == (b'{"args":["A"]}', 2, 0)
    story.end("b", result=b'"B"')
    story.end("c", result=b'"C"')
    tidy = story.claimed()[story.step("tidy").id]
    assert tidy.fence == 2
    story.end("tidy")
    assert story.workflow.state is WorkflowState.SUCCEEDED
    assert desk.job(story.id).result == b'"C"'
    assert [run.verdict for run in desk.runs(before.id)] == [DEAD, Verdict.SUCCEEDED]
    assert [action.action for action in desk.run(desk.store.workflows.orders(story.id))] == ["retried"]
    assert story.action("retry", steps=None) == []


def test_a_retry_takes_the_arguments_as_they_were_edited(desk: Desk) -> None:
    story = failed_chain(desk)
    step = story.step("b")
    assert desk.edit_dead(step.id, b'{"args":["mended"]}', expected=b'{"args":["A"]}')
    assert desk.replay(step.id) == []  # alone it would be nobody's
    story.action("retry", steps=["b"])
    assert story.claimed()[step.id].payload == b'{"args":["mended"]}'


def test_a_retry_after_the_letter_was_purged_makes_the_job_anew(desk: Desk) -> None:
    story = failed_chain(desk)
    step = story.step("b")
    assert desk.purge(step.id) == 1
    assert story.action("retry", steps=None) == ["b"]
    again = story.claimed()[step.id]
    assert (again.payload, again.fence) == (b'{"args":["A"]}', 2)


def test_only_the_steps_named_are_retried(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={}, c={"parents": ["a", "b"]}))
    story.end("a", DEAD)
    story.end("b", DEAD)
    assert story.action("retry", steps=["a"]) == ["a"]
    assert story.states() == {"a": "live", "b": "failed", "c": "waiting"}
    story.end("a")
    assert story.states() == {"a": "succeeded", "b": "failed", "c": "skipped:failure"}
    assert story.workflow.state is WorkflowState.FAILED
    with pytest.raises(NotFound, match="nothing"):
        story.action("retry", steps=["nothing"])


def test_of_a_map_only_the_items_that_failed_run_again(desk: Desk) -> None:
    drawn = definition(parts={"kind": NodeKind.MAP, "over": Param(name="all")}, total={"takes": ["parts"]})
    story = Story(desk, drawn, {"all": [1, 2, 3]})
    story.end("parts", item=0, result=b"10")
    story.end("parts", DEAD, item=1)
    desk.cancel(story.step("parts", 2).id)
    story.resolve()
    assert story.states() == {"parts": "failed", "total": "skipped:failure"}
    assert story.action("retry", steps=None) == ["parts"]
    story.claims.clear()
    again = sorted(story.claimed().values(), key=lambda claim: claim.job_id)
    assert [claim.payload for claim in again] == [b'{"args":[2]}', b'{"args":[3]}']
    story.end("parts", item=1, result=b"20")
    story.end("parts", item=2, result=b"30")
    assert story.claimed()[story.step("total").id].payload == b'{"args":[[10,20,30]]}'


def test_a_cancelled_workflow_can_be_retried(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"takes": ["a"]}))
    story.stop()
    assert story.workflow.state is WorkflowState.CANCELLED
    assert story.action("retry", steps=None) == ["a"]
    assert story.states() == {"a": "live", "b": "waiting"}
    story.claims.clear()
    story.end("a")
    story.end("b")
    assert story.workflow.state is WorkflowState.SUCCEEDED
    assert desk.job(story.id).state is JobState.SUCCEEDED


def test_what_has_been_undone_is_not_retried(desk: Desk) -> None:
    drawn = definition(
        a={},
        b={"parents": ["a"]},
        end={"kind": NodeKind.BARRIER, "parents": ["b"], "task": ""},
        no_a={"kind": NodeKind.UNDO, "of": 0, "parents": ["end", "a"]},
    )
    story = Story(desk, drawn)
    story.end("a")
    story.end("b", DEAD)
    with pytest.raises(UsageError, match="undo"):
        story.action("retry", steps=None)


def test_a_fork_has_what_came_before_and_runs_the_rest_again(desk: Desk) -> None:
    drawn = definition(
        raw={},
        parts={"kind": NodeKind.MAP, "over": StepResult(step=0), "parents": ["raw"]},
        load={"takes": ["parts"]},
        tell={"takes": ["load"]},
        returns=StepResult(step=3),
    )
    story = Story(desk, drawn, {"day": "monday"})
    story.end("raw", result=b"[1,2]")
    story.end("parts", item=0, result=b"10")
    story.end("parts", item=1, result=b"20")
    story.end("load", result=b'"L"')
    story.end("tell", result=b'"T"')
    new_id = story.action("fork", "load")
    fork = _other(desk, story, new_id)
    assert fork.states() == {"raw": "succeeded", "parts": "succeeded", "load": "live", "tell": "waiting"}
    assert fork.workflow.forked_from == story.id
    assert fork.claimed()[fork.step("load").id].payload == b'{"args":[[10,20]]}'
    fork.end("load", result=b'"L2"')
    fork.end("tell", result=b'"T2"')
    assert (desk.job(new_id).state, desk.job(new_id).result) == (JobState.SUCCEEDED, b'"T2"')
    assert story.workflow.state is WorkflowState.SUCCEEDED
    assert {step.id for step in story.steps()}.isdisjoint(step.id for step in fork.steps())
    with pytest.raises(NotFound):
        story.action("fork", "nothing")


def test_a_fork_of_what_failed_elsewhere_runs_that_again_too(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={}, c={"parents": ["a", "b"]}))
    story.end("a", DEAD)
    story.end("b")
    fork = _other(desk, story, story.action("fork", "c"))
    assert fork.states() == {"a": "live", "b": "succeeded", "c": "waiting"}


def test_a_step_that_is_a_workflow_ends_with_it_and_is_retried_with_it(desk: Desk) -> None:
    outer = Story(desk, definition("outer", sub={"task": "root"}, after={"takes": ["sub"]}))
    inner = _Inner(desk, outer, definition("inner", x={}, y={"takes": ["x"]}, returns=StepResult(step=1)))
    assert inner.workflow.parent_id == outer.id
    inner.end("x", DEAD)
    assert inner.workflow.state is WorkflowState.FAILED
    assert outer.states() == {"sub": "failed", "after": "skipped:failure"}
    assert outer.action("retry", steps=None) == ["sub"]
    assert inner.states() == {"x": "live", "y": "waiting"}
    inner.end("x")
    inner.end("y", result=b'"Y"')
    assert outer.states() == {"sub": "succeeded", "after": "live"}
    outer.claims.clear()
    assert outer.claimed()[outer.step("after").id].payload == b'{"args":["Y"]}'


def test_a_cancel_reaches_the_workflows_inside(desk: Desk) -> None:
    outer = Story(desk, definition("outer", sub={"task": "root"}))
    inner = _Inner(desk, outer, definition("inner", x={}))
    outer.stop()
    assert inner.states() == {"x": "cancelled"}
    assert (outer.workflow.state, inner.workflow.state) == (WorkflowState.CANCELLED, WorkflowState.CANCELLED)


class _Inner(Story):
    """The workflow that a step of another is."""

    def __init__(self, desk: Desk, outer: Story, drawn: object) -> None:
        self.desk, self.drawn, self.claims = desk, drawn, {}  # type: ignore[assignment]
        self.graph = type(outer.graph)(self.drawn)
        self.id = outer.step("sub").id
        self.begin()
        self.resolve()


def _other(desk: Desk, story: Story, workflow_id: int) -> Story:
    other = object.__new__(Story)
    other.desk, other.drawn, other.graph = desk, story.drawn, story.graph
    other.id, other.claims = workflow_id, {}
    assert WORKER in [member.id for member in desk.processes()]
    return other
