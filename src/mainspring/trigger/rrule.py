"""Recurrence rules as calendars write them (RFC 5545)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mainspring.errors import InvalidArgument
from mainspring.trigger.instants import MOST
from mainspring.trigger.local import LocalClock
from mainspring.trigger.rruletext import Rule, parse, until_wall
from mainspring.trigger.rrulewalk import Walk
from mainspring.trigger.zones import zone

_EARLIEST, _LATEST = 1900, 2200
_DAY = timedelta(days=1)
_PATIENCE = 2000
"""After so many periods in a row that come to nothing, a rule counts as ended."""
_PATIENCE_FOR_COUNT = 5000


@dataclass(frozen=True, slots=True)
class RRule:
    """Slots where a recurrence rule, read on the wall clock of a zone, names an instance.

    A skipped wall time is read with the offset before the gap, a repeated one is the first. The
    start counts only if the rule names it. Dates and times without a zone are those of `tz`.
    """

    rule: str
    dtstart: datetime
    tz: str = "UTC"
    exdates: tuple[datetime, ...] = ()
    rdates: tuple[datetime, ...] = ()
    _clock: LocalClock = field(init=False, repr=False, compare=False)
    _walk: Walk = field(init=False, repr=False, compare=False)
    _last: datetime | None = field(init=False, repr=False, compare=False)
    _until: datetime | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parsed = parse(self.rule)
        clock = LocalClock(zone(self.tz))
        start = _start(self.dtstart, clock)
        walk = Walk(parsed.filled(start), start)
        facts = {
            "rule": parsed.text,
            "dtstart": start,
            "exdates": _instants("exdates", self.exdates, clock),
            "rdates": _instants("rdates", self.rdates, clock),
            "_clock": clock,
            "_walk": walk,
            "_last": _last_counted(parsed, walk, start),
            "_until": _until(parsed, clock),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        earliest = min((clock.reading(start), *self.rdates)) - _DAY
        if self._named_after(earliest) is None or self.next_after(earliest) is None:
            raise InvalidArgument("rrule", self.rule, "a rule that names at least one instant")

    def next_after(self, moment: datetime) -> datetime | None:
        try:
            found = (self._instance_after(moment), self._extra_after(moment))
        except OverflowError:
            return None
        return min((slot for slot in found if slot is not None), default=None)

    def shifted(self, slot: datetime) -> bool:
        """Whether a wall time that did not exist has come to lie on this slot."""
        wall = self._clock.wall(slot) - self._clock.jump_before(slot)
        skipped = bool(self._clock.gap_around(wall)) and self._clock.reading(wall) == slot
        return skipped and next(iter(self._walls(wall)), None) == wall

    def encode(self) -> str:
        facts: dict[str, object] = {
            "rrule": self.rule,
            "dtstart": self.dtstart.isoformat(),
            "tz": self.tz,
        }
        for name in ("exdates", "rdates"):
            if moments := getattr(self, name):
                facts[name] = [moment.isoformat() for moment in moments]
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def _instance_after(self, moment: datetime) -> datetime | None:
        slot = self._named_after(moment)
        while slot is not None and slot in self.exdates:
            slot = self._named_after(slot)
        return slot

    def _extra_after(self, moment: datetime) -> datetime | None:
        later = self.rdates[bisect_right(self.rdates, moment) :]
        return next((slot for slot in later if slot not in self.exdates), None)

    def _named_after(self, moment: datetime) -> datetime | None:
        """The first instance of the rule itself.

        Around a gap the order of instants is not that of wall times: 2:45, which the gap skips,
        comes after 3:00. So the search starts early by the gap behind us and looks on over the one ahead.
        """
        since = self._clock.wall(moment) - self._clock.jump_before(moment)
        found: datetime | None = None
        look_until: datetime | None = None
        for wall in self._walls(since):
            if look_until is not None and wall > look_until:
                break
            instant = self._clock.reading(wall)
            if instant <= moment:
                continue
            found = instant if found is None else min(found, instant)
            look_until = look_until or wall + self._clock.gap_around(wall)
            if wall >= look_until:
                break
        return None if found and self._until and found > self._until else found

    def _walls(self, since: datetime) -> Iterable[datetime]:
        in_vain = 0
        for wall in self._walk.walls(since):
            in_vain = in_vain + 1 if wall is None else 0
            if in_vain > _PATIENCE or (wall and self._last and wall > self._last):
                return
            if wall is not None:
                yield wall


def _start(dtstart: datetime, clock: LocalClock) -> datetime:
    """The start as a wall time. What is below a second no rule can name."""
    if not isinstance(dtstart, datetime) or not _EARLIEST <= dtstart.year <= _LATEST:
        raise InvalidArgument("dtstart", dtstart, f"a datetime from {_EARLIEST} to {_LATEST}")
    wall = dtstart if dtstart.tzinfo is None else clock.wall(dtstart)
    return wall.replace(microsecond=0, fold=0)


def _instants(name: str, moments: Iterable[datetime], clock: LocalClock) -> tuple[datetime, ...]:
    given = tuple(moments)
    if len(given) > MOST:
        raise InvalidArgument(name, f"{len(given)} of them", f"at most {MOST}")
    if not all(isinstance(each, datetime) for each in given):
        raise InvalidArgument(name, given, "datetimes")
    aware = (clock.reading(each) if each.tzinfo is None else each.astimezone(UTC) for each in given)
    return tuple(sorted(set(aware)))


def _last_counted(rule: Rule, walk: Walk, start: datetime) -> datetime | None:
    """The wall time COUNT ends with. Found once, so that no later search has to count."""
    if rule.count is None:
        return None
    counted = in_vain = 0
    last = start
    for wall in walk.walls(start):
        if wall is None:
            in_vain += 1
            if in_vain > _PATIENCE_FOR_COUNT:
                raise InvalidArgument("rrule", rule.text, "a COUNT that is reached sooner")
            continue
        counted, last = counted + 1, wall
        if counted == rule.count:
            break
    return last


def _until(rule: Rule, clock: LocalClock) -> datetime | None:
    if rule.until is None:
        return None
    wall = until_wall(rule.until)
    if rule.until.endswith("Z"):
        return wall.replace(tzinfo=UTC)
    try:
        return clock.reading(wall)
    except OverflowError:
        raise InvalidArgument("rrule", rule.text, "an UNTIL before the end of time") from None
