"""JSON that comes in as text: read strictly, so that no two readers can make different things of it."""

from __future__ import annotations

import json
from math import isfinite
from typing import NoReturn

from mainspring.declare.payload import DEEPEST, LARGEST_PAYLOAD, LEAST_INTEGER, MOST_INTEGER
from mainspring.errors import InvalidArgument, shown

_DIGITS = len(str(LEAST_INTEGER))


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
    """Text that is no JSON at all, and may be meant as it stands."""


class _Refused(Exception):
    """Well-formed, but not to be had."""


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
