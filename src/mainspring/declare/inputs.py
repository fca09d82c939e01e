"""From what a step is called with to the inputs of its definition."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from mainspring.declare import payload
from mainspring.declare.steps import Flow, ParamRef, Ref, ResultRef
from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.model.workflow import Constant, Fields, Input, Items


class Inputs:
    """Reads values that may have references in them; keeps in mind whose results were read."""

    def __init__(self, flow: Flow, field: str) -> None:
        self._flow, self._field = flow, field
        self._left = payload.LARGEST_PAYLOAD // 2 + 1  # each takes two bytes, at least
        self.reads: set[int] = set()

    def call(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[Input, ...], dict[str, Input]]:
        """The arguments of a step. What is constant in them must be JSON."""
        placed = [self._read(each, payload.DEEPEST) for each in args]
        named = {name: self._read(each, payload.DEEPEST) for name, each in kwargs.items()}
        try:
            payload.encode(
                [_bare(each) for each in placed],
                {name: _bare(each) for name, each in named.items()},
                field=self._field,
            )
        except InvalidArgument as wrong:
            raise InvalidWorkflow(wrong.field, wrong.got, wrong.expected) from None
        return tuple(map(_kept, placed)), {name: _kept(each) for name, each in named.items()}

    def one(self, value: object) -> Input:
        """A single value."""
        return self.call([value], {})[0][0]

    def own(self, ref: Ref) -> Input:
        """A reference to a step or a parameter of this workflow."""
        if ref.flow is not self._flow:
            expected = f"a step or a parameter of this workflow, not of {ref.flow.name}"
            raise InvalidWorkflow(self._field, ref, expected)
        if isinstance(ref, ResultRef):
            self.reads.add(ref.place)
            return ref.input
        if isinstance(ref, ParamRef):
            return ref.input
        raise InvalidWorkflow(self._field, ref, "the result of a step, or a parameter")

    def _read(self, value: object, levels: int) -> Input:
        # Counted on the way: a list may hold itself, or the same list a thousand times.
        self._left -= 1
        if self._left < 0:
            expected = f"at most {payload.LARGEST_PAYLOAD} bytes of JSON"
            raise InvalidWorkflow(self._field, "too many values", expected)
        if isinstance(value, Ref):
            return self.own(value)
        if levels and isinstance(value, list | tuple):
            items = tuple(self._read(each, levels - 1) for each in value)
            if not _are_constant(items):
                return Items(items=items)
        if levels and isinstance(value, dict):
            fields = {key: self._read(each, levels - 1) for key, each in value.items()}
            if not _are_constant(fields.values()):
                return Fields(fields=fields)
        return Constant(value=value)


def shape(value: object) -> Any:
    """What is known of a value's type: of a list or a dict, that of each item."""
    match value:
        case Ref():
            return value.hint
        case list() | tuple():
            return [shape(each) for each in value]
        case dict():
            return {key: shape(each) for key, each in value.items()}
        case _:
            return Any


def _are_constant(inputs: Any) -> bool:
    return all(isinstance(each, Constant) for each in inputs)


def _bare(given: Input) -> object:
    """The value with nothing where references are."""
    match given:
        case Constant():
            return given.value
        case Items():
            return [_bare(each) for each in given.items]
        case Fields():
            return {name: _bare(each) for name, each in given.fields.items()}
        case _:
            return None


def _kept(given: Input) -> Input:
    """The same for good: what the caller does to a list afterwards must not change the workflow."""
    match given:
        case Constant():
            return Constant(value=copy.deepcopy(given.value))
        case Items():
            return Items(items=tuple(map(_kept, given.items)))
        case Fields():
            return Fields(fields={name: _kept(each) for name, each in given.fields.items()})
        case _:
            return given
