"""Readers of rows: they make model values from rows of both dialects.

PostgreSQL answers moments, lengths of time and lists as such. SQLite keeps microseconds and JSON. The type of
the field decides how a column is read.
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
    """A moment. SQLite keeps microseconds since 1970. Two values are not moments: PostgreSQL's infinity,
    which the driver answers as the end of the year 9999 without a zone, and a year that Python does not
    have."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise Unreadable("a row", "a moment in it is none")
        return value
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        raise Unreadable("a row", "a moment in it is none") from None


def length(value: Any) -> timedelta:
    """A length of time. SQLite keeps microseconds."""
    return value if isinstance(value, timedelta) else timedelta(microseconds=value)


def maybe_moment(value: Any) -> datetime | None:
    """A moment that may be missing."""
    return None if value is None else moment(value)


def maybe_length(value: Any) -> timedelta | None:
    """A length of time that may be missing."""
    return None if value is None else length(value)


def written(value: object) -> str:
    """A value as JSON text, for both dialects."""
    return msgspec.json.encode(value).decode()


def reader(
    kind: type[T], *, given: Iterable[str] = (), **columns: Callable[[Row], object]
) -> Callable[..., T]:
    """A function that makes a value from a row with a column for each field. The caller passes the fields in
    `given`. The fields in `columns` are computed from the row."""
    hints = typing.get_type_hints(kind)
    taken = {*given, *columns}
    names = [name for name in kind.__struct_fields__ if name not in taken]
    scope: dict[str, Any] = {"kind": kind, "missing": _missing}
    arguments = []
    for name in names:
        convert, optional = _read(hints[name]), _may_be_missing(hints[name])
        scope[f"read_{name}"] = convert
        if hints[name] is str:
            value = f'missing() if (it := row["{name}"]) is None else it'
        elif convert is None:
            value = f'row["{name}"]'
        elif optional:
            value = f'None if (it := row["{name}"]) is None else read_{name}(it)'
        else:
            value = f'read_{name}(row["{name}"])'
        arguments.append(f"{name}=({value})")
    for name, work_out in columns.items():
        scope[f"work_out_{name}"] = work_out
        arguments.append(f"{name}=work_out_{name}(row)")
    # The function is generated as code, as dataclasses do. Many thousands of rows are read at a time, and a
    # loop over the fields of each row costs twice as much. The code contains only names of fields.
    code = f"def read(row, **known):\n    return kind({', '.join(arguments)}, **known)"
    exec(code, scope)  # noqa: S102 - see above
    read: Callable[..., T] = scope["read"]
    return read


def _missing() -> typing.NoReturn:
    raise Unreadable("a row", "a name that it refers to is not on record")


def _read(hint: Any) -> Read | None:
    """The function that makes a field of this type from a column that is not NULL; None where no function is
    needed."""
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
    """The reader of a PostgreSQL list, or of JSON."""
    decode = msgspec.json.Decoder(hint).decode

    def convert(value: Any) -> Any:
        return decode(value) if isinstance(value, str | bytes) else tuple(value)

    return convert
