"""Cron expressions: five fields, or six with the seconds first, in one time zone."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from mainspring.errors import InvalidArgument
from mainspring.trigger.walls import Walls
from mainspring.trigger.zones import zone

LONGEST = 256
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_EXPECTED = (
    'a cron expression: "minute hour day month weekday", six fields with the seconds first, or one of '
    + ", ".join(ALIASES)
)
_SECOND = timedelta(seconds=1)
# Any fixed day will do: cronsim looks 50 years ahead, longer than any date stays away.
_SEARCH_FROM = datetime(2024, 1, 1)  # noqa: DTZ001  a wall time has no zone
_SLASH = re.compile(r"(?P<start>[^,]*)/(?P<step>[0-9]{1,3})")
_SPANS = {5: (60, 24, 31, 12, 7), 6: (60, 60, 24, 31, 12, 7)}


@dataclass(frozen=True, slots=True)
class Cron:
    """Slots where the wall clock of a zone matches an expression, by Debian's rules.

    Expressions with a fixed minute and hour run once on the nights the clocks change: a wall time
    that is skipped moves to the first instant after the gap, one that comes twice runs the first
    time. All others, and those with seconds, run at every real instant that matches.
    """

    expression: str
    tz: str = "UTC"
    _fields: CronSim = field(init=False, repr=False, compare=False)
    _walls: Walls | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expression = _canonical(self.expression)
        found = zone(self.tz)
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "_fields", _parsed(expression))
        object.__setattr__(self, "_walls", None if self.tz == "UTC" else Walls(found))

    def next_after(self, moment: datetime) -> datetime | None:
        try:
            if self._walls is None:
                return self._wall_after(moment.astimezone(UTC).replace(tzinfo=None)).replace(tzinfo=UTC)
            if self._runs_once():
                return self._walls.once_after(moment, self._wall_after)
            return self._walls.real_after(moment, self._wall_after)
        except (StopIteration, OverflowError):
            return None

    def encode(self) -> str:
        return json.dumps({"cron": self.expression, "tz": self.tz}, sort_keys=True, separators=(",", ":"))

    def _wall_after(self, wall: datetime) -> datetime:
        """The next wall time that matches. cronsim sees no zone, so this depends on `wall` alone."""
        search = copy.copy(self._fields)
        search.dt = wall.replace(microsecond=0)
        return next(search)

    def _runs_once(self) -> bool:
        fields = self.expression.split()
        return len(fields) == 5 and not fields[0].startswith("*") and not fields[1].startswith("*")


def _canonical(expression: str) -> str:
    if not isinstance(expression, str) or len(expression) > LONGEST:
        raise InvalidArgument("cron", expression, f"{_EXPECTED} (at most {LONGEST} characters)")
    if not expression.isascii() or not expression.replace("\t", " ").isprintable():
        raise InvalidArgument("cron", expression, f"{_EXPECTED} (one line of plain ASCII)")
    trimmed = " ".join(expression.split())
    return ALIASES.get(trimmed.lower(), trimmed.upper())


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> CronSim:
    fields = expression.split()
    if len(fields) not in _SPANS:
        raise InvalidArgument("cron", expression, _EXPECTED)
    for text, span in zip(fields, _SPANS[len(fields)], strict=True):
        _check_steps(expression, text, span)
    try:
        search = CronSim(expression, _SEARCH_FROM)
        next(copy.copy(search))
    except CronSimError as refusal:
        raise InvalidArgument("cron", expression, f"{_EXPECTED} ({str(refusal).lower()})") from None
    except StopIteration:
        raise InvalidArgument("cron", expression, "a date that exists at least once in 50 years") from None
    return search


def _check_steps(expression: str, text: str, span: int) -> None:
    """cronsim takes `5/15` and `*/120`, which read as something other than what they do."""
    for part in _SLASH.finditer(text):
        if part["start"] != "*" and "-" not in part["start"]:
            raise InvalidArgument("cron", expression, f"a range before the step, such as */{part['step']}")
        if int(part["step"]) >= span:
            raise InvalidArgument("cron", expression, f"a step below {span} in {text}")
