"""Reads the records for a verification: the ledger of each schedule, page by page, and its versions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Self

import msgspec

from mainspring.admin.slot_verification.verification import (
    Finding,
    History,
    Kind,
    Passed,
    Range,
    Unjudged,
    Verification,
    verify,
)
from mainspring.admin.words import moment
from mainspring.clock import Clock
from mainspring.errors import NotFound
from mainspring.model.job import JobFilter, JobState
from mainspring.model.schedule import Schedule, ScheduleVersion, Slot
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.triggers.calendars import Calendar, decode_calendar

PAGE, MOST_ROWS, MOST_JOBS = 1000, 1_000_000, 1_000_000
MOST_NAMED = 20
_SLACK = timedelta(hours=1)
_Made = tuple[int | None, datetime, int]
"""The schedule, the slot and the id of a job. Whole jobs would need too much memory."""
_ENDED = (JobState.DEAD, JobState.SUCCEEDED, JobState.CANCELLED, JobState.DISCARDED)


class Report(Value, frozen=True, kw_only=True):
    """The result of a verification of several schedules."""

    start: datetime
    end: datetime
    verifications: tuple[Verification, ...]
    notes: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        return sum(each.slots for each in self.verifications)

    @property
    def findings(self) -> list[Finding]:
        """Schedule by schedule, each in the order of its slots."""
        return [finding for each in self.verifications for finding in each.findings]

    def wrong(self, *, strict: bool) -> list[Finding]:
        """The findings that are failures; late slots only with `strict`."""
        return [each for each in self.findings if strict or each.kind is not Kind.LATE]

    def sentence(self, *, strict: bool) -> str:
        """The result in one line."""
        what = f"{_counted(self.slots, 'slot')} of {_counted(len(self.verifications), 'schedule')}"
        wrong, late = self.wrong(strict=strict), len(self.findings) - len(self.wrong(strict=False))
        kinds = Counter[str]()
        for each in wrong:
            kinds[each.kind] += each.count
        if kinds:
            return f"{what}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        return f"{what}, all accounted for" + (f"; {late} decided late" if late else "")


class ReportView(Value, frozen=True, kw_only=True):
    """The result of a verification of several schedules, as programs read it."""

    start: datetime = msgspec.field(name="from")
    end: datetime = msgspec.field(name="to")
    schedules: int
    slots: int
    ok: bool
    sentence: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, report: Report, *, strict: bool) -> Self:
        """Of a report; what is only late is wrong if `strict`."""
        return cls(
            start=report.start,
            end=report.end,
            schedules=len(report.verifications),
            slots=report.slots,
            ok=not report.wrong(strict=strict),
            sentence=report.sentence(strict=strict),
            notes=report.notes,
            findings=tuple(report.findings),
        )


class SlotVerifier:
    """Verifies the slots of one store."""

    def __init__(self, store: Store, clock: Clock, *, keep: timedelta) -> None:
        self._store, self._clock, self._keep = store, clock, keep
        self._calendars: dict[tuple[str, int], Calendar] = {}
        self._made: dict[str, list[_Made]] = {}
        self._notes: list[str] = []
        self._unjudged = Counter[Unjudged]()

    async def verify(
        self,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        name: str | None = None,
        late: timedelta = timedelta(seconds=60),
        told: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Verify one schedule, or all, in the part of the range that the ledger still has. `told` is called
        with the number of verified schedules, and the number of all."""
        # Read first: a slot that is decided during the reads is then later than all checked slots.
        now = await self._store.now(at=self._clock.stamp())
        kept = (now - self._keep).replace(hour=0, minute=0, second=0, microsecond=0)
        within = Range(start=max(start or kept, kept), end=min(end or now, now), now=now, late=late)
        if start is not None and start < kept:
            self._notes.append(
                f"slots before {kept:%Y-%m-%d} are not judged: the ledger may have dropped them"
            )
        stored = await self._store.calendars.all()
        self._calendars = {(c.name, c.version): decode_calendar(c.definition) for c in stored}
        names = await self._store.schedules.names() if name is None else [name]
        verifications: list[Verification] = []
        for each in names:
            if told is not None:
                told(len(verifications), len(names))
            verifications.append(await self._one(each, within))
        self._notes += [
            f"{count - MOST_NAMED:,} more schedules have slots that are not judged: {why}"
            for why, count in self._unjudged.items()
            if count > MOST_NAMED
        ]
        return Report(
            start=within.start, end=within.end, verifications=tuple(verifications), notes=tuple(self._notes)
        )

    async def _one(self, name: str, within: Range) -> Verification:
        schedule = await self._store.schedules.get(name)
        versions = await self._store.schedules.versions(name)
        if schedule is None and not versions:
            raise NotFound("schedule", name)
        rows = await ledger(self._store, name, start=within.start, most=MOST_ROWS)
        if len(rows) == MOST_ROWS:
            self._notes.append(f"{name}: slots before {rows[-1].slot_at:%Y-%m-%d %H:%M:%SZ} are not judged")
            within = Range(start=rows[-1].slot_at, end=within.end, now=within.now, late=within.late)
        rows = [row for row in rows if row.slot_at >= within.start]
        history = await self._history(name, schedule, versions, rows, within)
        done = verify(history, within, self._calendars)
        if done.cut_at is not None:
            self._notes.append(f"{name}: slots from {done.cut_at:%Y-%m-%d %H:%M:%SZ} on are not judged")
        self._tell_unjudged(done)
        return done

    def _tell_unjudged(self, done: Verification) -> None:
        """Name only the first schedules: without a live scheduler this may be every schedule."""
        for each in done.unjudged:
            self._unjudged[each.why] += 1
            if self._unjudged[each.why] <= MOST_NAMED:
                slots = f"{moment(each.first)} is" if each.count == 1 else _from_to(each)
                self._notes.append(f"{done.schedule}: {slots} not judged: {each.why}")

    async def _history(
        self,
        name: str,
        schedule: Schedule | None,
        versions: Sequence[ScheduleVersion],
        rows: Sequence[Slot],
        within: Range,
    ) -> History:
        known = [each.schedule for each in versions] + ([] if schedule is None else [schedule])
        ids, tasks = {each.id for each in known}, {each.task for each in known}
        made: dict[datetime, set[int]] = defaultdict(set)
        for task in sorted(tasks):
            for schedule_id, slot_at, job_id in await self._jobs_of(task, within):
                if schedule_id in ids:
                    made[slot_at].add(job_id)
        again = {
            job_id
            for each in await self._store.backfills.jobs(sorted(ids), start=within.start)
            for job_id in (each.job_id, each.seen)
            if job_id is not None
        }
        named = {row.job_id for row in rows if row.job_id is not None}
        unseen = named - {job_id for jobs in made.values() for job_id in jobs}
        return History(
            name=name,
            versions=tuple(versions),
            schedule=schedule,
            rows=tuple(rows),
            made={slot: frozenset(jobs) for slot, jobs in made.items()},
            again=frozenset(again),
            nowhere=frozenset([job_id for job_id in sorted(unseen) if await self._is_nowhere(job_id)]),
        )

    async def _is_nowhere(self, job_id: int) -> bool:
        if await self._store.jobs.get(job_id, at=self._clock.stamp()) is not None:
            return False
        # A purged dead letter is no loss: its runs are still stored.
        return not await self._store.runs.of(job_id)

    async def _jobs_of(self, task: str, within: Range) -> list[_Made]:
        """The jobs of slots of a task, back to the start; read once for all schedules of the task."""
        if task not in self._made:
            found: list[_Made] = []
            for state in (None, *_ENDED):
                await self._pages(found, task, state, within.start - _SLACK)
            self._made[task] = found
        return self._made[task]

    async def _pages(self, found: list[_Made], task: str, state: JobState | None, since: datetime) -> None:
        before = None
        while True:
            which = JobFilter(task=task, state=state, before=before, limit=PAGE)
            page = await self._store.jobs.find(which, at=self._clock.stamp())
            found += [(job.schedule_id, job.slot_at, job.id) for job in page if job.slot_at is not None]
            if len(page) < PAGE or page[-1].enqueued_at < since:
                return
            if len(found) > MOST_JOBS:
                self._notes.append(f"{task}: only its newest jobs were looked through for doubles")
                return
            before = page[-1].id


async def ledger(
    store: Store, name: str, *, start: datetime, end: datetime | None = None, most: int
) -> list[Slot]:
    """Rows from `start` on and before `end`, newest first, about `most` of them at most."""
    found: list[Slot] = []
    before = end
    while len(found) < most:
        page = await store.slots.of(name, start=start, before=before, limit=PAGE)
        if len(page) < PAGE:
            return found + page
        # A slot may have two rows, of schedules that had the name one after the other: the page may end
        # between them, so its last slot is read again with the next.
        last = page[-1].slot_at
        whole = [row for row in page if row.slot_at > last]
        found += whole
        before = whole[-1].slot_at if whole else last
    return found


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _from_to(passed: Passed) -> str:
    return f"{passed.count:,} slots from {moment(passed.first)} to {moment(passed.last)} are"
