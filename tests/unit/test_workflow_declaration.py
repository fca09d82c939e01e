"""Workflows as users write them: what is taken, and what is refused at once, in which words."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from mainspring import Context, Mainspring, Retry, Step, Unique, Workflow
from mainspring.admin.deploy_check import Comparison, Source, Trouble
from mainspring.errors import InvalidArgument, InvalidWorkflow, MainspringError
from mainspring.model.workflow import (
    MOST_STEPS,
    Constant,
    Fields,
    Items,
    NewWorkflow,
    NodeKind,
    Param,
    StepResult,
    When,
)
from mainspring.tasks.context import Begin
from mainspring.tasks.limits import Limit
from mainspring.tasks.payload import decode
from mainspring.testing import Harness


class Stop:
    def is_set(self) -> bool:
        return False


def context(slot: datetime | None = None) -> Context:
    return Context(
        job_id=1, task="t", queue="q", attempt=1, max_attempts=1, fence=1, log=None, stop=Stop(), slot=slot  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("sqlite://:memory:")


@pytest.fixture
def flow(app: Mainspring) -> Workflow:
    return app.workflow("nightly-load", deadline="2h")


@pytest.fixture
def fetch(app: Mainspring) -> Any:
    @app.task
    def fetch(day: str) -> list[str]:
        return [day]

    return fetch


@pytest.fixture
def load(app: Mainspring) -> Any:
    @app.task
    async def load(parts: list[str], *, dry: bool = False) -> dict[str, int]:
        return {"rows": len(parts)}

    return load


def refusal(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(InvalidWorkflow) as refused:
        call(*args, **kwargs)
    assert refused.value.field.split(".")[0]
    return str(refused.value)


def begun(flow: Workflow, slot: datetime | None = None, **params: object) -> NewWorkflow:
    with pytest.raises(Begin) as begin:
        asyncio.run(flow.task(context(slot), **params))
    return begin.value.workflow


def test_the_issue_s_example_is_taken(app: Mainspring, flow: Workflow, fetch: Any, load: Any) -> None:
    @app.task
    def transform(part: str, *, upper: bool = False) -> str:
        return part.upper() if upper else part

    @app.task
    def tell(rows: int | None) -> None: ...

    raw = flow.step(fetch, day=flow.param("day"), name="raw")
    parts = flow.map(transform, over=raw, upper=True)
    table = flow.step(load, parts)
    flow.step(tell, table["rows"], when="always")
    flow.step(tell, table["rows"], only_if="raw != [] and day != '2026-12-25'", after=[parts], name="ship-it")
    flow.undo(table, tell, table["rows"])
    flow.returns(table)

    definition = flow.definition
    assert [node.name for node in definition.nodes] == [
        "raw", "transform", "load", "tell", "ship-it", "(barrier)", "undo-load"
    ]  # fmt: skip
    assert [node.parents for node in definition.nodes] == [(), (0,), (1,), (2,), (0, 1, 2), (3, 4), (2, 5)]
    assert definition.nodes[0].kwargs == {"day": Param(name="day")}
    assert definition.nodes[1].over == StepResult(step=0)
    assert definition.nodes[1].kwargs == {"upper": Constant(value=True)}
    assert definition.nodes[3].args == (StepResult(step=2, path=("rows",)),)
    assert definition.nodes[3].when is When.ALWAYS
    condition = definition.nodes[4].only_if
    assert condition is not None
    assert condition.names == {"raw": StepResult(step=0), "day": Param(name="day")}
    assert definition.nodes[6].kind is NodeKind.UNDO
    assert definition.nodes[6].of == 2
    assert definition.returns == StepResult(step=2)


# Inputs


def test_lists_and_dicts_may_hold_references(flow: Workflow, app: Mainspring, fetch: Any) -> None:
    @app.task
    def join(everything: Any) -> None: ...

    one, two = flow.step(fetch, "a"), flow.step(fetch, "b")
    flow.step(join, {"both": (one, [two[0], 5]), "cfg": flow.param("cfg")["a"][0], "plain": [1, {"x": None}]})

    [given] = flow.definition.nodes[2].args
    assert given == Fields(
        fields={
            "both": Items(
                items=(
                    StepResult(step=0),
                    Items(items=(StepResult(step=1, path=(0,)), Constant(value=5))),
                )
            ),
            "cfg": Param(name="cfg", path=("a", 0)),
            "plain": Constant(value=[1, {"x": None}]),
        }
    )
    assert flow.definition.nodes[2].parents == (0, 1)


def test_a_list_that_changes_afterwards_changes_nothing(flow: Workflow, app: Mainspring) -> None:
    @app.task
    def take(items: list[int]) -> None: ...

    mine = [1, 2]
    flow.step(take, mine)
    mine.append(3)

    assert flow.definition.nodes[0].args == (Constant(value=[1, 2]),)


def cyclic() -> list[object]:
    own: list[object] = []
    own.append(own)
    return own


def bomb() -> list[object]:
    own: list[object] = []
    for _ in range(60):
        own = [own, own]
    return own


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, {1: 2}, b"x", float("nan"), 2**70, (1, 2), cyclic(), bomb(), "a" * 300_000]
)
def test_what_is_no_json_is_refused(flow: Workflow, app: Mainspring, value: Any) -> None:
    @app.task
    def take(value: Any, more: Any = None) -> None: ...

    with pytest.raises(InvalidWorkflow, match=r"^nightly-load\.take"):
        flow.step(take, value)
    with pytest.raises(InvalidWorkflow, match=r"^nightly-load\.take"):
        flow.step(take, [flow.param("day"), value])


def test_a_step_is_no_list_and_no_truth(flow: Workflow, fetch: Any) -> None:
    step = flow.step(fetch, "a")

    assert "use map" in refusal(list, step)
    assert "use only_if=" in refusal(bool, step[0])
    assert "a key or a place" in refusal(lambda: step[-1])
    assert "a key or a place" in refusal(lambda: flow.param("p")[1.5])  # type: ignore[index]
    part = flow.param("p")
    for _ in range(20):
        part = part[0]
    assert "at most 20 keys" in refusal(lambda: part[0])


def test_a_part_that_a_result_cannot_have_is_refused(flow: Workflow, fetch: Any, load: Any) -> None:
    days = flow.step(fetch, "a")
    table = flow.step(load, days)

    assert "nightly-load.fetch['x']: expected a dict" in refusal(lambda: days["x"])
    assert "expected a list" in refusal(lambda: table[0])
    assert "expected a dict: nothing else has one, got 'int'" in refusal(lambda: table["rows"]["x"])


# Calls


def test_arguments_must_bind(flow: Workflow, fetch: Any, load: Any) -> None:
    assert refusal(flow.step, fetch) == (
        "nightly-load.fetch.day: expected a value, for it has no default, got nothing"
    )
    assert "nightly-load.fetch: expected at most 1 positional" in refusal(flow.step, fetch, "a", "b")
    assert "nightly-load.fetch: expected only parameters it has (day), got 'dey'" in refusal(
        flow.step, fetch, dey="a"
    )
    assert "nightly-load.load" in refusal(flow.map, load, "extra", over=[["a"]])
    assert "nightly-load.fetch.day: expected no second value" in refusal(flow.map, fetch, over=["a"], day="b")
    assert "at least one step" in refusal(flow.close)


def test_an_option_and_a_parameter_of_one_name(app: Mainspring, flow: Workflow) -> None:
    @app.task
    def greet(name: str, over: int = 0) -> None: ...

    @app.task
    def strict(*, when: str = "") -> None: ...

    flow.step(greet, "ada", 3)
    flow.step(greet, "ada", over=4)

    assert "by position, for name= is an option" in refusal(flow.step, greet, name="ada")
    assert "without a keyword-only when=" in refusal(flow.step, strict)
    assert [node.args for node in flow.definition.nodes] == [
        (Constant(value="ada"), Constant(value=3)),
        (Constant(value="ada"),),
    ]


def test_values_of_a_target_are_judged_when_all_are_known(app: Mainspring, flow: Workflow) -> None:
    hook = app.http("hook")

    flow.step(hook, url="https://example.com/", event=1)
    flow.step(hook, url=flow.param("url"))

    assert "nightly-load.hook" in refusal(flow.step, hook, url="gopher://example.com")
    assert "nightly-load.hook" in refusal(flow.step, hook)


@pytest.mark.parametrize("wrong", ["fetch", object(), None, len, Mainspring])
def test_only_tasks_and_workflows_are_steps(flow: Workflow, wrong: Any) -> None:
    assert "nightly-load.step: expected a task, declared with @app.task, or a workflow" in refusal(
        flow.step, wrong
    )
    assert "nightly-load.x: expected a task" in refusal(flow.map, wrong, over=[1], name="x")


def test_a_task_of_another_app_is_refused(flow: Workflow) -> None:
    @Mainspring("sqlite://:memory:").task
    def fetch(day: str) -> None: ...

    assert "a task of the same app" in refusal(flow.step, fetch, "a")


def test_steps_and_parameters_of_another_workflow_are_refused(
    app: Mainspring, flow: Workflow, fetch: Any, load: Any
) -> None:
    other = app.workflow("other")
    theirs = other.step(fetch, "a")
    ours = flow.step(fetch, "a")

    for call in (
        lambda: flow.step(load, theirs),
        lambda: flow.step(load, ours, dry=other.param("dry")),
        lambda: flow.step(load, [theirs[0]]),
        lambda: flow.map(fetch, over=theirs),
        lambda: flow.step(load, ours, after=[theirs]),
        lambda: flow.step(load, ours, after=theirs),
        lambda: ours.after(theirs),
        lambda: flow.undo(theirs, load, ours),
        lambda: flow.undo(ours, load, theirs),
        lambda: flow.returns({"x": theirs}),
    ):
        assert "of this workflow, not of other" in refusal(call)
    assert "expected a list of steps" in refusal(flow.step, load, ours, after="fetch")
    assert "expected a step of this workflow" in refusal(flow.step, load, ours, after=["fetch"])
    assert "expected a step of this workflow" in refusal(flow.undo, "fetch", load, ours)


@pytest.mark.parametrize("over", [None, 5, "abc", {"a": 1}, {1}])
def test_a_map_goes_over_a_list(flow: Workflow, fetch: Any, over: Any) -> None:
    assert "a list, or what a step or a parameter gives" in refusal(flow.map, fetch, over=over)


def test_a_map_over_constants_and_parameters(flow: Workflow, fetch: Any) -> None:
    flow.map(fetch, over=("a", "b"))
    flow.map(fetch, over=flow.param("days"))
    flow.map(fetch, over=[flow.param("day"), "b"])
    flow.map(fetch, over=[])

    assert [node.over for node in flow.definition.nodes] == [
        Constant(value=["a", "b"]),
        Param(name="days"),
        Items(items=(Param(name="day"), Constant(value="b"))),
        Constant(value=[]),
    ]
    assert {node.kind for node in flow.definition.nodes} == {NodeKind.MAP}


def test_what_does_not_fit_is_refused(app: Mainspring, flow: Workflow, fetch: Any, load: Any) -> None:
    @app.task
    def number() -> int:
        return 1

    @app.task
    def add(values: list[int]) -> int:
        return sum(values)

    @app.task
    async def word(text: str) -> str:
        return text

    days, one = flow.step(fetch, "a"), flow.step(number)

    assert refusal(flow.step, add, days) == (
        "nightly-load.add.values: expected list[int], as add wants it, got 'list[str] of fetch'"
    )
    assert "expected str, as fetch wants it, got 'int of number'" in refusal(flow.step, fetch, one)
    assert "nightly-load.word.over: expected list[str]" in refusal(flow.map, word, over=one)
    assert "nightly-load.add.over" in refusal(flow.map, add, over=days)
    assert "nightly-load.add.values" in refusal(flow.step, add, flow.map(word, over=days))
    assert "nightly-load.add.values" in refusal(flow.step, add, [one, days[0]])
    flow.step(add, [one, one])
    flow.step(load, flow.map(word, over=days))
    flow.step(word, days[0], when="always")


# Names


def test_names_come_from_tasks_and_are_numbered(app: Mainspring, flow: Workflow) -> None:
    def nothing() -> None: ...

    for name in ("eu/billing.send-mail", "send-mail", "x:load"):
        app.task(name=name)(nothing)
    mail, short, load = (app._registry.get(each) for each in ("eu/billing.send-mail", "send-mail", "x:load"))
    found = [flow.step(each).name for each in (mail, mail, short, load)]
    found.append(flow.step(load, name="load-2").name)
    found.append(flow.step(load).name)

    assert found == ["send-mail", "send-mail-2", "send-mail-3", "load", "load-2", "load-3"]


@pytest.mark.parametrize(
    "name", ["a/b", "..", "a.b", "", " ", "-a", "a-", "a--b", "ü", "a b", "(barrier)", "x" * 201, 5, "a\n"]
)
def test_names_that_are_none(flow: Workflow, fetch: Any, name: Any) -> None:
    assert "nightly-load.name: expected 1 to 200 ASCII letters" in refusal(flow.step, fetch, "a", name=name)


def test_a_name_is_taken_once(flow: Workflow, fetch: Any) -> None:
    step = flow.step(fetch, "a", name="one")
    flow.undo(step, fetch, "a", name="back")

    assert "a name no other step has" in refusal(flow.step, fetch, "a", name="one")
    assert "a name no other step has" in refusal(flow.step, fetch, "a", name="back")
    assert "one undo" in refusal(flow.undo, step, fetch, "a")


@pytest.mark.parametrize("name", ["", "a b", "..", "x" * 195, 5, None])
def test_a_workflow_has_a_name(app: Mainspring, name: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"workflow\.name"):
        app.workflow(name)


def test_a_workflow_s_name_is_taken_once(app: Mainspring, flow: Workflow) -> None:
    with pytest.raises(InvalidArgument, match="no other task has"):
        app.workflow("nightly-load")


@pytest.mark.parametrize(
    "options",
    [
        {"deadline": "soon"},
        {"deadline": 0},
        {"queue": ".."},
        {"priority": 1000},
        {"limits": Limit("x", concurrency=1)},
        {"limits": ["x"]},
        {"unique": "day"},
    ],
)
def test_options_of_a_workflow_are_checked(app: Mainspring, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=rf"workflow\.{next(iter(options))}"):
        app.workflow("x", **options)


# Order


def test_after_is_order_alone(flow: Workflow, fetch: Any) -> None:
    one, two, three = (flow.step(fetch, each) for each in "abc")

    assert one.after(two, three) is one
    two.after(three).after(three)

    assert [node.parents for node in flow.definition.nodes] == [(1, 2), (2,), ()]


def test_a_circle_is_refused_at_once_and_changes_nothing(flow: Workflow, fetch: Any, load: Any) -> None:
    one = flow.step(fetch, "a", name="a")
    two = flow.step(load, one, name="b")
    three = flow.step(load, one, name="c", after=[two])

    assert refusal(one.after, three) == (
        "nightly-load.a.after: expected no circle: a step cannot wait for itself, got 'a > c > a'"
    )
    assert "got 'a > b > a'" in refusal(one.after, two)
    assert "got 'b > b'" in refusal(two.after, two)
    assert [node.parents for node in flow.definition.nodes] == [(), (0,), (0, 1)]


def test_depth_is_bounded_whichever_way_it_comes_about(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow("deep")
    steps = [flow.step(fetch, "a") for _ in range(101)]
    for above, below in pairwise(steps[:100]):
        below.after(above)

    assert "at most 100 steps one after the other" in refusal(steps[100].after, steps[99])
    assert "at most 100 steps one after the other" in refusal(steps[0].after, steps[100])
    assert "at most 100 steps" in refusal(flow.step, fetch, "a", after=[steps[99]])


def test_what_undoes_counts_as_a_step(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow("wide")
    steps = [flow.step(fetch, "a") for _ in range(MOST_STEPS - 1)]
    flow.undo(steps[0], fetch, "a")

    assert "at most 1000 steps" in refusal(flow.step, fetch, "a")
    assert "at most 1000 steps" in refusal(flow.undo, steps[1], fetch, "a")


def test_a_deadline_leaves_time_for_the_steps(app: Mainspring) -> None:
    @app.task(timeout="1h")
    def slow(given: Any = None) -> None: ...

    flow = app.workflow("tight", deadline="2h")
    one, other = flow.step(slow), flow.step(slow, name="other")
    last = flow.step(slow, one)

    assert "at least 3h, the sum of the steps' timeouts, got '2h'" in refusal(flow.step, slow, last)
    assert "at least 2h10m" in refusal(flow.step, slow.using(delay="10m"), other)
    assert "at least 3h" in refusal(one.after, other)
    flow.step(slow, after=[one, other])


def test_a_workflow_as_a_step_takes_until_its_deadline(app: Mainspring, fetch: Any) -> None:
    inner = app.workflow("inner", deadline="3h")
    inner.step(fetch, "a")
    outer = app.workflow("outer", deadline="2h")

    assert "at least 3h" in refusal(outer.step, inner)


# When and only if


@pytest.mark.parametrize("when", ["", "never", None, 5])
def test_when_is_one_of_three(flow: Workflow, fetch: Any, when: Any) -> None:
    assert "nightly-load.fetch.when: expected one of success, failure, always" in refusal(
        flow.step, fetch, "a", when=when
    )


def test_after_a_failure_there_must_be_something_that_can_fail(flow: Workflow, fetch: Any) -> None:
    late = flow.step(fetch, "a", when="failure", name="late")

    assert "nightly-load.late.when: expected a step before it" in refusal(flow.close)
    late.after(flow.step(fetch, "b"))
    flow.close()


def test_names_in_a_condition_are_known_and_mean_one_thing(flow: Workflow, fetch: Any) -> None:
    flow.param("day")
    flow.step(fetch, "a", name="day")
    flow.step(fetch, "a", name="ship-it")
    flow.step(fetch, "a", name="last", only_if="ship_it != [] and 1 < 2")

    assert refusal(flow.step, fetch, "a", only_if="raw > 0", name="x") == (
        "nightly-load.x.only_if: expected names of steps, with _ for -, and of parameters "
        "(day, last, ship_it), got 'raw'"
    )
    assert "expected a name of one thing, not of param day and day" in refusal(
        flow.step, fetch, "a", only_if="day == 'x'"
    )
    flow.step(fetch, "a", name="ship_it")
    assert "not of ship-it and ship_it" in refusal(flow.step, fetch, "a", only_if="ship_it == []")
    assert flow.definition.nodes[2].parents == (1,)


@pytest.mark.parametrize("text", ["day.x", "f(day)", "day +", "", 5, "x" * 501])
def test_a_condition_out_of_the_grammar_names_the_step(flow: Workflow, fetch: Any, text: Any) -> None:
    flow.param("day")

    assert refusal(flow.step, fetch, "a", only_if=text).startswith("nightly-load.fetch.only_if: expected ")


# Tasks with options


def test_options_of_the_task_go_to_the_node(app: Mainspring, flow: Workflow) -> None:
    @app.task(queue="slow", priority=3, retry=Retry(attempts=7), expires="1h", unique=Unique())
    def work() -> None: ...

    flow.step(work)
    flow.step(work.using(queue="fast", priority=9, attempts=2, expires="5m", delay="10s"))

    plain, other = flow.definition.nodes
    assert (plain.task, plain.queue, plain.priority, plain.max_attempts) == ("work", "slow", 3, 7)
    assert (plain.expires, plain.delay) == (timedelta(hours=1), timedelta())
    assert (other.task, other.queue, other.priority, other.max_attempts) == ("work", "fast", 9, 2)
    assert (other.expires, other.delay) == (timedelta(minutes=5), timedelta(seconds=10))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"run_at": datetime(2027, 1, 1, tzinfo=UTC)}, "run_at"),
        ({"key": "k"}, "key"),
        ({"tx": object()}, "tx"),
        ({"expires": datetime(2027, 1, 1, tzinfo=UTC)}, "expires"),
        ({"on_duplicate": "error"}, "unique"),
        ({"debounce": "1m"}, "unique"),
    ],
)
def test_options_for_one_job_alone_are_refused(
    flow: Workflow, fetch: Any, options: dict[str, Any], field: str
) -> None:
    assert f"nightly-load.step.{field}: expected" in refusal(flow.step, fetch.using(**options), "a")
    assert f"nightly-load.x.{field}: expected" in refusal(flow.step, fetch.using(**options), "a", name="x")


# The workflow itself


def test_a_workflow_without_steps_is_refused_wherever_it_would_run(app: Mainspring, flow: Workflow) -> None:
    for call in (
        flow.start,
        flow.job,
        flow.close,
        flow.using(priority=1).start,
        flow.task.enqueue,
        lambda: flow.definition,
        lambda: app.schedule("nightly", flow, cron="@daily"),
        lambda: app.workflow("outer").step(flow),
        lambda: asyncio.run(flow.task(context())),
    ):
        assert "nightly-load: expected at least one step, got 'no steps'" in refusal(call)


def test_a_workflow_takes_nothing_more_once_it_is_used(app: Mainspring, flow: Workflow, fetch: Any) -> None:
    step = flow.step(fetch, flow.param("day"))
    flow.job(day="2026-11-15")

    for call in (
        lambda: flow.step(fetch, "a"),
        lambda: flow.map(fetch, over=["a"]),
        lambda: flow.param("more"),
        lambda: flow.returns(step),
        lambda: flow.undo(step, fetch, "a"),
        lambda: step.after(step),
    ):
        assert "nightly-load: expected nothing more" in refusal(call)
    assert flow.param("day").name == "day"


def test_a_workflow_is_a_step_of_another(app: Mainspring, flow: Workflow, fetch: Any, load: Any) -> None:
    flow.returns(flow.step(fetch, day=flow.param("day")))
    outer = app.workflow("outer")
    inner = outer.step(flow, day=outer.param("day"))
    outer.step(flow.using(priority=7), day="x")
    outer.step(load, inner)
    outer.map(load, over=inner)

    assert [(node.name, node.task) for node in outer.definition.nodes[:2]] == [
        ("nightly-load", "workflow:nightly-load"),
        ("nightly-load-2", "workflow:nightly-load"),
    ]
    assert outer.definition.nodes[0].kwargs == {"day": Param(name="day")}
    assert outer.definition.nodes[0].expires == timedelta(hours=2)
    assert outer.definition.nodes[1].priority == 7
    fresh = app.workflow("fresh")
    assert "fresh.nightly-load.day: expected a value" in refusal(fresh.step, flow)
    assert "only parameters it has (day)" in refusal(fresh.step, flow, dey="x")
    for itself in (fresh, fresh.task, fresh.using(priority=1)):
        assert "a workflow other than itself" in refusal(fresh.step, itself)
    assert "nothing more" in refusal(flow.step, outer)


def test_a_job_of_a_workflow(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow(
        "nightly", deadline="2h", queue="loads", priority=5, limits=[Limit("l", concurrency=1)]
    )
    flow.step(fetch, flow.param("day"))
    flow.param("cfg", default={"a": [1]})

    job = flow.using(key="one", priority=6, delay="1m").job(day="2026-11-15")

    assert (job.task, job.queue, job.priority, job.max_attempts) == ("workflow:nightly", "loads", 6, 5)
    assert decode(job.payload) == ([], {"day": "2026-11-15"})
    assert (job.expires, job.delay) == (timedelta(hours=2), timedelta(minutes=1))
    assert job.unique is not None
    assert [limit_key.name for limit_key in job.limit_keys] == ["l"]
    assert flow.job(day="x", cfg=None).payload


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "workflow:nightly.day: expected a value, for it has no default, got nothing"),
        ({"day": "x", "dey": "y"}, "workflow:nightly: expected only parameters it has (cfg, day), got 'dey'"),
        ({"day": object()}, "workflow:nightly.kwargs.day: expected a JSON value"),
        ({"day": {"$slot": "%Y"}}, 'workflow:nightly.day: expected no dict with a key "$slot"'),
    ],
)
def test_a_start_is_checked(app: Mainspring, fetch: Any, given: dict[str, Any], says: str) -> None:
    flow = app.workflow("nightly")
    flow.step(fetch, flow.param("day"))
    flow.param("cfg", default=5)

    for call in (flow.start, flow.job, flow.task.enqueue, flow.using(priority=1).start):
        with pytest.raises(InvalidArgument) as refused:
            call(**given)
        assert says in str(refused.value)


def test_a_start_by_position_is_refused(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow("nightly")
    flow.step(fetch, flow.param("day"))

    with pytest.raises(InvalidArgument, match="workflow:nightly: expected at most 0 positional"):
        flow.task.enqueue("2026-11-15")


async def started(flow: Workflow) -> None:
    await flow.astart(day="b")
    await flow.using(priority=3, queue="loads").astart(day="c")


def test_a_start_puts_a_job_into_the_queue(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow("nightly")
    flow.step(fetch, flow.param("day"))
    with Harness(app) as mainspring:
        handle = flow.start(day="a")
        asyncio.run(started(flow))
        found = mainspring.enqueued(flow.task)

    assert (handle.task, handle.queue) == ("workflow:nightly", "default")
    assert [(job.kwargs, job.queue) for job in found] == [
        ({"day": "a"}, "default"),
        ({"day": "b"}, "default"),
        ({"day": "c"}, "loads"),
    ]


def test_uniqueness_and_limits_may_go_by_parameters(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow("nightly", unique=Unique(by=["day"]), limits=[Limit("l", concurrency=1, by="day")])
    flow.step(fetch, flow.param("day"))
    flow.param("dry", default=False)

    one, other = flow.job(day="a"), flow.job(day="a", dry=True)

    assert one.unique == other.unique
    assert one.unique is not None
    assert one.limit_keys[0].key == "a"
    wrong = app.workflow("wrong", unique=Unique(by=["dey"]))
    wrong.step(fetch, "a")
    assert "wrong.unique.by" in refusal(wrong.job)
    limited = app.workflow("limited", limits=[Limit("l", concurrency=1, by="dey")])
    limited.step(fetch, "a")
    assert "limited.limit.by" in refusal(limited.job)


def test_what_is_on_record_is_compared_with_the_parameters(app: Mainspring, fetch: Any) -> None:
    flow = app.workflow("nightly")
    flow.step(fetch, flow.param("day"))
    comparison = Comparison(app._registry.tasks)

    for payload in (b'{"kwargs":{"day":"x"}}', b'{"kwargs":{"day":{"$slot":"%Y","tz":"UTC"}}}'):
        comparison.look(Source.JOB, 1, "workflow:nightly", payload)
    assert comparison.problems() == []
    for payload in (b"{}", b'{"kwargs":{"day":"x","gone":1}}'):
        comparison.look(Source.JOB, 2, "workflow:nightly", payload)
    assert {problem.trouble for problem in comparison.problems()} == {Trouble.ARGUMENTS}
    assert [problem.sentence for problem in comparison.problems()] == [
        "day: expected a value, for it has no default",
        "expected only parameters it has (day), got 'gone'",
    ]


# Parameters


@pytest.mark.parametrize("name", ["", "a-b", "a.b", "1a", "_a", "class", "ü", "x" * 101, 5, None])
def test_parameters_have_names(flow: Workflow, name: Any) -> None:
    assert "nightly-load.param: expected" in refusal(flow.param, name)


def test_a_parameter_is_declared_once(flow: Workflow) -> None:
    flow.param("a", default=[1])

    assert flow.param("a").name == "a"
    assert flow.param("a", default=[1]).name == "a"
    assert "what it was declared with before" in refusal(flow.param, "a", default=[2])
    assert "what it was declared with before" in refusal(flow.param, "a", slot="%Y")
    assert "a JSON value" in refusal(flow.param, "b", default=object())
    for number in range(99):
        flow.param(f"p{number}")
    assert "at most 100 parameters" in refusal(flow.param, "more")


def test_a_run_begins_the_workflow_with_its_parameters(flow: Workflow, fetch: Any) -> None:
    default = {"a": [1]}
    flow.step(fetch, flow.param("day"))
    flow.param("cfg", default=default)
    default["a"].append(2)

    new = begun(flow, day="2026-11-15")

    assert new.params == {"day": "2026-11-15", "cfg": {"a": [1]}}
    assert new.definition is flow.definition
    assert begun(flow, day="x", cfg=None).params == {"day": "x", "cfg": None}
    with pytest.raises(InvalidArgument, match=r"workflow:nightly-load\.day"):
        asyncio.run(flow.task(context()))
    with pytest.raises(InvalidArgument, match="only parameters it has"):
        asyncio.run(flow.task(context(), day="x", gone=1))


def test_what_begins_a_workflow_is_no_exception_of_users() -> None:
    assert not issubclass(Begin, Exception)
    assert issubclass(InvalidWorkflow, InvalidArgument)
    assert issubclass(InvalidWorkflow, MainspringError)


def test_a_step_says_what_it_is(flow: Workflow, fetch: Any) -> None:
    step: Step[list[str]] = flow.step(fetch, "a")

    assert repr(step[0]) == "<fetch[0] of workflow nightly-load>"
    assert repr(flow.param("day")["x"]) == "<param day['x'] of workflow nightly-load>"
    assert repr(flow) == "<Workflow nightly-load>"
