"""Rows into values: one mapping for both dialects.

PostgreSQL answers moments, lengths of time and lists as such; SQLite keeps microseconds and JSON. What a
column holds is said by the field of the value that it fills.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from mainspring.errors import Unreadable
from mainspring.store.database import Row

T = TypeVar("T", bound=msgspec.Struct)
Read = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AS_THEY_ARE = (int, float, bytes, str, Any)


def moment(value: Any) -> datetime:
    """A moment: of SQLite, microseconds since 1970."""
    return value if isinstance(value, datetime) else _EPOCH + timedelta(microseconds=value)


def length(value: Any) -> timedelta:
    """A length of time: of SQLite, microseconds."""
    return value if isinstance(value, timedelta) else timedelta(microseconds=value)


def maybe_moment(value: Any) -> datetime | None:
    """A moment that may be missing."""
    return None if value is None else moment(value)


def maybe_length(value: Any) -> timedelta | None:
    """A length of time that may be missing."""
    return None if value is None else length(value)


def written(value: object) -> str:
    """A value as JSON, which both dialects take as a text."""
    return msgspec.json.encode(value).decode()


def reader(
    kind: type[T], *, given: Iterable[str] = (), **columns: Callable[[Row], object]
) -> Callable[..., T]:
    """What makes a value of a row that has a column for each field. Fields that are `given` are passed by
    whoever reads; those named in `columns` are worked out from the row."""
    hints = typing.get_type_hints(kind)
    taken = {*given, *columns}
    names = tuple(name for name in kind.__struct_fields__ if name not in taken)
    conversions = {name: convert for name in names if (convert := _read(hints[name])) is not None}
    texts = tuple(name for name in names if hints[name] is str)
    optional = tuple((name, convert) for name, convert in conversions.items() if _may_be_missing(hints[name]))
    required = tuple(
        (name, convert) for name, convert in conversions.items() if not _may_be_missing(hints[name])
    )
    worked_out = tuple(columns.items())

    def read(row: Row, **known: object) -> T:
        # No call for a column that is as its field is to be: many thousands of rows are read at a time.
        fields = {name: row[name] for name in names}
        for name in texts:
            if fields[name] is None:
                raise Unreadable("a row", "a name that it refers to is not on record")
        for name, convert in required:
            fields[name] = convert(fields[name])
        for name, convert in optional:
            if (value := fields[name]) is not None:
                fields[name] = convert(value)
        for name, work_out in worked_out:
            fields[name] = work_out(row)
        return kind(**fields, **known)

    return read


def _read(hint: Any) -> Read | None:
    """How a column that is not NULL becomes a field of this type; None where it is one."""
    if _may_be_missing(hint):
        [hint] = [each for each in get_args(hint) if each is not types.NoneType]
    if hint in _AS_THEY_ARE:
        return None
    if hint is datetime:
        return moment
    if hint is timedelta:
        return length
    if hint is bool or (isinstance(hint, type) and issubclass(hint, Enum)):
        return typing.cast("Read", hint)
    return _decoded(hint)


def _may_be_missing(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _decoded(hint: Any) -> Read:
    """A list of PostgreSQL's, or JSON."""
    decode = msgspec.json.Decoder(hint).decode

    def convert(value: Any) -> Any:
        return decode(value) if isinstance(value, str | bytes) else tuple(value)

    return convert
