"""The contract of processes, heartbeats and the reaper, on every store."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from mainspring.model.job import JobName, JobState, NewJob, Whereabouts
from mainspring.model.process import UNWATCHED, WATCH_GAP, Beat, ProcessInfo, Reaped, Role, Watch
from mainspring.model.run import Run, Verdict
from tests.support.desk import HOUR, LEASE, MINUTE, SECOND, settlement


def by_id(desk):
    return {member.id: member for member in desk.processes()}


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

    assert desk.processes() == [
        ProcessInfo(
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

    [member] = desk.processes()
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

    assert [member.id for member in desk.processes()] == [30, 10, 20]


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

    assert [member.id for member in desk.processes()] == [2]
    assert not desk.beat(1).alive


def test_an_unclean_leave_ends_the_lease_at_once(desk):
    desk.join(1, lease=HOUR)
    desk.leave(1, clean=False)

    assert not desk.beat(1).alive
    assert [member for member in desk.processes() if member.alive] == []


def test_claims_left_behind_are_given_back_without_waiting_for_the_lease(desk):
    desk.join(1, lease=HOUR)
    claim = desk.started(worker=1)
    desk.leave(1, clean=False)

    assert sum(done.jobs for done in desk.reap_all()) == 1
    assert desk.job(claim.job_id).state is JobState.READY
    assert desk.processes() == []


def test_leaving_twice_or_without_joining_is_no_work(desk):
    desk.join(1)
    desk.leave(1)
    desk.leave(1)
    desk.leave(99, clean=False)

    assert desk.processes() == []


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


def test_a_beat_after_the_end_of_the_lease_renews_it_until_the_reaper_has_come(desk):
    claim = desk.started()
    desk.advance(HOUR)
    assert desk.claim(1) == []

    assert desk.beat(1, claim) == Beat(alive=True)
    assert by_id(desk)[1].lease_until == desk.now + LEASE
    assert desk.reap() == Reaped()

    desk.advance(LEASE)
    desk.reap()
    assert desk.beat(1, claim) == Beat(alive=False, lost=(claim.job_id,))


def test_a_beat_of_a_stranger_is_refused(desk):
    assert not desk.beat(99).alive
    assert desk.processes() == []


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


def watched(desk, since, last=None):
    """One pass of a reaper that has looked at the store from the first time to the second without a gap."""
    return desk.reap(watch=Watch(since=since, last=last or desk.now - SECOND))


def test_after_an_outage_members_have_the_time_of_a_lease_to_renew_before_anybody_is_reaped(desk):
    long, short = desk.started(worker=1), desk.started(worker=2)
    desk.advance(HOUR)
    back = desk.now

    assert desk.reap(watch=UNWATCHED) == Reaped(at=desk.now, late=True)
    desk.advance(LEASE - SECOND)
    assert watched(desk, back) == Reaped(at=desk.now, late=True)
    assert desk.beat(1, long).alive
    desk.advance(SECOND)
    done = watched(desk, back)

    assert (done.processes, done.jobs, done.late) == (("worker-2",), 1, False)
    assert (desk.job(long.job_id).state, desk.job(short.job_id).state) == (JobState.RUNNING, JobState.READY)


def test_a_member_with_a_long_lease_has_as_long_to_renew(desk):
    desk.join(1, lease=MINUTE)
    desk.join(2, lease=LEASE)
    desk.advance(HOUR)
    back = desk.now
    desk.advance(LEASE)

    assert watched(desk, back).processes == ("worker-2",)
    desk.advance(MINUTE - LEASE)
    assert watched(desk, back).processes == ("worker-1",)


def test_who_falls_silent_alone_is_reaped_at_the_end_of_its_lease(desk):
    began = desk.now
    desk.started()
    desk.advance(LEASE)

    assert watched(desk, began).jobs == 1


def test_nobody_is_reaped_in_a_pass_that_comes_after_a_gap(desk):
    began = desk.now
    desk.started()
    desk.advance(LEASE)

    assert watched(desk, began - HOUR, desk.now - WATCH_GAP - SECOND) == Reaped(at=desk.now, late=True)
    assert watched(desk, began - HOUR, desk.now - WATCH_GAP).jobs == 1


def test_a_watch_begins_anew_after_a_gap_and_when_the_clock_is_set_back(desk):
    watch = Watch(since=desk.now - HOUR, last=desk.now)

    assert watch.seen(desk.now + WATCH_GAP) == Watch(since=desk.now - HOUR, last=desk.now + WATCH_GAP)
    for jump in (WATCH_GAP + SECOND, -SECOND):
        assert watch.seen(desk.now + jump) == Watch(since=desk.now + jump, last=desk.now + jump)
    assert UNWATCHED.seen(desk.now) == Watch(since=desk.now, last=desk.now)


@pytest.mark.parametrize("ahead", [HOUR, timedelta(days=365000)])
def test_a_lease_far_in_the_future_does_not_hold_its_jobs_for_ever(desk, ahead):
    """As after the clock of the database's host was ahead, and was set back."""
    claim = desk.started()
    desk.run(desk.store.processes.beat(1, lease=LEASE, claims=[], at=desk.now + ahead))

    assert desk.reap() == Reaped()
    assert by_id(desk)[1].lease_until == desk.now + LEASE
    desk.advance(LEASE)

    assert desk.reap().jobs == 1
    assert desk.job(claim.job_id).state is JobState.READY


def test_a_store_that_answers_is_not_down(desk):
    assert desk.run(desk.store.health.is_down()) is False


@pytest.mark.parametrize("begun", [False, True])
def test_a_dead_workers_jobs_go_back_to_the_queue(desk, begun):
    claim = desk.started(worker=7, priority=3, max_attempts=2)
    before = desk.job(claim.job_id)
    if begun:
        assert desk.begin(claim)
    desk.advance(LEASE)

    assert desk.reap() == Reaped(processes=("worker-7",), jobs=1)

    assert desk.job(claim.job_id) == msgspec.structs.replace(
        before, state=JobState.READY, worker_id=None, crashes=int(begun)
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
    desk.lose(1, claim)
    again = desk.take(2)

    assert (again.job_id, again.failures, again.attempt, again.fence) == (claim.job_id, 0, 1, 2)
    job = desk.job(claim.job_id)
    assert (job.failures, job.crashes, job.errors) == (0, 1, ())


def test_a_claim_tells_how_many_workers_were_lost_with_its_job(desk):
    first = desk.started(worker=1)
    desk.lose(1, first)
    desk.join(2)
    [again] = desk.claim(2)

    assert (first.crashes, again.crashes, again.job_id) == (0, 1, first.job_id)
    assert [claim.crashes for claim in desk.held(2)] == [1]


def test_crashes_add_up_and_go_with_the_job_to_its_end(desk):
    claim = desk.started(worker=1)
    desk.lose(1, claim)
    desk.lose(2, desk.take(2))
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

    assert desk.reap() == Reaped(processes=("worker-1",), jobs=1)
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
    assert {run.verdict for job_id in wanted for run in desk.runs(job_id)} == {Verdict.CRASHED}


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

    assert desk.processes() == []


def test_a_dead_member_is_named_once(desk):
    desk.join(1)
    desk.join(2)
    desk.advance(LEASE)

    names = [name for done in desk.reap_all() for name in done.processes]

    assert sorted(names) == ["worker-1", "worker-2"]


def test_a_dead_scheduler_is_reaped_too(desk):
    desk.join(9, role=Role.SCHEDULER)
    desk.advance(LEASE)

    assert desk.reap() == Reaped(processes=("scheduler-9",), jobs=0)
    desk.reap_all()
    assert desk.processes() == []


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

    assert desk.mark_orphans_dead() == 1
    assert desk.reap().jobs == 1
    assert desk.job(claim.job_id).state is JobState.READY


def test_nobody_on_record_is_marked_dead(desk):
    desk.started()

    assert desk.mark_orphans_dead() == 0


# Where jobs are.


def test_the_whereabouts_of_jobs_name_who_has_them(desk, store, run):
    desk.join(1, name="box-1")
    mine, waiting, cancelled = desk.started(worker=1).job_id, desk.put(), desk.put()
    desk.cancel(cancelled)

    found = run(store.queue.whereabouts([waiting, cancelled, mine, 10**9]))

    assert found == [
        Whereabouts(job_id=waiting, live=True),
        Whereabouts(job_id=cancelled, live=False),
        Whereabouts(job_id=mine, live=True, holder="box-1"),
        Whereabouts(job_id=10**9, live=False),
    ]


def test_dead_letters_are_named(desk, store, run):
    job_id, live = desk.bury(task="mail", queue="slow"), desk.put()

    assert run(store.dead_letters.names([live, job_id])) == [
        JobName(job_id=job_id, task="mail", queue="slow")
    ]


# Crashes, and orphaned jobs.


def orphans(desk, count=1, *, worker=1):
    """Jobs that were in hand when their worker died; their ids."""
    ids = desk.put_all(*[NewJob(task="t", payload=b"{}")] * count)
    desk.join(worker)
    assert len(desk.claim(worker, limit=count)) == count
    desk.lose(worker)
    return ids


def test_a_job_whose_run_never_began_has_no_crash_however_often_its_workers_die(desk):
    [job_id] = orphans(desk)

    for worker in range(10, 20):
        assert desk.take(worker).orphan
        desk.lose(worker)

    job = desk.job(job_id)
    assert (job.state, job.crashes, job.fence) == (JobState.READY, 0, 11)


def test_the_first_worker_that_dies_with_a_job_leaves_a_lost_run_and_no_crash(desk):
    # Nobody knows whether it had begun.
    [job_id] = orphans(desk)

    assert desk.job(job_id).crashes == 0
    assert [(run.verdict, run.fence) for run in desk.runs(job_id)] == [(Verdict.CRASHED, 1)]


def test_a_suspect_that_is_lost_before_it_begins_leaves_nothing_in_history(desk):
    [job_id] = orphans(desk)
    desk.take(2)
    desk.lose(2)

    assert [run.fence for run in desk.runs(job_id)] == [1]


def test_of_suspects_that_are_lost_those_that_had_begun_have_crashed(desk):
    ids = orphans(desk, 4)
    desk.join(2)
    claims = {claim.job_id: claim for claim in desk.claim(2)}
    begun, waiting = ids[:2], ids[2:]

    desk.lose(2, *[claims[job_id] for job_id in begun])

    assert [desk.job(job_id).crashes for job_id in (*begun, *waiting)] == [1, 1, 0, 0]
    assert {desk.job(job_id).state for job_id in ids} == {JobState.READY}


def test_a_begin_counts_for_its_own_claim_alone(desk):
    [job_id] = orphans(desk)
    claim = desk.take(2)
    desk.begin(claim)
    desk.end(claim, Verdict.RELEASED)
    desk.take(2)
    desk.lose(2)

    assert desk.job(job_id).crashes == 0


@pytest.mark.parametrize("verdict", [Verdict.RELEASED, Verdict.SUCCEEDED])
def test_a_begin_of_a_claim_that_is_gone_is_refused(desk, verdict):
    [job_id] = orphans(desk)
    claim = desk.take(2)
    desk.end(claim, verdict)
    if verdict is Verdict.RELEASED:
        desk.take(3)

    assert not desk.begin(claim)
    assert not desk.begin(msgspec.structs.replace(claim, worker_id=99))
    if verdict is Verdict.RELEASED:
        desk.lose(3)
        assert desk.job(job_id).crashes == 0


def test_a_begin_may_be_put_on_record_again(desk):
    orphans(desk)
    claim = desk.take(2)

    assert desk.begin(claim)
    assert desk.begin(claim)


def test_a_claim_brings_no_more_suspects_than_asked_for_and_others_pass(desk):
    ids = orphans(desk, 5)
    others = desk.put_all(*[NewJob(task="t", payload=b"{}")] * 3)
    desk.join(2)

    none = desk.claim(2, limit=1, orphans=0)
    two = desk.claim(2, limit=10, orphans=2)
    rest = desk.claim(2, limit=2, orphans=9)

    assert [claim.job_id for claim in none] == others[:1]
    assert [(claim.job_id, claim.orphan) for claim in two] == [
        (ids[0], True),
        (ids[1], True),
        (others[1], False),
        (others[2], False),
    ]
    assert [claim.job_id for claim in rest] == ids[2:4]


def test_held_claims_tell_suspects_from_others(desk):
    [job_id] = orphans(desk)
    other = desk.put()
    desk.join(2)
    desk.claim(2)

    assert [(claim.job_id, claim.orphan) for claim in desk.held(2)] == [(job_id, True), (other, False)]


def test_suspects_are_handed_out_under_the_same_conditions_as_others(desk):
    orphans(desk)
    desk.join(2)

    assert desk.claim(2, tasks=("other",)) == []
    assert desk.claim(2, queues=("other",)) == []
    assert desk.claim(99) == []
    desk.pause_queue()
    assert desk.claim(2) == []
    desk.resume_queue()
    assert len(desk.claim(2)) == 1


def test_a_suspect_that_waits_for_its_time_is_not_handed_out_before(desk):
    orphans(desk)
    desk.end(desk.take(2), Verdict.CRASHED, delay=SECOND)

    assert desk.claim(2) == []
    desk.advance(SECOND)
    [claim] = desk.claim(2)
    assert (claim.orphan, claim.crashes) == (True, 1)


def test_a_job_whose_child_has_crashed_is_a_suspect(desk):
    claim = desk.started()
    desk.end(claim, Verdict.CRASHED)

    assert desk.claim(orphans=0) == []
    [again] = desk.claim(orphans=1)
    assert again.orphan


def test_suspects_that_crashed_least_come_first(desk):
    first, *others = orphans(desk, 3)
    desk.join(2)
    [claim] = desk.claim(2, orphans=1)
    assert claim.job_id == first
    desk.lose(2, claim)
    desk.join(3)

    assert [each.job_id for each in desk.claim(3, orphans=2)] == others
    assert [each.job_id for each in desk.claim(3, orphans=2)] == [first]


def test_a_suspect_whose_next_crash_is_its_last_runs_with_no_other(desk):
    bad, good, better = orphans(desk, 3)
    for worker in (2, 3):
        desk.join(worker)
        claims = {claim.job_id: claim for claim in desk.claim(worker)}
        desk.lose(worker, claims[bad])
    desk.join(4)

    assert [claim.job_id for claim in desk.claim(4, last=True)] == [good, better]
    assert desk.claim(4, last=False) == []
    [alone] = desk.claim(4, last=True)
    assert (alone.job_id, alone.crashes) == (bad, 2)


def test_only_one_suspect_is_handed_out_where_the_next_crash_of_each_is_its_last(desk):
    ids = orphans(desk, 2)
    for worker in (2, 3):
        desk.join(worker)
        desk.lose(worker, *desk.claim(worker))
    desk.join(4)

    assert [claim.job_id for claim in desk.claim(4)] == ids[:1]


def test_a_job_that_kills_every_worker_is_buried_alone_among_two_hundred(desk):
    # It takes its worker along even from a child, and with it what runs in the other children.
    ids = orphans(desk, 201)
    poison, deaths = ids[100], 1

    for worker in range(10, 1000):
        desk.join(worker)
        claims = desk.claim(worker, orphans=4)
        if poison in [claim.job_id for claim in claims]:
            deaths += 1
            desk.lose(worker, *claims)
        for claim in claims:
            desk.settle(settlement(claim, Verdict.SUCCEEDED))
        if not claims:
            break

    assert deaths == 4
    assert [(dead.id, dead.crashes) for dead in desk.dead()] == [(poison, 3)]
    innocent = [desk.job(job_id) for job_id in ids if job_id != poison]
    assert {job.state for job in innocent} == {JobState.SUCCEEDED}
    assert max(job.crashes for job in innocent) == 2
