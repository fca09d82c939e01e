"""What steps are given, from params and earlier results."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mainspring.model.limit import LimitKey
from mainspring.model.workflow import (
    LARGEST_INPUT,
    Constant,
    Fields,
    Input,
    Items,
    Limiting,
    Node,
    Param,
    StepResult,
)
from mainspring.rules.resolution import InputError, StepInputs, new_job, result_json, result_json_or_null

RESULTS: dict[int, bytes | list[bytes]] = {
    0: b'{"k":[1,{"x":null}]}',
    1: [b"1", b"null", b'"c"'],
    2: b"[4,5]",
}
GIVEN = StepInputs({"day": "monday", "deep": {"a": [1]}}, RESULTS.__getitem__)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (Constant(value={"a": [None]}), {"a": [None]}),
        (Param(name="day"), "monday"),
        (Param(name="nothing"), None),
        (Param(name="deep", path=("a", 0)), 1),
        (StepResult(step=0), {"k": [1, {"x": None}]}),
        (StepResult(step=0, path=("k", 1, "x")), None),
        (StepResult(step=0, path=("k", -1)), {"x": None}),
        (StepResult(step=1), [1, None, "c"]),
        (StepResult(step=1, path=(2,)), "c"),
        (Items(items=(StepResult(step=2), Param(name="day"))), [[4, 5], "monday"]),
        (Fields(fields={"a": Items(items=()), "b": StepResult(step=1)}), {"a": [], "b": [1, None, "c"]}),
    ],
)
def test_a_value_is_the_same_read_or_passed_on_as_it_came(given: Input, value: Any) -> None:
    assert GIVEN.value(given) == value
    assert msgspec.json.decode(msgspec.json.encode(GIVEN.raw(given))) == value


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (StepResult(step=0, path=("z",)), r"its result has no \['z'\]: it is"),
        (StepResult(step=0, path=("k", 5)), r"its result has no \['k'\]\[5\]"),
        (StepResult(step=0, path=("k", "x")), r"its result has no \['k'\]\['x'\]"),
        (StepResult(step=1, path=(1, "x")), r"its result has no \[1\]\['x'\]: it is None"),
        (Param(name="day", path=("x",)), r"day has no \['x'\]: it is 'monday'"),
        (Param(name="nothing", path=(0,)), r"nothing has no \[0\]: it is None"),
    ],
)
def test_a_key_that_is_not_there_is_named(given: Input, told: str) -> None:
    for ask in (GIVEN.value, GIVEN.raw, GIVEN.items):
        with pytest.raises(InputError, match=told):
            ask(given)


@pytest.mark.parametrize(
    "over",
    [Param(name="day"), Param(name="deep"), Param(name="nothing"), StepResult(step=0), Fields(fields={})],
)
def test_a_map_goes_over_lists_alone(over: Input) -> None:
    with pytest.raises(InputError, match="over: expected a list, got"):
        GIVEN.items(over)


def test_a_map_goes_over_lists_from_anywhere() -> None:
    assert GIVEN.items(StepResult(step=2)) == [4, 5]
    assert len(GIVEN.items(StepResult(step=1))) == 3
    assert GIVEN.items(Items(items=(Constant(value=[]),))) == [[]]
    assert GIVEN.items(Constant(value=[])) == []


def test_an_item_comes_first_among_the_arguments() -> None:
    node = Node(name="n", task="t", args=(StepResult(step=2),), kwargs={"day": Param(name="day")})
    assert new_job(node, GIVEN, {"x": 1}).payload == b'{"args":[{"x":1},[4,5]],"kwargs":{"day":"monday"}}'
    assert new_job(Node(name="n", task="t"), GIVEN).payload == b"{}"


def test_an_input_has_a_bound_and_so_has_what_a_workflow_answers() -> None:
    room = LARGEST_INPUT - len('{"args":[""]}')
    node = Node(name="n", task="t", args=(Constant(value="x" * room),))
    assert len(new_job(node, GIVEN).payload) == LARGEST_INPUT
    with pytest.raises(InputError, match=f"at most {LARGEST_INPUT} bytes of JSON, got {LARGEST_INPUT + 1}"):
        new_job(msgspec.structs.replace(node, args=(Constant(value="x" * (room + 1)),)), GIVEN)
    with pytest.raises(InputError, match="its result"):
        result_json("x" * LARGEST_INPUT)


@pytest.mark.parametrize(
    ("node", "key"),
    [
        ({"kwargs": {"tenant": Constant(value="acme")}}, "acme"),
        ({"kwargs": {"tenant": StepResult(step=2)}}, "[4,5]"),
        ({"args": (Constant(value=1), Param(name="day"))}, "monday"),
        ({"args": (Constant(value=1), StepResult(step=1, path=(2,)))}, "c"),
    ],
)
def test_a_limit_is_counted_by_the_value_of_its_parameter(node: dict[str, Any], key: str) -> None:
    limit = Limiting(limit_key=LimitKey(name="api", concurrency=1), by="tenant", place=1)
    [limit_key] = new_job(Node(name="n", task="t", limits=(limit,), **node), GIVEN).limit_keys
    assert limit_key.key == key


def test_nothing_is_null() -> None:
    assert (result_json_or_null(None), result_json_or_null(b"0")) == (b"null", b"0")
