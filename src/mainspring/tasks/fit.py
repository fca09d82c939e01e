"""Whether arguments fit a signature: those of stored jobs, and results that one step passes to another.

Only a certain misfit is reported: text where a number is wanted, a list of one type where another is wanted.
Results go through JSON, so the annotations that count are those of plain JSON; a class, a type variable or a
name that cannot be resolved fits anything. `Any` stands for what is not known.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from inspect import Parameter
from typing import Any, Literal, Union

import msgspec

from mainspring.tasks.signature import Signature, hint_of, meaning_of
from mainspring.tasks.task import Task

_PLAIN_VALUES = (str, int, float, bool, types.NoneType, list, dict)
_SINGLE = (int, float, bool, types.NoneType)
_PLAIN = (*_SINGLE, str, list, dict)
_MANY = (Sequence, Collection, Iterable)
"""Text and mappings are such, too."""
_MAPPINGS = (Mapping, MutableMapping)
_WIDER = {(bool, int), (bool, float), (int, float), (float, int)}
"""What fits beside its like: given, wanted. A float may well be whole."""
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Fit:
    """A worker passes stored arguments to a handler, whatever its annotations say; this says when they
    disagree. An annotation that is not about plain JSON, such as a class or a date, fits anything."""

    __slots__ = ("_by_name", "_by_place")

    def __init__(self, task: Task[..., object]) -> None:
        kinds = [(each, _plain_hint(hint_of(task.function, each))) for each in task.signature.parameters]
        self._by_place = [(each.name, kind) for each, kind in kinds if each.kind in _BY_POSITION]
        self._by_name = {each.name: kind for each, kind in kinds if kind is not Any}

    def misfit(self, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
        """The first argument that does not fit, and how; None when all do. They must bind."""
        if not self._by_name:
            return None
        for (name, kind), value in zip(self._by_place, args, strict=False):
            if kind is not Any and (problem := _misfit(value, kind)):
                return f"{name}: {problem}"
        for name, value in kwargs.items():
            if name in self._by_name and (problem := _misfit(value, self._by_name[name])):
                return f"{name}: {problem}"
        return None


def _misfit(value: object, kind: Any) -> str | None:
    if type(value) is kind:
        return None
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # Without the place inside the value: a thousand lists are one problem.
        text = str(error).partition(" - at ")[0].replace("`", "")
        return text[:1].lower() + text[1:]
    return None


def _plain_hint(hint: object) -> Any:
    """The part of an annotation that is about JSON; Any where it is about something else."""
    kind = _value_kind(hint)
    try:
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return kind
    except TypeError:
        return Any  # a union that cannot be told apart
    return kind


def _value_kind(hint: object) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN_VALUES:
        return hint
    if origin in (Union, types.UnionType):
        kinds = [_value_kind(part) for part in parts]
        return Any if Any in kinds else Union[tuple(kinds)]  # noqa: UP007  made at run time
    if origin is list:
        return list[_value_kind(parts[0])]  # type: ignore[misc]
    if origin is dict and parts[0] is str:
        return dict[str, _value_kind(parts[1])]  # type: ignore[misc]
    if origin is Literal and all(type(part) in (str, int, types.NoneType) for part in parts):
        return hint
    return Any


class Misfit(Exception):
    """A result has no such part; the text says what it is."""


def result_of(task: Task[..., object]) -> Any:
    """What a job of it results in, as it is annotated."""
    annotation = inspect.signature(task.function).return_annotation
    if annotation is inspect.Signature.empty:
        return Any
    hint = meaning_of(task.function, annotation)
    # A handler that settles its job itself, `ctx.transaction(result=…)`, returns nothing of its own.
    if hint is None or (hint is types.NoneType and task.signature.wants_context):
        return Any
    return hint


def parameters(
    task: Task[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> Iterator[tuple[str, Any, object]]:
    """Name, annotation and value of each argument of a call that binds."""
    signature: Signature = task.signature
    hints = {each.name: _known(hint_of(task.function, each)) for each in signature.parameters}
    kinds = {each.kind: each.name for each in signature.parameters}
    placed = [each.name for each in signature.parameters if each.kind in _BY_POSITION]
    rest, more = kinds.get(Parameter.VAR_POSITIONAL, ""), kinds.get(Parameter.VAR_KEYWORD, "")
    for place, value in enumerate(args):
        name = placed[place] if place < len(placed) else rest
        yield name, hints.get(name, Any), value
    for name, value in kwargs.items():
        yield name, hints.get(name, hints.get(more, Any)), value


def fits(given: Any, wanted: Any) -> bool:
    """Whether a value of one may be a value of the other. What is given may also be a list or a dict of
    types: one whose items are known each by itself."""
    if _is_union(given):
        return any(fits(each, wanted) for each in typing.get_args(given))
    if _is_union(wanted):
        return any(fits(given, each) for each in typing.get_args(wanted))
    if isinstance(given, list | dict):
        return _fits_each(given, wanted)
    if typing.get_origin(wanted) is Literal:
        return _fits_literal(given, typing.get_args(wanted))
    if typing.get_origin(given) is Literal:
        return any(fits(type(each), wanted) for each in typing.get_args(given))
    one, other = _kind(given), _kind(wanted)
    if _is_many(wanted):
        return fits(given, list_of(*_parts(wanted)[:1])) if one is list else one not in _SINGLE
    if one is Any or other is Any:
        return True
    if one is not other:
        return (one, other) in _WIDER
    return all(fits(one, other) for one, other in zip(_parts(given), _parts(wanted), strict=False))


def inside(hint: Any, key: str | int) -> Any:
    """What is at a key or place; Misfit when there certainly is none."""
    if _is_union(hint):
        return _any_of(hint, lambda each: inside(each, key))
    kind, parts = _kind(hint), _parts(hint)
    if kind not in (Any, dict if isinstance(key, str) else list):
        raise Misfit(hint_text(hint))
    return parts[-1] if parts and kind is not Any else Any


def list_of(hint: Any = Any) -> Any:
    """A list of these."""
    return types.GenericAlias(list, (hint,))


def hint_text(hint: Any) -> str:
    """An annotation as people write it."""
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)


def _any_of(union: Any, part: Callable[[Any], Any]) -> Any:
    found = []
    for each in typing.get_args(union):
        try:
            found.append(part(each))
        except Misfit:
            continue
    if not found:
        raise Misfit(hint_text(union))
    return Union[tuple(found)] if all(map(_is_plain, found)) else Any  # noqa: UP007  made at run time


def _is_plain(hint: Any) -> bool:
    return _kind(hint) is not Any


def _fits_each(given: list[Any] | dict[str, Any], wanted: Any) -> bool:
    kind = list if isinstance(given, list) and _is_many(wanted) else _kind(wanted)
    if kind is Any:
        return True
    items = given.values() if isinstance(given, dict) else given
    wanted_items = next(iter(_parts(wanted)[-1:]), Any)
    return kind is type(given) and all(fits(item, wanted_items) for item in items)


def _fits_literal(given: Any, values: Sequence[object]) -> bool:
    if typing.get_origin(given) is Literal:
        return bool(set(typing.get_args(given)) & set(values))
    return any(fits(given, type(each)) for each in values)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _known(hint: object) -> Any:
    return Any if hint is None or hint is Parameter.empty else hint


def _kind(hint: Any) -> Any:
    """The kind of JSON it is about, or Any."""
    origin = typing.get_origin(hint) or hint
    if origin in _PLAIN:
        return origin
    return dict if origin in _MAPPINGS else Any


def _is_many(hint: Any) -> bool:
    return (typing.get_origin(hint) or hint) in _MANY


def _parts(hint: Any) -> tuple[Any, ...]:
    return tuple(map(_known, typing.get_args(hint)))
