"""Conditions of steps: expressions in a closed grammar.

raw['count'] > 0 and day not in ('2026-12-25', '2026-12-26') load is not None and not load['empty']

`and`, `or`, `not`, comparisons, `in`, `is None`, names, constants, lists and tuples of constants, and keys or
places inside a value. Nothing is called or computed, so the cost of a condition is that of the values it
reads. Python's parser reads the text, after a look at its words; nothing but the functions below ever runs
it.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn, cast

from mainspring.errors import shown
from mainspring.model.value import Value

LONGEST = 500
DEEPEST = 20
"""Levels, of brackets and of expressions in one another."""
ALLOWED = "and, or, not, comparisons, in, is None, names, constants and ['keys']"
# No prefix before a quote, no escape inside, no letter after a number: Python's parser warns about some of
# those, and a warning cannot be kept quiet without a word to every other thread.
_WORD = re.compile(
    r"""\ *(?:(?P<text>'[^'\\]*'|"[^"\\]*")
        |(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])
        |(?P<name>[A-Za-z_]\w*)(?!['"])
        |(?P<open>[(\[])|(?P<close>[)\]])|(?P<sign>[=!<>]=|[<>,-]))""",
    re.ASCII | re.VERBOSE,
)
_EQUALITY: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_ORDER: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_MEMBERSHIP = (ast.In, ast.NotIn)


class ConditionError(ValueError):
    """A condition that is not in the grammar, or has no answer for these values; the text says why."""

    def __init__(self, text: str, *, expected: str = "") -> None:
        super().__init__(text)
        self.expected = expected
        """Of one that is not in the grammar: what would be."""


class _Condition(Value, frozen=True, kw_only=True):
    root: ast.expr
    names: frozenset[str]


def condition_names(text: str) -> frozenset[str]:
    """The names in a condition; ConditionError if the text is no condition."""
    return _parsed(text).names


def evaluate(text: str, values: Mapping[str, object]) -> bool:
    """Whether it holds for these JSON values, one for each name. As in Python, except that what cannot be
    compared, or is not there, raises ConditionError; equality never does."""
    return bool(_value(_parsed(text).root, values))


def _parsed(text: str) -> _Condition:
    if not isinstance(text, str) or not text.strip():
        _raise(ALLOWED, text)
    if len(text) > LONGEST:
        _raise(f"at most {LONGEST} characters", text)
    return _read(text)


@lru_cache(maxsize=1024)
def _read(text: str) -> _Condition:
    _check_words(text)
    try:
        root = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        _refuse(text)
    _check(root, text, DEEPEST)
    found = frozenset(node.id for node in ast.walk(root) if isinstance(node, ast.Name))
    return _Condition(root=root, names=found)


def _check_words(text: str) -> None:
    if not text.isprintable():
        _refuse(text)
    at, depth, before, end = 0, 0, None, len(text.rstrip(" "))
    while at < end:
        word = _WORD.match(text, at)
        if word is None:
            _refuse(text, text[at:].lstrip(" "))
        depth += (word.lastgroup == "open") - (word.lastgroup == "close")
        # Two texts side by side would be one, and a comma forgotten.
        if not 0 <= depth <= DEEPEST or word.lastgroup == before == "text":
            _refuse(text, text[at:].lstrip(" "))
        before, at = word.lastgroup, word.end()


def _check(node: ast.expr, text: str, levels: int) -> None:
    if not levels:
        _raise(f"at most {DEEPEST} levels", text)
    match node:
        case ast.BoolOp(values=parts):
            for part in parts:
                _check(part, text, levels - 1)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            _check(part, text, levels - 1)
        case ast.Compare():
            _check_comparison(node, text, levels)
        case ast.Subscript(value=whole, slice=key) if type(_constant(key)) in (str, int):
            _check(whole, text, levels - 1)
        case ast.List(elts=items) | ast.Tuple(elts=items) if all(map(_is_constant, items)):
            pass
        case ast.Name():
            pass
        case _:
            if not _is_constant(node):
                _refuse(text, ast.get_source_segment(text.strip(), node) or "")


def _check_comparison(node: ast.Compare, text: str, levels: int) -> None:
    _check(node.left, text, levels - 1)
    for sign, right in zip(node.ops, node.comparators, strict=True):
        _check(right, text, levels - 1)
        if isinstance(sign, ast.Is | ast.IsNot) and not _is_none(right):
            _refuse(text, ast.get_source_segment(text.strip(), node) or "")


def _refuse(text: str, part: str = "") -> NoReturn:
    _raise(ALLOWED + (f", not {shown(part)}" if part and part != text else ""), text)


def _raise(expected: str, got: object) -> NoReturn:
    raise ConditionError(f"expected {expected}, got {shown(got)}", expected=expected)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_constant(node: ast.expr) -> bool:
    return _is_none(node) or _constant(node) is not None


def _constant(node: ast.expr) -> object:
    """Its value; None also for what is none, or none of ours."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return None if isinstance(number, bool) or not _is_finite(number) else -number
        case ast.Constant(value=str() | int() | float() as value):
            return value if isinstance(value, str) or _is_finite(value) else None
        case _:
            return None


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _value(node: ast.expr, values: Mapping[str, object]) -> object:
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, values) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _value(part, values)
        case ast.Compare():
            return _compared(node, values)
        case ast.Subscript(value=whole, slice=key):
            return _inside(_value(whole, values), _constant(key), ast.unparse(whole))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_constant(item) for item in items]
        case ast.Name(id=name):
            if name not in values:
                raise ConditionError(f"{name}: there is no value of that name")
            return values[name]
        case _:
            return _constant(node)


def _compared(node: ast.Compare, values: Mapping[str, object]) -> bool:
    left = _value(node.left, values)
    for sign, part in zip(node.ops, node.comparators, strict=True):
        right = _value(part, values)
        if not _holds(left, sign, right):
            return False
        left = right
    return True


def _holds(left: object, sign: ast.cmpop, right: object) -> bool:
    kind = type(sign)
    if kind in _EQUALITY:
        return _EQUALITY[kind](left, right)
    if isinstance(sign, _MEMBERSHIP):
        return _is_in(left, right) is (kind is ast.In)
    word, compare = _ORDER[kind]
    try:
        return compare(left, right)
    except TypeError:
        raise ConditionError(f"cannot decide {shown(left)} {word} {shown(right)}") from None


def _is_in(item: object, whole: object) -> bool:
    try:
        return item in cast("list[object]", whole)
    except TypeError:
        raise ConditionError(f"cannot decide {shown(item)} in {shown(whole)}") from None


def _inside(whole: object, key: object, name: str) -> object:
    try:
        if isinstance(whole, dict):
            return whole[key]
        if isinstance(whole, list) and isinstance(key, int):
            return whole[key]
    except (KeyError, IndexError):
        pass
    raise ConditionError(f"{name} has no [{shown(key)}]: it is {shown(whole)}")
