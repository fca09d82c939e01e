"""A change of a schedule first decides what was due before it: by the old version, in the change's own
transaction, whether a scheduler is alive or not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from mainspring.admin.slot_verification.verification import Kind
from mainspring.admin.slot_verification.verifier import SlotVerifier
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import Change, Misfire, NewSchedule, Overlap, Skipped, StoredCalendar
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store import declaring
from mainspring.telemetry.events import Telemetry
from mainspring.triggers.calendars import from_dates
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from mainspring.triggers.rolled import Roll, Rolled
from mainspring.triggers.trigger import Trigger
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk

MINUTELY, HOURLY = Every(MINUTE), Every(HOUR)


class Tower:
    """A desk whose schedules have real triggers, and a scheduler that runs when it is asked to."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.scheduler = Scheduler(desk.store, desk.clock, Telemetry(), poll=SECOND, chunk=100)
        self.start = desk.now

    def new(self, name: str = "s", trigger: Trigger = MINUTELY, **fields: Any) -> NewSchedule:
        first = trigger.next_after(self.desk.now)
        assert first is not None
        following = trigger.next_after(first)
        new = self.desk.new_schedule(name, trigger=trigger.encode(), next_at=first, following_at=following)
        return msgspec.structs.replace(new, **fields)

    def put(self, *names: str, trigger: Trigger = MINUTELY, author: str | None = None, **fields: Any) -> None:
        news = [self.new(name, trigger, **fields) for name in names or ("s",)]
        assert self.desk.schedule_all(*news, author=author) == sorted(names or ("s",))

    def tick(self, times: int = 5) -> None:
        """A scheduler comes, and goes on until nothing is due."""
        for _ in range(times):
            self.desk.run(self.scheduler.tick())

    def slots(self, name: str = "s") -> list[tuple[float, str | None]]:
        """Minutes after the start and why no job was made, oldest first."""
        return [(self.minutes(each.slot_at), each.reason) for each in reversed(self.desk.slots(name, 9999))]

    def minutes(self, moment: datetime) -> float:
        return (moment - self.start) / MINUTE

    def proven(self) -> None:
        """The slot check has nothing to say."""
        report = self.desk.run(SlotVerifier(self.desk.store, self.desk.clock, keep=400 * DAY).verify())
        assert report.wrong(strict=False) == []


@pytest.fixture
def tower(desk: Desk) -> Tower:
    return Tower(desk)


def test_an_edit_half_a_second_after_a_slot_does_not_cost_it(tower: Tower, desk: Desk) -> None:
    """No scheduler is alive; the one that comes later finds the slot decided."""
    tower.put(payload=b"old", trigger=Every(SECOND))
    desk.advance(1.5 * SECOND)

    tower.put(payload=b"new", trigger=Every(7 * SECOND), author="ann")

    [slot] = desk.slots()
    assert (slot.slot_at, slot.decided_at) == (tower.start + SECOND, desk.now)
    assert [(job.id, job.payload, job.slot_at) for job in desk.jobs()] == [
        (slot.job_id, b"old", slot.slot_at)
    ]
    changed = desk.versions()[-1]
    assert (changed.change, changed.changed_at, changed.schedule.active_from) == (
        Change.CHANGED,
        desk.now,
        desk.now,
    )
    tower.tick()
    assert desk.slots() == [slot]
    tower.proven()


def test_after_an_outage_the_old_trigger_s_slots_are_combined_and_then_comes_the_new_one(
    tower: Tower, desk: Desk
) -> None:
    tower.put(payload=b"old")
    desk.advance(HOUR + SECOND)

    tower.put(payload=b"new", trigger=Every(7 * MINUTE))

    [slot] = desk.slots()
    assert (tower.minutes(slot.slot_at), slot.since) == (60, tower.start + MINUTE)
    following = Every(7 * MINUTE).next_after(desk.now)
    assert following is not None
    desk.advance(following - desk.now)
    tower.tick()
    assert [each.slot_at for each in desk.slots()] == [following, slot.slot_at]
    assert [each.reason for each in desk.slots()] == [Skipped.OVERLAP, None]
    assert {job.payload for job in desk.jobs()} == {b"old"}
    tower.proven()


def test_a_change_of_arguments_combines_what_was_missed_under_the_old_ones(tower: Tower, desk: Desk) -> None:
    tower.put(payload=b"old", overlap=Overlap.ALLOW, overlap_limit=5)
    desk.advance(10 * MINUTE)
    tower.put(payload=b"new", overlap=Overlap.ALLOW, overlap_limit=5)
    desk.advance(MINUTE)
    tower.tick()

    [late, early] = desk.slots()
    assert (tower.minutes(early.slot_at), early.since) == (10, tower.start + MINUTE)
    # The spec was late for its other schedules, too; what a row stands for begins after the change.
    assert tower.minutes(late.slot_at) == 11
    assert late.since is None or late.since > early.slot_at
    assert sorted(job.payload for job in desk.jobs()) == [b"new", b"old"]
    tower.proven()


@pytest.mark.parametrize("order", ["change", "pause", "delete"])
def test_what_a_fire_has_not_reached_is_decided_and_what_it_has_is_not_doubled(
    tower: Tower, desk: Desk, order: str
) -> None:
    """A change of all of a burst while a fire is half way through it."""
    names = [f"s{number}" for number in range(6)]
    tower.put(*names, payload=b"old")
    desk.advance(MINUTE)
    [spec] = desk.due()
    assert desk.open(spec) == 1
    chunk = desk.fire(limit=3)
    assert chunk is not None
    assert chunk.fired == 3
    desk.advance(SECOND / 2)

    if order == "change":
        tower.put(*names, payload=b"new", trigger=HOURLY)
    elif order == "pause":
        assert desk.pause(*names) == names
    else:
        assert desk.delete(*names) == names
    desk.fire_all()
    tower.tick()

    expected = {"change": None, "pause": Skipped.PAUSED, "delete": Skipped.DELETED}[order]
    reasons = [desk.slots(name)[0].reason for name in names]
    assert reasons == [None] * 3 + [expected] * 3
    assert all(len(desk.slots(name)) == 1 for name in names)
    assert {job.payload for job in desk.jobs()} == {b"old"}
    assert len(desk.jobs()) == (6 if order == "change" else 3)
    tower.proven()


def test_only_the_schedules_that_change_are_decided(tower: Tower, desk: Desk) -> None:
    tower.put("a", "b")
    desk.advance(MINUTE)

    tower.put("a", priority=3)

    assert tower.slots("a") == [(1, None)]
    assert tower.slots("b") == []
    tower.tick()
    assert (tower.slots("a"), tower.slots("b")) == ([(1, None)], [(1, None)])


def test_what_is_due_overlaps_as_ever(tower: Tower, desk: Desk) -> None:
    tower.put()
    desk.advance(MINUTE)
    tower.tick()
    [live] = desk.jobs()
    desk.advance(MINUTE)

    tower.put(priority=3)

    assert tower.slots() == [(1, None), (2, "overlap")]
    assert desk.slots()[0].blocker == live.id
    tower.proven()


def test_what_is_due_replaces_as_ever(tower: Tower, desk: Desk) -> None:
    tower.put(overlap=Overlap.REPLACE)
    desk.advance(MINUTE)
    tower.tick()
    [live] = desk.jobs()
    desk.advance(MINUTE)

    tower.put(priority=3)

    assert desk.job(live.id).state is JobState.CANCELLED
    assert len(desk.jobs()) == 1
    tower.proven()


def test_every_missed_slot_that_counts_is_decided_in_order(tower: Tower, desk: Desk) -> None:
    how = {"misfire": Misfire.ALL, "overlap": Overlap.QUEUE_ALL, "max_fires": 20}
    tower.put(payload=b"old", **how)
    desk.advance(12 * MINUTE)

    tower.put(payload=b"new", **how)

    assert tower.slots() == [(n, None) for n in range(1, 13)]
    in_order = sorted(desk.jobs(limit=50), key=lambda job: job.id)
    assert [tower.minutes(job.slot_at) for job in in_order if job.slot_at] == list(range(1, 13))
    assert {job.payload for job in in_order} == {b"old"}
    assert desk.the_schedule().fires_left == 8
    desk.join()
    ran = []
    for _ in range(12):
        desk.release()
        [claim] = desk.claim()
        ran.append(claim.job_id)
        desk.end(claim, Verdict.SUCCEEDED)
    assert ran == [job.id for job in in_order]
    tower.proven()


def test_of_what_is_caught_up_the_bound_is_the_old_ones(tower: Tower, desk: Desk) -> None:
    tower.put(misfire=Misfire.ALL, overlap=Overlap.QUEUE_ALL, catch_up=3.5 * MINUTE)
    desk.advance(8 * MINUTE)

    tower.put(misfire=Misfire.ALL, overlap=Overlap.QUEUE_ALL)

    assert tower.slots() == [(4, "too_late"), *((n, None) for n in range(5, 9))]
    assert desk.slots()[-1].since == tower.start + MINUTE
    [finding] = desk.run(SlotVerifier(desk.store, desk.clock, keep=400 * DAY).verify()).wrong(strict=False)
    assert (finding.kind, finding.count) == (Kind.DROPPED, 4)


def test_misfire_skip_is_obeyed(tower: Tower, desk: Desk) -> None:
    tower.put(misfire=Misfire.SKIP)
    desk.advance(MINUTE + 11 * SECOND)

    tower.put(priority=4)

    assert tower.slots() == [(1, "misfire")]


def test_more_than_one_transaction_should_decide_is_decided_in_several(
    tower: Tower, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaring, "MOST_DUE", 7)
    how = {"misfire": Misfire.ALL, "overlap": Overlap.QUEUE_ALL}
    tower.put("a", "b", payload=b"old", **how)
    tower.put("c", payload=b"old")
    desk.advance(40 * MINUTE)

    tower.put("a", "b", "c", trigger=HOURLY, payload=b"new", **how)

    for name in ("a", "b"):
        assert tower.slots(name) == [(n, None) for n in range(1, 41)]
    assert tower.slots("c") == [(40, None)]
    assert {job.payload for job in desk.jobs(limit=1000)} == {b"old"}
    assert [each.version for each in desk.schedules()] == [2, 2, 2]
    tower.tick()
    tower.proven()


def test_a_pause_skips_what_was_due_and_makes_no_job(tower: Tower, desk: Desk) -> None:
    tower.put()
    desk.advance(MINUTE + SECOND / 2)

    assert desk.pause() == ["s"]

    assert tower.slots() == [(1, "paused")]
    desk.advance(MINUTE)
    assert desk.resume() == ["s"]
    assert tower.slots() == [(1, "paused"), (2, "paused")]
    desk.advance(MINUTE)
    tower.tick()
    assert tower.slots() == [(1, "paused"), (2, "paused"), (3, None)]
    tower.proven()


def test_two_pauses_within_one_outage_are_both_remembered(tower: Tower, desk: Desk) -> None:
    tower.put(misfire=Misfire.ALL, overlap=Overlap.QUEUE_ALL)
    for _ in range(2):
        desk.advance(2 * MINUTE)
        desk.pause()
        desk.advance(2 * MINUTE)
        desk.resume()
    desk.advance(2 * MINUTE)
    for _ in range(3):
        tower.tick()

    # What was due when somebody ordered it to stop is skipped, too.
    assert tower.slots() == [(n, "paused") for n in range(1, 9)] + [(9, None), (10, None)]
    tower.proven()


def test_a_paused_schedule_that_is_changed_goes_on_skipping(tower: Tower, desk: Desk) -> None:
    tower.put()
    desk.pause()
    desk.advance(MINUTE)
    tower.put(trigger=Every(2 * MINUTE))
    desk.advance(3 * MINUTE)
    tower.tick()

    assert {reason for _, reason in tower.slots()} == {"paused"}
    assert desk.jobs() == []
    tower.proven()


@pytest.mark.parametrize(("paused", "reason"), [(False, Skipped.DELETED), (True, Skipped.PAUSED)])
def test_a_deleted_schedule_leaves_no_slot_without_a_row(
    tower: Tower, desk: Desk, paused: bool, reason: Skipped
) -> None:
    tower.put()
    if paused:
        desk.pause()
    desk.advance(MINUTE + SECOND)

    assert desk.delete() == ["s"]

    assert tower.slots() == [(1, reason)]
    assert desk.jobs() == []
    desk.advance(MINUTE)
    tower.tick()
    assert tower.slots() == [(1, reason)]
    tower.proven()


def test_skips_that_are_asked_for_are_of_slots_to_come(tower: Tower, desk: Desk) -> None:
    tower.put()
    desk.advance(MINUTE + SECOND)
    desk.skip(1)
    desk.advance(MINUTE)
    tower.tick()

    assert tower.slots() == [(1, None), (2, "requested")]
    tower.proven()


def test_another_version_of_a_calendar_begins_where_the_old_one_ends(tower: Tower, desk: Desk) -> None:
    """The old one leaves out today, the new one does not: what was due is the old one's."""
    today = desk.now.date()
    old = from_dates("plant", [today], tz="UTC")
    new = from_dates("plant", [today - 400 * DAY], tz="UTC", version=2)
    stored = [StoredCalendar(name=c.name, version=c.version, definition=c.encode()) for c in (old, new)]
    desk.run(desk.store.calendars.put(stored))
    daily = Cron("*/10 * * * *", "UTC")
    tower.put(trigger=Rolled(daily, old, Roll.SKIP))
    desk.advance(10 * MINUTE + SECOND)

    tower.put(trigger=Rolled(daily, new, Roll.SKIP))

    assert tower.slots() == [(10, "calendar")]
    desk.advance(10 * MINUTE)
    tower.tick()
    assert tower.slots() == [(10, "calendar"), (20, None)]
    tower.proven()


def test_a_trigger_that_this_version_cannot_read_leaves_the_slots_that_were_computed_ahead(
    desk: Desk,
) -> None:
    desk.schedule(trigger="newer")
    desk.advance(5 * MINUTE)

    desk.schedule(trigger="newer", priority=3)

    assert len(desk.slots()) == 2


def test_a_change_to_a_trigger_others_have_begins_now(tower: Tower, desk: Desk) -> None:
    """The spec it comes to is late: those slots are not its business."""
    tower.put("a", trigger=HOURLY)
    tower.put("b")
    desk.advance(HOUR + 30 * SECOND)

    tower.put("a")
    tower.tick()

    assert tower.slots("a") == [(60, None)]
    assert tower.slots("b") == [(60, None)]
    assert [job.id for job in desk.jobs()] == sorted((job.id for job in desk.jobs()), reverse=True)
    tower.proven()


def test_nothing_due_means_one_look_and_no_row(tower: Tower, desk: Desk) -> None:
    tower.put("a", "b")
    desk.advance(30 * SECOND)

    tower.put("a", "b", priority=1)

    assert (desk.slots("a"), desk.slots("b"), desk.jobs()) == ([], [], [])


def test_a_row_tells_which_version_decided_it(tower: Tower, desk: Desk) -> None:
    tower.put(max_fires=1)
    desk.advance(MINUTE)
    tower.tick()
    desk.advance(MINUTE)
    tower.put(max_fires=5)

    assert tower.slots() == [(1, None), (2, "exhausted")]
    assert desk.the_schedule().fires_left == 5
    assert timedelta() <= desk.now - desk.slots()[0].slot_at
