"""Verifies that every slot is in the ledger once. The functions are pure.

The expected slots are computed again from the trigger of each version. No code is shared with the code
that fires, so that the verification can find a mistake there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import accumulate

import msgspec

from mainspring.admin.words import length, moment
from mainspring.duration import format_duration
from mainspring.errors import UsageError
from mainspring.model.schedule import DROPPED, Change, Disposition, Schedule, ScheduleVersion, Skipped, Slot
from mainspring.model.value import Value
from mainspring.triggers.codec import Calendars, decode
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.trigger import Trigger

MOST_SLOTS = 2_000_000
"""The most slots that are checked for one schedule, so that every trigger ends."""
_INSTANT = timedelta(microseconds=1)
_DROPS = {
    Skipped.TOO_LATE: "older than its catch_up when a scheduler could fire it",
    Skipped.BREAKER: "left out by the circuit breaker: `mainspring schedules go-on` runs it",
}
_FOREVER = datetime.max.replace(tzinfo=UTC)


class Kind(StrEnum):
    """The kinds of findings."""

    MISSED = "missed"
    """The slot was due, and no row of the ledger covers it."""
    DOUBLED = "doubled"
    """The slot has two jobs, or two rows cover it."""
    UNEXPECTED = "unexpected"
    """The slot is in the ledger, or has a job, and should not."""
    EARLY = "early"
    """The slot was decided before it was due."""
    LOST = "lost"
    """The slot fired, and its job is not stored."""
    DROPPED = "dropped"
    """The slot was missed, and the system dropped it: it was older than catch_up, or the circuit breaker was
    open. A later backfill of the slot ends the finding."""
    UNREADABLE = "unreadable"
    """This version cannot read the trigger, so the slots are not checked."""
    LATE = "late"
    """The slot was decided long after it was due. This is only a failure with `strict`."""


class Finding(Value, frozen=True, kw_only=True):
    """One finding about a slot, or about several slots in a row."""

    kind: Kind
    schedule: str
    detail: str
    slot_at: datetime | None = None
    until: datetime | None = None
    """The last of the slots, when there are several."""
    count: int = 1


class History(Value, frozen=True, kw_only=True):
    """The records about one schedule; `schedule` is None if it was deleted."""

    name: str
    versions: tuple[ScheduleVersion, ...]
    schedule: Schedule | None
    rows: tuple[Slot, ...]
    made: Mapping[datetime, frozenset[int]] = {}
    """The ids of jobs by their slot."""
    again: frozenset[int] = frozenset()
    """The jobs of backfills, and the jobs that backfills repeated: a slot may have these besides its own."""
    nowhere: frozenset[int] = frozenset()
    """Jobs that rows name and that are not stored."""


class Range(Value, frozen=True, kw_only=True):
    """Slots from `start` to `end`, checked at the time `now`."""

    start: datetime
    end: datetime
    now: datetime
    late: timedelta = timedelta(seconds=60)
    """After this delay a slot is late, and a slot without a row is missed."""


class Unjudged(StrEnum):
    """Why a slot without a row is not a finding."""

    PAUSED = "the schedule is paused, and they have no row yet"
    RECENT = "they have only just come"


class Passed(Value, frozen=True, kw_only=True):
    """Slots that were not checked."""

    why: Unjudged
    first: datetime
    last: datetime
    count: int


class Verification(Value, frozen=True, kw_only=True):
    """The expected slots of one schedule, and the findings."""

    schedule: str
    slots: int
    findings: tuple[Finding, ...]
    cut_at: datetime | None = None
    """Where the check ended, if there were too many slots."""
    unjudged: tuple[Passed, ...] = ()


def verify(
    history: History, within: Range, calendars: Calendars | None = None, *, most: int = MOST_SLOTS
) -> Verification:
    """Compare the expected slots with the records."""
    return _Judge(history, within, calendars or {}, most).verify()


class Span(Value, frozen=True, kw_only=True):
    """Slots later than `after` and up to `until` are those of this trigger; None if there are none."""

    after: datetime
    until: datetime
    trigger: str | None
    ended_by: Change | None = None
    paused: bool = False


def spans(versions: Sequence[ScheduleVersion], schedule: Schedule | None) -> list[Span]:
    """One span for each version, oldest first. A schedule without stored versions has one span."""
    if not versions:
        return [] if schedule is None else [_as_it_is(schedule)]
    return [_span(versions, number) for number in range(len(versions))]


def is_whole(versions: Sequence[ScheduleVersion]) -> bool:
    """Whether the first version on record is the schedule's first."""
    return bool(versions) and versions[0].change is Change.CREATED


class Marks:
    """The rows and the ranges that rows cover, searched by bisection."""

    def __init__(self, rows: Sequence[Slot]) -> None:
        self._slots = sorted(row.slot_at for row in rows)
        standing = sorted((row for row in rows if row.since is not None), key=lambda row: row.slot_at)
        self._ends = [row.slot_at for row in standing]
        # The range with the earliest start among this and all later ones shows whether any covers a slot.
        self._first = list(accumulate(reversed(standing), _earlier))[::-1]

    def stands_for(self, slot: datetime) -> bool:
        """Whether a later row also covers this slot."""
        return self.standing(slot) is not None

    def standing(self, slot: datetime) -> Slot | None:
        """The later row that also covers this slot."""
        first = bisect_right(self._ends, slot)
        if first == len(self._ends):
            return None
        row = self._first[first]
        return row if _start(row) <= slot else None

    def decided(self, slot: datetime, until: datetime) -> bool:
        """Whether a row lies after the slot and not after `until`: slots are decided in order, so this
        one must have been decided too."""
        first = bisect_right(self._slots, slot)
        return first < bisect_right(self._slots, until, lo=first)


class _Judge:
    """The verification of one schedule while it runs."""

    def __init__(self, history: History, within: Range, calendars: Calendars, most: int) -> None:
        self._history, self._within, self._calendars, self._left = history, within, calendars, most
        self._spans = spans(history.versions, history.schedule)
        self._whole = is_whole(history.versions)
        self._end = min(within.end, within.now)
        self._rows: dict[datetime, list[Slot]] = defaultdict(list)
        for row in history.rows:
            self._rows[row.slot_at].append(row)
        self._marks = Marks(history.rows)
        self._found: list[Finding] = []
        self._slots = 0
        self._open: dict[Kind, tuple[int, int]] = {}
        """By kind: the number of its last slot, and the index of its finding. The next slot may extend it."""
        self._unread: list[Span] = []
        self._triggers: dict[str, Trigger] = {}
        self._passed: dict[Unjudged, Passed] = {}
        self._cut_at: datetime | None = None

    def verify(self) -> Verification:
        expected: set[datetime] = set()
        for span in self._spans:
            for slot in self._walk(span):
                self._slots += 1
                if slot in self._rows:
                    expected.add(slot)
                    skipped = [row for row in self._rows[slot] if row.disposition is Disposition.SKIPPED]
                    self._judge_dropped(slot, skipped, span)
                elif standing := self._marks.standing(slot):
                    # A backfill may have run the slot of the row, and not the other slots of its range.
                    self._judge_dropped(slot, [standing], span)
                else:
                    self._judge_absent(slot, span)
        for slot in sorted(self._rows):
            if self._judged(slot):
                self._judge_rows(slot, self._rows[slot], slot in expected)
        self._judge_jobs()
        return Verification(
            schedule=self._history.name,
            slots=self._slots,
            findings=tuple(sorted(self._found, key=lambda each: (each.slot_at or self._end, each.kind))),
            cut_at=self._cut_at,
            unjudged=tuple(self._passed.values()),
        )

    def _walk(self, span: Span) -> Iterator[datetime]:
        trigger = self._read(span)
        if trigger is None:
            return
        last = min(span.until, self._end)
        slot = trigger.next_after(max(span.after, self._within.start - _INSTANT))
        while slot is not None and slot <= last:
            if self._left == 0:
                self._cut_at = min(slot, self._cut_at or slot)
                return
            self._left -= 1
            yield slot
            slot = trigger.next_after(slot)

    def _read(self, span: Span) -> Trigger | None:
        if span.trigger is None or span.until < self._within.start or span.after >= self._end:
            return None
        try:
            self._triggers[span.trigger] = found = decode(span.trigger, self._calendars)
            return found
        except UsageError as error:
            self._unread.append(span)
            self._add(Kind.UNREADABLE, max(span.after, self._within.start), str(error))
            return None

    def _judged(self, slot: datetime) -> bool:
        inside = self._within.start <= slot <= self._end
        return inside and (self._cut_at is None or slot < self._cut_at)

    def _judge_absent(self, slot: datetime, span: Span) -> None:
        # A change decides the slots before it. In a pause that continues, slots may wait for a scheduler.
        if span.paused and span.ended_by is None:
            self._pass_by(Unjudged.PAUSED, slot)
        elif slot > self._within.now - self._within.late:
            self._pass_by(Unjudged.RECENT, slot)
        else:
            self._add_next(Kind.MISSED, slot, self._why_absent(slot, span))

    def _judge_dropped(self, slot: datetime, rows: list[Slot], span: Span) -> None:
        for row in rows:
            if row.reason in DROPPED and row.reason and not self._left_out_by_calendar(slot, span):
                self._add_next(Kind.DROPPED, slot, _DROPS[row.reason])

    def _left_out_by_calendar(self, slot: datetime, span: Span) -> bool:
        trigger = self._triggers.get(span.trigger or "")
        return trigger is not None and is_skipped(trigger, slot)

    def _add_next(self, kind: Kind, slot: datetime, detail: str) -> None:
        """Slots in a row with the same finding are one finding, for example those of an outage."""
        number, place = self._open.get(kind, (-1, -1))
        if self._slots == number + 1 and self._found[place].detail == detail:
            last = self._found[place]
            self._found[place] = msgspec.structs.replace(last, until=slot, count=last.count + 1)
        else:
            place = len(self._found)
            self._add(kind, slot, detail)
        self._open[kind] = self._slots, place

    def _pass_by(self, why: Unjudged, slot: datetime) -> None:
        before = self._passed.get(why, Passed(why=why, first=slot, last=slot, count=0))
        self._passed[why] = msgspec.structs.replace(before, last=slot, count=before.count + 1)

    def _why_absent(self, slot: datetime, span: Span) -> str:
        if jobs := self._history.made.get(slot):
            return f"no row stands for it, though it made {_jobs(jobs)}"
        if span.ended_by is not None and not self._marks.decided(slot, span.until):
            return (
                f"nobody had decided it when the schedule was {span.ended_by.words} at {moment(span.until)}"
            )
        schedule = self._history.schedule
        if schedule is not None and schedule.next_at is not None and schedule.next_at <= slot:
            return "nobody has decided it yet"
        return "no row stands for it"

    def _judge_rows(self, slot: datetime, rows: list[Slot], expected: bool) -> None:
        if all(row.disposition is Disposition.BACKFILLED for row in rows):
            # The slot of a backfill may be before the schedule was created, or in the range of a row.
            expected = True
        elif self._marks.stands_for(slot) and len(rows) == 1:
            self._add(Kind.DOUBLED, slot, "it has a row of its own, and a later one stands for it too")
        if not expected and self._known(slot):
            self._add(Kind.UNEXPECTED, slot, "it is no slot of the version in force")
        if len(rows) > 1:
            self._add(Kind.DOUBLED, slot, f"it has {len(rows)} rows")
        for row in rows:
            self._judge_row(row)

    def _judge_row(self, row: Slot) -> None:
        late, dropped = row.decided_at - row.slot_at, row.reason in DROPPED
        if late < timedelta():
            self._add(Kind.EARLY, row.slot_at, f"decided {format_duration(-late)} before it came")
        elif late > self._within.late and row.disposition is not Disposition.BACKFILLED and not dropped:
            self._add(Kind.LATE, row.slot_at, f"{row.reason or row.disposition} {length(late)} after it came")
        if row.disposition is Disposition.SKIPPED:
            return
        if row.job_id is None:
            self._add(Kind.LOST, row.slot_at, "it fired, and names no job")
        elif row.job_id in self._history.nowhere:
            self._add(Kind.LOST, row.slot_at, f"job {row.job_id} is not live, not dead and not in history")

    def _judge_jobs(self) -> None:
        for slot, jobs in self._history.made.items():
            rows = self._rows.get(slot)
            if rows is None or not self._judged(slot):
                continue  # without a row it is missed, or not ours to judge
            named = {row.job_id for row in rows if row.job_id is not None}
            if not named:
                self._add(
                    Kind.UNEXPECTED, slot, f"the ledger says it made no job, and there is {_jobs(jobs)}"
                )
            elif len(own := (jobs | named) - self._history.again) > 1:
                self._add(Kind.DOUBLED, slot, f"it made {_jobs(own)}")

    def _known(self, slot: datetime) -> bool:
        """Whether the version in force is stored: very old versions were not kept."""
        span = next((each for each in self._spans if each.after < slot <= each.until), None)
        return self._whole if span is None else span not in self._unread

    def _add(self, kind: Kind, slot: datetime, detail: str) -> None:
        self._found.append(Finding(kind=kind, schedule=self._history.name, slot_at=slot, detail=detail))


def _jobs(ids: frozenset[int]) -> str:
    first, *others = sorted(ids)
    return f"jobs {', '.join(map(str, (first, *others)))}" if others else f"job {first}"


def _as_it_is(schedule: Schedule) -> Span:
    paused = schedule.paused_at is not None
    return Span(after=schedule.active_from, until=_FOREVER, trigger=schedule.trigger, paused=paused)


def _span(versions: Sequence[ScheduleVersion], number: int) -> Span:
    version, later = versions[number], versions[number + 1 :]
    return Span(
        after=version.changed_at,
        until=later[0].changed_at if later else _FOREVER,
        trigger=None if version.change is Change.DELETED else version.schedule.trigger,
        ended_by=later[0].change if later else None,
        paused=version.schedule.paused_at is not None,
    )


def _earlier(one: Slot, other: Slot) -> Slot:
    return min(one, other, key=_start)


def _start(row: Slot) -> datetime:
    return row.since or row.slot_at
