"""Arguments, results and events as JSON: written once, read strictly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from math import isfinite
from typing import NoReturn, cast

import msgspec

from mainspring.errors import InvalidArgument, shown

LARGEST_PAYLOAD = 256 * 1024
LARGEST_RESULT = 64 * 1024
DEEPEST = 64
LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**64 - 1
_ALLOWED = "a JSON value (str, int, float, bool, None, list, dict with str keys)"
_SCALARS = frozenset((str, int, float, bool, type(None)))
_TEXTS = frozenset((str, bytes, bytearray))
_SHORT = 100
"""Texts up to this length need not be measured before they are encoded."""
_SIZED = _TEXTS | {list, dict, tuple, set, frozenset}
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
# What may be a NUL, which PostgreSQL's jsonb refuses, and what may be an integer beyond 64 bits.
_NUL = rb"\u0000"
_LONG = 19
_find_long_number = re.compile(rb"[0-9]{%d}" % _LONG).search
_DIGITS = len(str(LEAST_INTEGER))


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    args: list[object] = []
    kwargs: dict[str, object] = {}


_open = msgspec.json.Decoder(_Envelope).decode


def encode(args: Sequence[object], kwargs: Mapping[str, object], *, field: str) -> bytes:
    """Canonical JSON of a call, without empty parts; `field` is what errors call the whole of it."""
    values = (*args, *kwargs.values()) if args and kwargs else args or kwargs.values()
    for each in values:
        if len(each) > _SHORT if isinstance(each, str) else type(each) in _SIZED:
            _refuse_bulk(list(values), field, DEEPEST, LARGEST_PAYLOAD)
            break
    parts: dict[str, object] = {}
    if args:
        parts["args"] = list(args)
    if kwargs:
        parts["kwargs"] = kwargs
    return _written(parts, field, DEEPEST + 2, LARGEST_PAYLOAD)


def decode(payload: bytes) -> tuple[list[object], dict[str, object]]:
    """The arguments that `encode` was given."""
    try:
        envelope = _open(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise InvalidArgument("payload", payload, 'JSON such as {"args":[],"kwargs":{}}') from None
    return envelope.args, envelope.kwargs


def encode_result(value: object, largest: int = LARGEST_RESULT) -> bytes | None:
    """A handler's result, under the same rules; None is kept as nothing. `largest` is results.max_bytes."""
    return None if value is None else encode_value(value, "result", largest, " (results.max_bytes)")


def encode_value(value: object, field: str, largest: int, setting: str = "") -> bytes:
    """Any value, under the same rules; `setting` says, in brackets, where `largest` comes from."""
    if type(value) in _SIZED:
        _refuse_bulk([value], field, DEEPEST, largest, setting)
    return _written(value, field, DEEPEST, largest, setting)


def decode_value(text: bytes) -> object:
    """The value that `encode_value` was given."""
    value: object = _decode(text)
    return value


def _written(value: object, path: str, levels: int, largest: int, setting: str = "") -> bytes:
    try:
        text = _encode(value)
        faithful: bool = _decode(text) == value
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        _refuse(value, path, levels)
        raise InvalidArgument(path, type(value), _ALLOWED) from None
    if len(text) > largest:
        raise InvalidArgument(path, f"{len(text)} bytes", f"at most {largest} bytes of JSON{setting}")
    # So many levels need so many brackets, and most payloads have fewer characters.
    long = len(text) > 2 * levels
    if not faithful or _NUL in text or _has_long_number(text) or (long and _is_deeper(value, levels, text)):
        _refuse(value, path, levels)
    if not faithful:
        raise InvalidArgument(path, type(value), _ALLOWED)
    return text


def _refuse_bulk(values: list[object], path: str, levels: int, largest: int, setting: str = "") -> None:
    """Refuse a value that is certainly too large, at no more cost than a text of that size: a hundred
    megabytes are refused before they are copied. What is too deep is refused later."""
    left = largest
    while values and levels:
        below: list[object] = []
        for value in values:
            kind = type(value)
            if kind in _SIZED:
                left -= len(cast("str", value))
                if left < 0:
                    raise InvalidArgument(
                        path, f"more than {largest} bytes", f"at most {largest} bytes of JSON{setting}"
                    )
                if kind is dict:
                    below += cast("dict[object, object]", value)
                    below += cast("dict[object, object]", value).values()
                elif kind not in _TEXTS:
                    below += cast("list[object]", value)
        values, levels = below, levels - 1


def _has_long_number(text: bytes) -> bool:
    # Most payloads have fewer digits in all, and to count them is quicker than to look for a row of them.
    digits = len(text) - len(text.translate(None, b"0123456789"))
    return digits >= _LONG and _find_long_number(text) is not None


def _is_deeper(value: object, levels: int, text: bytes) -> bool:
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    level = [value]
    for _ in range(levels):
        level = [
            item
            for node in level
            for item in (node.values() if isinstance(node, dict) else cast("list[object]", node))
            if isinstance(item, list | dict)
        ]
        if not level:
            return False
    return True


def _refuse(value: object, path: str, levels: int) -> None:
    """Find the first value that cannot be stored, and name it."""
    match value:
        case list() | dict() if levels == 0:
            raise InvalidArgument(path, type(value), f"at most {DEEPEST} levels of nesting")
        case list():
            for index, item in enumerate(value):
                _refuse(item, f"{path}[{index}]", levels - 1)
        case dict():
            for key, item in value.items():
                _refuse(item, f"{path}{_step(key, path)}", levels - 1)
        case _:
            _refuse_scalar(value, path)


def _refuse_scalar(value: object, path: str) -> None:
    # An enum of plain text or numbers is encoded as its value, which compares equal; msgspec takes no
    # other subclass.
    if type(value) not in _SCALARS and not isinstance(value, Enum):
        raise InvalidArgument(path, type(value), _ALLOWED)
    if isinstance(value, str):
        _refuse_text(value, path)
    elif isinstance(value, int) and not LEAST_INTEGER <= value <= MOST_INTEGER:
        raise InvalidArgument(path, value, "an integer of at most 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(path, value, "a finite number: JSON has no other")
    elif isinstance(value, Enum) and not isinstance(value, int):
        raise InvalidArgument(path, type(value), _ALLOWED)


def _step(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidArgument(path, key, "str keys only: JSON has no other")
    _refuse_text(key, path)
    return f".{key}" if key.isidentifier() else f"[{shown(key)}]"


def _refuse_text(text: str, path: str) -> None:
    if "\0" in text:
        raise InvalidArgument(path, text, "text without NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(path, text, "text without lone surrogates") from None


def read_json(
    text: str | bytes, field: str, *, expected: str = "JSON", largest: int = LARGEST_PAYLOAD
) -> object:
    """The value, or InvalidArgument: what is not JSON, is no UTF-8, is too large or has a key twice.
    `expected` is what the field takes. What a value may hold is checked when a call is encoded."""
    if len(text) > largest:
        raise InvalidArgument(field, text, f"at most {largest} bytes of JSON")
    try:
        # Bytes are not left to `json`, which would take UTF-16 and UTF-32 as well.
        words = text.decode() if isinstance(text, bytes) else text
        return json.loads(
            words,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError:
        raise InvalidArgument(field, text, f"{expected} in UTF-8") from None
    except _Refused as refused:
        raise InvalidArgument(field, text, f"{expected} {refused}") from None
    except RecursionError:
        raise InvalidArgument(field, text, f"at most {DEEPEST} levels of nesting") from None
    except ValueError:
        raise NotJSON(field, text, expected) from None


class NotJSON(InvalidArgument):
    """Text that is no JSON at all, and may be meant literally."""


class _Refused(Exception):
    """Well-formed JSON that is not accepted."""


def _no_constant(name: str) -> NoReturn:
    # Python would take NaN and Infinity, which are not JSON and may well be names.
    raise ValueError(name)


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise _Refused("with numbers that are not too large")
    return number


def _integer(digits: str) -> int:
    # Before it is read: that takes time, and beyond 4300 digits Python refuses.
    if len(digits) > _DIGITS or not LEAST_INTEGER <= (number := int(digits)) <= MOST_INTEGER:
        raise _Refused("with integers of at most 64 bits")
    return number


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(f"with each key once, not {shown(twice)} twice")
    return found
