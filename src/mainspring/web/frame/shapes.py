"""Moments, lengths, sizes and values as the pages show them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_NEVER = 9000
"""From this year on a moment means that there is none: the store's end of time."""


def ago(moment: datetime, now: datetime) -> str:
    """How long before or after now, in one or two units; the browser goes on with the same words."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    said = _length(abs(seconds))
    return f"{said} ago" if seconds > 0 else f"in {said}"


def _length(size: float) -> str:
    place = next(at for at, (unit, _) in enumerate(_UNITS) if size >= unit)
    unit, sign = _UNITS[place]
    whole = int(size // unit)
    if place >= 2 or whole >= 10:
        return f"{whole}{sign}"
    smaller, small_sign = _UNITS[place + 1]
    rest = int((size - whole * unit) // smaller)
    return f"{whole}{sign} {rest}{small_sign}" if rest else f"{whole}{sign}"


def took(length: timedelta | float | None) -> str:
    """How long something took, as exact as it matters."""
    if length is None:
        return "–"
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 0.001:
        return "0ms" if seconds <= 0 else "<1ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}s".replace(".0s", "s")
    return _length(seconds)


def stamp(moment: datetime | None) -> str:
    """In UTC, to the second."""
    return "–" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def clock(moment: datetime) -> str:
    """The time of day, in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


def iso(moment: datetime) -> str:
    """For machines."""
    return moment.astimezone(UTC).isoformat()


def is_never(moment: datetime | None) -> bool:
    """Whether it is the store's way to say that no time has been set."""
    return moment is None or moment.year >= _NEVER


def count(number: int) -> str:
    """With thin spaces between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def json_text(value: object) -> str:
    """A value as JSON over several lines."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def hexadecimal(value: int | None) -> str:
    """An id of a process, as the log and the command line write it."""
    return "–" if value is None else f"{value:x}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """`3 jobs`, `1 job`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def size(number: int | None) -> str:
    """Bytes, in the unit in which they are one to four digits."""
    if number is None:
        return "–"
    amount, unit = float(number), 0
    while amount >= 1000 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_SIZES[unit]}" if unit == 0 or amount >= 10 else f"{amount:.1f} {_SIZES[unit]}"


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "took": took,
    "stamp": stamp,
    "clock": clock,
    "iso": iso,
    "is_never": is_never,
    "count": count,
    "json_text": json_text,
    "hexadecimal": hexadecimal,
    "plural": plural,
    "size": size,
}
