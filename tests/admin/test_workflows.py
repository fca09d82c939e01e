"""Workflows seen and steered by operators, on both stores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import ReplayedPage
from mainspring.admin.jobs import Effect
from mainspring.admin.views import iso, to_json
from mainspring.admin.why.answer import Because
from mainspring.admin.why.asking import Why
from mainspring.admin.workflows.graph import dot, drawn, edges, mermaid
from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.admin.workflows.views import StepView, WorkflowView
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import Failure
from mainspring.model.run import Verdict
from mainspring.model.workflow import Condition, Constant, NewWorkflow, NodeKind, Param, StepResult, When
from tests.support.desk import HOUR, SECOND, Desk
from tests.support.flows import Story, definition
from tests.support.management import admin_of

DEAD = Verdict.DEAD
MISSING = 999_999
BAD_ROW = Failure(type="ValueError", message="bad row 17", traceback="line 9")
CHAIN = definition(a={}, b={"takes": ["a"]}, tidy={"parents": ["b"], "when": When.ALWAYS})
SAGA = definition(
    book={},
    pay={"parents": ["book"]},
    end={"kind": NodeKind.BARRIER, "parents": ["pay"], "task": ""},
    unbook={"kind": NodeKind.UNDO, "of": 0, "parents": ["end"], "takes": ["book"]},
)
ETL = definition(
    "etl",
    extract={"args": (Param(name="day"),), "max_attempts": 2},
    parts={"kind": NodeKind.MAP, "over": StepResult(step=0), "parents": ["extract"]},
    check={
        "parents": ["extract"],
        "only_if": Condition(text="rows > 9", names={"rows": Constant(value=3)}),
    },
    load={"takes": ["parts"]},
    alarm={"parents": ["load"], "when": When.FAILURE},
)


def workflows(desk: Desk) -> Workflows:
    return admin_of(desk.store, desk.clock).workflows


def order(desk: Desk, verb: str, *args: Any, **fields: Any) -> WorkflowDone:
    done: WorkflowDone = desk.run(getattr(workflows(desk), f"a{verb}")(*args, **fields))
    return done


def shown(desk: Desk, workflow_id: int, **fields: Any) -> WorkflowView:
    view: WorkflowView = desk.run(workflows(desk).aget(workflow_id, **fields))
    return view


def step_of(desk: Desk, workflow_id: int, name: str, **fields: Any) -> StepView:
    view: StepView = desk.run(workflows(desk).astep(workflow_id, name, **fields))
    return view


def why(desk: Desk, job_id: int) -> Any:
    return desk.run(Why(desk.store, desk.clock).job(job_id))


def failed_etl(desk: Desk) -> Story:
    """Extract needs two runs; of three parts one fails; nothing is loaded."""
    story = Story(desk, ETL, {"day": "monday"})
    story.claimed()
    desk.advance(SECOND)
    story.end("extract", Verdict.FAILED, took=SECOND)
    story.claimed()
    desk.advance(2 * SECOND)
    story.end("extract", result=b"[10,20,30]", took=2 * SECOND)
    story.claimed()
    desk.advance(4 * SECOND)
    story.end("parts", item=0, result=b'"ten"', took=4 * SECOND)
    story.end("parts", DEAD, item=1, failure=BAD_ROW, took=4 * SECOND)
    story.end("parts", item=2, took=4 * SECOND)
    return story


# Orders.


def test_a_cancel_takes_effect_without_a_worker_and_leaves_what_runs_always(desk: Desk) -> None:
    story = Story(desk, CHAIN)
    done = order(desk, "cancel", story.id, note="wrong day")
    assert (done.effect, done.state, done.name) == (WorkflowEffect.CANCELLED, "running", "flow")
    assert story.states() == {"a": "cancelled", "b": "skipped:stopped", "tidy": "live"}
    again = order(desk, "cancel", story.id)
    assert (again.effect, again.why, again.already) == ("none", "is being cancelled already", True)
    killed = order(desk, "cancel", story.id, now=True)
    assert (killed.effect, killed.state) == ("cancelled", "cancelled")
    refused = order(desk, "cancel", story.id, now=True)
    assert (refused.effect, refused.why, refused.already) == ("none", "was cancelled", False)
    assert [(action.action, action.author, action.note) for action in shown(desk, story.id).orders] == [
        ("cancelled", "ann", "wrong day"),
        ("cancelled", "ann", None),
    ]


def test_a_cancel_undoes_what_was_done(desk: Desk) -> None:
    story = Story(desk, SAGA)
    story.end("book")
    order(desk, "cancel", story.id)
    assert story.states() == {"book": "succeeded", "pay": "cancelled", "end": "succeeded", "unbook": "live"}


def test_pause_and_resume_say_when_there_was_nothing_to_do(desk: Desk) -> None:
    story = Story(desk, CHAIN)
    assert order(desk, "resume", story.id).why == "is not paused"
    assert order(desk, "pause", story.id).effect is WorkflowEffect.PAUSED
    assert order(desk, "pause", story.id).already
    story.end("a")
    assert story.states()["b"] == "waiting"
    assert order(desk, "resume", story.id).effect is WorkflowEffect.RESUMED
    assert story.states()["b"] == "live"
    order(desk, "cancel", story.id)
    assert order(desk, "pause", story.id).why == "is being stopped"
    order(desk, "cancel", story.id, now=True)
    refused = [order(desk, verb, story.id) for verb in ("pause", "resume")]
    assert [(each.why, each.already) for each in refused] == [("was cancelled", False)] * 2


def test_a_retry_runs_failed_steps_again_and_says_when_there_are_none(desk: Desk) -> None:
    story = failed_etl(desk)
    story.end("alarm")
    assert order(desk, "retry", story.id, ["load"]).why == "has no failed step load"
    done = order(desk, "retry", story.id, ["parts"])
    assert (done.effect, done.steps, done.state) == ("retried", ("parts",), "running")
    with pytest.raises(InvalidArgument, match="a step of workflow"):
        order(desk, "retry", story.id, ["parst"])
    for name, item in (("parts", 1), ("load", None)):
        story.end(name, item=item)
    assert order(desk, "retry", story.id).why == "has no failed step"


def test_a_retry_of_what_was_undone_is_refused(desk: Desk) -> None:
    story = Story(desk, SAGA)
    story.end("book")
    story.end("pay", DEAD)
    refused = order(desk, "retry", story.id)
    assert (refused.effect, refused.already) == ("none", False)
    assert refused.why.startswith("cannot be retried: it has begun to undo what it did (unbook)")


def test_a_fork_is_another_workflow_that_keeps_what_came_before(desk: Desk) -> None:
    story = failed_etl(desk)
    desk.advance(HOUR)
    done = order(desk, "fork", story.id, "load")
    assert done.new_id is not None
    view = shown(desk, done.new_id)
    assert (view.forked_from, view.state) == (story.id, "running")
    states = {each.name: (each.state, each.kept) for each in view.nodes}
    assert states["extract"] == ("succeeded", True)
    assert states["parts"] == ("running", False)
    assert [(action.action, action.note) for action in view.orders] == [
        ("forked", f"from load of workflow {story.id}")
    ]
    assert not any(bar.name == "extract" for bar in view.timeline)
    with pytest.raises(InvalidArgument):
        order(desk, "fork", story.id, "nothing")


def test_orders_for_what_is_not_there(desk: Desk) -> None:
    for verb, args in (("cancel", ()), ("pause", ()), ("resume", ()), ("retry", ()), ("fork", ("a",))):
        with pytest.raises(NotFound):
            order(desk, verb, MISSING, *args)
    with pytest.raises(NotFound):
        shown(desk, MISSING)


def test_a_cancel_reaches_a_workflow_that_is_a_step(desk: Desk) -> None:
    outer = Story(desk, definition("outer", inside={"task": "root"}))
    inner = nested(desk, outer, definition("inner", a={}))
    order(desk, "cancel", outer.id)
    assert shown(desk, inner).state == "cancelled"
    assert shown(desk, outer.id).state == "cancelled"


def nested(desk: Desk, outer: Story, graph: Any) -> int:
    """Begin the workflow that the step `inside` of another is."""
    [claim] = desk.claim(7, tasks=("root",))
    desk.end(claim, Verdict.STARTED, start=NewWorkflow(definition=graph))
    outer.resolve()
    return claim.job_id


# Views.


def test_a_view_tells_every_step(desk: Desk) -> None:
    story = failed_etl(desk)
    view = shown(desk, story.id)
    assert view.params == {"day": "monday"}
    assert view.counts == {"ready": 1, "succeeded": 1, "failed": 1, "skipped": 2}
    nodes = {each.name: each for each in view.nodes}
    assert {name: (each.state, each.cause, each.layer) for name, each in nodes.items()} == {
        "extract": ("succeeded", None, 0),
        "parts": ("failed", None, 1),
        "check": ("skipped", "condition", 1),
        "load": ("skipped", "failure", 2),
        "alarm": ("ready", None, 3),
    }
    extract, parts = nodes["extract"], nodes["parts"]
    assert (extract.attempts, extract.max_attempts, extract.worker) == (2, 2, "worker-7")
    assert (extract.started_at, extract.finished_at) == (view.started_at, parts.released_at)
    assert extract.error is None
    assert nodes["check"].condition == "rows > 9"
    assert nodes["load"].parents == ("parts",)
    assert parts.error == "ValueError: bad row 17"
    assert parts.items is not None
    assert (parts.items.total, parts.items.counts) == (3, {"succeeded": 2, "failed": 1})
    assert [(each.item, each.error) for each in parts.items.lost] == [(1, "ValueError: bad row 17")]
    assert [(each.source, each.target) for each in view.edges] == [
        ("extract", "parts"),
        ("extract", "check"),
        ("parts", "load"),
        ("load", "alarm"),
    ]


def test_the_timeline_has_a_bar_for_each_run_in_the_order_of_their_start(desk: Desk) -> None:
    story = failed_etl(desk)
    view = shown(desk, story.id, items=2)
    assert [(bar.name, bar.item) for bar in view.timeline] == [
        ("extract", None),
        ("parts", 0),
        ("parts", 1),
        ("alarm", None),
    ]
    first = [(each.number, each.verdict, each.worker) for each in view.timeline[0].attempts]
    assert first == [(1, "failed", "worker-7"), (2, "succeeded", "worker-7")]
    assert view.timeline[3].attempts == ()
    assert [bar.item for bar in shown(desk, story.id, items=0).timeline] == [None, None]


def test_a_live_step_is_as_its_job_is(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"delay": HOUR}, c={}))
    running = story.claimed()[story.step("a").id]
    desk.advance(SECOND)
    states = {each.name: each.state for each in shown(desk, story.id).nodes}
    assert states == {"a": "running", "b": "delayed", "c": "running"}
    [bar] = [each for each in shown(desk, story.id).timeline if each.name == "a"]
    [attempt] = bar.attempts
    assert (attempt.verdict, attempt.finished_at, attempt.worker) == ("running", None, "worker-7")
    assert attempt.started_at == desk.now - SECOND
    desk.end(running, Verdict.SUCCEEDED)  # and nobody has dealt with it yet
    assert shown(desk, story.id).nodes[0].state == "ending"


def test_what_only_the_machinery_needs_is_hidden(desk: Desk) -> None:
    story = Story(desk, SAGA)
    view = shown(desk, story.id)
    assert [(each.name, each.kind, each.layer, each.parents, each.undoes) for each in view.nodes] == [
        ("book", "step", 0, (), None),
        ("pay", "step", 1, ("book",), None),
        ("unbook", "undo", 2, ("book",), "book"),
    ]
    with pytest.raises(InvalidArgument, match="book, pay, unbook"):
        step_of(desk, story.id, "end")


def test_a_step_that_is_a_workflow_runs_as_long_as_that_does(desk: Desk) -> None:
    outer = Story(desk, definition("outer", inside={"task": "root"}))
    inner = nested(desk, outer, definition("inner", a={}))
    begun = desk.now
    desk.advance(SECOND)
    view = shown(desk, outer.id)
    assert (view.nodes[0].state, view.nodes[0].job_id) == ("running", inner)
    [attempt] = view.timeline[0].attempts
    assert (attempt.started_at, attempt.finished_at, attempt.worker) == (begun, None, None)
    assert shown(desk, inner).parent_id == outer.id
    [claim] = desk.claim(7)
    desk.end(claim, Verdict.SUCCEEDED)
    outer.resolve()
    [attempt] = shown(desk, outer.id).timeline[0].attempts
    assert (attempt.started_at, attempt.finished_at) == (begun, desk.now)


def test_one_step_comes_with_what_it_was_given_and_what_it_made(desk: Desk) -> None:
    story = failed_etl(desk)
    extract = step_of(desk, story.id, "extract")
    assert (extract.inputs, extract.output) == ({"args": ["monday"], "kwargs": {}}, [10, 20, 30])
    assert [each.verdict for each in extract.attempts] == ["failed", "succeeded"]
    assert [each.message for each in extract.failures] == ["boom"]
    waiting = step_of(desk, story.id, "load")
    assert (waiting.inputs, waiting.output, waiting.attempts) == (None, None, ())


def test_the_items_of_a_map_are_paged(desk: Desk) -> None:
    story = failed_etl(desk)
    page = step_of(desk, story.id, "parts", first=1, most=1)
    assert [(each.item, each.state, each.error) for each in page.items] == [
        (1, "failed", "ValueError: bad row 17")
    ]
    one = step_of(desk, story.id, "parts", item=0)
    assert (one.state, one.inputs, one.output) == ("succeeded", {"args": [10], "kwargs": {}}, "ten")
    assert one.job_id == story.step("parts", 0).id
    with pytest.raises(InvalidArgument, match="3 are there"):
        step_of(desk, story.id, "parts", item=3)


def test_views_are_plain_json(desk: Desk) -> None:
    story = failed_etl(desk)
    order(desk, "pause", story.id, note="wait")
    whole = to_json(shown(desk, story.id))
    shapes = [whole, to_json(step_of(desk, story.id, "parts")), to_json(order(desk, "pause", story.id))]
    assert json.loads(json.dumps(shapes)) == shapes
    assert whole["started_at"] == iso(story.workflow.started_at)
    assert whole["id"] == story.id


def test_workflows_are_listed(desk: Desk) -> None:
    done, live = Story(desk, definition("one", a={})), Story(desk, definition("two", a={}))
    done.end("a")
    found = workflows(desk)
    assert [each.id for each in desk.run(found.afind())] == [live.id, done.id]
    assert [each.id for each in desk.run(found.afind(name="one"))] == [done.id]
    assert [each.id for each in desk.run(found.afind(before=live.id))] == [done.id]
    assert desk.run(found.anewest("two")) == live.drawn
    assert desk.run(found.anewest("three")) is None


# What jobs and dead letters say.


def test_a_job_says_which_workflow_it_is_and_of_which_it_is_a_step(desk: Desk, admin: Admin) -> None:
    story = failed_etl(desk)
    root = desk.run(admin.jobs.aget(story.id))
    assert root.workflow is not None
    assert (root.workflow.name, root.step) == ("etl", None)
    part = desk.run(admin.jobs.aget(story.step("parts", 2).id))
    assert (part.workflow, str(part.step)) == (None, f"step parts[2] of workflow {story.id} (etl)")


def test_letters_of_workflows_are_left_and_it_is_said_who_has_them(desk: Desk, admin: Admin) -> None:
    story = failed_etl(desk)
    story.end("alarm")
    part, alone = story.step("parts", 1).id, desk.bury()
    done = {each.job_id: each for each in desk.run(admin.dead_letters.areplay([part, story.id, alone]))}
    assert done[alone].effect is Effect.REPLAYED
    assert {done[each].effect for each in (part, story.id)} == {Effect.NONE}
    assert f"`mainspring workflows retry {story.id}`" in done[part].why
    [retried] = desk.run(admin.jobs.aretry([part]))
    assert f"belongs to workflow {story.id}" in retried.why

    pages: list[ReplayedPage] = []
    desk.run(admin.dead_letters.areplay_all(DeadFilter(), on_page=pages.append))
    [page] = pages
    assert (page.job_ids, page.left, page.workflows) == ((), 2, (story.id,))


def test_why_of_a_workflow_names_the_steps_it_waits_for(desk: Desk) -> None:
    story = Story(desk, CHAIN)
    story.claimed()
    said = why(desk, story.id)
    assert (said.because, said.facts["waits_for"]) == (Because.WORKFLOW, ["a"])
    assert said.sentence == (
        f"Job {story.id} is workflow flow, which runs: 0 of 3 steps have ended; it waits for a (running)."
    )
    order(desk, "pause", story.id)
    assert f"`mainspring workflows resume {story.id}` goes on" in why(desk, story.id).sentence
    story.end("a")
    assert "1 of 3 steps have ended; nothing of it is in a queue" in why(desk, story.id).sentence


def test_why_of_a_step(desk: Desk) -> None:
    story = failed_etl(desk)
    part = why(desk, story.step("parts", 1).id)
    assert (part.because, part.facts["step"], part.facts["item"]) == (Because.DEAD, "parts", 1)
    assert f"Run it again with `mainspring workflows retry {story.id}`" in part.sentence
    assert part.sentence.endswith(f"It is step parts[1] of workflow {story.id} (etl).")
    skipped = why(desk, story.step("load").id)
    assert (skipped.because, "a step before it failed" in skipped.sentence) == (Because.SKIPPED, True)
    assert "whose 3 items are jobs of their own" in why(desk, story.step("parts").id).sentence
    other = Story(desk, CHAIN)
    waiting = why(desk, other.step("b").id)
    assert waiting.because is Because.STEP
    assert "has not been made yet: it waits for a (ready)" in waiting.sentence
    with pytest.raises(NotFound):
        why(desk, MISSING)


def test_a_map_over_no_list_says_why_it_failed(desk: Desk) -> None:
    graph = definition(raw={}, parts={"kind": NodeKind.MAP, "over": StepResult(step=0), "parents": ["raw"]})
    story = Story(desk, graph)
    story.end("raw", result=b"7")
    [parts] = [each for each in shown(desk, story.id).nodes if each.name == "parts"]
    assert parts.error is not None
    assert "expected a list" in parts.error
    assert "expected a list" in why(desk, parts.job_id).sentence
    assert [each.type for each in step_of(desk, story.id, "parts").failures] == ["InputError"]


# Graphs, without a store.


def test_a_barrier_in_the_middle_is_replaced_by_what_is_before_it() -> None:
    graph = definition(
        a={},
        b={},
        wall={"kind": NodeKind.BARRIER, "parents": ["a", "b"], "task": ""},
        c={"parents": ["wall"]},
    )
    nodes = drawn(graph)
    assert [(each.name, each.layer, each.parents) for each in nodes] == [
        ("a", 0, ()),
        ("b", 0, ()),
        ("c", 1, ("a", "b")),
    ]
    assert len(edges(nodes)) == 2


def test_a_graph_is_written_for_mermaid() -> None:
    assert mermaid(drawn(ETL), {each.name: "succeeded" for each in ETL.nodes}).splitlines() == [
        "flowchart TD",
        '    n0("extract<br/>succeeded")',
        '    n1[["parts<br/>succeeded"]]',
        '    n2("check<br/>if rows #gt; 9<br/>succeeded")',
        '    n3("load<br/>succeeded")',
        '    n4("alarm<br/>succeeded")',
        "    n0 --> n1",
        "    n0 --> n2",
        "    n1 --> n3",
        "    n3 -. on failure .-> n4",
        "    classDef succeeded fill:#bbf7d0",
        "    class n0,n1,n2,n3,n4 succeeded",
    ]


def test_text_in_a_graph_cannot_break_out_of_its_label() -> None:
    graph = definition('a"b\\', odd={"only_if": Condition(text='x == "<&>"')})
    assert 'n0("odd<br/>if x == #quot;#lt;#amp;#gt;#quot;")' in mermaid(drawn(graph))
    assert dot(graph.name, drawn(graph)).splitlines() == [
        'digraph "a\\"b\\\\" {',
        "    node [shape=box, style=rounded]",
        '    "odd" [label="odd\\nif x == \\"<&>\\""]',
        "}",
    ]
