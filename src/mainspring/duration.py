"""Lengths of time as people write them: `90s`, `10m`, `1h30m`, `2d`, a number of seconds or a timedelta."""

from __future__ import annotations

import re
from datetime import timedelta

from mainspring.errors import InvalidArgument

Duration = timedelta | str | int | float

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|[smhdw])", re.ASCII)
_ALLOWED = 'a duration such as "90s", "10m", "1h30m", "2d", or a number of seconds'
_LONGEST = timedelta(days=36525)


def duration(value: Duration, field: str, *, least: timedelta = timedelta()) -> timedelta:
    """Read a duration, or say which field is wrong and what it may be."""
    parsed = _parse(value)
    if parsed is None or parsed > _LONGEST:
        raise InvalidArgument(field, value, _ALLOWED)
    if parsed < least:
        raise InvalidArgument(field, value, f"at least {format_duration(least)}")
    return parsed


def _parse(value: Duration) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return timedelta(seconds=value) if abs(value) < 1e10 else None
    if not isinstance(value, str) or not value:
        return None
    seconds, end = 0.0, 0
    while end < len(value):
        part = _PART.match(value, end)
        if part is None:
            return None
        seconds += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    return timedelta(seconds=seconds) if seconds < 1e10 else None


def format_duration(value: timedelta) -> str:
    """The shortest form that `duration` reads back as the same length."""
    rest = value // timedelta(milliseconds=1)
    if rest == 0:
        return "0s"
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def short_duration(length: timedelta) -> str:
    """Of what took this long, for people: 12.3 ms, 4.5 s."""
    seconds = length.total_seconds()
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
