"""Time zones by IANA name, wall clocks, and instants as people write them.

Python prefers the zone files of the system. On a machine with an old image these can be years older than the
tzdata wheel, and two machines would then disagree about the same slot. So the versions are compared, and the
newest data is read.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from mainspring.errors import InvalidArgument

_EXPECTED = 'an IANA time zone such as "UTC" or "Europe/Berlin"'
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*)*", re.ASCII)
_VERSION = re.compile(r"(?:# version )?(\d{4}[a-z]+)\s*", re.ASCII)
_LONGEST = 64
# Files in a zone directory that are not places, or that count leap seconds.
_NOT_ZONES = re.compile(r"localtime|posixrules|Factory|leapseconds|(?:right|posix)(?:/.*)?")
# Kept by IANA for old scripts only: three-letter names hide whether DST is meant.
_LEGACY = {
    "EST": "America/Panama", "MST": "America/Phoenix", "HST": "Pacific/Honolulu",
    "EST5EDT": "America/New_York", "CST6CDT": "America/Chicago", "MST7MDT": "America/Denver",
    "PST8PDT": "America/Los_Angeles", "CET": "Europe/Brussels", "MET": "Europe/Brussels",
    "EET": "Europe/Athens", "WET": "Europe/Lisbon",
}  # fmt: skip
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_NONE = timedelta()
WallAfter = Callable[[datetime], datetime]
FIRST_YEAR, LAST_YEAR = 2000, 2100
_SUCH_AS = "2026-03-01T09:00:00+01:00 or 2026-03-01T08:00:00Z"
# Python's own reader also takes week dates, times without minutes and no offset at all. A blank in
# place of the T is how we print instants ourselves.
_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:\d\d)$", re.ASCII)
_LONGEST_INSTANT = 40


def zone(name: str) -> ZoneInfo:
    """The zone of that exact name; no repair of case or blanks, no paths, no fixed-offset legacy names."""
    if not isinstance(name, str) or len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise InvalidArgument("tz", name, _EXPECTED)
    if name in _LEGACY:
        raise InvalidArgument("tz", name, f'a place, such as "{_LEGACY[name]}"')
    if _NOT_ZONES.fullmatch(name):
        raise InvalidArgument("tz", name, _EXPECTED)
    try:
        return _load(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgument("tz", name, _EXPECTED) from None


@cache
def tzdata_version() -> str:
    """Which zone data is read, such as "2026a (system)": shown for each process, to spot one that differs."""
    system, wheel = _system_version(), _version(_wheel() / "tzdata.zi")
    return f"{wheel} (wheel)" if wheel > system else f"{system} (system)"


@cache
def _load(name: str) -> ZoneInfo:
    if tzdata_version().endswith("(system)"):
        return ZoneInfo(name)
    with _wheel().joinpath(*name.split("/")).open("rb") as stream:
        return ZoneInfo.from_file(stream, key=name)


def _wheel() -> Traversable:
    return resources.files("tzdata") / "zoneinfo"


def _system_version() -> str:
    """Empty, which is older than anything, when there are no zone files or they do not say."""
    files = (Path(folder) / name for folder in zoneinfo.TZPATH for name in ("tzdata.zi", "+VERSION"))
    return next(filter(None, map(_version, files)), "")


def _version(file: Traversable) -> str:
    try:
        with file.open(encoding="ascii") as stream:
            stated = _VERSION.fullmatch(stream.readline())
    except (OSError, UnicodeDecodeError):
        return ""
    return stated[1] if stated else ""


@dataclass(frozen=True, slots=True)
class LocalClock:
    """From instants to naive wall times and back."""

    zone: ZoneInfo

    def wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or _NONE

    def reading(self, wall: datetime, fold: int = 0) -> datetime:
        """RFC 5545's reading: with the offset before the gap if skipped, the first time if repeated."""
        return wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC)

    def settled(self, wall: datetime) -> datetime:
        """Like `reading`, but a skipped time is the first instant after its gap, which keeps the order."""
        instant = self.reading(wall)
        if self.gap_around(wall):
            return self.change(self.reading(wall, fold=1), instant)
        return instant

    def gap_around(self, wall: datetime) -> timedelta:
        """How much is left out where this wall time would be; nothing if it exists."""
        # In a gap the reading before the change is the later instant (PEP 495).
        return max(self.reading(wall) - self.reading(wall, fold=1), _NONE)

    def jump_before(self, moment: datetime) -> timedelta:
        """How far the clocks were put forward in the day before this instant. None ever jumped further."""
        return max(self.offset(moment) - self.offset(moment - _DAY), _NONE)

    def change(self, before: datetime, after: datetime) -> datetime:
        """The one instant in (before, after] from which the offset is another, to the second."""
        old = self.offset(before)
        low, high = 0, -((before - after) // _SECOND)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(before + middle * _SECOND) == old:
                low = middle
            else:
                high = middle
        return before + high * _SECOND


GapOption = Literal["shift", "skip"]
FoldOption = Literal["first", "second", "both"]
"""The same words as the members of the two classes below, in the form that type checkers need."""


class Gap(StrEnum):
    """What happens to a wall time that the clocks jump over."""

    SHIFT = "shift"
    """It fires at the first instant after the gap, together with all others of that gap."""
    SKIP = "skip"


class Fold(StrEnum):
    """Which of two equal wall times fires, when the clocks go back."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Walls:
    """From wall times to instants in one zone, by one pair of rules for the nights when the clocks change.

    The search for the next matching wall time never sees a zone: this class alone decides which instants a
    wall time means. The answer depends on `moment` and nothing else.

    SKIP and BOTH together name every instant that shows a matching wall time, and no other.
    """

    __slots__ = ("_fold", "_gap", "_zone")

    def __init__(self, zone: ZoneInfo, gap: Gap, fold: Fold) -> None:
        self._zone, self._gap, self._fold = zone, gap, fold

    def after(self, moment: datetime, wall_after: WallAfter) -> datetime:
        """The first slot after `moment`, where `wall_after` finds the next matching wall time."""
        while True:
            wall = self._wall_ahead(moment, wall_after)
            first, second = self._instants(wall)
            while first > second:  # skipped: the reading before the change is the later one (PEP 495)
                gap_end = self._change(second, first)
                if self._gap is Gap.SHIFT:
                    return gap_end
                wall = wall_after(self._wall(gap_end) - _SECOND)
                first, second = self._instants(wall)
            slot = first if first > moment else second
            if first == second or self._fold in (Fold.BOTH, Fold.FIRST if slot is first else Fold.SECOND):
                return slot
            # Not this pass through the repeated time: go on from its last second.
            turn = self._change(first, second)
            moment = (turn if slot is first else turn + (second - first)) - _SECOND

    def shifted(self, slot: datetime, wall_after: WallAfter) -> bool:
        """Whether a wall time that was skipped has come to lie on this slot."""
        before, here = self._wall(slot - _SECOND), self._wall(slot)
        return self._gap is Gap.SHIFT and here - before > _SECOND and wall_after(before) < here

    def _wall_ahead(self, moment: datetime, wall_after: WallAfter) -> datetime:
        """The matching wall time that comes next, which is an earlier one if the clock goes back first."""
        wall = wall_after(self._wall(moment))
        if (turn := self._turn_ahead(moment)) is not None and self._instants(wall)[0] >= turn:
            return wall_after(self._wall(turn) - _SECOND)
        return wall

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None, fold=0)

    def _instants(self, wall: datetime) -> tuple[datetime, datetime]:
        aware = wall.replace(tzinfo=self._zone, fold=0)
        return aware.astimezone(UTC), aware.replace(fold=1).astimezone(UTC)

    def _turn_ahead(self, moment: datetime) -> datetime | None:
        """When the clock goes back, if `moment` is in the first pass through what will repeat."""
        local = moment.astimezone(self._zone)
        again = local.replace(fold=1).astimezone(UTC)
        if local.fold == 1 or again <= moment:
            return None
        return self._change(moment.astimezone(UTC), again)

    def _change(self, before: datetime, after: datetime) -> datetime:
        """The one instant in (before, after] where the offset changes, to the second."""
        old = before.astimezone(self._zone).utcoffset()
        before = before.replace(microsecond=0)
        low, high = 0, -((before - after) // _SECOND)
        while high - low > 1:
            middle = (low + high) // 2
            if (before + middle * _SECOND).astimezone(self._zone).utcoffset() == old:
                low = middle
            else:
                high = middle
        return before + high * _SECOND


def read_instant(text: str, field: str) -> datetime:
    """Read an instant, in UTC; or refuse it, naming the field."""
    found = _FORM.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST_INSTANT else None
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


def read_wall_or_instant(text: str, field: str) -> datetime:
    """Read an instant, or a wall time, which has no offset and is left without one."""
    if isinstance(text, str) and not _OFFSET.search(text):
        return read_instant(f"{text}Z", field).replace(tzinfo=None)
    return read_instant(text, field)


def _zone(offset: str) -> timezone:
    if offset == "Z":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    hours, minutes = int(offset[1:3]), int(offset[4:])
    if minutes > 59:
        raise ValueError(offset)
    return timezone(sign * timedelta(hours=hours, minutes=minutes))
