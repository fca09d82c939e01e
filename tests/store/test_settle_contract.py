"""The contract of `settle` and `recorded`, on every store."""

from __future__ import annotations

import msgspec
import pytest

from mainspring.model.dead_letter import DeadJob
from mainspring.model.job import Failure, Job, JobState
from mainspring.model.run import Run, Verdict
from tests.support.desk import BOOM, HOUR, LEASE, MINUTE, SECOND, settlement

WORKERS_VERDICTS = [Verdict.SUCCEEDED, Verdict.FAILED, Verdict.DEAD, Verdict.RELEASED]


def stamped(failure: Failure, attempt: int, at: object) -> Failure:
    return msgspec.structs.replace(failure, attempt=attempt, at=at)


# Succeeded.


def test_success_takes_the_job_out_of_the_queue_and_keeps_its_result(desk):
    claim = desk.started(worker=7, task="send", payload=b"args", queue="mail", priority=4, max_attempts=3)
    desk.advance(3 * SECOND)

    desk.end(claim, Verdict.SUCCEEDED, took=2 * SECOND, result=b'"ok"')

    assert desk.jobs() == []
    assert desk.job(claim.job_id) == Job(
        id=claim.job_id,
        task="send",
        queue="mail",
        priority=4,
        state=JobState.SUCCEEDED,
        run_at=desk.now - 3 * SECOND,
        enqueued_at=desk.now - 3 * SECOND,
        payload=b"args",
        max_attempts=3,
        failures=0,
        crashes=0,
        fence=1,
        worker_id=7,
        finished_at=desk.now,
        result=b'"ok"',
    )


def test_success_is_written_into_history(desk):
    claim = desk.started(worker=7, task="send", queue="mail")
    desk.advance(3 * SECOND)

    desk.end(claim, Verdict.SUCCEEDED, took=2 * SECOND, result=b'"ok"')

    assert desk.runs(claim.job_id) == [
        Run(
            job_id=claim.job_id,
            task="send",
            queue="mail",
            attempt=1,
            verdict=Verdict.SUCCEEDED,
            worker_id=7,
            fence=1,
            started_at=desk.now - 2 * SECOND,
            finished_at=desk.now,
            failure=None,
            result=b'"ok"',
            enqueued_at=claim.enqueued_at,
        )
    ]


def test_success_without_a_result_keeps_none(desk):
    claim = desk.started()
    desk.end(claim, Verdict.SUCCEEDED)

    assert desk.job(claim.job_id).result is None


def test_success_after_failures_remembers_how_many(desk):
    claim = desk.started(max_attempts=5)
    desk.end(claim, Verdict.FAILED)
    again = desk.take()
    desk.end(again, Verdict.SUCCEEDED)

    job = desk.job(claim.job_id)
    assert (job.state, job.failures, job.fence) == (JobState.SUCCEEDED, 1, 2)
    assert [run.attempt for run in desk.runs(claim.job_id)] == [1, 2]


# Failed.


def test_a_failure_puts_the_job_back_to_wait_out_its_delay(desk):
    claim = desk.started(worker=7, max_attempts=3, priority=2, payload=b"args")
    desk.advance(SECOND)

    desk.end(claim, Verdict.FAILED, delay=MINUTE)

    assert desk.job(claim.job_id) == Job(
        id=claim.job_id,
        task="t",
        queue="default",
        priority=2,
        state=JobState.DELAYED,
        run_at=desk.now + MINUTE,
        enqueued_at=desk.now - SECOND,
        payload=b"args",
        max_attempts=3,
        failures=1,
        crashes=0,
        fence=1,
        worker_id=None,
        errors=(stamped(BOOM, 1, desk.now),),
    )


def test_a_failure_is_written_into_history(desk):
    claim = desk.started(worker=7)
    desk.advance(SECOND)

    desk.end(claim, Verdict.FAILED, took=SECOND, delay=MINUTE)

    assert desk.runs(claim.job_id) == [
        Run(
            job_id=claim.job_id,
            task="t",
            queue="default",
            attempt=1,
            verdict=Verdict.FAILED,
            worker_id=7,
            fence=1,
            started_at=desk.now - SECOND,
            finished_at=desk.now,
            failure=stamped(BOOM, 1, desk.now),
            result=None,
            enqueued_at=claim.enqueued_at,
        )
    ]


def test_a_failed_job_is_offered_again_after_its_delay_and_not_before(desk):
    claim = desk.started()
    desk.end(claim, Verdict.FAILED, delay=5 * SECOND)

    assert desk.claim() == []
    desk.advance(5 * SECOND)
    [again] = desk.claim()
    assert (again.job_id, again.failures, again.attempt, again.fence) == (claim.job_id, 1, 2, 2)


def test_a_failure_without_a_delay_is_ready_at_once(desk):
    claim = desk.started()
    desk.advance(SECOND)
    desk.end(claim, Verdict.FAILED)

    job = desk.job(claim.job_id)
    assert (job.state, job.run_at) == (JobState.READY, desk.now)


def test_errors_pile_up_each_with_its_attempt_and_time(desk):
    claim = desk.started(max_attempts=5)
    expected = []
    for attempt in (1, 2, 3):
        desk.advance(SECOND)
        failure = Failure(type="E", message=f"no {attempt} ☃", traceback=f"at {attempt}")
        desk.end(claim, Verdict.FAILED, failure=failure)
        expected.append(stamped(failure, attempt, desk.now))
        claim = desk.take()

    assert desk.job(claim.job_id).errors == tuple(expected)
    assert [run.failure for run in desk.runs(claim.job_id)] == expected


def test_of_many_errors_the_job_keeps_the_tracebacks_of_the_first_ones_and_the_last(desk):
    claim = desk.started(max_attempts=42)
    for attempt in range(1, 42):
        failure = Failure(type="E", message=f"no {attempt}", traceback=f"at {attempt}")
        desk.end(claim, Verdict.FAILED, failure=failure)
        claim = desk.take()
    desk.end(claim, Verdict.DEAD, failure=Failure(type="E", message="no 42", traceback="at 42"))

    [letter] = desk.dead()
    assert [error.message for error in letter.errors] == [f"no {n}" for n in range(1, 43)]
    kept = [error.attempt for error in letter.errors if error.traceback]
    assert kept[:10] == list(range(1, 11)) and kept[-1] == 42 and len(kept) <= 12
    assert [run.failure.traceback for run in desk.runs(claim.job_id)] == [f"at {n}" for n in range(1, 43)]


# Dead.


def test_the_last_failure_makes_a_dead_letter_with_every_field(desk):
    claim = desk.started(worker=7, task="send", payload=b"args", queue="mail", priority=4, max_attempts=1)
    desk.advance(SECOND)

    desk.end(claim, Verdict.DEAD, took=SECOND)

    assert desk.dead() == [
        DeadJob(
            id=claim.job_id,
            task="send",
            queue="mail",
            priority=4,
            payload=b"args",
            run_at=desk.now - SECOND,
            enqueued_at=desk.now - SECOND,
            died_at=desk.now,
            max_attempts=1,
            failures=1,
            crashes=0,
            fence=1,
            schedule_id=None,
            slot_at=None,
            reason="failed",
            errors=(stamped(BOOM, 1, desk.now),),
        )
    ]


def test_a_dead_job_is_read_back_as_dead(desk):
    claim = desk.started(worker=7, payload=b"args")
    desk.advance(SECOND)
    desk.end(claim, Verdict.DEAD)

    job = desk.job(claim.job_id)
    assert (job.state, job.finished_at, job.payload) == (JobState.DEAD, desk.now, b"args")
    assert (job.failures, job.fence, job.errors) == (1, 1, (stamped(BOOM, 1, desk.now),))


def test_death_is_written_into_history(desk):
    claim = desk.started(worker=7)
    desk.advance(SECOND)
    desk.end(claim, Verdict.DEAD, took=SECOND)

    assert desk.runs(claim.job_id) == [
        Run(
            job_id=claim.job_id,
            task="t",
            queue="default",
            attempt=1,
            verdict=Verdict.DEAD,
            worker_id=7,
            fence=1,
            started_at=desk.now - SECOND,
            finished_at=desk.now,
            failure=stamped(BOOM, 1, desk.now),
            result=None,
            enqueued_at=claim.enqueued_at,
        )
    ]


def test_a_dead_job_leaves_the_queue(desk):
    desk.bury()

    assert (desk.jobs(), desk.depth(), desk.claim()) == ([], [], [])


def test_a_dead_letter_holds_every_error_of_its_life(desk):
    claim = desk.started(max_attempts=2)
    first_at = desk.now
    desk.end(claim, Verdict.FAILED)
    desk.advance(SECOND)
    desk.end(desk.take(), Verdict.DEAD, failure=Failure(type="E", message="last"))

    [dead] = desk.dead()
    assert dead.errors == (
        stamped(BOOM, 1, first_at),
        Failure(type="E", message="last", attempt=2, at=desk.now),
    )
    assert dead.failures == 2


# Released.


def test_a_release_costs_nothing(desk):
    claim = desk.started(max_attempts=1)
    before = desk.job(claim.job_id)
    desk.advance(SECOND)

    desk.end(claim, Verdict.RELEASED, took=SECOND)

    job = desk.job(claim.job_id)
    assert (job.failures, job.crashes, job.errors) == (0, 0, ())
    assert (job.state, job.worker_id) == (JobState.READY, None)
    assert (job.run_at, job.fence) == (before.run_at, before.fence)


def test_a_released_job_keeps_its_place_in_the_queue(desk):
    claim = desk.started()
    desk.advance(SECOND)
    later = desk.put()
    desk.end(claim, Verdict.RELEASED)

    assert [c.job_id for c in desk.claim()] == [claim.job_id, later]


def test_a_release_with_a_delay_waits(desk):
    claim = desk.started()
    desk.advance(SECOND)
    desk.end(claim, Verdict.RELEASED, delay=MINUTE)

    job = desk.job(claim.job_id)
    assert (job.state, job.run_at) == (JobState.DELAYED, desk.now + MINUTE)


def test_a_release_is_written_into_history(desk):
    claim = desk.started(worker=7)
    desk.advance(SECOND)
    desk.end(claim, Verdict.RELEASED, took=SECOND)

    assert desk.runs(claim.job_id) == [
        Run(
            job_id=claim.job_id,
            task="t",
            queue="default",
            attempt=1,
            verdict=Verdict.RELEASED,
            worker_id=7,
            fence=1,
            started_at=desk.now - SECOND,
            finished_at=desk.now,
            enqueued_at=claim.enqueued_at,
        )
    ]


def test_a_claim_whose_handler_never_began_leaves_nothing_in_history(desk):
    claim = desk.started()
    desk.end(claim, Verdict.RELEASED, ran=False)

    assert desk.runs(claim.job_id) == []
    assert desk.job(claim.job_id).state is JobState.READY


# Fenced.


@pytest.mark.parametrize("verdict", WORKERS_VERDICTS)
def test_another_fence_is_refused_and_changes_nothing(desk, verdict):
    claim = desk.started()
    before = desk.job(claim.job_id)

    refused = desk.settle(settlement(msgspec.structs.replace(claim, fence=claim.fence + 1), verdict))

    assert refused == [claim.job_id]
    assert (desk.job(claim.job_id), desk.runs(claim.job_id), desk.dead()) == (before, [], [])


@pytest.mark.parametrize("verdict", WORKERS_VERDICTS)
def test_another_worker_with_the_same_fence_is_refused_and_changes_nothing(desk, verdict):
    claim = desk.started(worker=1)
    before = desk.job(claim.job_id)

    refused = desk.settle(settlement(msgspec.structs.replace(claim, worker_id=2), verdict))

    assert refused == [claim.job_id]
    assert (desk.job(claim.job_id), desk.runs(claim.job_id), desk.dead()) == (before, [], [])


@pytest.mark.parametrize("verdict", WORKERS_VERDICTS)
def test_a_reaped_claim_is_refused_and_changes_nothing(desk, verdict):
    claim = desk.started()
    desk.lose()
    before = desk.job(claim.job_id), desk.runs(claim.job_id)

    assert desk.settle(settlement(claim, verdict)) == [claim.job_id]
    assert (desk.job(claim.job_id), desk.runs(claim.job_id)) == before


@pytest.mark.parametrize("verdict", WORKERS_VERDICTS)
def test_a_cancelled_claim_is_refused_and_changes_nothing(desk, verdict):
    claim = desk.started()
    desk.cancel(claim.job_id)
    before = desk.job(claim.job_id), desk.runs(claim.job_id)

    assert desk.settle(settlement(claim, verdict)) == [claim.job_id]
    assert (desk.job(claim.job_id), desk.runs(claim.job_id)) == before


@pytest.mark.parametrize("verdict", WORKERS_VERDICTS)
def test_a_claim_is_settled_once(desk, verdict):
    claim = desk.started()
    desk.end(claim, verdict)
    before = desk.find(claim.job_id), desk.runs(claim.job_id), desk.dead()

    assert desk.settle(settlement(claim, verdict)) == [claim.job_id]
    assert (desk.find(claim.job_id), desk.runs(claim.job_id), desk.dead()) == before


def test_a_worker_that_lost_its_job_to_another_cannot_end_the_others_run(desk):
    stale = desk.started(worker=1)
    desk.lose(1)
    fresh = desk.take(2)

    assert desk.settle(settlement(stale, Verdict.SUCCEEDED)) == [stale.job_id]
    assert desk.settle(settlement(fresh, Verdict.SUCCEEDED)) == []


def test_a_lease_that_ended_but_was_not_reaped_still_settles(desk):
    claim = desk.started()
    desk.advance(LEASE + SECOND)

    assert desk.settle(settlement(claim, Verdict.SUCCEEDED)) == []


def test_a_job_that_never_was_is_refused(desk):
    claim = msgspec.structs.replace(desk.started(), job_id=987_654)

    assert desk.settle(settlement(claim, Verdict.SUCCEEDED)) == [987_654]


# Batches.


def test_one_batch_may_mix_verdicts(desk):
    won, failed, died, back = (desk.started() for _ in range(4))

    refused = desk.settle(
        settlement(won, Verdict.SUCCEEDED, result=b"1"),
        settlement(failed, Verdict.FAILED, delay=MINUTE),
        settlement(died, Verdict.DEAD),
        settlement(back, Verdict.RELEASED),
    )

    assert refused == []
    assert [desk.job(claim.job_id).state for claim in (won, failed, died, back)] == [
        JobState.SUCCEEDED,
        JobState.DELAYED,
        JobState.DEAD,
        JobState.READY,
    ]


def test_a_refused_settlement_does_not_stop_its_neighbours(desk):
    first, stale, last = (desk.started() for _ in range(3))
    desk.cancel(stale.job_id)

    refused = desk.settle(*(settlement(claim, Verdict.SUCCEEDED) for claim in (first, stale, last)))

    assert refused == [stale.job_id]
    assert desk.job(first.job_id).state is desk.job(last.job_id).state is JobState.SUCCEEDED


def test_each_settlement_of_a_batch_keeps_its_own_fields(desk):
    claims = [desk.started() for _ in range(5)]
    desk.settle(
        *(
            settlement(
                claim,
                Verdict.FAILED,
                took=SECOND * n,
                delay=MINUTE * n,
                failure=Failure(type="E", message=str(n)),
            )
            for n, claim in enumerate(claims)
        )
    )

    for n, claim in enumerate(claims):
        job = desk.job(claim.job_id)
        [run] = desk.runs(claim.job_id)
        assert (job.run_at, job.errors[0].message) == (desk.now + MINUTE * n, str(n))
        assert run.started_at == desk.now - SECOND * n


def test_an_empty_batch_is_no_work(desk):
    assert desk.settle() == []


# Recorded.


@pytest.mark.parametrize("verdict", WORKERS_VERDICTS)
def test_a_settled_claim_is_recorded(desk, verdict):
    claim = desk.started()
    named = settlement(claim, verdict)
    assert desk.recorded(named) == []

    desk.settle(named)

    assert desk.recorded(named) == [claim.job_id]


def test_only_exactly_this_claim_is_recorded(desk):
    claim = desk.started(worker=1)
    desk.end(claim, Verdict.RELEASED)
    other_fence = msgspec.structs.replace(claim, fence=2)
    other_worker = msgspec.structs.replace(claim, worker_id=2)

    assert desk.recorded(*(settlement(c, Verdict.SUCCEEDED) for c in (other_fence, other_worker))) == []


def test_recorded_tells_the_settled_from_the_others(desk):
    done, open_ = desk.started(), desk.started()
    desk.end(done, Verdict.SUCCEEDED, took=HOUR)

    assert desk.recorded(settlement(done, Verdict.SUCCEEDED), settlement(open_, Verdict.SUCCEEDED)) == [
        done.job_id
    ]
