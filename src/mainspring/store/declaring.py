"""Declaration of schedules: which schedules differ from the store, the order in which they are written, and
the slots that were due before a change. This part has no SQL, and both dialects share it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice

import msgspec

from mainspring.errors import Outdated, UsageError
from mainspring.model.schedule import Change, NewSchedule, Opening, Schedule, Skipped, Spec, StoredCalendar
from mainspring.model.value import Value
from mainspring.triggers.calendars import decode_calendar
from mainspring.triggers.codec import Calendars, calendar_of, decode
from mainspring.triggers.misfire import open_overdue

Expected = Mapping[str, Schedule | None]
"""By name, the schedules as the caller has read them. A write fails if a schedule has changed since then.
None means that there must be no such schedule."""
BATCH = 500
"""The number of schedules that one read compares and one transaction writes. Other callers wait for a short
time only."""
MOST_DUE = 2000
"""The number of slots that one transaction decides before a change. If more slots are due, several
transactions decide them."""
NO_BREAKER = 2**31 - 1
"""The limit of live jobs for the circuit breaker at a change: no limit, because an operator or the code asked
for the change."""
_SAID = tuple(
    field
    for field in NewSchedule.__struct_fields__
    if field in Schedule.__struct_fields__ and field != "next_at"
)


class Said(Value, frozen=True, kw_only=True):
    """A schedule as the caller declares it."""

    new: NewSchedule
    limit_set_id: int | None
    """The line in which its jobs wait for their limits."""

    def differs(self, standing: Schedule | None, *, by_hand: bool) -> bool:
        """Whether the schedule has to be written: it is not in the store, or it is not as declared. Code does
        not change a schedule that an operator has edited."""
        if standing is None:
            return True
        if standing.edited and not by_hand:
            return False
        if self.new.limit_keys is not None and standing.limit_set_id != self.limit_set_id:
            return True
        return any(getattr(self.new, field) != getattr(standing, field) for field in _SAID)


def batches(schedules: Sequence[NewSchedule], expected: Expected | None) -> Iterator[list[NewSchedule]]:
    """Schedules by name, each name once. So two processes that declare the same schedules write them in one
    order. If the caller passes `expected`, all schedules are in one batch, which is written completely or not
    at all."""
    ordered = [each for _, each in sorted({each.name: each for each in schedules}.items())]
    size = max(len(ordered), 1) if expected else BATCH
    return (ordered[start : start + size] for start in range(0, len(ordered), size))


def refuse_outdated(expected: Expected, found: Mapping[str, tuple[int, int]]) -> None:
    """Raise Outdated unless each schedule is as the caller has read it. `found` has ids and versions: a
    schedule that was deleted and made again may have the same version, but never the same id."""
    for name, read in expected.items():
        if read is None and name in found:
            raise Outdated("schedule", name, "there is one of that name by now")
        if read is None:
            continue
        if name not in found:
            raise Outdated("schedule", name, "it has been deleted since it was read")
        if found[name] != (read.id, read.version):
            is_same = found[name][0] == read.id
            change = f"is at version {found[name][1]} now" if is_same else "has been made anew"
            raise Outdated(
                "schedule", name, f"it was at version {read.version} when it was read, and {change}"
            )


def named_change(change: Change, schedule: Schedule) -> Change:
    """The kind of change that made a version. The first version of a schedule is its creation."""
    return Change.CREATED if change is Change.CHANGED and schedule.version == 1 else change


class Changing(Value, frozen=True, kw_only=True):
    """A schedule that is about to be changed, whose row is locked."""

    id: int
    spec_id: int
    active_from: datetime
    skip: Skipped | None = None
    """Why slots that are due make no job, where the change is an order to stop."""


class OpenFiring(Value, frozen=True, kw_only=True):
    """An opened slot, and the range of schedules that have not fired it yet."""

    opening: Opening
    last_id: int
    until_id: int


class Due(Value, frozen=True, kw_only=True):
    """A slot that is due for one schedule and is not decided yet."""

    schedule: Changing
    opening: Opening

    @property
    def skip(self) -> Skipped | None:
        """Why no job is made for the slot; None where the policies of the schedule decide."""
        return self.opening.skip or self.schedule.skip


class Arrears(Value, frozen=True, kw_only=True):
    """The slots to be decided before a change."""

    rounds: tuple[tuple[Due, ...], ...]
    """Each round has at most one slot of a schedule. The rounds have the slots of a schedule in order."""
    whole: bool
    """Whether these are all slots; otherwise another transaction decides the rest."""

    def active_from(self, now: datetime) -> dict[int, datetime]:
        """The moment after which the slots of each schedule are not decided yet, by id."""
        last = {due.schedule.id: due.opening.slot_at for each in self.rounds for due in each}
        return {key: now if self.whole else last[key] for key in sorted(last)}


def arrears(
    schedules: Sequence[Changing],
    specs: Mapping[int, Spec],
    fires: Sequence[OpenFiring],
    calendars: Sequence[StoredCalendar],
    now: datetime,
) -> Arrears:
    """The slots of these schedules until `now` that are not decided yet: first slots that are open, then
    slots that a scheduler would open at this moment."""
    opened = defaultdict(list)
    for fire in sorted(fires, key=lambda each: each.opening.slot_at):
        opened[fire.opening.spec_id].append(fire)
    known = {(each.name, each.version): decode_calendar(each.definition) for each in calendars}
    since = {
        key: min(each.active_from for each in schedules if each.spec_id == key)
        for key in {each.spec_id for each in schedules} & specs.keys()
    }
    ahead = {
        key: list(islice(_ahead(specs[key], known, begin, now), MOST_DUE + 1)) for key, begin in since.items()
    }

    def due(schedule: Changing) -> Iterator[Due]:
        reached = (
            each.opening for each in opened[schedule.spec_id] if each.last_id < schedule.id <= each.until_id
        )
        for opening in chain(reached, ahead.get(schedule.spec_id, ())):
            if opening.slot_at > schedule.active_from:
                yield Due(schedule=schedule, opening=opening)

    queues = [due(schedule) for schedule in schedules]
    rounds: list[tuple[Due, ...]] = []
    count = 0
    while count < MOST_DUE:
        following = tuple(one for queue in queues if (one := next(queue, None)) is not None)
        if not following:
            return Arrears(rounds=tuple(rounds), whole=True)
        rounds.append(following)
        count += len(following)
    return Arrears(rounds=tuple(rounds), whole=not any(next(queue, None) for queue in queues))


def names_calendar(specs: Iterable[Spec]) -> bool:
    """Whether a trigger of these specs names a calendar."""
    for spec in specs:
        with suppress(UsageError):
            if calendar_of(spec.trigger) is not None:
                return True
    return False


def _ahead(spec: Spec, calendars: Calendars, begin: datetime, now: datetime) -> Iterator[Opening]:
    """The slots of a spec that are due, later than `begin`."""
    try:
        trigger = decode(spec.trigger, calendars)
    except UsageError:  # written by a newer version, perhaps
        yield from open_overdue(spec, None, now)
        return
    first = spec.next_at if begin < spec.next_at else trigger.next_after(begin)
    if first is not None and first <= now:
        if first != spec.next_at:
            spec = msgspec.structs.replace(spec, next_at=first, following_at=None, planned=False)
        yield from open_overdue(spec, trigger, now)
