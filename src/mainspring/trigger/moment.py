"""Instants as people write them: ISO 8601 with an offset, in one strict form."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from mainspring.errors import InvalidArgument

FIRST_YEAR, LAST_YEAR = 2000, 2100
_SUCH_AS = "2026-03-01T09:00:00+01:00 or 2026-03-01T08:00:00Z"
# Python's own reader also takes week dates, times without minutes and no offset at all. A blank in
# place of the T is how we print instants ourselves.
_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:\d\d)$", re.ASCII)
_LONGEST = 40


def moment(text: str, field: str) -> datetime:
    """Read an instant, in UTC; or refuse it, naming the field."""
    found = _FORM.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None:
        raise InvalidArgument(field, text, f"an instant such as {_SUCH_AS}")
    *numbers, fraction, offset = found.groups(default="")
    if not offset:
        raise InvalidArgument(field, text, f"an offset at the end, as in {_SUCH_AS}")
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    if second == 60:
        raise InvalidArgument(field, text, "seconds from 00 to 59: a leap second is no instant of its own")
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidArgument(field, text, f"a year from {FIRST_YEAR} to {LAST_YEAR}")
    try:
        local = datetime(
            year, month, day, hour, minute, second, int(fraction.ljust(6, "0")), tzinfo=_zone(offset)
        )
    except ValueError:
        raise InvalidArgument(field, text, f"a date, time and offset that exist, as in {_SUCH_AS}") from None
    return local.astimezone(UTC)


def wall_or_moment(text: str, field: str) -> datetime:
    """Read an instant, or a wall time, which has no offset and is left without one."""
    if isinstance(text, str) and not _OFFSET.search(text):
        return moment(f"{text}Z", field).replace(tzinfo=None)
    return moment(text, field)


def _zone(offset: str) -> timezone:
    if offset == "Z":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    hours, minutes = int(offset[1:3]), int(offset[4:])
    if minutes > 59:
        raise ValueError(offset)
    return timezone(sign * timedelta(hours=hours, minutes=minutes))
