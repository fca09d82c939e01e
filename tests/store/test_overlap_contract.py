"""The contract of overlap: what a slot does whose schedule still has live jobs, on every store."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import Disposition, Misfire, Overlap, Skipped
from mainspring.store.codes import HELD
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk, settlement

WEEK = timedelta(days=7)


def slot(desk: Desk, count: int = 1) -> None:
    """Let that many slots of a minutely schedule come and be fired, each on time."""
    for _ in range(count):
        desk.advance(MINUTE)
        desk.fire_due()


def reasons(desk: Desk, name: str = "s") -> list[Skipped | None]:
    """Why each slot made no job, oldest slot first; None where it made one."""
    return [slot.reason for slot in reversed(desk.slots(name))]


def live(desk: Desk) -> list[int]:
    return sorted(job.id for job in desk.jobs())


def waiting(desk: Desk) -> list[int]:
    """Jobs that are held until others have ended."""
    return sorted(job.id for job in desk.jobs() if job.run_at == HELD)


def long_lease(desk: Desk, worker: int = 1) -> None:
    desk.join(worker, lease=DAY)


# Overlap: skip.


@pytest.mark.parametrize("running", [False, True], ids=["waiting", "running"])
def test_a_slot_is_skipped_while_the_job_before_it_is_live_and_names_it(desk, running):
    desk.schedule(overlap=Overlap.SKIP)
    slot(desk)
    [job_id] = live(desk)
    if running:
        long_lease(desk)
        desk.take()
    slot(desk)

    newest = desk.slots()[0]
    assert (newest.disposition, newest.reason) == (Disposition.SKIPPED, Skipped.OVERLAP)
    assert (newest.blocker, newest.job_id, newest.slot_at) == (job_id, None, desk.now)
    assert live(desk) == [job_id]


def test_a_slot_is_fired_once_the_job_before_it_has_ended(desk):
    desk.schedule(overlap=Overlap.SKIP)
    long_lease(desk)
    slot(desk)
    desk.end(desk.take(), Verdict.SUCCEEDED)
    slot(desk)

    assert reasons(desk) == [None, None]


def test_a_job_that_is_to_be_tried_again_is_still_live(desk):
    desk.schedule(overlap=Overlap.SKIP, max_attempts=3)
    long_lease(desk)
    slot(desk)
    desk.end(desk.take(), Verdict.FAILED, delay=HOUR)
    slot(desk)

    assert reasons(desk) == [None, Skipped.OVERLAP]


def test_jobs_of_other_schedules_are_in_nobodys_way(desk):
    desk.schedule("a", overlap=Overlap.SKIP)
    desk.schedule("b", trigger="other", overlap=Overlap.SKIP, next_at=desk.now + 2 * MINUTE)
    desk.put()
    slot(desk, 2)

    assert (reasons(desk, "a"), reasons(desk, "b")) == ([None, Skipped.OVERLAP], [None])


def test_a_slot_that_was_fired_names_no_blocker(desk):
    desk.schedule(overlap=Overlap.ALLOW, overlap_limit=5)
    slot(desk, 2)

    assert [slot.blocker for slot in desk.slots()] == [None, None]


# Overlap: allow.


def test_as_many_as_are_allowed_are_live_at_once_and_no_more(desk):
    desk.schedule(overlap=Overlap.ALLOW, overlap_limit=2)
    long_lease(desk)
    slot(desk, 3)
    first = live(desk)[0]

    assert reasons(desk) == [None, None, Skipped.OVERLAP]
    assert desk.slots()[0].blocker == first

    desk.end(desk.take(), Verdict.SUCCEEDED)
    slot(desk)
    assert reasons(desk)[-1] is None
    assert all(job.run_at < HELD for job in desk.jobs())


# Overlap: queue_one.


def test_one_job_waits_behind_a_running_one_and_no_second(desk):
    desk.schedule(overlap=Overlap.QUEUE_ONE)
    long_lease(desk)
    slot(desk)
    desk.take()
    slot(desk, 2)

    assert reasons(desk) == [None, None, Skipped.OVERLAP]
    assert waiting(desk) == [desk.slots()[1].job_id]


def test_nothing_waits_behind_a_job_that_waits_itself(desk):
    desk.schedule(overlap=Overlap.QUEUE_ONE)
    slot(desk, 2)

    assert reasons(desk) == [None, Skipped.OVERLAP]
    assert waiting(desk) == []


def test_the_first_job_of_a_queueing_schedule_is_due_at_once(desk):
    desk.schedule(overlap=Overlap.QUEUE_ALL)
    slot(desk)

    assert [job.run_at for job in desk.jobs()] == [desk.now]


# Overlap: queue_all, and releasing.


def queue_of(desk: Desk, count: int, **fields: object) -> list[int]:
    """A running job and `count` held ones behind it; all ids, the running one's first."""
    desk.schedule(overlap=Overlap.QUEUE_ALL, **fields)
    long_lease(desk)
    slot(desk)
    desk.take()
    slot(desk, count)
    return live(desk)


def test_any_number_of_jobs_wait_behind_a_running_one(desk):
    running, *held = queue_of(desk, 3)

    assert waiting(desk) == held
    assert len(held) == 3
    assert desk.job(running).state is JobState.RUNNING


def test_a_held_job_is_offered_to_nobody(desk):
    queue_of(desk, 2)
    desk.advance(WEEK)
    long_lease(desk, 2)

    assert desk.claim(2) == []


def test_nothing_is_released_while_the_live_job_runs(desk):
    running, *held = queue_of(desk, 2)

    assert desk.release() == 0
    assert waiting(desk) == held
    assert running in live(desk)


def test_nothing_is_released_while_the_live_job_is_to_be_tried_again(desk):
    queue_of(desk, 1, max_attempts=2)
    [claim] = desk.held()
    desk.end(claim, Verdict.FAILED, delay=HOUR)

    assert desk.release() == 0


@pytest.mark.parametrize("how", ["succeeds", "is cancelled", "dies"])
def test_the_oldest_held_job_is_released_when_the_live_one(desk, how):
    running, *held = queue_of(desk, 3)
    [claim] = desk.held()
    if how == "succeeds":
        desk.end(claim, Verdict.SUCCEEDED)
    elif how == "is cancelled":
        desk.cancel(running)
    else:
        desk.end(claim, Verdict.DEAD)

    assert desk.release() == 1
    assert waiting(desk) == held[1:]
    assert desk.job(held[0]).run_at == desk.now
    assert desk.take(1).job_id == held[0]


def test_held_jobs_run_one_at_a_time_in_the_order_of_their_slots(desk):
    _, *held = queue_of(desk, 3)
    desk.end(desk.held()[0], Verdict.SUCCEEDED)

    order = []
    while desk.release():
        assert desk.release() == 0
        claim = desk.take()
        order.append(claim.job_id)
        assert desk.release() == 0
        desk.end(claim, Verdict.SUCCEEDED)

    assert order == held
    assert [desk.job(job_id).slot_at for job_id in held] == sorted(desk.job(j).slot_at for j in held)


def test_a_job_given_back_by_a_dead_worker_keeps_the_others_waiting(desk):
    desk.schedule(overlap=Overlap.QUEUE_ALL)
    desk.join(lease=2 * MINUTE)
    slot(desk)
    desk.take()
    slot(desk)
    desk.advance(2 * MINUTE)
    desk.reap_all()

    assert desk.release() == 0
    assert len(waiting(desk)) == 1


def test_each_schedule_is_released_for_itself(desk):
    desk.schedule("a", overlap=Overlap.QUEUE_ALL)
    desk.schedule("b", overlap=Overlap.QUEUE_ALL)
    long_lease(desk)
    slot(desk)
    first, _ = sorted(desk.claim(), key=lambda claim: claim.job_id)
    slot(desk)
    desk.end(first, Verdict.SUCCEEDED)

    assert desk.release() == 1
    assert len(waiting(desk)) == 1


def test_a_held_job_may_be_cancelled_and_the_next_takes_its_turn(desk):
    _, second, third = queue_of(desk, 2)
    assert desk.cancel(second) == {second: JobState.DELAYED}
    desk.end(desk.held()[0], Verdict.SUCCEEDED)

    assert desk.release() == 1
    assert desk.job(third).run_at == desk.now


def test_held_jobs_of_a_deleted_schedule_still_get_their_turn(desk):
    queue_of(desk, 1)
    desk.delete()
    desk.end(desk.held()[0], Verdict.SUCCEEDED)

    assert desk.release() == 1


def test_a_released_job_keeps_its_place_in_the_window(desk):
    desk.schedule(overlap=Overlap.QUEUE_ALL, offset=SECOND)
    slot(desk, 2)
    running, held = live(desk)
    desk.cancel(running)

    assert desk.release() == 1
    assert desk.job(held).run_at == desk.job(held).slot_at + SECOND


def test_a_job_that_somebody_put_at_the_end_of_time_stays_there(desk):
    job_id = desk.put(run_at=HELD)

    assert desk.release() == 0
    assert desk.job(job_id).run_at == HELD


def test_with_nothing_held_there_is_nothing_to_release(desk):
    desk.schedule()
    slot(desk)

    assert desk.release() == 0


# Overlap: replace.


def test_a_new_slot_replaces_the_running_job_and_its_workers_word_counts_no_more(desk):
    desk.schedule(overlap=Overlap.REPLACE)
    long_lease(desk)
    slot(desk)
    claim = desk.take()
    slot(desk)

    [fresh] = live(desk)
    assert reasons(desk) == [None, None]
    assert fresh == desk.slots()[0].job_id
    assert desk.settle(settlement(claim, Verdict.SUCCEEDED)) == [claim.job_id]
    assert list(desk.beat(1, claim).lost) == [claim.job_id]
    assert desk.job(claim.job_id).state is JobState.CANCELLED
    [run] = desk.runs(claim.job_id)
    assert (run.verdict, run.worker_id, run.finished_at) == (Verdict.CANCELLED, 1, desk.now)
    assert run.started_at == desk.now - MINUTE


def test_a_new_slot_replaces_every_live_job_waiting_ones_too(desk):
    desk.schedule(overlap=Overlap.ALLOW, overlap_limit=3)
    long_lease(desk)
    slot(desk)
    desk.take()
    slot(desk, 2)
    before = live(desk)
    desk.schedule(overlap=Overlap.REPLACE)
    slot(desk)

    assert [desk.job(job_id).state for job_id in before] == [JobState.CANCELLED] * 3
    assert [desk.runs(job_id)[-1].started_at is None for job_id in before] == [False, True, True]
    assert live(desk) == [desk.slots()[0].job_id]


def test_a_replacing_slot_leaves_the_jobs_of_others_alone(desk):
    desk.schedule("a", overlap=Overlap.REPLACE)
    desk.schedule("b", overlap=Overlap.SKIP)
    other = desk.put()
    slot(desk, 2)

    assert other in live(desk)
    assert desk.slots("b")[1].job_id in live(desk)
    assert len(live(desk)) == 3


def test_a_slot_that_is_skipped_replaces_nothing(desk):
    desk.schedule(overlap=Overlap.REPLACE)
    slot(desk)
    before = live(desk)
    desk.pause()
    slot(desk)

    assert live(desk) == before


def test_a_slot_that_is_in_the_ledger_replaces_and_counts_nothing(desk):
    desk.schedule(overlap=Overlap.REPLACE, max_fires=5)
    desk.advance(MINUTE)
    [spec] = desk.due()
    desk.open(spec, next_at=spec.next_at)
    desk.fire_all()
    before = live(desk)
    desk.open(spec)
    desk.fire_all()

    assert live(desk) == before
    assert desk.the_schedule().fires_left == 4


# Several open fires of one spec.


def test_the_slots_of_one_spec_are_fired_in_order_and_each_sees_the_job_before(desk):
    desk.schedule(overlap=Overlap.SKIP, misfire=Misfire.ALL)
    desk.advance(3 * MINUTE)
    while due := desk.due():
        desk.open(due[0])

    assert [chunk.slot_at for chunk in desk.fire_all()] == [
        desk.now - 2 * MINUTE,
        desk.now - MINUTE,
        desk.now,
    ]
    assert reasons(desk) == [None] * 3
    assert (len(live(desk)), len(waiting(desk))) == (3, 2), "the second sees the first one's job, and waits"


def test_a_fire_is_finished_before_the_next_one_of_its_spec_begins(desk):
    desk.schedule_all(*(desk.new_schedule(f"s{n}", misfire=Misfire.ALL) for n in range(3)))
    desk.advance(2 * MINUTE)
    while due := desk.due():
        desk.open(due[0])
    early, late = desk.now - MINUTE, desk.now

    assert [chunk.slot_at for chunk in desk.fire_all(limit=2)] == [early, early, late, late]
