"""Whether JSON values fit a task's annotations, as far as those speak of JSON."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any, Literal, Union

import msgspec

from mainspring.declare.signature import hint_of
from mainspring.declare.task import Task

_PLAIN = (str, int, float, bool, types.NoneType, list, dict)
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Fit:
    """A worker hands a handler what is stored, whatever its annotations say; this tells when they
    disagree. An annotation that is not about plain JSON, such as a class or a date, fits anything."""

    __slots__ = ("_by_name", "_by_place")

    def __init__(self, task: Task[..., object]) -> None:
        kinds = [(each, _plain(hint_of(task.function, each))) for each in task.signature.parameters]
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


def _plain(hint: object) -> Any:
    """The part of an annotation that is about JSON; Any where it is about something else."""
    kind = _kind(hint)
    try:
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return kind
    except TypeError:
        return Any  # a union that cannot be told apart
    return kind


def _kind(hint: object) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return hint
    if origin in (Union, types.UnionType):
        kinds = [_kind(part) for part in parts]
        return Any if Any in kinds else Union[tuple(kinds)]  # noqa: UP007  made at run time
    if origin is list:
        return list[_kind(parts[0])]  # type: ignore[misc]
    if origin is dict and parts[0] is str:
        return dict[str, _kind(parts[1])]  # type: ignore[misc]
    if origin is Literal and all(type(part) in (str, int, types.NoneType) for part in parts):
        return hint
    return Any
