"""Definitions made from declared graphs: places, parents, what undoes what, and the limit keys of steps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring import Mainspring, Workflow
from mainspring.errors import InvalidWorkflow
from mainspring.model.limit import LimitKey
from mainspring.model.workflow import DEEPEST, Constant, Definition, Limiting, NodeKind, StepResult
from mainspring.tasks.graph import BARRIER, LARGEST_DEFINITION, topological
from mainspring.tasks.limits import Limit
from mainspring.tasks.task import Task


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("sqlite://:memory:")


def anything(app: Mainspring) -> Task[..., Any]:
    @app.task
    def do(*given: Any) -> Any: ...

    return do


def parents(definition: Definition) -> dict[str, set[str]]:
    nodes = definition.nodes
    return {node.name: {nodes[each].name for each in node.parents} for node in nodes}


def test_a_definition_comes_back_from_json_as_it_was(app: Mainspring) -> None:
    @app.task(expires="1h", limits=[Limit("l", rate=5, per="1m", by="value")])
    def do(value: Any = None, *more: Any) -> Any: ...

    flow = app.workflow("w")
    one = flow.step(do, [flow.param("a")["x"], 1.5, None, {"k": (flow.param("b"), "text")}])
    many = flow.map(do, one, over=one["rows"][0])
    flow.step(do, one, only_if="do['x'] > 1 and a is not None", when="always", after=[many])
    flow.undo(many, do, many)
    flow.returns({"one": one, "n": 5})

    encoded = msgspec.json.encode(flow.definition)

    assert msgspec.json.decode(encoded, type=Definition) == flow.definition


def test_two_declarations_of_one_graph_are_the_same_bytes() -> None:
    def declared() -> bytes:
        app = Mainspring("sqlite://:memory:")
        do = anything(app)
        flow = app.workflow("w")
        flow.param("x"), flow.param("y")
        steps = [flow.step(do) for _ in range(20)]
        flow.step(do, *reversed(steps), only_if="y > 1 and x > 2 and do_3 > 3")
        return msgspec.json.encode(flow.definition)

    assert declared() == declared()


def test_places_are_those_of_declaration_even_out_of_order(app: Mainspring) -> None:
    flow, do = app.workflow("w"), anything(app)
    first, second = flow.step(do, name="first"), flow.step(do, name="second")
    first.after(second)

    assert [node.name for node in flow.definition.nodes] == ["first", "second"]
    assert [node.parents for node in flow.definition.nodes] == [(1,), ()]


def test_without_undo_there_is_no_barrier(app: Mainspring) -> None:
    flow, do = app.workflow("w"), anything(app)
    flow.step(do)

    assert [node.kind for node in flow.definition.nodes] == [NodeKind.STEP]
    assert flow.definition.returns is None


def test_undo_goes_backwards_past_what_cannot_be_undone(app: Mainspring) -> None:
    flow, do = app.workflow("w"), anything(app)
    a = flow.step(do, name="a")
    b = flow.step(do, a, name="b")
    c = flow.step(do, b, name="c")
    d = flow.step(do, b, name="d")
    e = flow.step(do, c, d, name="e")
    for each in (a, e, c):
        flow.undo(each, do, each, b)

    assert parents(flow.definition) == {
        "a": set(),
        "b": {"a"},
        "c": {"b"},
        "d": {"b"},
        "e": {"c", "d"},
        BARRIER: {"e"},
        "undo-a": {BARRIER, "a", "b", "undo-c", "undo-e"},
        "undo-e": {BARRIER, "e", "b"},
        "undo-c": {BARRIER, "c", "b", "undo-e"},
    }
    undone = [node for node in flow.definition.nodes if node.kind is NodeKind.UNDO]
    assert [node.of for node in undone] == [0, 4, 2]
    assert undone[0].args == (StepResult(step=0), StepResult(step=1))


def test_the_barrier_waits_for_everything_that_nothing_waits_for(app: Mainspring) -> None:
    flow, do = app.workflow("w"), anything(app)
    a = flow.step(do, name="a")
    flow.step(do, a, name="b")
    flow.step(do, name="alone")
    flow.undo(a, do)

    assert parents(flow.definition)[BARRIER] == {"b", "alone"}


def test_a_definition_has_a_size(app: Mainspring) -> None:
    flow, do = app.workflow("w"), anything(app)
    for _ in range(LARGEST_DEFINITION // 200_000 + 1):
        flow.step(do, "x" * 200_000)

    with pytest.raises(
        InvalidWorkflow, match=rf"w: expected a definition of at most {LARGEST_DEFINITION} bytes"
    ):
        flow.job()


# Limits


def limits(flow: Workflow) -> list[tuple[Limiting, ...]]:
    return [node.limits for node in flow.definition.nodes]


def test_gates_by_a_parameter_name_it_and_its_place(app: Mainspring) -> None:
    @app.task(limits=[Limit("t", concurrency=2, by="tenant"), Limit("all", concurrency=9)])
    def bill(month: str, tenant: str = "nobody", *, dry: bool = False) -> None: ...

    flow = app.workflow("w")
    flow.step(bill, "m", flow.param("tenant"))
    flow.step(bill, "m", tenant="acme")
    flow.step(bill, "m")
    flow.map(bill, "acme", over=["m"])
    flow.map(bill, over=["m"])

    everybody = Limiting(limit_key=LimitKey(name="all", concurrency=9))
    by_tenant = LimitKey(name="t", concurrency=2)
    given = [(each.limit_key.name, each.by, each.place) for each in (one for one, _ in limits(flow))]
    assert [other for _, other in limits(flow)] == [everybody] * 5
    assert given == [
        ("t", "tenant", 1),
        ("t", "tenant", 1),
        ("t", None, None),
        ("t", "tenant", 1),
        ("t", None, None),
    ]
    assert limits(flow)[2][0] == Limiting(limit_key=msgspec.structs.replace(by_tenant, key="nobody"))


def test_a_map_s_item_is_the_first_argument(app: Mainspring) -> None:
    @app.task(limits=[Limit("t", concurrency=2, by="tenant")])
    def bill(tenant: str) -> None: ...

    flow = app.workflow("w")
    flow.map(bill, over=["a"])

    assert [(each.by, each.place) for each in limits(flow)[0]] == [("tenant", 0)]


def test_a_keyword_only_parameter_has_no_place(app: Mainspring) -> None:
    @app.task(limits=[Limit("t", concurrency=2, by="tenant")])
    def bill(*, tenant: str) -> None: ...

    flow = app.workflow("w")
    flow.step(bill, tenant=flow.param("tenant"))

    assert [(each.by, each.place) for each in limits(flow)[0]] == [("tenant", None)]


def test_rules_of_a_queue_count_even_when_declared_last(app: Mainspring) -> None:
    @app.task
    def bill(tenant: str) -> None: ...

    @app.task
    def other() -> None: ...

    flow = app.workflow("w")
    flow.step(bill.using(queue="shared"), "acme")
    flow.step(other.using(queue="shared"))
    flow.step(other)
    flow.job()
    app.queue("shared", fair_by="tenant")

    fair, nobody, none = limits(flow)
    assert [(each.limit_key.name, each.by, each.place) for each in fair] == [("fair:shared", "tenant", 0)]
    # As an enqueue has it: a task without the parameter has none to go by.
    assert [(each.limit_key.key, each.by) for each in nobody] == [("null", None)]
    assert other.using(queue="shared").job().limit_keys == (nobody[0].limit_key,)
    assert none == ()


def test_a_limit_that_no_step_can_go_by_is_refused(app: Mainspring) -> None:
    @app.task(limits=[Limit("t", concurrency=2, by="rest")])
    def open_(*rest: str) -> None: ...

    flow = app.workflow("w")
    flow.step(open_, "a")

    with pytest.raises(InvalidWorkflow, match=r"w\.open_: expected a single parameter for limit t"):
        flow.job()


# Random graphs


@st.composite
def edges(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    size = draw(st.integers(1, 25))
    place = st.integers(0, size - 1)
    links = draw(st.lists(st.tuples(place, place), max_size=60))
    return size, links, draw(st.lists(place, unique=True, max_size=size))


@settings(max_examples=200)
@given(edges())
def test_whatever_is_declared_has_no_circle(graph: tuple[int, list[tuple[int, int]], list[int]]) -> None:
    size, links, undone = graph
    app = Mainspring("sqlite://:memory:")
    flow, do = app.workflow("w"), anything(app)
    steps = [flow.step(do) for _ in range(size)]
    taken: set[tuple[int, int]] = set()
    for later, earlier in links:
        try:
            steps[later].after(steps[earlier])
            taken.add((later, earlier))
        except InvalidWorkflow:
            assert _reaches(earlier, later, taken)
        else:
            assert not _reaches(earlier, later, taken - {(later, earlier)})
    for each in undone:
        flow.undo(steps[each], do, steps[each])

    nodes = flow.definition.nodes
    above = [node.parents for node in nodes]
    order = topological(above)
    assert sorted(order) == list(range(len(nodes)))
    assert {(later, earlier) for later in range(size) for earlier in above[later]} == taken
    _assert_undone_backwards(flow.definition, order, undone, taken)


def _reaches(start: int, goal: int, links: set[tuple[int, int]]) -> bool:
    found = {start}
    while True:
        more = {earlier for later, earlier in links if later in found} - found
        if not more:
            return goal in found
        found |= more


def _assert_undone_backwards(
    definition: Definition, order: list[int], undone: list[int], links: set[tuple[int, int]]
) -> None:
    nodes = definition.nodes
    places = {node.of: place for place, node in enumerate(nodes) if node.kind is NodeKind.UNDO}
    assert set(places) == set(undone)
    every = {(place, parent) for place, node in enumerate(nodes) for parent in node.parents}
    for later in undone:
        for earlier in undone:
            if later != earlier and _reaches(later, earlier, links):
                assert _reaches(places[earlier], places[later], every)
                assert order.index(places[later]) < order.index(places[earlier])
    steps = [place for place, node in enumerate(nodes) if node.kind is NodeKind.STEP]
    for place in places.values():
        assert all(_reaches(place, each, every) for each in steps)


@settings(max_examples=20)
@given(st.permutations(range(DEEPEST)), st.permutations(range(DEEPEST)))
def test_depth_is_that_of_the_longest_way(chain: list[int], links: list[int]) -> None:
    """However the links of a chain are made, the one that makes it too long is refused."""
    app = Mainspring("sqlite://:memory:")
    flow, do = app.workflow("w"), anything(app)
    steps = [flow.step(do) for _ in range(DEEPEST + 1)]
    for link in links:
        earlier, later = [*chain, DEEPEST][link : link + 2]
        if link == links[-1]:
            with pytest.raises(InvalidWorkflow, match="101 in a row"):
                steps[later].after(steps[earlier])
        else:
            steps[later].after(steps[earlier])
    flow.close()


def test_constants_keep_their_kinds(app: Mainspring) -> None:
    flow, do = app.workflow("w"), anything(app)
    flow.step(do, 1, 1.0, True, None, "x", [], {})

    assert flow.definition.nodes[0].args == tuple(
        Constant(value=each) for each in (1, 1.0, True, None, "x", [], {})
    )
    encoded = msgspec.json.encode(flow.definition.nodes[0].args)
    assert b'{"type":"constant","value":1.0},{"type":"constant","value":true}' in encoded
