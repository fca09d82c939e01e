"""What schedules would do in a stretch of time: the real trigger code, on a clock that is only counted."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from msgspec.structs import replace

from mainspring.model.schedule import Misfire, NewSchedule, Opening, Overlap, Schedule, Skipped, Spec
from mainspring.model.value import Value
from mainspring.trigger.base import Trigger
from mainspring.trigger.codec import Calendars, decode
from mainspring.trigger.misfire import BREAKER, CATCH_UP_PAUSE, LATE, open_spec
from mainspring.trigger.preview import odd

INSTANT = timedelta(microseconds=1)

Planned = NewSchedule | Schedule
"""A schedule as an app declares it, or as the store holds it."""


class Fate(StrEnum):
    """What would become of a slot."""

    FIRED = "fired"
    COALESCED = "coalesced"
    SKIPPED = "skipped"


class Outage(Value, frozen=True, kw_only=True):
    """Nobody fires from `start` on and before `end`."""

    start: datetime
    end: datetime


class Horizon(Value, frozen=True, kw_only=True):
    """Slots from `start` on and before `end`, and when no scheduler is up."""

    start: datetime
    end: datetime
    outages: tuple[Outage, ...] = ()
    breaker: timedelta = BREAKER
    duration: timedelta | None = None
    """How long every job is assumed to run; None leaves overlap out."""

    def up_at(self, moment: datetime) -> datetime:
        """The first moment, not before this one, at which a scheduler is up."""
        for outage in sorted(self.outages, key=lambda each: each.start):
            if outage.start <= moment < outage.end:
                moment = outage.end
        return moment


class Outcome(Value, frozen=True, kw_only=True):
    """The fate of one slot of one schedule."""

    schedule: str
    slot_at: datetime
    fate: Fate
    decided_at: datetime
    reason: Skipped | None = None
    into: datetime | None = None
    """The slot that stands for this one."""
    runs_at: datetime | None = None
    """When its job may start."""
    note: str | None = None

    @property
    def late(self) -> timedelta:
        """How long after the slot it was decided."""
        return self.decided_at - self.slot_at


class Herd(Value, frozen=True, kw_only=True):
    """Schedules that fall due together, because they share a trigger and what is caught up of it."""

    trigger: str
    catch_up: timedelta | None
    schedules: tuple[Planned, ...]


class Simulation(Value, frozen=True, kw_only=True):
    """The first outcomes, in the order of their slots, and whether there are more."""

    outcomes: tuple[Outcome, ...]
    cut: bool


def simulate(
    schedules: Iterable[Planned], horizon: Horizon, calendars: Calendars | None = None, *, limit: int = 1000
) -> Simulation:
    """Every slot and its fate, up to a limit. Pauses, and what is left of `max_fires`, stay as they are."""
    streams = [outcomes(herd, decode(herd.trigger, calendars), horizon) for herd in herds(schedules)]
    merged = heapq.merge(*streams, key=lambda each: each.slot_at)
    found = tuple(islice(merged, limit + 1))
    return Simulation(outcomes=found[:limit], cut=len(found) > limit)


def herds(schedules: Iterable[Planned]) -> list[Herd]:
    """Grouped as the store does it."""
    groups: dict[tuple[str, timedelta | None], list[Planned]] = defaultdict(list)
    for each in schedules:
        catch_up = each.catch_up if each.misfire is Misfire.ALL else None
        groups[each.trigger, catch_up].append(each)
    return [
        Herd(trigger=trigger, catch_up=catch_up, schedules=tuple(group))
        for (trigger, catch_up), group in groups.items()
    ]


def openings(
    catch_up: timedelta | None, trigger: Trigger, horizon: Horizon
) -> Iterator[tuple[Opening, datetime]]:
    """What schedulers would open, one after the other, and when."""
    slot, free_at = trigger.next_after(horizon.start - INSTANT), horizon.start
    while slot is not None and slot < horizon.end:
        now = horizon.up_at(max(slot, free_at))
        spec = Spec(id=0, trigger="", next_at=slot, following_at=None, planned=False, catch_up=catch_up)
        opening = open_spec(spec, trigger, now, breaker=horizon.breaker)
        yield opening, now
        if catch_up is not None and now - slot > LATE:
            free_at = now + CATCH_UP_PAUSE
        slot = opening.next_at


def outcomes(herd: Herd, trigger: Trigger, horizon: Horizon) -> Iterator[Outcome]:
    """The fate of every slot of a herd, in order; computed as they are asked for."""
    lives = [Life(each, horizon.duration) for each in herd.schedules]
    for opening, now in openings(herd.catch_up, trigger, horizon):
        decided = [life.decide(opening, now) for life in lives]
        if opening.since is not None:
            yield from _shared(trigger, opening, decided, horizon.end)
        if opening.slot_at < horizon.end:
            yield from _noted(decided, opening.note)


def _shared(
    trigger: Trigger, opening: Opening, decided: Sequence[Outcome], end: datetime
) -> Iterator[Outcome]:
    """The slots that the opened one stands for."""
    slot = opening.since
    while slot is not None and slot < min(opening.slot_at, end):
        note = odd(trigger, slot)
        for each in decided:
            yield Outcome(
                schedule=each.schedule,
                slot_at=slot,
                fate=Fate.COALESCED if each.fate is Fate.FIRED else Fate.SKIPPED,
                decided_at=each.decided_at,
                reason=each.reason,
                into=each.slot_at,
                note=note,
            )
        slot = trigger.next_after(slot)


def _noted(decided: Sequence[Outcome], note: str | None) -> Iterator[Outcome]:
    for each in decided:
        yield each if note is None else replace(each, note=note)


class Life:
    """One schedule while it is simulated: what it has left, and which of its jobs still run."""

    def __init__(self, schedule: Planned, duration: timedelta | None = None) -> None:
        self._schedule = schedule
        self._duration = duration
        self.paused, self.fires_left, self._skips = False, schedule.max_fires, 0
        if isinstance(schedule, Schedule):
            self.paused = schedule.paused_at is not None
            self.fires_left, self._skips = schedule.fires_left, schedule.skips
        self._live: list[tuple[datetime, datetime]] = []

    @property
    def counted(self) -> bool:
        """Whether what it did before has a say in what it does next."""
        return self.fires_left is not None or self._skips > 0

    @property
    def exhausted(self) -> bool:
        return self.fires_left is not None and self.fires_left <= 0

    def decide(self, opening: Opening, now: datetime) -> Outcome:
        """As the ledger would be written, reason by reason in the same order."""
        slot = opening.slot_at
        self._live = [each for each in self._live if each[1] > now]
        reason = opening.skip or self._standing() or self._missed(slot, now) or self._overlap(now)
        if reason is Skipped.REQUESTED:
            self._skips -= 1
        runs_at = self._fire(slot, now) if reason is None else None
        return Outcome(
            schedule=self._schedule.name,
            slot_at=slot,
            fate=Fate.FIRED if reason is None else Fate.SKIPPED,
            decided_at=now,
            reason=reason,
            runs_at=runs_at,
        )

    def _standing(self) -> Skipped | None:
        if self.paused:
            return Skipped.PAUSED
        if self.exhausted:
            return Skipped.EXHAUSTED
        return Skipped.REQUESTED if self._skips > 0 else None

    def _missed(self, slot: datetime, now: datetime) -> Skipped | None:
        late = now - slot
        wanted = self._schedule.misfire is not Misfire.SKIP or late <= LATE
        return None if wanted and late <= self._schedule.catch_up else Skipped.MISFIRE

    def _overlap(self, now: datetime) -> Skipped | None:
        policy, live = self._schedule.overlap, len(self._live)
        waiting = any(start > now for start, _ in self._live)
        refused = (
            (policy is Overlap.SKIP and live > 0)
            or (policy is Overlap.QUEUE_ONE and waiting)
            or (policy is Overlap.ALLOW and live >= self._schedule.overlap_limit)
        )
        return Skipped.OVERLAP if refused else None

    def _fire(self, slot: datetime, now: datetime) -> datetime:
        runs_at = max(slot + self._schedule.offset, now)
        if self.fires_left is not None:
            self.fires_left -= 1
        if self._duration is None:
            return runs_at
        if self._schedule.overlap is Overlap.REPLACE:
            self._live = []
        if self._live and self._schedule.overlap in (Overlap.QUEUE_ONE, Overlap.QUEUE_ALL):
            runs_at = max(runs_at, self._live[-1][1])
        self._live.append((runs_at, runs_at + self._duration))
        return runs_at
