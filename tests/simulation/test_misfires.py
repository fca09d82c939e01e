"""Outages from seconds to weeks, for every misfire, overlap and catch_up there is, with schedulers
that die or freeze between any two calls: at the end every slot has a job that ran, or the reason that its
policy asks for."""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest

from mainspring import Mainspring
from mainspring.admin.slot_verification.verification import Kind
from mainspring.admin.slot_verification.verifier import SlotVerifier
from mainspring.model.job import Claim, JobFilter, JobState
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Settlement, Verdict
from mainspring.model.schedule import Misfire, Overlap, Schedule, Skipped, Slot
from mainspring.testing.clock import START, ManualClock
from mainspring.triggers.misfire import CATCH_UP_PAUSE, LATE
from mainspring.triggers.trigger import Trigger
from tests.simulation.hosts import Died, Host

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3600, 86400))
WORKER = 1
BREAKER = 20
OVERLAPS: dict[str, dict[str, Any]] = {
    **{each.value: {"overlap": each.value} for each in Overlap if each is not Overlap.ALLOW},
    "allow": {"allow": 3},
}
SCHEDULES = {
    f"{misfire}/{overlap}/{catch_up}": {"misfire": misfire.value, "catch_up": catch_up, **OVERLAPS[overlap]}
    for misfire, overlap, catch_up in product(Misfire, OVERLAPS, [None, "0s", "2h", "30d"])
}


class Pace(NamedTuple):
    """How often slots come, how long outages are at most, and how long jobs take at most."""

    every: tuple[str, ...]
    outages: tuple[timedelta, ...]
    jobs: tuple[timedelta, ...]
    happens: frozenset[str]
    """What the story must have met: else it says nothing of it."""


HOURS = Pace(
    every=("1h", "5h", "1d"),
    outages=(30 * SECOND, 10 * MINUTE, 5 * HOUR, 2 * DAY, 16 * DAY),
    jobs=(SECOND, MINUTE, HOUR, 9 * HOUR),
    happens=frozenset({"fired", "coalesced", "misfire", "too_late", "breaker", "overlap", "requested"}),
)
SECONDS = Pace(
    every=("2s", "3s", "7s"),
    outages=(3 * SECOND, 8 * SECOND, 12 * SECOND, 40 * SECOND),
    jobs=(SECOND / 10, SECOND, 3 * SECOND, 9 * SECOND),
    happens=frozenset({"fired", "overlap", "requested", "waited behind another"}),
)
"""Slots that are late and not missed: an outage of seconds is a deploy."""


class Weeks:
    """The world, one outage after another; between them schedulers die, and jobs take seconds to hours."""

    def __init__(self, store: Any, clock: ManualClock, seed: int, pace: Pace = HOURS) -> None:
        self.store, self.clock, self.pace = store, clock, pace
        self.dice, self.wishes = random.Random(seed), random.Random(seed)
        self.triggers: dict[str, Trigger] = {}
        self.schedules: dict[int, Schedule] = {}
        self.in_hand: list[tuple[datetime, Claim]] = []
        self.begun: dict[int, list[datetime]] = defaultdict(list)
        self.first_begun: dict[int, dict[datetime, datetime]] = defaultdict(dict)
        """By schedule and slot, when its job was claimed first."""
        self.ended: dict[int, dict[datetime, datetime]] = defaultdict(dict)
        """By schedule and slot, when its job ended."""
        self.told: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        """How many slots of each schedule are to be skipped."""
        self.end = START

    async def begin(self) -> None:
        app = Mainspring._with(
            "sqlite://:memory:", clock=self.clock
        )  # for its declarations: it is never opened

        @app.task(name="t")
        def nothing() -> None: ...

        every = self.pace.every
        declared = [
            app.schedule(name, nothing, every=every[number % len(every)], **options)
            for number, (name, options) in enumerate(SCHEDULES.items())
        ]
        self.triggers = {each.name: each.trigger for each in declared}
        news = [each.new_schedule(self.clock.now()) for each in declared]
        await self.store.schedules.put(news, at=self.clock.stamp())
        self.schedules = {each.id: each for each in await self.store.schedules.all()}
        await self.store.processes.join(
            NewProcess(id=WORKER, role=Role.WORKER, name="w"), lease=1000 * DAY, at=self.clock.stamp()
        )

    async def live(self, outages: int) -> None:
        for _ in range(outages):
            for _ in range(self.dice.randint(1, 12)):
                self.clock.advance(await self.store.slots.next_due(at=self.clock.stamp()) or SECOND)
                await self.step()
            longest = self.dice.choice(self.pace.outages)
            before = longest * self.dice.random()
            self.clock.advance(before / 2)
            await self.ask_to_skip()
            self.clock.advance(before / 2)
            self.told["outages"] += 1
            await self.step()
        self.end = self.clock.now()
        await self.store.schedules.pause(list(SCHEDULES), author="ann", note=None, at=self.clock.stamp())
        while await self.store.jobs.find(JobFilter(limit=1), at=self.clock.stamp()):
            self.clock.advance(HOUR * self.dice.random())
            await self.step()

    async def ask_to_skip(self) -> None:
        """A user does, whether or not a scheduler is alive."""
        for name in self.wishes.sample(list(SCHEDULES), k=6):
            count = self.wishes.choice([1, 2, 10])
            await self.store.schedules.skip(name, count=count, author="ann", at=self.clock.stamp())
            self.asked[name] += count

    async def step(self) -> None:
        """The worker has its turn, then a scheduler that may die or freeze, then one that does not."""
        await self.work()
        frail = Host(self.store, self.clock, timedelta(), breaker=BREAKER)
        if self.dice.random() < 0.5:
            frail.wire.order(self.dice.choice(["before", "after", "freeze"]), calls=self.dice.randint(1, 12))
        try:
            await frail.tick()
        except Died as death:
            self.told[str(death)] += 1
        well = Host(self.store, self.clock, timedelta(), breaker=BREAKER)
        while (wait := await well.tick()) is not None and wait <= CATCH_UP_PAUSE:
            self.clock.advance(wait)
            if self.dice.random() < 0.2:
                await self.work()
        if frail.is_frozen:
            await frail.thaw()

    async def work(self) -> None:
        """Claim what is due, and end what has taken its time."""
        now = self.clock.now()
        ended = [claim for at, claim in self.in_hand if at <= now]
        self.in_hand = [(at, claim) for at, claim in self.in_hand if at > now]
        done = [
            Settlement(job_id=c.job_id, worker_id=WORKER, fence=c.fence, verdict=Verdict.SUCCEEDED)
            for c in ended
        ]
        if done:
            gone = set(await self.store.queue.settle(done, at=self.clock.stamp()))
            assert all(self._replaces(c) for c in ended if c.job_id in gone)
            for claim in ended:
                if claim.slot_at is not None:
                    self.ended[claim.schedule_id or 0][claim.slot_at] = now
        claims = await self.store.queue.claim(
            WORKER, queues=["default"], tasks=["t"], limit=1000, at=self.clock.stamp()
        )
        for claim in claims:
            takes = self.dice.choice(self.pace.jobs) * self.dice.random()
            self.in_hand.append((now + takes, claim))
            assert claim.slot_at is not None
            self.begun[claim.schedule_id or 0].append(claim.slot_at)
            self.first_begun[claim.schedule_id or 0].setdefault(claim.slot_at, now)
        running = Counter(c.schedule_id for _, c in self.in_hand if not self._replaces(c))
        for schedule_id, count in running.items():
            schedule = self.schedules[schedule_id or 0]
            assert count <= (schedule.overlap_limit if schedule.overlap is Overlap.ALLOW else 1), (
                schedule.name
            )

    def _replaces(self, claim: Claim) -> bool:
        return self.schedules[claim.schedule_id or 0].overlap is Overlap.REPLACE

    def expected(self, name: str) -> list[datetime]:
        found, slot = [], self.triggers[name].next_after(START)
        while slot is not None and slot <= self.end:
            found.append(slot)
            slot = self.triggers[name].next_after(slot)
        return found


def may(
    schedule: Schedule, row: Slot, state: JobState | None, *, own: bool, waiting: bool, behind: bool
) -> bool:
    """Whether the schedule's policies ask for this, where the job of another slot was `waiting`, and where
    the live job of an earlier slot was made so late that this slot had come (`behind`)."""
    late, each = row.decided_at - row.slot_at, schedule.misfire is Misfire.ALL
    missed, latest = late > LATE, schedule.misfire is Misfire.LATEST
    match row.reason:
        case None:
            # Nothing that is caught up one by one is ever replaced, and only the newest stands for others.
            replaced = schedule.overlap is Overlap.REPLACE and state is JobState.CANCELLED
            ran = state is JobState.SUCCEEDED or (replaced and not (each and missed))
            wanted = schedule.misfire is not Misfire.SKIP or not missed
            # A newest slot that is not missed itself stands for those before it, whatever the policy.
            return ran and wanted and (own or not each)
        case Skipped.REQUESTED:
            return own or not each
        case Skipped.MISFIRE:
            return schedule.misfire is Misfire.SKIP and missed
        case Skipped.TOO_LATE:
            return schedule.catch_up is not None and late > schedule.catch_up
        case Skipped.BREAKER:
            return each and schedule.catch_up is None and missed
        case Skipped.OVERLAP:
            in_the_way = schedule.overlap in (Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.ALLOW)
            # The newest missed slot gets its job, unless the job of another one waits already.
            return (
                in_the_way
                and not (each and missed)
                and not (behind and (each or latest))
                and (own or not each)
                and (waiting or not (latest and missed))
            )
        case _:
            return False


async def check(weeks: Weeks) -> Counter[str]:
    stamp, found = weeks.clock.stamp(), Counter[str]()
    states = {
        job.id: state
        for state in (JobState.SUCCEEDED, JobState.CANCELLED)
        for job in await weeks.store.jobs.find(JobFilter(state=state, limit=1_000_000), at=stamp)
    }
    for schedule in weeks.schedules.values():
        rows = (await weeks.store.slots.of(schedule.name, limit=1_000_000))[::-1]
        by_slot = {row.slot_at: row for row in rows}
        following = iter(rows)
        standing = next(following, None)
        requested = 0
        for slot in weeks.expected(schedule.name):
            while standing is not None and standing.slot_at < slot:
                standing = next(following, None)
            row = by_slot.get(slot, standing)
            assert row is not None, f"{schedule.name}: {slot} has no row"
            own = row.slot_at == slot
            assert own or (row.since is not None and row.since <= slot), f"{schedule.name}: {slot}"
            waiting = any(
                begun >= row.decided_at
                for other, begun in weeks.first_begun[schedule.id].items()
                if other < row.slot_at and by_slot[other].decided_at <= row.decided_at
            )
            behind = any(
                ended > row.decided_at and by_slot[other].decided_at >= row.slot_at
                for other, ended in weeks.ended[schedule.id].items()
                if other < row.slot_at and by_slot[other].decided_at <= row.decided_at
            )
            state = states.get(row.job_id or 0)
            assert may(schedule, row, state, own=own, waiting=waiting, behind=behind), (
                schedule.name,
                slot,
                row,
            )
            found[str(row.reason or (row.disposition if own else "coalesced"))] += 1
            found["waited behind another"] += own and behind and row.reason is None
            requested += row.reason is Skipped.REQUESTED
        assert requested <= weeks.asked[schedule.name], f"{schedule.name}: more were skipped than asked for"
        if schedule.misfire is Misfire.ALL:
            order = weeks.begun[schedule.id]
            assert order == sorted(order), f"{schedule.name} did not run in the order of its slots"
    return found


@pytest.mark.parametrize(
    ("backend", "outages", "seed", "pace"),
    [
        ("sqlite", 12, 1, HOURS),
        ("sqlite", 12, 2, HOURS),
        ("postgres", 8, 6, HOURS),
        ("sqlite", 3, 3, SECONDS),
        ("postgres", 2, 4, SECONDS),
    ],
    indirect=["backend"],
)
def test_every_slot_runs_or_has_the_reason_its_policy_asks_for(
    store: Any, clock: ManualClock, run: Any, outages: int, seed: int, pace: Pace
) -> None:
    async def story() -> None:
        weeks = Weeks(store, clock, seed, pace)
        await weeks.begin()
        await weeks.live(outages)
        found = await check(weeks)
        report = await SlotVerifier(store, clock, keep=1000 * DAY).verify(start=START, end=weeks.end)
        sys.stdout.write(f"seed {seed}: {report.sentence(strict=False)}; {dict(found)}; {dict(weeks.told)}\n")

        # That it was a time in which all of this happened.
        assert {name for name in found if found[name]} >= pace.happens
        dropped = sum(each.count for each in report.findings if each.kind is Kind.DROPPED)
        assert dropped == found["too_late"] + found["breaker"]
        wrong = {each.kind for each in report.wrong(strict=False)}
        assert wrong == ({Kind.DROPPED} if dropped else set())

    run(story())
