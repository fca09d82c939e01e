"""Simulates what schedules would do in a period, with the real trigger code and a simulated clock."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from msgspec.structs import replace

from mainspring.model.schedule import Misfire, NewSchedule, Opening, Overlap, Period, Schedule, Skipped, Spec
from mainspring.model.value import Value
from mainspring.triggers.codec import Calendars, decode
from mainspring.triggers.misfire import BREAKER, CATCH_UP_PAUSE, LATE, open_spec
from mainspring.triggers.slots import odd, period
from mainspring.triggers.trigger import Trigger

INSTANT = timedelta(microseconds=1)
Planned = NewSchedule | Schedule
"""A schedule as an app declares it, or as the store holds it."""


class Fate(StrEnum):
    """The result of a simulated slot."""

    FIRED = "fired"
    COALESCED = "coalesced"
    SKIPPED = "skipped"


class Outage(Value, frozen=True, kw_only=True):
    """No scheduler is alive from `start` on and before `end`."""

    start: datetime
    end: datetime


class Horizon(Value, frozen=True, kw_only=True):
    """Slots from `start` on and before `end`, and when no scheduler is up."""

    start: datetime
    end: datetime
    outages: tuple[Outage, ...] = ()
    breaker: int = BREAKER
    duration: timedelta | None = None
    """The assumed running time of every job; None ignores overlap."""

    def up_at(self, moment: datetime) -> datetime:
        """The first moment, not before this one, at which a scheduler is up."""
        for outage in sorted(self.outages, key=lambda each: each.start):
            if outage.start <= moment < outage.end:
                moment = outage.end
        return moment


class Outcome(Value, frozen=True, kw_only=True):
    """The result of one slot of one schedule."""

    schedule: str
    slot_at: datetime
    fate: Fate
    decided_at: datetime
    reason: Skipped | None = None
    into: datetime | None = None
    """The slot into which this slot was combined."""
    runs_at: datetime | None = None
    """When its job may start."""
    note: str | None = None
    period: Period | None = None
    """The period that the job of a fired slot would cover."""

    @property
    def late(self) -> timedelta:
        """How long after the slot it was decided."""
        return self.decided_at - self.slot_at


class Burst(Value, frozen=True, kw_only=True):
    """Schedules that are due together, because they share a trigger and a catch-up."""

    trigger: str
    one_by_one: bool
    catch_up: timedelta | None
    schedules: tuple[Planned, ...]


class Simulation(Value, frozen=True, kw_only=True):
    """The first outcomes, in the order of their slots, and whether there are more."""

    outcomes: tuple[Outcome, ...]
    cut: bool


def simulate(
    schedules: Iterable[Planned], horizon: Horizon, calendars: Calendars | None = None, *, limit: int = 1000
) -> Simulation:
    """Every slot and its result, up to a limit. A paused schedule stays paused. `max_fires` continues
    from the fires that are left."""
    streams = [outcomes(burst, decode(burst.trigger, calendars), horizon) for burst in bursts(schedules)]
    merged = heapq.merge(*streams, key=lambda each: each.slot_at)
    found = tuple(islice(merged, limit + 1))
    return Simulation(outcomes=found[:limit], cut=len(found) > limit)


def bursts(schedules: Iterable[Planned]) -> list[Burst]:
    """Group schedules as the store does."""
    groups: dict[tuple[str, bool, timedelta | None], list[Planned]] = defaultdict(list)
    for each in schedules:
        one_by_one = each.misfire is Misfire.ALL
        groups[each.trigger, one_by_one, each.catch_up if one_by_one else None].append(each)
    return [
        Burst(trigger=trigger, one_by_one=one_by_one, catch_up=catch_up, schedules=tuple(group))
        for (trigger, one_by_one, catch_up), group in groups.items()
    ]


def openings(
    burst: Burst, trigger: Trigger, horizon: Horizon, lives: Sequence[Life] = ()
) -> Iterator[tuple[Opening, datetime]]:
    """The slots that schedulers would open, in order, and when. With `lives`, the state of the schedules
    between two slots decides about the circuit breaker."""
    slot, free_at = trigger.next_after(horizon.start - INSTANT), horizon.start
    last_at = None
    while slot is not None and slot < horizon.end:
        now = horizon.up_at(max(slot, free_at))
        spec = Spec(
            id=0,
            trigger="",
            next_at=slot,
            following_at=None,
            planned=False,
            one_by_one=burst.one_by_one,
            catch_up=burst.catch_up,
            tripped=bool(lives) and all(life.tripped for life in lives),
            skips=max((each.skips for each in burst.schedules if isinstance(each, Schedule)), default=0),
            last_at=last_at,
        )
        opening = open_spec(spec, trigger, now)
        last_at = last_at if opening.skip is Skipped.CALENDAR else opening.slot_at
        yield opening, now
        if burst.one_by_one and now - slot > LATE:
            free_at = now + CATCH_UP_PAUSE
        slot = opening.next_at


def outcomes(burst: Burst, trigger: Trigger, horizon: Horizon) -> Iterator[Outcome]:
    """The result of every slot of a burst, in order, computed on demand."""
    lives = [Life(each, horizon.duration, horizon.breaker) for each in burst.schedules]
    for opening, now in openings(burst, trigger, horizon, lives):
        decided = [life.decide(opening, now) for life in lives]
        if opening.since is not None:
            yield from _shared(trigger, opening, decided, horizon.end)
        if opening.slot_at < horizon.end:
            yield from _noted(decided, opening, trigger)


class Life:
    """One schedule during a simulation: the fires and skips that are left, and its live jobs."""

    def __init__(self, schedule: Planned, duration: timedelta | None = None, breaker: int = BREAKER) -> None:
        self._schedule = schedule
        self._duration, self._breaker = duration, breaker
        self._shed_last = False
        """Whether the circuit breaker dropped the last slot."""
        self.paused, self.fires_left, self._skips = False, schedule.max_fires, 0
        if isinstance(schedule, Schedule):
            self.paused = schedule.paused_at is not None
            self.fires_left, self._skips = schedule.fires_left, schedule.skips
        self._live: list[_Live] = []

    @property
    def counted(self) -> bool:
        """Whether earlier slots change the result of later ones, by `max_fires` or skips."""
        return self.fires_left is not None or self._skips > 0

    @property
    def tripped(self) -> bool:
        """Whether the circuit breaker would drop the next slot, if it was missed."""
        return self._shed_last and bool(self._live)

    @property
    def exhausted(self) -> bool:
        return self.fires_left is not None and self.fires_left <= 0

    def decide(self, opening: Opening, now: datetime) -> Outcome:
        """Decide a slot as the statement `fire` does, with its reasons in the same order."""
        slot = opening.slot_at
        self._live = [each for each in self._live if each.ends_at > now]
        skip = None if opening.skip is Skipped.BREAKER else opening.skip
        reason = skip or self._standing() or self._missed(slot, now)
        if reason is None and (opening.skip is Skipped.BREAKER or self._shed(slot, now)):
            reason = Skipped.BREAKER
        if reason is None and self._skips > len(opening.combined):
            reason = Skipped.REQUESTED
        reason = reason or self._overlap(slot, now)
        self._shed_last = reason is Skipped.BREAKER
        if reason in (None, Skipped.REQUESTED):
            self._skips = max(self._skips - 1 - len(opening.combined), 0)
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
        return Skipped.EXHAUSTED if self.exhausted else None

    def _missed(self, slot: datetime, now: datetime) -> Skipped | None:
        late, catch_up = now - slot, self._schedule.catch_up
        if self._schedule.misfire is Misfire.SKIP and late > LATE:
            return Skipped.MISFIRE
        return Skipped.TOO_LATE if catch_up is not None and late > catch_up else None

    def _shed(self, slot: datetime, now: datetime) -> bool:
        unbounded = self._schedule.misfire is Misfire.ALL and self._schedule.catch_up is None
        return unbounded and now - slot > LATE and (self.tripped or len(self._live) >= self._breaker)

    def _catching_up(self, slot: datetime, now: datetime) -> bool:
        """Whether jobs wait for each other, because this job or an earlier one is for a missed slot."""
        missed = now - slot > LATE or any(each.caught_up for each in self._live) or self._behind(slot)
        held = self._schedule.overlap is not Overlap.QUEUE_ONE and self._is_held(now)
        return self._schedule.misfire is Misfire.ALL and (missed or held)

    def _newest_missed(self, slot: datetime, now: datetime) -> bool:
        """Whether this is the newest missed slot, or a slot that was due before an earlier job was created.
        The job of such a slot waits for the live jobs."""
        return self._schedule.misfire is Misfire.LATEST and (now - slot > LATE or self._behind(slot))

    def _behind(self, slot: datetime) -> bool:
        """Whether a live job of an earlier slot was created when this slot was already due."""
        return any(each.slot < slot <= each.made_at for each in self._live)

    def _is_held(self, now: datetime) -> bool:
        return any(each.held and each.starts_at > now for each in self._live)

    def _overlap(self, slot: datetime, now: datetime) -> Skipped | None:
        if self._catching_up(slot, now):
            return None
        if self._newest_missed(slot, now) and (self._behind(slot) or not self._is_held(now)):
            return None
        policy, live = self._schedule.overlap, len(self._live)
        waiting = any(each.starts_at > now for each in self._live)
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
        policy, at_once = self._schedule.overlap, 1
        waits = self._catching_up(slot, now) or policy in (Overlap.QUEUE_ONE, Overlap.QUEUE_ALL)
        waits = waits or (self._newest_missed(slot, now) and policy is not Overlap.REPLACE)
        if policy is Overlap.REPLACE and not waits:
            self._live = []
        if policy is Overlap.ALLOW:
            at_once = self._schedule.overlap_limit
        held = waits and len(self._live) >= at_once
        if held:
            runs_at = max(runs_at, self._live[-at_once].ends_at)
        missed, ends_at = now - slot > LATE, runs_at + self._duration
        made = _Live(slot=slot, made_at=now, starts_at=runs_at, ends_at=ends_at, caught_up=missed, held=held)
        self._live.append(made)
        return runs_at


def _shared(
    trigger: Trigger, opening: Opening, decided: Sequence[Outcome], end: datetime
) -> Iterator[Outcome]:
    """The slots that were combined into the opened slot."""
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


def _noted(decided: Sequence[Outcome], opening: Opening, trigger: Trigger) -> Iterator[Outcome]:
    stands_for = None
    if any(each.fate is Fate.FIRED for each in decided):
        before = opening.previous
        stands_for = (
            Period(end=opening.slot_at, start=before, previous=before)
            if opening.since is None
            else period(trigger, opening.slot_at, since=opening.since)
        )
    for each in decided:
        yield replace(each, note=opening.note, period=stands_for if each.fate is Fate.FIRED else None)


class _Live(Value, frozen=True, kw_only=True):
    """A job that has not ended."""

    slot: datetime
    made_at: datetime
    starts_at: datetime
    ends_at: datetime
    caught_up: bool
    held: bool
    """Whether the job waits for earlier jobs."""
