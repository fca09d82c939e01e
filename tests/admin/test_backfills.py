"""Backfills from the plan to the audit: which slots are run, as which version, and that the record holds."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from mainspring.admin.backfills import BackfillPlan
from mainspring.admin.slot_verification.verification import Kind
from mainspring.admin.slot_verification.verifier import SlotVerifier
from mainspring.admin.why.answer import Because
from mainspring.admin.why.asking import Why
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.run import Verdict
from mainspring.model.schedule import BackfillState, Disposition, Misfire, Overlap, Reprocess, Skipped
from mainspring.scheduler.scheduler import Scheduler
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import START
from mainspring.triggers.cron import Cron
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk
from tests.support.management import admin_of

HOURLY = Cron("0 * * * *", "UTC")
FIRST = START + HOUR
"""The first slot: START is one too, from before the schedule was made."""


class House:
    """A schedule, a scheduler that is ticked, and backfills."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.backfills = admin_of(desk.store, desk.clock).backfills
        self.scheduler = Scheduler(desk.store, desk.clock, Telemetry(), poll=SECOND, chunk=100)

    def hourly(self, trigger: Any = HOURLY, **fields: Any) -> None:
        first = trigger.next_after(self.desk.now)
        given = {"overlap": Overlap.ALLOW, "overlap_limit": 1000, "next_at": first}
        self.desk.schedule(
            trigger=trigger.encode(), following_at=trigger.next_after(first), **{**given, **fields}
        )

    def tick(self) -> timedelta:
        return self.desk.run(self.scheduler.tick())

    def hours(self, count: int) -> None:
        """That many hours on time."""
        for _ in range(count):
            self.desk.advance(HOUR)
            self.tick()

    def plan(self, start: datetime, end: datetime, **asked: Any) -> BackfillPlan:
        return self.desk.run(self.backfills.aplan("s", start=start, end=end, **asked))

    def begin(self, plan: BackfillPlan) -> int:
        return int(self.desk.run(self.backfills.astart(plan)).id)

    def work(self, verdict: Verdict = Verdict.SUCCEEDED) -> list[int]:
        """Run every job there is; answer their ids."""
        done = []
        if 1 not in [member.id for member in self.desk.processes()]:
            self.desk.join(1, lease=1000 * DAY)
        while claims := self.desk.claim():
            for claim in claims:
                self.desk.end(claim, verdict)
            done += [claim.job_id for claim in claims]
        return done

    def finish(self, number: int, *, most: int = 100) -> None:
        """Tick and work until the backfill has ended."""
        for _ in range(most):
            self.tick()
            self.work()
            if self.desk.the_backfill(number).state is not BackfillState.ACTIVE:
                return
        raise AssertionError("it does not end")

    def wrong(self) -> list[Any]:
        verifier = SlotVerifier(self.desk.store, self.desk.clock, keep=400 * DAY)
        return self.desk.run(verifier.verify(start=START - 30 * DAY)).wrong(strict=False)


@pytest.fixture
def house(desk: Desk) -> House:
    return House(desk)


def test_missed_slots_are_planned_and_those_that_ran_are_not(house):
    house.hourly()
    house.hours(2)
    house.work()
    house.desk.advance(5 * HOUR)  # nobody is up: the newest stands for five
    house.tick()

    plan = house.plan(FIRST, house.desk.now)

    assert [(each.slot.slot_at, each.run) for each in plan.slots] == [
        (START + n * HOUR, n > 2) for n in range(1, 7)
    ]
    assert plan.slots[0].why == "job 1 succeeded"
    assert "coalesced into the slot of" in plan.slots[3].why


def test_a_backfill_runs_to_its_end_and_the_audit_finds_nothing(house):
    house.hourly()
    house.hours(1)
    house.desk.advance(6 * HOUR)
    house.tick()
    house.work()
    assert house.wrong() == []

    number = house.begin(house.plan(FIRST, house.desk.now, max_active=2))
    house.finish(number)

    done = house.desk.the_backfill(number)
    assert (done.state, done.made, done.left) == (BackfillState.DONE, 5, 0)
    ledger = {row.slot_at: row for row in house.desk.slots()}
    assert sorted(ledger) == [START + n * HOUR for n in range(1, 8)]
    assert [ledger[START + n * HOUR].disposition for n in (1, 2, 6, 7)] == [
        Disposition.FIRED,
        Disposition.BACKFILLED,
        Disposition.BACKFILLED,
        Disposition.FIRED,
    ]
    assert house.wrong() == []


def test_the_same_backfill_again_has_nothing_to_run(house):
    house.hourly(misfire=Misfire.SKIP)
    house.desk.advance(4 * HOUR)
    house.tick()
    house.finish(house.begin(house.plan(FIRST, house.desk.now)))

    assert house.plan(FIRST, house.desk.now).to_run == ()


def test_reprocess_says_which_finished_slots_are_done_over(house):
    house.hourly()
    house.hours(1)
    house.work()
    house.hours(1)
    house.work(Verdict.DEAD)
    house.hours(1)  # its job is still live
    end = house.desk.now + SECOND
    house.desk.advance(MINUTE)

    def runs(reprocess):
        return [each.slot.slot_at for each in house.plan(FIRST, end, reprocess=reprocess).to_run]

    assert runs(Reprocess.NONE) == []
    assert runs(Reprocess.FAILED) == [START + 2 * HOUR]
    assert runs(Reprocess.ALL) == [START + HOUR, START + 2 * HOUR]


def test_a_slot_done_over_is_no_double_for_the_audit(house):
    house.hourly()
    house.hours(2)
    house.work()
    end = house.desk.now + SECOND
    house.desk.advance(MINUTE)

    house.finish(house.begin(house.plan(FIRST, end, reprocess=Reprocess.ALL)))

    assert len(house.desk.run(house.desk.store.backfills.jobs([1], start=START))) == 2
    assert house.wrong() == []


def test_each_slot_is_run_as_the_version_of_its_time(house):
    house.hourly(payload=b"first")
    house.desk.advance(3 * HOUR)
    house.hourly(payload=b"second")
    house.desk.advance(2 * HOUR)
    house.hourly(Cron("30 * * * *", "UTC"), payload=b"third")
    house.desk.advance(2 * HOUR)

    plan = house.plan(START - 2 * HOUR, START + 7 * HOUR)
    house.begin(plan)
    house.desk.run(house.desk.store.backfills.advance(at=house.desk.clock.stamp()))

    made = {(job.slot_at - START) / HOUR: job.payload for job in house.desk.jobs()}
    first, second = dict.fromkeys(range(-2, 4), b"first"), dict.fromkeys((4, 5), b"second")
    assert made == {**first, **second, 5.5: b"third", 6.5: b"third"}


def test_a_paused_schedule_is_backfilled_all_the_same(house):
    house.hourly()
    house.desk.pause()
    house.hours(2)

    number = house.begin(house.plan(FIRST, house.desk.now))
    house.finish(number)

    assert house.desk.the_backfill(number).made == 1  # the second slot is not before `to`
    [_, first] = house.desk.slots()
    answer = house.desk.run(Why(house.desk.store, house.desk.clock).slot("s", first.slot_at))
    assert answer.because is Because.BACKFILLED
    assert "At the time it was skipped: paused." in answer.sentence
    assert "which succeeded" in answer.sentence


def test_reverse_runs_the_newest_first(house):
    house.hourly()
    house.desk.advance(4 * HOUR)
    house.begin(house.plan(START, START + 4 * HOUR, reverse=True))

    house.desk.run(house.desk.store.backfills.advance(at=house.desk.clock.stamp()))

    assert [job.slot_at for job in house.desk.jobs()][-1] == START + 3 * HOUR


def test_one_at_a_time_unless_the_schedule_allows_more(house):
    house.hourly(overlap=Overlap.SKIP)
    house.desk.advance(2 * HOUR)
    assert house.plan(START, START + HOUR).max_active == 1

    house.desk.schedule(trigger=HOURLY.encode(), overlap=Overlap.ALLOW, overlap_limit=7)
    assert house.plan(START, START + HOUR).max_active == 7


def test_a_scheduler_with_a_backfill_in_hand_looks_again_soon(house):
    house.hourly()
    house.desk.advance(90 * MINUTE)
    house.tick()
    assert house.tick() == SECOND
    house.begin(house.plan(START - HOUR, START))

    assert house.tick() < SECOND


@pytest.mark.parametrize(
    ("start", "end", "asked", "field"),
    [
        (START, START, {}, "to"),
        (START, START + 100 * DAY, {}, "to"),
        (START - 12 * 365 * DAY, START, {}, "to"),
        (START - HOUR, START, {"max_active": 0}, "max_active"),
        (START - HOUR, START, {"max_active": True}, "max_active"),
    ],
)
def test_what_cannot_be_accepted_is_refused(house, start, end, asked, field):
    house.hourly()

    with pytest.raises(InvalidArgument) as refused:
        house.plan(start, end, **asked)

    assert refused.value.field == field
    assert house.desk.run(house.backfills.anewest()) == []


@pytest.mark.parametrize(
    ("start", "end"), [(FIRST.replace(tzinfo=None), FIRST), (START, FIRST.replace(tzinfo=None))]
)
def test_a_moment_without_an_offset_is_refused(house, start, end):
    house.hourly()

    with pytest.raises(InvalidArgument, match="expected a moment with its offset"):
        house.plan(start, end)


def test_names_and_numbers_that_are_not_there_are_refused(house):
    with pytest.raises(NotFound):
        house.plan(START - HOUR, START)
    with pytest.raises(NotFound):
        house.desk.run(house.backfills.acancel(7))


# What the circuit breaker left out.


def tripped(house: House, *, down: timedelta) -> None:
    """Two jobs of an outage are live, and the other missed slots are left out."""
    house.scheduler = Scheduler(
        house.desk.store, house.desk.clock, Telemetry(), poll=SECOND, chunk=100, breaker=2
    )
    house.hourly(misfire=Misfire.ALL, overlap=Overlap.SKIP)
    house.desk.advance(down)
    while house.desk.due():
        house.tick()


def test_to_go_on_runs_exactly_what_the_breaker_left_out_one_after_another(house):
    tripped(house, down=30 * HOUR + MINUTE)
    before = house.desk.slots(limit=100)
    left = [finding for finding in house.wrong() if finding.kind is Kind.DROPPED]
    assert sum(finding.count for finding in left) == 28
    assert [row.reason for row in reversed(before)][:3] == [None, None, Skipped.BREAKER]

    plan = house.desk.run(house.backfills.aplan_left_out("s"))
    assert (len(plan.to_run), plan.max_active, plan.reverse) == (28, 1, False)
    assert [each.slot.slot_at for each in plan.to_run] == [START + n * HOUR for n in range(3, 31)]
    number = house.begin(plan)
    again = house.desk.run(house.backfills.aplan_left_out("s"))
    assert (again.to_run, again.slots[0].why) == ((), f"backfill {number} is under way")
    house.tick()
    assert len([job for job in house.desk.jobs() if job.id not in {row.job_id for row in before}]) == 1
    house.finish(number)

    assert house.wrong() == []
    assert house.desk.run(house.backfills.aplan_left_out("s")).slots == ()
    ran = [row for row in house.desk.slots(limit=100) if row.disposition is Disposition.BACKFILLED]
    assert len(ran) == 28


def test_there_is_nothing_to_go_on_with_where_nothing_was_left_out(house):
    house.hourly(catch_up=MINUTE)
    house.desk.advance(5 * HOUR + 2 * MINUTE)
    house.tick()

    assert [finding.kind for finding in house.wrong()] == [Kind.DROPPED], "too late: the user's own bound"
    assert house.desk.run(house.backfills.aplan_left_out("s")).slots == ()
