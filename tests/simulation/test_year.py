"""A year of three real schedulers on a real store, in seconds: outages, deaths between any two calls,
frozen and wrong clocks, pauses, changes; and at its end every slot has exactly one fate."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.admin.slot_verification.verification import Kind
from mainspring.admin.slot_verification.verifier import Report, SlotVerifier
from mainspring.model.job import Claim, JobFilter, JobState
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Settlement, Verdict
from mainspring.model.schedule import Disposition, Skipped, Slot, StoredCalendar
from mainspring.scheduler.scheduler import CATCH_UP_PAUSE
from mainspring.tasks.payload import decode
from mainspring.testing.clock import ManualClock
from mainspring.triggers.calendars import from_dates
from mainspring.triggers.trigger import Trigger
from tests.simulation.hosts import Died, Host

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3600, 86400))
WORKER = 1

HOLIDAYS = from_dates("plant", [date(2030, 1, 1), date(2030, 4, 19), date(2030, 12, 25)], tz="Europe/Berlin")
SCHEDULES: dict[str, dict[str, Any]] = {
    # Fixed hours that two of these zones leave out on one night and have twice on another.
    "berlin": {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
    "berlin-both": {"cron": "30 2 * * *", "tz": "Europe/Berlin", "gap": "skip", "fold": "both", "allow": 9},
    "new-york": {"cron": "15 2 * * *", "tz": "America/New_York", "misfire": "skip", "overlap": "queue_one"},
    "lord-howe": {"cron": "45 1 * * *", "tz": "Australia/Lord_Howe", "misfire": "all", "catch_up": "3d"},
    "howe-hours": {"cron": "10 */8 * * *", "tz": "Australia/Lord_Howe", "overlap": "replace"},
    "quarter-days": {"every": "6h", "misfire": "all", "catch_up": "20h", "overlap": "queue_all"},
    "quarter-twin": {"every": "6h", "overlap": "queue_one", "window": "30m"},  # these two share a spec
    "quarter-third": {"every": "6h", "allow": 2, "jitter": "10m"},
    "fridays": {
        "rrule": "FREQ=WEEKLY;BYDAY=TU,FR;BYHOUR=2;BYMINUTE=30",
        "tz": "America/New_York",
        "dtstart": datetime(2029, 12, 28, 2, 30),  # noqa: DTZ001 - a wall time in tz
        "misfire": "skip",
    },
    "plant": {"cron": "0 6 * * *", "tz": "Europe/Berlin", "calendar": HOLIDAYS},
    "plant-next": {"cron": "0 18 * * 5-7", "calendar": HOLIDAYS, "on_holiday": "next", "misfire": "all"},
    "changing": {"cron": "20 3 * * *", "tz": "Europe/Berlin"},
}
OTHER = {"cron": "40 1,13 * * *", "tz": "America/New_York"}
"""What the one that changes becomes, and turns back from."""
EDITED = {"plant", "quarter-twin"}
"""These are also edited by hand, and then code leaves them alone."""


class Year:
    """The world, one event after another. It keeps its own record of what it did to it."""

    def __init__(self, store: Any, clock: ManualClock, seed: int) -> None:
        self.store, self.clock, self.dice = store, clock, random.Random(seed)
        self.hosts: list[Host] = []
        self.outages: list[tuple[datetime, datetime]] = []
        self.scheduled_at = clock.now()
        """When a scheduler last had its turn."""
        self.triggers: dict[str, list[tuple[datetime, Trigger | None]]] = {}
        """Every version, and from when on it was in force; none while the schedule is deleted."""
        self.numbers: dict[str, list[tuple[datetime, int]]] = {}
        """The argument of every version's jobs."""
        self.changes = 0
        self.acts: list[str] = []
        """What operators are still to do."""
        self.paused: set[str] = set()
        self.told: Counter[str] = Counter()
        self.in_hand: list[tuple[datetime, Claim]] = []

    async def begin(self) -> None:
        calendar = StoredCalendar(name=HOLIDAYS.name, version=1, definition=HOLIDAYS.encode())
        await self.store.calendars.put([calendar])
        for name, options in SCHEDULES.items():
            await self.declare(name, options)
        self.hosts = [self.new_host() for _ in range(3)]
        await self.store.processes.join(
            NewProcess(id=WORKER, role=Role.WORKER, name="w"), lease=1000 * DAY, at=self.clock.stamp()
        )

    async def declare(self, name: str, options: dict[str, Any]) -> None:
        app = Mainspring._with(
            "sqlite://:memory:", clock=self.clock
        )  # for its declarations: it is never opened

        @app.task(name="t")
        def nothing(number: int) -> None: ...

        self.changes += 1
        declared = app.schedule(name, nothing, args=[self.changes], **options)
        now = self.clock.now()
        author = self.dice.choice(["ann", None]) if name in EDITED else None
        put = self.store.schedules.put([declared.new_schedule(now)], author=author, at=self.clock.stamp())
        if await put == []:
            self.told["left as edited"] += 1
            return
        self.triggers.setdefault(name, []).append((now, declared.trigger))
        self.numbers.setdefault(name, []).append((now, self.changes))

    async def change(self, name: str) -> None:
        """Another declaration: other arguments, and of one schedule another trigger; one that was deleted is
        made anew."""
        turned = len(self.triggers[name]) % 2 == 1
        await self.declare(name, OTHER if name == "changing" and turned else SCHEDULES[name])

    async def delete(self, name: str) -> None:
        if await self.store.schedules.delete([name], author="ann", at=self.clock.stamp()):
            self.triggers[name].append((self.clock.now(), None))
            self.numbers[name].append((self.clock.now(), 0))
            self.paused.discard(name)

    async def redeploy(self) -> None:
        """Everything that is there is declared once more, with other arguments."""
        for name, lives in self.triggers.items():
            if lives[-1][1] is not None:
                await self.change(name)

    def new_host(self) -> Host:
        """One in three has the right time; the others are off by minutes or by hours."""
        most = self.dice.choice([timedelta(), 10 * MINUTE, 9 * HOUR])
        return Host(self.store, self.clock, most * self.dice.uniform(-1, 1))

    async def live(self, until: datetime) -> None:
        while self.clock.now() < until:
            if self.dice.random() < 0.02:
                await self.outage()
            wait = await self.store.slots.next_due(at=self.clock.stamp())
            wait = HOUR if wait is None else wait
            self.clock.advance(wait + self.dice.choice([timedelta(), SECOND]) * self.dice.random())
            await self.work()
            await self.schedule()
            if self.dice.random() < 0.05:
                await self.operate()
        for host in self.hosts:
            if host.is_frozen:
                await host.thaw()
        await self.heal()

    async def outage(self) -> None:
        """Nobody ticks, for minutes or for days; workers go on, and operators pause and resume."""
        began = self.scheduled_at  # what came since then, beside an operator, waits for its end as well
        for _ in range(3):
            self.clock.advance(self.dice.choice([10 * MINUTE, 4 * HOUR, 2 * DAY]) * self.dice.random())
            if self.dice.random() < 0.3:
                await self.pause(self.dice.choice(list(SCHEDULES)))
            if self.dice.random() < 0.3:
                await self.resume()
            if self.dice.random() < 0.3:
                await self.change(self.dice.choice(list(SCHEDULES)))
            if self.dice.random() < 0.05:
                await self.delete(self.dice.choice(list(SCHEDULES)))
        if self.dice.random() < 0.2:
            await self.redeploy()
        self.outages.append((began, self.clock.now()))
        self.told["outages"] += 1

    async def schedule(self) -> None:
        """Some hosts tick at once, and some of them die or freeze in it; then a healthy one has its turn."""
        awake = [host for host in self.hosts if not host.is_frozen]
        ticking = self.dice.sample(awake, self.dice.randint(0, len(awake)))
        for host in ticking:
            if self.dice.random() < 0.15:
                host.wire.order(
                    self.dice.choice(["before", "after", "freeze"]), calls=self.dice.randint(1, 12)
                )
        await asyncio.gather(*(self.tick(host) for host in ticking))
        for host in [host for host in self.hosts if host.is_frozen]:
            if self.dice.random() < 0.3:
                await host.thaw()
        await self.heal()

    async def tick(self, host: Host) -> None:
        try:
            if await host.tick() is None:
                self.told["frozen"] += 1
        except Died as death:
            self.told[f"died {death}"] += 1
            self.hosts[self.hosts.index(host)] = self.new_host()

    async def heal(self) -> None:
        """A healthy scheduler goes on until nothing is due: what was decided late was so in an outage."""
        healthy = self.new_host()
        while (wait := await healthy.tick()) is not None and wait <= CATCH_UP_PAUSE:
            self.clock.advance(wait)
        self.scheduled_at = self.clock.now()

    async def operate(self) -> None:
        """Somebody pauses, resumes, asks to skip, changes or deletes a schedule; mostly within a second of a
        slot, and often between the slot and the schedulers that come to it."""
        if self.dice.random() < 0.8:
            wait = await self.store.slots.next_due(at=self.clock.stamp())
            beside = self.dice.choice([-0.9, -0.001, 0, 0.000001, 0.4, 0.9]) * SECOND
            self.clock.advance(max(timedelta(), (wait or HOUR) + beside))
        if not self.acts:  # in any order, and each of them however short the time is
            self.acts = ["pause", "resume", "change", "change", "skip", "delete"]
            self.dice.shuffle(self.acts)
        what = self.acts.pop()
        self.told[what] += 1
        name = self.dice.choice(list(SCHEDULES))
        if what == "pause":
            await self.pause(name)
        elif what == "resume":
            await self.resume()
        elif what == "skip":
            await self.store.schedules.skip(name, count=2, author="ann", at=self.clock.stamp())
        elif what == "delete":
            await self.delete(name)
        else:
            await self.change(self.dice.choice(["changing", name]))

    async def pause(self, name: str) -> None:
        stamp = self.clock.stamp()
        self.paused |= set(await self.store.schedules.pause([name], author="ann", note=None, at=stamp))

    async def resume(self) -> None:
        await self.store.schedules.resume(sorted(self.paused), author="ann", at=self.clock.stamp())
        self.paused.clear()

    async def work(self) -> None:
        """Claim what is due, and end what has taken its time: mostly minutes, sometimes most of a day."""
        now = self.clock.now()
        ended = [claim for at, claim in self.in_hand if at <= now]
        self.in_hand = [(at, claim) for at, claim in self.in_hand if at > now]
        verdict = Verdict.SUCCEEDED
        done = [Settlement(job_id=c.job_id, worker_id=WORKER, fence=c.fence, verdict=verdict) for c in ended]
        if done:
            await self.store.queue.settle(done, at=self.clock.stamp())
        for claim in await self.store.queue.claim(
            WORKER, queues=["default"], tasks=["t"], limit=20, at=self.clock.stamp()
        ):
            takes = self.dice.choice([MINUTE, MINUTE, HOUR, 20 * HOUR]) * self.dice.random()
            self.in_hand.append((now + takes, claim))

    # What should have been, from this world's own record.

    def expected(self, name: str, until: datetime) -> list[datetime]:
        """Every slot of every version, by walking its trigger."""
        found, lives = [], [*self.triggers[name], (until, None)]
        for (after, trigger), (end, _) in pairwise(lives):
            slot = None if trigger is None else trigger.next_after(after)
            while slot is not None and slot <= end:
                found.append(slot)
                slot = None if trigger is None else trigger.next_after(slot)
        return found

    def number(self, name: str, slot: datetime) -> int:
        """The argument that the version of this slot gives its job."""
        return next(number for after, number in reversed(self.numbers[name]) if after < slot)

    def was_out(self, slot: datetime) -> bool:
        return any(start <= slot <= end for start, end in self.outages)


def fates(slot: datetime, rows: list[Slot]) -> int:
    """How many rows are the slot's own or stand for it."""
    own = sum(row.slot_at == slot for row in rows)
    return own + sum(row.since is not None and row.since <= slot < row.slot_at for row in rows)


async def check(year: Year, report: Report) -> None:
    now = year.clock.now()
    assert report.notes == ()
    for finding in report.findings:
        # A bound that a schedule has set is obeyed, and what it costs is told.
        bounded = "catch_up" in SCHEDULES[finding.schedule]
        assert finding.kind is Kind.LATE or (finding.kind is Kind.DROPPED and bounded), finding
        assert finding.slot_at is not None
        assert year.was_out(finding.slot_at), f"late, and no outage: {finding}"

    jobs = [
        job
        for state in (None, JobState.SUCCEEDED, JobState.CANCELLED)
        for job in await year.store.jobs.find(JobFilter(state=state, limit=100_000), at=year.clock.stamp())
    ]
    arguments = {job.id: decode(job.payload)[0] for job in jobs}
    reasons: Counter[Skipped | None] = Counter()
    for name in SCHEDULES:
        rows = await year.store.slots.of(name, limit=100_000)
        slots = year.expected(name, now)
        assert {row.slot_at for row in rows} <= set(slots), name
        counted = {slot: fates(slot, rows) for slot in slots}
        assert {slot: count for slot, count in counted.items() if count != 1} == {}, name
        reasons.update(row.reason for row in rows)
        fired = [row.job_id for row in rows if row.disposition is Disposition.FIRED]
        assert len(set(fired)) == len(fired)
        for row in rows:
            if row.job_id is not None:
                assert arguments[row.job_id] == [year.number(name, row.slot_at)], f"{name}: {row}"
    assert year.told.keys() >= {"change", "delete", "pause", "skip"}
    # That it was a year in which all of this happened.
    assert reasons.keys() >= {None, Skipped.OVERLAP, Skipped.PAUSED, Skipped.CALENDAR, Skipped.REQUESTED}

    made = Counter((job.schedule_id, job.slot_at) for job in jobs)
    assert set(made.values()) == {1}
    assert made.total() == reasons[None]


@pytest.mark.parametrize(
    ("backend", "start", "days", "seed"),
    [
        ("sqlite", datetime(2030, 1, 1, tzinfo=UTC), 365, 1),
        ("sqlite", datetime(2030, 7, 1, tzinfo=UTC), 183, 2),
        # Around the clocks' changes of all three zones, in spring and in autumn.
        ("postgres", datetime(2030, 2, 1, tzinfo=UTC), 90, 3),
        ("postgres", datetime(2030, 9, 1, tzinfo=UTC), 90, 4),
    ],
    indirect=["backend"],
)
def test_a_year_of_trouble_leaves_every_slot_with_one_fate(
    store: Any, clock: ManualClock, run: Any, start: datetime, days: int, seed: int
) -> None:
    clock.advance(start - clock.now())

    async def story() -> None:
        year = Year(store, clock, seed)
        try:
            await year.begin()
            await year.live(start + days * DAY)
        finally:
            await asyncio.gather(*(host.close() for host in year.hosts))
        report = await SlotVerifier(store, clock, keep=1000 * DAY).verify(start=start)
        sys.stdout.write(f"seed {seed}: {report.sentence(strict=False)}; {dict(year.told)}\n")
        await check(year, report)

    run(story())
