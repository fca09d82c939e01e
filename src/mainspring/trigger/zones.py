"""Time zones by IANA name, from the newest data at hand.

Python prefers the system's zone files, which on a long-lived image can be years older than the
tzdata wheel, and two machines would then disagree about the same slot. So we compare versions.
"""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
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
