"""The contract of the rarer endings: snoozed, discarded, crashed, expired; on every store."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from mainspring.model.job import Failure, JobState, NewJob
from mainspring.model.run import Reason, Settlement, Verdict
from mainspring.rules.settle import NEVER_BEGAN, WORKER_LOST
from tests.support.desk import BOOM, HOUR, LEASE, MINUTE, SECOND, settlement

SEGFAULT = Failure(type="Crashed", message="signal 11")


def written(desk, failure=BOOM, *, attempt=1):
    """A failure as the store writes it now."""
    return msgspec.structs.replace(failure, attempt=attempt, at=desk.now)


# Snoozed.


def test_a_snoozed_job_waits_at_no_cost_of_an_attempt(desk):
    claim = desk.started(max_attempts=1)
    desk.advance(SECOND)
    desk.end(claim, Verdict.SNOOZED, delay=MINUTE, took=SECOND)

    job = desk.job(claim.job_id)
    assert (job.state, job.run_at) == (JobState.DELAYED, desk.now + MINUTE)
    assert (job.failures, job.crashes, job.errors, job.worker_id) == (0, 0, (), None)


def test_a_snooze_is_in_history(desk):
    claim = desk.started()
    desk.advance(SECOND)
    desk.end(claim, Verdict.SNOOZED, delay=MINUTE, took=SECOND)

    [run] = desk.runs(claim.job_id)
    assert (run.verdict, run.attempt, run.fence, run.worker_id) == (Verdict.SNOOZED, 1, 1, 1)
    assert (run.started_at, run.finished_at, run.failure) == (desk.now - SECOND, desk.now, None)


def test_a_snoozed_job_is_claimed_again_when_it_is_due(desk):
    claim = desk.started()
    desk.end(claim, Verdict.SNOOZED, delay=MINUTE)

    assert desk.claim() == []
    desk.advance(MINUTE)
    desk.join(2)
    again = desk.take(2)
    assert (again.job_id, again.fence, again.attempt) == (claim.job_id, 2, 1)


def test_a_snooze_can_be_hastened(desk):
    claim = desk.started()
    desk.end(claim, Verdict.SNOOZED, delay=HOUR)

    assert desk.hasten(claim.job_id) == [claim.job_id]
    assert desk.job(claim.job_id).state is JobState.READY


# Discarded.


def test_a_discarded_job_has_ended_and_is_no_dead_letter(desk):
    claim = desk.started(task="send", queue="mail", payload=b"args", priority=3, max_attempts=5)
    desk.advance(SECOND)
    why = Failure(type="Discard", message="the order was withdrawn")
    desk.end(claim, Verdict.DISCARDED, failure=why, took=SECOND)

    job = desk.job(claim.job_id)
    assert (job.state, job.finished_at) == (JobState.DISCARDED, desk.now)
    assert (job.task, job.queue, job.payload, job.priority) == ("send", "mail", b"args", 3)
    assert (desk.dead(), desk.jobs(), desk.claim(tasks=("send",), queues=("mail",))) == ([], [], [])
    [run] = desk.runs(claim.job_id)
    assert (run.verdict, run.failure) == (Verdict.DISCARDED, written(desk, why))
    assert (run.started_at, run.finished_at) == (desk.now - SECOND, desk.now)


def test_a_discarded_job_is_neither_replayed_nor_cancelled_nor_hastened(desk):
    claim = desk.started()
    desk.end(claim, Verdict.DISCARDED)

    assert (desk.replay(claim.job_id), desk.hasten(claim.job_id)) == ([], [])
    assert desk.cancel(claim.job_id) == {claim.job_id: None}


def test_the_state_of_a_discarded_job_is_told_among_others(desk):
    claim = desk.started()
    desk.end(claim, Verdict.DISCARDED)

    states = desk.run(desk.store.jobs.states([claim.job_id], at=desk.now))
    assert states == {claim.job_id: JobState.DISCARDED}


# Crashed, as a worker reports it.


def test_a_crash_is_counted_apart_and_the_job_waits(desk):
    claim = desk.started(max_attempts=1)
    desk.advance(SECOND)
    desk.end(claim, Verdict.CRASHED, failure=SEGFAULT, delay=MINUTE, took=SECOND)

    job = desk.job(claim.job_id)
    assert (job.state, job.run_at, job.failures, job.crashes) == (
        JobState.DELAYED,
        desk.now + MINUTE,
        0,
        1,
    )
    assert job.errors == (written(desk, SEGFAULT),)
    [run] = desk.runs(claim.job_id)
    assert (run.verdict, run.failure, run.attempt) == (Verdict.CRASHED, written(desk, SEGFAULT), 1)
    assert run.started_at == desk.now - SECOND


def test_a_claim_tells_how_often_its_job_crashed(desk):
    claim = desk.started()
    desk.end(claim, Verdict.CRASHED)

    again = desk.take()
    assert (claim.crashes, again.crashes, again.attempt) == (0, 1, 1)
    assert [held.crashes for held in desk.held()] == [1]


def test_a_crash_with_a_reason_is_the_last(desk):
    claim = desk.started(task="send", queue="mail", payload=b"args", priority=2, max_attempts=4)
    desk.end(claim, Verdict.FAILED)
    claim = desk.take(tasks=("send",), queues=("mail",))
    desk.end(claim, Verdict.CRASHED, failure=SEGFAULT, reason=Reason.CRASHED)

    [dead] = desk.dead()
    assert (dead.id, dead.reason, dead.failures, dead.crashes) == (claim.job_id, "crashed", 1, 1)
    assert (dead.task, dead.queue, dead.payload, dead.priority, dead.max_attempts) == (
        "send",
        "mail",
        b"args",
        2,
        4,
    )
    assert dead.errors == (written(desk), written(desk, SEGFAULT, attempt=2))
    assert [run.verdict for run in desk.runs(claim.job_id)] == [Verdict.FAILED, Verdict.CRASHED]
    assert desk.jobs() == []


def test_crashes_that_end_a_job_and_that_do_not_are_settled_together(desk):
    first, second = desk.started(), desk.started()

    refused = desk.settle(
        settlement(first, Verdict.CRASHED, reason=Reason.CRASHED), settlement(second, Verdict.CRASHED)
    )

    assert refused == []
    assert desk.job(first.job_id).state is JobState.DEAD
    assert desk.job(second.job_id).state is JobState.READY


def test_a_crash_that_was_reported_is_told_from_one_that_was_reaped(desk):
    reported, reaped = desk.started(), desk.started()
    mine = settlement(reported, Verdict.CRASHED)
    desk.settle(mine)
    desk.lose()
    too_late = settlement(reaped, Verdict.CRASHED)

    assert desk.settle(too_late) == [reaped.job_id]
    assert desk.recorded(mine, too_late) == [reported.job_id]


@pytest.mark.parametrize("verdict", [Verdict.SNOOZED, Verdict.DISCARDED])
def test_a_rare_settlement_is_recorded_too(desk, verdict):
    mine = settlement(desk.started(), verdict, delay=MINUTE)
    desk.settle(mine)

    assert desk.recorded(mine) == [mine.job_id]


@pytest.mark.parametrize("verdict", [Verdict.SNOOZED, Verdict.DISCARDED, Verdict.CRASHED])
def test_a_rare_settlement_of_a_lost_claim_is_refused(desk, verdict):
    claim = desk.started()
    desk.lose()
    before = desk.job(claim.job_id)

    assert desk.settle(settlement(claim, verdict)) == [claim.job_id]
    assert desk.job(claim.job_id) == before


@pytest.mark.parametrize("verdict", [Verdict.CANCELLED, Verdict.EDITED])
def test_some_verdicts_are_not_a_workers_to_write(desk, verdict):
    claim = desk.started()

    with pytest.raises(ValueError, match=r"not a worker's"):
        desk.settle(settlement(claim, verdict))


# Quarantine by the reaper.


def crash(desk, times, worker=10):
    """Claim what there is and let the worker die, over and over."""
    for n in range(times):
        desk.lose(worker + n, desk.take(worker + n))


def test_the_third_worker_that_dies_under_a_job_is_the_last(desk):
    job_id = desk.put(payload=b"args", queue="default", max_attempts=7)
    crash(desk, 2)
    assert desk.job(job_id).state is JobState.READY
    desk.begin(desk.take(20))
    desk.advance(LEASE)

    reaped = desk.reap()

    assert (reaped.jobs, reaped.buried) == (1, (job_id,))
    [dead] = desk.dead()
    assert (dead.id, dead.reason, dead.crashes, dead.failures) == (job_id, "crashed", 3, 0)
    assert (dead.payload, dead.max_attempts, dead.died_at, dead.fence) == (b"args", 7, desk.now, 3)
    assert dead.errors == (written(desk, WORKER_LOST),)
    assert desk.jobs() == []


def test_all_crashes_of_a_quarantined_job_are_in_history(desk):
    job_id = desk.put()
    crash(desk, 3)

    assert [(run.verdict, run.fence) for run in desk.runs(job_id)] == [
        (Verdict.CRASHED, 1),
        (Verdict.CRASHED, 2),
        (Verdict.CRASHED, 3),
    ]


def test_jobs_below_the_limit_go_back_in_the_same_pass(desk):
    poison = desk.put()
    crash(desk, 2)
    innocent = desk.put()
    desk.join(30)
    claims = desk.claim(30)
    assert [claim.job_id for claim in claims] == [poison, innocent]
    for claim in claims:
        desk.begin(claim)
    desk.advance(LEASE)

    reaped = desk.reap()

    assert (reaped.jobs, reaped.buried) == (2, (poison,))
    assert (desk.job(innocent).state, desk.job(innocent).crashes) == (JobState.READY, 1)


def test_a_quarantined_job_keeps_the_errors_it_had(desk):
    claim = desk.started()
    desk.end(claim, Verdict.FAILED)
    failed_at = desk.now
    crash(desk, 3)

    [dead] = desk.dead()
    assert dead.errors == (
        msgspec.structs.replace(BOOM, attempt=1, at=failed_at),
        written(desk, WORKER_LOST, attempt=2),
    )


def test_a_quarantined_job_is_replayed_with_a_clean_record(desk):
    job_id = desk.put()
    crash(desk, 3)

    assert desk.replay(job_id) == [job_id]
    crash(desk, 2, worker=50)
    assert (desk.job(job_id).state, desk.job(job_id).crashes) == (JobState.READY, 2)


def test_a_dead_worker_is_forgotten_after_its_jobs_were_buried(desk):
    desk.put()
    crash(desk, 3)

    assert desk.processes() == []


# Deadlines.


def test_a_deadline_counts_from_when_the_job_is_first_due(desk):
    ids = desk.put_all(
        NewJob(task="t", payload=b"{}", expires=HOUR),
        NewJob(task="t", payload=b"{}", expires=HOUR, delay=MINUTE),
        NewJob(task="t", payload=b"{}", expires=HOUR, run_at=desk.now + 2 * HOUR),
        NewJob(task="t", payload=b"{}", expires_at=desk.now + SECOND, delay=MINUTE),
        NewJob(task="t", payload=b"{}"),
    )

    assert [desk.job(job_id).expires_at for job_id in ids] == [
        desk.now + HOUR,
        desk.now + MINUTE + HOUR,
        desk.now + 3 * HOUR,
        desk.now + SECOND,
        None,
    ]


def test_many_jobs_at_once_have_their_deadlines(desk):
    new = [
        NewJob(task="t", payload=b"{}", expires=HOUR if n % 2 else None, delay=n * SECOND)
        for n in range(1200)
    ]
    ids = desk.put_all(*new)

    assert [desk.job(job_id).expires_at for job_id in ids[-2:]] == [None, desk.now + 1199 * SECOND + HOUR]


def test_a_claim_tells_how_long_its_job_has_left(desk):
    desk.put(expires=HOUR)
    desk.put()
    desk.advance(MINUTE)
    desk.join()

    assert [claim.expires_in for claim in desk.claim()] == [HOUR - MINUTE, None]
    desk.advance(SECOND)
    assert [claim.expires_in for claim in desk.held()] == [HOUR - MINUTE - SECOND, None]


def test_a_job_past_its_deadline_is_still_handed_out_and_says_so(desk):
    desk.put(expires=SECOND)
    desk.advance(MINUTE)

    assert desk.take().expires_in == SECOND - MINUTE


def test_a_claimed_job_that_never_began_dies_without_a_failure(desk):
    claim = desk.started(expires=SECOND, max_attempts=3)
    desk.end(claim, Verdict.DEAD, failure=NEVER_BEGAN, reason=Reason.EXPIRED, ran=False)

    [dead] = desk.dead()
    assert (dead.reason, dead.failures, dead.expires_at) == ("expired", 0, desk.now + SECOND)
    assert dead.errors == (written(desk, NEVER_BEGAN),)
    [run] = desk.runs(claim.job_id)
    assert (run.verdict, run.started_at, run.finished_at) == (Verdict.DEAD, None, desk.now)
    assert run.failure == written(desk, NEVER_BEGAN)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_dead_letter_tells_its_reason(desk, reason):
    claim = desk.started()
    desk.end(claim, Verdict.DEAD, reason=reason)

    [dead] = desk.dead()
    assert (dead.reason, dead.failures) == (reason, 1)


def test_a_death_without_a_reason_is_of_its_failure(desk):
    desk.bury()

    assert [dead.reason for dead in desk.dead()] == ["failed"]


def test_jobs_that_nobody_claimed_by_their_deadline_die(desk):
    ready = desk.put(expires=MINUTE, payload=b"args", max_attempts=4)
    delayed = desk.put(expires_at=desk.now + MINUTE, delay=HOUR)
    later, never = desk.put(expires=MINUTE + SECOND), desk.put()
    desk.advance(MINUTE)

    assert desk.expire() == [ready, delayed]

    letters = {dead.id: dead for dead in desk.dead()}
    assert set(letters) == {ready, delayed}
    dead = letters[ready]
    assert (dead.reason, dead.failures, dead.crashes, dead.payload) == ("expired", 0, 0, b"args")
    assert (dead.max_attempts, dead.died_at, dead.expires_at) == (4, desk.now, desk.now)
    assert dead.errors == (written(desk, NEVER_BEGAN),)
    assert [job.id for job in desk.jobs()] == [never, later]


def test_an_expired_job_leaves_a_run_that_never_started(desk):
    job_id = desk.put(expires=MINUTE)
    desk.advance(MINUTE)
    desk.expire()

    [run] = desk.runs(job_id)
    assert (run.verdict, run.started_at, run.worker_id) == (Verdict.DEAD, None, None)
    assert (run.finished_at, run.failure) == (desk.now, written(desk, NEVER_BEGAN))


def test_an_expired_job_keeps_the_errors_and_counts_it_had(desk):
    claim = desk.started(expires=MINUTE)
    desk.end(claim, Verdict.FAILED, delay=HOUR)
    failed_at = desk.now
    desk.advance(MINUTE)
    desk.expire()

    [dead] = desk.dead()
    assert (dead.failures, dead.fence) == (1, 1)
    assert dead.errors == (
        msgspec.structs.replace(BOOM, attempt=1, at=failed_at),
        written(desk, NEVER_BEGAN, attempt=2),
    )


def test_a_running_job_is_left_to_its_worker(desk):
    claim = desk.started(expires=SECOND)
    desk.advance(MINUTE)

    assert desk.expire() == []
    assert desk.job(claim.job_id).state is JobState.RUNNING


def test_a_reaped_job_past_its_deadline_expires(desk):
    claim = desk.started(expires=SECOND)
    desk.lose(1, claim)

    assert desk.expire() == [claim.job_id]
    assert [dead.crashes for dead in desk.dead()] == [1]


def test_a_pass_expires_no_more_than_its_limit_oldest_first(desk):
    second, first = desk.put(expires=2 * SECOND), desk.put(expires=SECOND)
    desk.advance(MINUTE)

    assert desk.expire(limit=1) == [first]
    assert desk.expire(limit=5) == [second]
    assert desk.expire() == []


def test_a_replayed_job_has_no_deadline_any_more(desk):
    job_id = desk.put(expires=SECOND)
    desk.advance(MINUTE)
    desk.expire()

    assert desk.replay(job_id) == [job_id]
    assert (desk.job(job_id).expires_at, desk.expire()) == (None, [])


# Deadlines of schedules.


def test_a_slot_has_its_deadline_from_its_nominal_moment(desk):
    desk.schedule(expires=HOUR, offset=timedelta(minutes=5))
    desk.advance(MINUTE + SECOND)
    desk.fire_due()

    [job] = desk.jobs()
    assert (job.slot_at, job.expires_at) == (desk.now - SECOND, desk.now - SECOND + HOUR)


def test_a_triggered_job_has_its_deadline_from_now(desk):
    desk.schedule(expires=HOUR)
    job_id = desk.trigger()

    assert desk.job(job_id).expires_at == desk.now + HOUR


def test_a_backfilled_job_has_its_deadline_from_now(desk):
    desk.schedule(expires=HOUR)
    desk.backfill(desk.past(desk.now - 48 * HOUR))
    desk.move_backfills()

    [job] = desk.jobs()
    assert job.expires_at == desk.now + HOUR


def test_a_schedule_without_a_deadline_makes_jobs_without_one(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.fire_due()

    assert [job.expires_at for job in desk.jobs()] == [None]


def test_a_changed_deadline_is_a_new_version(desk):
    desk.schedule(expires=HOUR)
    assert desk.the_schedule().expires == HOUR

    assert desk.schedule(expires=HOUR) == []
    assert desk.schedule(expires=2 * HOUR) == ["s"]
    assert [version.schedule.expires for version in desk.versions()] == [HOUR, 2 * HOUR]


def test_a_job_that_is_held_for_others_expires_too(desk):
    desk.schedule(overlap="queue_one", expires=HOUR)
    desk.advance(MINUTE)
    desk.fire_due()
    running = desk.take()
    desk.advance(MINUTE)
    desk.fire_due()
    [held] = [job for job in desk.jobs() if job.id != running.job_id]
    desk.advance(HOUR)

    assert desk.expire() == [held.id]


def test_settlements_of_many_kinds_go_in_one_batch(desk):
    verdicts = [
        Verdict.SUCCEEDED,
        Verdict.SNOOZED,
        Verdict.DISCARDED,
        Verdict.CRASHED,
        Verdict.DEAD,
        Verdict.FAILED,
    ]
    claims = [desk.started() for _ in verdicts]
    batch: list[Settlement] = [
        settlement(claim, verdict, delay=MINUTE) for claim, verdict in zip(claims, verdicts, strict=True)
    ]

    assert desk.settle(*batch) == []
    assert [desk.job(claim.job_id).state for claim in claims] == [
        JobState.SUCCEEDED,
        JobState.DELAYED,
        JobState.DISCARDED,
        JobState.DELAYED,
        JobState.DEAD,
        JobState.DELAYED,
    ]
