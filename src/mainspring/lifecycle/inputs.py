"""What a step is given: the inputs of its node, made from the workflow's parameters and earlier results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import msgspec

from mainspring.errors import shown
from mainspring.lifecycle.admission import gate_key
from mainspring.model.job import NewJob
from mainspring.model.limit import Gate
from mainspring.model.workflow import (
    LARGEST_INPUT,
    WIDEST,
    Constant,
    Fields,
    Input,
    Items,
    Limiting,
    Node,
    Param,
    Result,
)

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_NULL = b"null"


class InputError(ValueError):
    """A step cannot be given what its node says; the text says why."""


class Given:
    """The parameters and results that one workflow has by now."""

    def __init__(self, params: Mapping[str, object], result: Callable[[int], bytes | list[bytes]]) -> None:
        """`result` answers a step's JSON; of a map, that of each item."""
        self._params = params
        self._result = result

    def value(self, given: Input) -> object:
        """An input, decoded."""
        match given:
            case Constant():
                return given.value
            case Param():
                return _inside(self._params.get(given.name), given.path, given.name)
            case Result():
                found = self._result(given.step)
                whole = _decode(found) if isinstance(found, bytes) else [_decode(each) for each in found]
                return _inside(whole, given.path, "its result")
            case Items():
                return [self.value(each) for each in given.items]
            case Fields():
                return {name: self.value(each) for name, each in given.fields.items()}

    def raw(self, given: Input) -> object:
        """The same with whole results left in JSON, as they came: nobody need read them on the way."""
        match given:
            case Result(path=()):
                found = self._result(given.step)
                if isinstance(found, bytes):
                    return msgspec.Raw(found)
                return [msgspec.Raw(each) for each in found]
            case Items():
                return [self.raw(each) for each in given.items]
            case Fields():
                return {name: self.raw(each) for name, each in given.fields.items()}
            case _:
                return self.value(given)

    def items(self, over: Input) -> list[object]:
        """What a map goes over."""
        found = self.raw(over)
        if isinstance(found, msgspec.Raw):
            found = _decode(found)
        if not isinstance(found, list):
            raise InputError(f"over: expected a list, got {shown(found)}")
        if len(found) > WIDEST:
            raise InputError(f"over: expected at most {WIDEST} items, got {len(found)}")
        return found


def new_job(node: Node, given: Given, *first: object) -> NewJob:
    """The job of a step; of an item, when its own argument is given first."""
    args = [*first, *map(given.raw, node.args)]
    kwargs = {name: given.raw(each) for name, each in node.kwargs.items()}
    parts = {"args": args} if args else {}
    payload = _encode(parts | ({"kwargs": kwargs} if kwargs else {}))
    if len(payload) > LARGEST_INPUT:
        raise InputError(
            f"its input: expected at most {LARGEST_INPUT} bytes of JSON, got {len(payload)}; "
            "keep what is large elsewhere, and pass where"
        )
    return NewJob(
        task=node.task,
        payload=payload,
        queue=node.queue,
        priority=node.priority,
        delay=node.delay,
        max_attempts=node.max_attempts,
        expires=node.expires,
        gates=tuple(_gate(each, args, kwargs) for each in node.limits),
    )


def written(value: object) -> bytes:
    """What a workflow answers."""
    text = _encode(value)
    if len(text) > LARGEST_INPUT:
        raise InputError(f"its result: expected at most {LARGEST_INPUT} bytes of JSON, got {len(text)}")
    return text


def result_or_null(result: bytes | None) -> bytes:
    """A step's result in JSON; what is kept as nothing is null."""
    return _NULL if result is None else result


def _inside(value: object, path: Sequence[str | int], what: str) -> object:
    for depth, key in enumerate(path):
        try:
            value = cast("dict[object, object]", value)[key]
        except (KeyError, IndexError, TypeError):
            where = "".join(f"[{each!r}]" for each in path[: depth + 1])
            raise InputError(f"{what} has no {where}: it is {shown(value)}") from None
    return value


def _gate(limiting: Limiting, args: Sequence[object], kwargs: Mapping[str, object]) -> Gate:
    if limiting.by is None:
        return limiting.gate
    value = kwargs.get(limiting.by)
    if limiting.by not in kwargs and limiting.place is not None and limiting.place < len(args):
        value = args[limiting.place]
    if isinstance(value, msgspec.Raw):
        value = _decode(value)
    return msgspec.structs.replace(limiting.gate, key=gate_key(value))
