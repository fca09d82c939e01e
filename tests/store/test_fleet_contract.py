"""The contract of members, heartbeats and the reaper, on every store."""

from __future__ import annotations

import msgspec
import pytest

from mainspring.model.fleet import Beat, MemberInfo, Reaped, Role
from mainspring.model.history import Run
from mainspring.model.job import JobState, NewJob
from mainspring.model.settlement import Verdict
from tests.support.desk import HOUR, LEASE, MINUTE, SECOND


def by_id(desk):
    return {member.id: member for member in desk.members()}


# Joining and leaving.


def test_a_member_is_on_record_with_every_field(desk):
    desk.join(
        7,
        name="box-1",
        queues=("mail", "default"),
        tasks=("a", "b"),
        version="1.2.3",
        tzdata="2030a",
        lease=LEASE,
    )

    assert desk.members() == [
        MemberInfo(
            id=7,
            role=Role.WORKER,
            name="box-1",
            queues=("mail", "default"),
            tasks=("a", "b"),
            version="1.2.3",
            tzdata="2030a",
            started_at=desk.now,
            lease_until=desk.now + LEASE,
            alive=True,
        )
    ]


def test_a_scheduler_is_a_member_without_queues_and_tasks(desk):
    desk.join(9, role=Role.SCHEDULER, name="clockwork")

    [member] = desk.members()
    assert (member.role, member.name, member.queues, member.tasks) == (Role.SCHEDULER, "clockwork", (), ())


def test_the_largest_id_there_can_be_is_kept(desk):
    largest = (1 << 63) - 1
    claim = desk.started(worker=largest)

    assert claim.worker_id == largest
    assert desk.job(claim.job_id).worker_id == largest
    assert desk.beat(largest, claim) == Beat(alive=True)


def test_members_are_listed_by_start(desk):
    for worker in (30, 10, 20):
        desk.join(worker)
        desk.advance(SECOND)

    assert [member.id for member in desk.members()] == [30, 10, 20]


def test_a_member_is_alive_until_its_lease_ends(desk):
    desk.join(lease=LEASE)

    desk.advance(LEASE - SECOND)
    assert by_id(desk)[1].alive
    desk.advance(SECOND)
    assert not by_id(desk)[1].alive


def test_a_clean_leave_takes_the_member_off_the_record(desk):
    desk.join(1)
    desk.join(2)

    desk.leave(1, clean=True)

    assert [member.id for member in desk.members()] == [2]
    assert not desk.beat(1).alive


def test_an_unclean_leave_ends_the_lease_at_once(desk):
    desk.join(1, lease=HOUR)
    desk.leave(1, clean=False)

    assert not desk.beat(1).alive
    assert [member for member in desk.members() if member.alive] == []


def test_claims_left_behind_are_given_back_without_waiting_for_the_lease(desk):
    desk.join(1, lease=HOUR)
    claim = desk.started(worker=1)
    desk.leave(1, clean=False)

    assert sum(done.jobs for done in desk.reap_all()) == 1
    assert desk.job(claim.job_id).state is JobState.READY
    assert desk.members() == []


def test_leaving_twice_or_without_joining_is_no_work(desk):
    desk.join(1)
    desk.leave(1)
    desk.leave(1)
    desk.leave(99, clean=False)

    assert desk.members() == []


# Beats.


def test_a_beat_renews_the_lease_from_now(desk):
    desk.join(lease=LEASE)
    desk.advance(5 * SECOND)

    assert desk.beat(lease=MINUTE) == Beat(alive=True, lost=())
    assert by_id(desk)[1].lease_until == desk.now + MINUTE


def test_a_beat_leaves_the_start_alone(desk):
    desk.join()
    started_at = desk.now
    desk.advance(SECOND)
    desk.beat()

    assert by_id(desk)[1].started_at == started_at


def test_a_beat_renews_nobody_elses_lease(desk):
    desk.join(1)
    desk.join(2)
    desk.advance(SECOND)
    desk.beat(1)

    assert by_id(desk)[2].lease_until == desk.now - SECOND + LEASE


def test_a_beat_after_the_end_of_the_lease_is_refused(desk):
    desk.join(lease=LEASE)
    desk.advance(LEASE)

    assert not desk.beat().alive
    assert by_id(desk)[1].lease_until == desk.now


def test_a_beat_of_a_stranger_is_refused(desk):
    assert not desk.beat(99).alive
    assert desk.members() == []


def test_a_beat_keeps_the_claims_it_names(desk):
    claims = [desk.started() for _ in range(3)]

    assert desk.beat(1, *claims) == Beat(alive=True, lost=())


def test_a_beat_tells_which_claims_are_lost(desk):
    kept, settled, cancelled, released = (desk.started() for _ in range(4))
    desk.end(settled, Verdict.SUCCEEDED)
    desk.cancel(cancelled.job_id)
    desk.end(released, Verdict.RELEASED)

    beat = desk.beat(1, kept, settled, cancelled, released)

    assert beat.alive
    assert sorted(beat.lost) == [settled.job_id, cancelled.job_id, released.job_id]


def test_a_beat_tells_an_old_fence_from_the_new_one(desk):
    old = desk.started()
    desk.end(old, Verdict.RELEASED)
    new = desk.take()

    assert desk.beat(1, new).lost == ()
    assert desk.beat(1, old).lost == (old.job_id,)


def test_a_beat_does_not_take_anothers_claim_for_its_own(desk):
    theirs = desk.started(worker=2)
    desk.join(1)

    assert desk.beat(1, theirs).lost == (theirs.job_id,)


def test_a_reaped_worker_is_told_that_it_is_dead_and_what_it_lost(desk):
    claim = desk.started()
    desk.lose()

    beat = desk.beat(1, claim)

    assert (beat.alive, beat.lost) == (False, (claim.job_id,))


# Reaping.


def test_a_dead_workers_jobs_go_back_to_the_queue(desk):
    claim = desk.started(worker=7, priority=3, max_attempts=2)
    before = desk.job(claim.job_id)
    desk.advance(LEASE)

    assert desk.reap() == Reaped(members=("worker-7",), jobs=1)

    assert desk.job(claim.job_id) == msgspec.structs.replace(
        before, state=JobState.READY, worker_id=None, crashes=1
    )


def test_a_lost_run_is_written_into_history_as_a_crash(desk):
    claim = desk.started(worker=7)
    claimed_at = desk.now
    desk.advance(LEASE)
    desk.reap()

    assert desk.runs(claim.job_id) == [
        Run(
            job_id=claim.job_id,
            task="t",
            queue="default",
            attempt=1,
            verdict=Verdict.CRASHED,
            worker_id=7,
            fence=1,
            started_at=claimed_at,
            finished_at=desk.now,
            enqueued_at=claim.enqueued_at,
        )
    ]


def test_a_crash_is_counted_apart_from_failures(desk):
    claim = desk.started(max_attempts=1)
    desk.lose()
    again = desk.take(2)

    assert (again.job_id, again.failures, again.attempt, again.fence) == (claim.job_id, 0, 1, 2)
    job = desk.job(claim.job_id)
    assert (job.failures, job.crashes, job.errors) == (0, 1, ())


def test_a_claim_tells_how_many_workers_were_lost_with_its_job(desk):
    first = desk.started(worker=1)
    desk.advance(LEASE)
    desk.reap()
    desk.join(2)
    [again] = desk.claim(2)

    assert (first.crashes, again.crashes, again.job_id) == (0, 1, first.job_id)
    assert [claim.crashes for claim in desk.held(2)] == [1]


def test_crashes_add_up_and_go_with_the_job_to_its_end(desk):
    claim = desk.started(worker=1)
    desk.lose(1)
    desk.take(2)
    desk.lose(2)
    desk.end(desk.take(3), Verdict.DEAD)

    [dead] = desk.dead()
    assert (dead.id, dead.crashes, dead.failures, dead.fence) == (claim.job_id, 2, 1, 3)


def test_a_reaped_job_is_offered_at_once_in_its_old_place(desk):
    claim = desk.started(worker=1)
    desk.advance(LEASE)
    later = desk.put()
    desk.reap_all()
    desk.join(2)

    assert [c.job_id for c in desk.claim(2)] == [claim.job_id, later]


def test_a_live_workers_jobs_are_left_alone(desk):
    dead, live = desk.started(worker=1), desk.started(worker=2)
    desk.advance(LEASE - SECOND)
    desk.beat(2, live)
    desk.advance(SECOND)

    assert desk.reap() == Reaped(members=("worker-1",), jobs=1)
    assert desk.job(dead.job_id).state is JobState.READY
    assert (desk.job(live.job_id).state, desk.job(live.job_id).crashes) == (JobState.RUNNING, 0)


def test_a_lease_is_good_until_its_end_and_not_beyond(desk):
    desk.started()
    desk.advance(LEASE - SECOND)
    assert desk.reap() == Reaped()

    desk.advance(SECOND)
    assert desk.reap().jobs == 1


def test_every_claim_of_a_dead_worker_is_found_in_every_queue_and_priority(desk):
    desk.join()
    wanted = [
        desk.put(task=task, queue=queue, priority=priority, run_at=desk.now - age)
        for task in ("a", "b")
        for queue in ("one", "two")
        for priority in (-1, 5)
        for age in (SECOND, HOUR)
    ]
    assert len(desk.claim(queues=["one", "two"], tasks=["a", "b"], limit=100)) == len(wanted)

    desk.lose()

    assert {desk.job(job_id).state for job_id in wanted} == {JobState.READY}
    assert {desk.job(job_id).crashes for job_id in wanted} == {1}


def test_a_pass_gives_back_no_more_than_its_limit(desk):
    desk.join()
    desk.put_all(*[NewJob(task="t", payload=b"")] * 25)
    desk.claim(limit=25)
    desk.advance(LEASE)

    counts = [done.jobs for done in (desk.reap(limit=10) for _ in range(4))]

    assert counts == [10, 10, 5, 0]
    assert desk.depth()[0].ready == 25


def test_a_dead_member_is_forgotten_once_it_holds_nothing(desk):
    desk.started()
    desk.lose()

    assert desk.members() == []


def test_a_dead_member_is_named_once(desk):
    desk.join(1)
    desk.join(2)
    desk.advance(LEASE)

    names = [name for done in desk.reap_all() for name in done.members]

    assert sorted(names) == ["worker-1", "worker-2"]


def test_a_dead_scheduler_is_reaped_too(desk):
    desk.join(9, role=Role.SCHEDULER)
    desk.advance(LEASE)

    assert desk.reap() == Reaped(members=("scheduler-9",), jobs=0)
    desk.reap_all()
    assert desk.members() == []


def test_reaping_an_empty_fleet_is_no_work(desk):
    desk.put()

    assert desk.reap() == Reaped()


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.RELEASED])
def test_a_dead_worker_that_held_nothing_costs_no_job_a_crash(desk, verdict):
    claim = desk.started()
    desk.end(claim, verdict)
    desk.lose()

    assert desk.job(claim.job_id).crashes == 0
    assert [run.verdict for run in desk.runs(claim.job_id)] == [verdict]


def test_claims_of_a_member_that_has_no_row_are_found_and_given_back(desk):
    claim = desk.started()
    desk.leave(clean=True)

    assert desk.mourn() == 1
    assert desk.reap().jobs == 1
    assert desk.job(claim.job_id).crashes == 1


def test_nobody_on_record_is_mourned(desk):
    desk.started()

    assert desk.mourn() == 0
