"""The contract of schedules, specs, fires and the ledger, on every store."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from mainspring.model.job import Job, JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import Chunk, Disposition, Drop, Misfire, Overlap, Schedule, Skipped, Slot
from tests.support.desk import DAY, HOUR, MINUTE, SECOND

# Putting.


def test_a_new_schedule_is_on_record_with_every_field(desk):
    changed = desk.schedule(
        "nightly",
        task="report",
        trigger="0 3 * * *",
        payload=b"args",
        queue="reports",
        priority=4,
        max_attempts=3,
        catch_up=timedelta(hours=6, minutes=30),
        overlap=Overlap.ALLOW,
        overlap_limit=3,
        offset=timedelta(minutes=7),
        jitter=timedelta(microseconds=1),
        max_fires=12,
        next_at=desk.now + 3 * HOUR,
    )

    assert changed == ["nightly"]
    [schedule] = desk.schedules()
    assert schedule == Schedule(
        id=schedule.id,
        name="nightly",
        task="report",
        trigger="0 3 * * *",
        payload=b"args",
        queue="reports",
        priority=4,
        max_attempts=3,
        misfire=Misfire.LATEST,
        catch_up=timedelta(hours=6, minutes=30),
        overlap=Overlap.ALLOW,
        overlap_limit=3,
        offset=timedelta(minutes=7),
        jitter=timedelta(microseconds=1),
        max_fires=12,
        fires_left=12,
        skips=0,
        version=1,
        active_from=desk.now,
        edited=False,
        paused_at=None,
        paused_by=None,
        pause_note=None,
        next_at=desk.now + 3 * HOUR,
    )


def test_the_same_schedule_put_again_is_left_alone(desk):
    desk.schedule()
    before = desk.schedules()
    desk.advance(SECOND)

    assert desk.schedule(next_at=desk.now + HOUR) == []
    assert desk.schedules() == before


@pytest.mark.parametrize(
    "change",
    [
        {"task": "other"},
        {"payload": b"other"},
        {"queue": "other"},
        {"priority": 9},
        {"max_attempts": 9},
        {"catch_up": HOUR},
        {"misfire": Misfire.SKIP},
        {"overlap": Overlap.QUEUE_ALL},
        {"overlap_limit": 2},
        {"offset": MINUTE},
        {"jitter": MINUTE},
        {"max_fires": 5, "fires_left": 5},
        {"expect_start_within": MINUTE},
        {"expect_finish_by": HOUR},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_is_a_new_version_that_starts_now(desk, change):
    desk.schedule()
    [before] = desk.schedules()
    desk.advance(SECOND)

    assert desk.schedule(**{k: v for k, v in change.items() if k != "fires_left"}) == ["s"]
    assert desk.schedules() == [msgspec.structs.replace(before, version=2, active_from=desk.now, **change)]


def test_a_new_trigger_is_a_new_version_that_starts_now(desk):
    desk.schedule()
    [before] = desk.schedules()
    desk.advance(SECOND)

    assert desk.schedule(trigger="hourly", next_at=desk.now + HOUR) == ["s"]
    assert desk.schedules() == [
        msgspec.structs.replace(
            before, version=2, trigger="hourly", active_from=desk.now, next_at=desk.now + HOUR
        )
    ]


def test_going_back_to_an_old_trigger_starts_now_too(desk):
    desk.schedule()
    desk.schedule(trigger="hourly")
    desk.advance(SECOND)

    desk.schedule()

    [schedule] = desk.schedules()
    assert (schedule.version, schedule.trigger, schedule.active_from) == (3, "every minute", desk.now)


def test_equal_triggers_share_one_spec(desk):
    desk.schedule("a")
    desk.schedule("b", next_at=desk.now + HOUR)
    desk.schedule("c", trigger="other")
    desk.advance(DAY)

    assert sorted(spec.trigger for spec in desk.due()) == ["every minute", "other"]
    assert {s.name: s.next_at for s in desk.schedules()}["b"] == desk.now - DAY + MINUTE


def test_only_the_new_and_the_changed_are_answered(desk):
    desk.schedule("kept")
    desk.schedule("changed")

    changed = desk.schedule_all(
        desk.new_schedule("kept"), desk.new_schedule("changed", priority=1), desk.new_schedule("new")
    )

    assert changed == ["changed", "new"]


def test_strays_are_those_that_nobody_declares_and_that_go_on(desk):
    for name in ("d", "b", "c", "a"):
        desk.schedule(name)
    desk.schedule("over", trigger="over", next_at=None, following_at=None)

    def strays(*declared, limit=10):
        return desk.run(desk.store.schedules.undeclared(declared, limit=limit))

    assert strays("b", "nobody") == ["a", "c", "d"]
    assert strays("b", limit=2) == ["a", "c"]
    assert strays() == ["a", "b", "c", "d"]
    assert strays("a", "b", "c", "d") == []


def test_schedules_are_listed_by_name(desk):
    for name in ("b", "c", "a"):
        desk.schedule(name)

    assert [schedule.name for schedule in desk.schedules()] == ["a", "b", "c"]


def test_putting_nothing_is_no_work(desk):
    assert desk.schedule_all() == []


# Specs.


def test_a_spec_is_due_at_its_very_moment_and_not_before(desk):
    desk.schedule(next_at=desk.now + MINUTE)

    desk.advance(MINUTE - SECOND)
    assert desk.due() == []
    desk.advance(SECOND)
    assert [spec.next_at for spec in desk.due()] == [desk.now]


def test_a_due_spec_carries_its_trigger_and_the_slot_after_next(desk):
    desk.schedule(trigger="hourly", next_at=desk.now + HOUR, following_at=desk.now + 2 * HOUR)
    desk.advance(HOUR)

    [spec] = desk.due()
    assert (spec.trigger, spec.next_at, spec.following_at) == ("hourly", desk.now, desk.now + HOUR)


def test_due_specs_come_earliest_first_and_no_more_than_the_limit(desk):
    for minutes in (3, 1, 2):
        desk.schedule(f"s{minutes}", trigger=f"t{minutes}", next_at=desk.now + MINUTE * minutes)
    desk.advance(HOUR)

    assert [spec.trigger for spec in desk.due()] == ["t1", "t2", "t3"]
    assert [spec.trigger for spec in desk.due(limit=2)] == ["t1", "t2"]


def test_a_trigger_without_a_slot_to_come_is_never_due(desk):
    desk.schedule(next_at=None, following_at=None)
    desk.advance(365 * DAY)

    assert (desk.due(), desk.next_due(), desk.unplanned()) == ([], None, [])
    assert desk.schedules()[0].next_at is None


def test_next_due_is_how_long_until_the_earliest(desk):
    desk.schedule("a", trigger="a", next_at=desk.now + HOUR)
    desk.schedule("b", trigger="b", next_at=desk.now + MINUTE)
    desk.advance(SECOND)

    assert desk.next_due() == MINUTE - SECOND


def test_next_due_is_not_negative(desk):
    desk.schedule()
    desk.advance(HOUR)

    assert desk.next_due() == timedelta()


def test_next_due_is_none_without_schedules(desk):
    assert desk.next_due() is None


def test_a_new_spec_is_planned(desk):
    desk.schedule()

    assert desk.unplanned() == []


def test_a_spec_that_moved_on_is_unplanned_until_it_is_planned(desk):
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()
    desk.open(spec)

    [unplanned] = desk.unplanned()
    assert (unplanned.id, unplanned.next_at) == (spec.id, desk.now + MINUTE)
    desk.plan(msgspec.structs.replace(unplanned, following_at=desk.now + 2 * MINUTE))

    assert desk.unplanned() == []
    desk.advance(MINUTE)
    [planned] = desk.due()
    assert (planned.next_at, planned.following_at) == (desk.now, desk.now + MINUTE)


def test_a_plan_for_a_spec_that_moved_on_changes_nothing(desk):
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()
    desk.open(spec)

    desk.plan(msgspec.structs.replace(spec, following_at=desk.now + HOUR))

    [unplanned] = desk.unplanned()
    assert unplanned.following_at is None


def test_a_spec_planned_without_a_following_slot_is_not_asked_for_again(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.open(desk.due()[0])
    desk.plan(msgspec.structs.replace(desk.unplanned()[0], following_at=None))

    assert desk.unplanned() == []


def test_unplanned_specs_keep_to_the_limit(desk):
    for n in range(3):
        desk.schedule(f"s{n}", trigger=f"t{n}")
    desk.advance(MINUTE)
    for spec in desk.due():
        desk.open(spec)

    assert len(desk.unplanned(limit=2)) == 2


# Opening.


def test_opening_a_slot_moves_the_spec_on(desk):
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()

    assert desk.open(spec, next_at=desk.now + HOUR) == 1
    assert desk.due() == []
    assert desk.schedules()[0].next_at == desk.now + HOUR


def test_whoever_opens_second_opens_nothing(desk):
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()

    assert [desk.open(spec), desk.open(spec)] == [1, 0]
    assert [chunk.fired for chunk in desk.fire_all()] == [1]


def test_an_opening_that_expects_another_moment_changes_nothing(desk):
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()

    assert desk.open(spec, expected=spec.next_at + SECOND) == 0
    assert (desk.due(), desk.fire()) == ([spec], None)


def test_a_spec_whose_last_slot_was_opened_is_never_due_again(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.open(desk.due()[0], next_at=None)
    desk.fire_all()
    desk.advance(365 * DAY)

    assert (desk.due(), desk.next_due(), desk.unplanned()) == ([], None, [])
    assert len(desk.slots()) == 1


def test_several_openings_are_counted_by_what_was_ours(desk):
    desk.schedule("a", trigger="a")
    desk.schedule("b", trigger="b")
    desk.advance(MINUTE)
    first, second = desk.due()
    desk.open(first)

    assert desk.open_all(desk.opening(first), desk.opening(second)) == 1


def test_opening_nothing_is_no_work(desk):
    assert desk.open_all() == 0


# Firing.


def test_firing_writes_the_ledger_and_the_job_of_the_slot(desk):
    desk.schedule("nightly", task="report", payload=b"args", queue="reports", priority=4, max_attempts=3)
    [schedule] = desk.schedules()
    slot_at = desk.now + MINUTE
    desk.advance(MINUTE + 2 * SECOND)
    desk.open(desk.due()[0])

    assert desk.fire() == Chunk(slot_at=slot_at, fired=1, skipped=0, late=2 * SECOND)

    [slot] = desk.slots("nightly")
    assert slot == Slot(
        schedule="nightly",
        slot_at=slot_at,
        disposition=Disposition.FIRED,
        reason=None,
        since=None,
        job_id=slot.job_id,
        decided_at=desk.now,
    )
    assert desk.jobs() == [
        Job(
            id=slot.job_id,
            task="report",
            queue="reports",
            priority=4,
            state=JobState.READY,
            run_at=slot_at,
            enqueued_at=desk.now,
            payload=b"args",
            max_attempts=3,
            schedule_id=schedule.id,
            slot_at=slot_at,
        )
    ]


def test_a_fired_job_is_offered_with_its_schedule_and_slot(desk):
    desk.schedule(queue="reports", priority=4)
    [schedule] = desk.schedules()
    desk.advance(MINUTE)
    desk.fire_due()

    claim = desk.take(queues=["reports"])

    assert (claim.schedule_id, claim.slot_at, claim.run_at) == (schedule.id, desk.now, desk.now)


def test_schedule_and_slot_stay_with_the_job_to_its_end(desk):
    desk.schedule()
    [schedule] = desk.schedules()
    desk.advance(MINUTE)
    desk.fire_due()
    claim = desk.take()
    desk.end(claim, Verdict.SUCCEEDED)

    job = desk.job(claim.job_id)
    assert (job.state, job.schedule_id, job.slot_at) == (JobState.SUCCEEDED, schedule.id, desk.now)


def test_with_no_fire_open_there_is_nothing_to_fire(desk):
    desk.schedule()

    assert desk.fire() is None


def test_a_fire_is_done_once(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.open(desk.due()[0])

    assert [chunk is None for chunk in (desk.fire(), desk.fire())] == [False, True]
    assert (len(desk.jobs()), len(desk.slots())) == (1, 1)


def test_a_slot_that_is_in_the_ledger_is_not_fired_again(desk):
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()
    desk.open(spec, next_at=spec.next_at)
    desk.fire_all()

    assert desk.open(spec) == 1
    assert [(chunk.fired, chunk.skipped) for chunk in desk.fire_all()] == [(0, 0)]
    assert (len(desk.jobs()), len(desk.slots())) == (1, 1)


def test_one_fire_serves_every_schedule_of_its_spec(desk):
    for name in ("a", "b", "c"):
        desk.schedule(name, payload=name.encode())
    desk.schedule("other", trigger="other", next_at=desk.now + HOUR)
    desk.advance(MINUTE)

    assert [chunk.fired for chunk in desk.fire_due()] == [3]
    assert sorted(job.payload for job in desk.jobs()) == [b"a", b"b", b"c"]
    assert desk.slots("other") == []


def test_a_fire_goes_on_chunk_by_chunk_until_all_are_served(desk):
    names = [f"s{n}" for n in range(7)]
    desk.schedule_all(*(desk.new_schedule(name) for name in names))
    desk.advance(MINUTE)
    desk.open(desk.due()[0])

    fired = [desk.fire(limit=3) for _ in range(3)]

    assert [(chunk.fired, chunk.slot_at) for chunk in fired] == [(3, desk.now), (3, desk.now), (1, desk.now)]
    assert desk.fire(limit=3) is None
    assert [len(desk.slots(name)) for name in names] == [1] * 7
    assert len(desk.jobs()) == 7


def test_a_fire_whose_last_chunk_is_full_fires_nothing_twice(desk):
    desk.schedule_all(*(desk.new_schedule(f"s{n}") for n in range(4)))
    desk.advance(MINUTE)
    desk.open(desk.due()[0])

    assert sum(chunk.fired for chunk in desk.fire_all(limit=2)) == 4
    assert len(desk.jobs()) == 4


def test_the_oldest_fire_goes_first(desk):
    desk.schedule("late", trigger="late", next_at=desk.now + 2 * MINUTE)
    desk.schedule("early", trigger="early", next_at=desk.now + MINUTE)
    desk.advance(HOUR)
    start = desk.now - HOUR

    assert [chunk.slot_at for chunk in desk.fire_due()] == [start + MINUTE, start + 2 * MINUTE]


def test_no_slot_is_decided_before_it_came(desk):
    """A scheduler may begin its statement a moment before another one opens the slot that it then sees."""
    desk.schedule()
    desk.advance(MINUTE)
    [spec] = desk.due()
    desk.open(spec)

    desk.run(desk.store.slots.fire(limit=100, at=spec.next_at - timedelta(milliseconds=3)))

    [slot] = desk.slots()
    assert (slot.disposition, slot.decided_at) == (Disposition.FIRED, spec.next_at)


def test_a_slot_older_than_the_catch_up_window_is_skipped_with_its_reason(desk):
    desk.schedule(catch_up=HOUR)
    slot_at = desk.now + MINUTE
    desk.advance(MINUTE + HOUR + SECOND)

    dropped = Drop(schedule="s", reason=Skipped.TOO_LATE)
    assert desk.fire_due() == [
        Chunk(slot_at=slot_at, fired=0, skipped=1, late=HOUR + SECOND, dropped=(dropped,))
    ]
    assert desk.jobs() == []
    assert desk.slots() == [
        Slot(
            schedule="s",
            slot_at=slot_at,
            disposition=Disposition.SKIPPED,
            reason="too_late",
            since=None,
            job_id=None,
            decided_at=desk.now,
        )
    ]


def test_a_slot_just_inside_the_catch_up_window_is_fired(desk):
    desk.schedule(catch_up=HOUR)
    desk.advance(MINUTE + HOUR)

    assert [(chunk.fired, chunk.skipped) for chunk in desk.fire_due()] == [(1, 0)]


def test_schedules_of_one_fire_each_keep_their_own_catch_up_window(desk):
    desk.schedule("short", catch_up=MINUTE)
    desk.schedule("long", catch_up=DAY)
    desk.advance(HOUR)

    assert [(chunk.fired, chunk.skipped) for chunk in desk.fire_due()] == [(1, 1)]
    assert desk.slots("short")[0].disposition is Disposition.SKIPPED
    assert desk.slots("long")[0].disposition is Disposition.FIRED


def test_the_first_of_the_missed_slots_is_kept_in_the_ledger(desk):
    desk.schedule()
    since = desk.now + MINUTE
    desk.advance(HOUR)
    [spec] = desk.due()
    desk.open(spec, slot_at=desk.now, since=since, next_at=desk.now + MINUTE)
    desk.fire_all()

    [slot] = desk.slots()
    assert (slot.slot_at, slot.since) == (desk.now, since)


def test_a_schedule_stands_for_no_slot_before_its_own_start(desk):
    desk.schedule("old")
    since = desk.now + MINUTE
    desk.advance(30 * MINUTE)
    desk.schedule("young")
    started = desk.now
    desk.advance(30 * MINUTE)
    [spec] = desk.due()
    desk.open(spec, slot_at=desk.now, since=since, next_at=desk.now + MINUTE)
    desk.fire_all()

    assert desk.slots("old")[0].since == since
    assert desk.slots("young")[0].since == started + timedelta(microseconds=1)


def test_a_schedule_made_after_the_slot_is_not_fired_for_it(desk):
    desk.schedule("old")
    desk.advance(MINUTE + SECOND)
    desk.schedule("young")

    assert [(chunk.fired, chunk.skipped) for chunk in desk.fire_due()] == [(1, 0)]
    assert (len(desk.slots("old")), desk.slots("young")) == (1, [])


def test_a_schedule_made_at_the_very_moment_of_the_slot_is_not_fired_for_it(desk):
    desk.schedule("old")
    desk.advance(MINUTE)
    desk.schedule("young")
    desk.fire_due()

    assert desk.slots("young") == []


def test_a_schedule_whose_trigger_changed_is_not_fired_for_older_slots_of_the_new_one(desk):
    desk.schedule("keeper", trigger="new")
    desk.schedule("mover", trigger="old", next_at=desk.now + HOUR)
    desk.advance(2 * MINUTE)
    desk.schedule("mover", trigger="new")
    desk.fire_due()

    assert (len(desk.slots("keeper")), desk.slots("mover")) == (1, [])


def test_a_change_of_arguments_first_decides_the_slot_that_was_due(desk):
    desk.schedule(payload=b"before")
    desk.advance(MINUTE + SECOND)
    desk.schedule(payload=b"after")

    assert [job.payload for job in desk.jobs()] == [b"before"]
    assert [chunk.fired for chunk in desk.fire_due()] == [0]
    assert [job.payload for job in desk.jobs()] == [b"before"]


def test_the_next_slot_of_a_schedule_is_another_job(desk):
    desk.schedule(overlap=Overlap.ALLOW, overlap_limit=3)
    for _ in range(3):
        desk.advance(MINUTE)
        desk.fire_due()

    assert [slot.slot_at for slot in desk.slots()] == [desk.now, desk.now - MINUTE, desk.now - 2 * MINUTE]
    assert len({slot.job_id for slot in desk.slots()}) == 3


def test_jobs_of_slots_and_of_inserts_share_one_row_of_ids(desk):
    desk.schedule()
    put = [desk.put()]
    desk.advance(MINUTE)
    desk.fire_due()
    put += [desk.put() for _ in range(3)]

    assert desk.slots()[0].job_id not in put
    assert len(desk.jobs()) == 5
