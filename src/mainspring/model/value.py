"""The base of every value, and the check of an option that is one of a few words.

msgspec structs are built about ten times faster than frozen dataclasses, which counts for values
made once per job, and they encode themselves to JSON. `frozen` and `kw_only` hold only for the class
that says so, so every value says so. `gc=False` is for those made once per job: the collector need not visit
what cannot be part of a cycle.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

import msgspec

from mainspring.errors import InvalidArgument

_Choice = TypeVar("_Choice", bound=StrEnum)


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen value with keyword-only fields."""


def choice(
    options: type[_Choice], given: str, field: str, error: type[InvalidArgument] = InvalidArgument
) -> _Choice:
    """The member of an enumeration that a caller named, or an error that lists the allowed words."""
    try:
        return options(given)
    except ValueError:
        raise error(field, given, f"one of {', '.join(options)}") from None
