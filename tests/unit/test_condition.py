"""Conditions of steps: what they may say, what they come to, and that nothing else is ever run."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mainspring.rules.condition import LONGEST, ConditionError, condition_names, evaluate
from tests.support.budget import within_cpu

VALUES: dict[str, Any] = {
    "raw": {"count": 3, "rows": [{"id": 7}, {"id": 8}], "note": None, "ok": True},
    "day": "2026-11-15",
    "nothing": None,
    "number": 1.5,
    "items": ["a", "b"],
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("raw['count'] > 0 and day != '2026-12-25'", True),
        ("raw['count'] > 3", False),
        ("raw['count'] >= 3 and raw['count'] <= 3", True),
        ("0 < number < 2", True),
        ("0 < number < 1", False),
        ("raw['rows'][0]['id'] == 7", True),
        ("raw['rows'][-1]['id'] == 8", True),
        ("not raw['ok']", False),
        ("raw", True),
        ("nothing", False),
        ("nothing is None", True),
        ("raw['note'] is not None", False),
        ("nothing == None or nothing > 3", True),
        ("nothing is not None and nothing['x'] == 1", False),
        ("day in ('2026-11-15', '2026-11-16')", True),
        ("day not in ['2026-11-15']", False),
        ("'count' in raw", True),
        ("'2026' in day", True),
        ("'c' in items or 'b' in items", True),
        ("items == ('a', 'b')", True),
        ("raw == 5", False),
        ("nothing != 'x'", True),
        ("number == -1.5 or number == 1.5e0", True),
        ("number > -2", True),
        ("(raw['ok'] or nothing['x']) and not nothing", True),
        ("raw['ok'] is None", False),
        ("True", True),
        (" day == 'é' ", False),
    ],
)
def test_what_it_comes_to(text: str, answer: bool) -> None:
    assert evaluate(text, VALUES) is answer


def test_its_names() -> None:
    assert condition_names("raw['count'] > 0 and (day != 'x' or raw['ok'])") == {"raw", "day"}
    assert condition_names("1 < 2") == frozenset()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing > 3", "cannot decide None > 3"),
        ("day < 3", "cannot decide '2026-11-15' < 3"),
        ("items <= 'a'", "cannot decide"),
        ("3 in nothing", "cannot decide 3 in None"),
        ("3 in day", "cannot decide 3 in '2026-11-15'"),
        ("raw in raw", "cannot decide"),
        ("raw['missing'] == 1", "raw has no ['missing']"),
        ("raw['rows'][2] == 1", "raw['rows'] has no [2]"),
        ("raw['rows']['id'] == 1", "raw['rows'] has no ['id']"),
        ("raw[0] == 1", "raw has no [0]"),
        ("nothing['x'] == 1", "nothing has no ['x']: it is None"),
        ("day[0] == '2'", "day has no [0]"),
        ("other == 1", "other: there is no value of that name"),
    ],
)
def test_what_has_no_answer_says_why(text: str, says: str) -> None:
    with pytest.raises(ConditionError) as refusal:
        evaluate(text, VALUES)

    assert says in str(refusal.value)


REFUSED = [
    "",
    " ",
    "x +",
    "x = 1",
    "x y",
    "__import__('os').system('id')",
    "9**9**9**9",
    "'a'*10**9",
    "x.__class__.__mro__",
    "f(x)",
    "x.y",
    "x + 1 > 2",
    "-x > 1",
    "--1 == x",
    "-True == x",
    "~1 == x",
    "x if y else z",
    "[y for y in x]",
    "{y for y in x}",
    "{'a': 1}",
    "lambda: 1",
    "(x := 1)",
    "f'{x}'",
    "b'x' == x",
    "r'x' == x",
    "x[y]",
    "x[1:2]",
    "x[True]",
    "x[None]",
    "x[1.5]",
    "x[1, 2]",
    "[x] == 1",
    "(x,) == 1",
    "[[1]] == x",
    "x is 5",
    "x is y",
    "x is not True",
    "*x",
    "x, y",
    "x; y",
    "x\ny",
    "x # comment",
    "x\\\n",
    "'a' 'b' == x",
    "'''a''' == x",
    r"'\x41' == x",
    "1e999 < x",
    "1j == x",
    "0x1f == x",
    "1_000 == x",
    "007 == x",
    "1if x else 2",
    "1or x",
    ".5 < x",
    "... == x",
    "x == …",
    "été == 1",
    "ａ == 1",
    "x == 'a\0b'",
    "x == '\ud800'",
    "yield x",
    "await x",
    "(" * 100 + "x" + ")" * 100,
    "(" * 500,
    "[" * 499,
    "not " * 100 + "x",
    "x" + "[0]" * 100,
    "x == '" + "a" * LONGEST + "'",
    "x or " * 1000 + "x",
    None,
    5,
    b"x",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_in_the_grammar_is_refused(text: Any) -> None:
    with within_cpu(0.05), pytest.raises(ConditionError) as refusal:
        condition_names(text)

    assert refusal.value.expected
    assert len(str(refusal.value)) < 500
    with pytest.raises(ConditionError):
        evaluate(text, {"x": 1, "y": 2, "z": 3})


WORDS = [
    "x", "y", "and", "or", "not", "in", "is", "None", "True", "==", "!=", "<", ">=", "(", ")", "[", "]", ",",
    "1", "-", "2.5", "'a'", '"b"', "lambda", "if", "else", "for", ".", "*", "**", "{", "}", ":", ":=",
    "f'{x}'", "\\", "__import__", "('os')", ".system", "await", "...", "1_0", "0x1", "1j", "\n", "#", "+",
]  # fmt: skip
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


class Untouchable:
    """Whatever is done to it beyond being looked at is an escape."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"somebody asked for {name}")

    def __call__(self, *args: object) -> Any:
        raise AssertionError("somebody called it")


@settings(max_examples=1000)
@given(TEXTS)
@example("x" * LONGEST)
def test_no_text_does_anything_but_answer_or_be_refused(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = condition_names(text)
        except ConditionError:
            return
    values: dict[str, object] = {name: Untouchable() for name in found}
    try:
        assert evaluate(text, values) in (True, False)
    except ConditionError as error:
        assert str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_equality_is_pythons_and_never_raises(one: object, other: object) -> None:
    assert evaluate("one == other", {"one": one, "other": other}) is (one == other)
    assert evaluate("one != other", {"one": one, "other": other}) is (one != other)


@given(JSON, JSON, st.sampled_from(["<", "<=", ">", ">=", "in", "not in"]))
def test_comparisons_are_pythons_or_have_no_answer(one: object, other: object, sign: str) -> None:
    try:
        answer = eval(f"one {sign} other", {"one": one, "other": other})
    except TypeError:
        with pytest.raises(ConditionError):
            evaluate(f"one {sign} other", {"one": one, "other": other})
    else:
        assert evaluate(f"one {sign} other", {"one": one, "other": other}) is answer


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none())
def test_constants_are_what_python_writes(value: object) -> None:
    assert evaluate(f"value == {value!r}", {"value": value})
