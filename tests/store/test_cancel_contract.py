"""The contract of `cancel` and `hasten`, on every store."""

from __future__ import annotations

from mainspring.model.job import Job, JobState
from mainspring.model.run import Run, Verdict
from tests.support.desk import HOUR, SECOND


def test_a_waiting_job_is_cancelled_for_good(desk):
    job_id = desk.put()
    desk.join()

    assert desk.cancel(job_id) == {job_id: JobState.READY}
    assert (desk.jobs(), desk.claim()) == ([], [])


def test_a_cancelled_job_is_on_record_with_every_field(desk):
    job_id = desk.put("send", b"args", queue="mail", priority=4, max_attempts=3, delay=HOUR)
    desk.advance(SECOND)

    assert desk.cancel(job_id) == {job_id: JobState.DELAYED}

    assert desk.job(job_id) == Job(
        id=job_id,
        task="send",
        queue="mail",
        priority=4,
        state=JobState.CANCELLED,
        run_at=desk.now - SECOND + HOUR,
        enqueued_at=desk.now - SECOND,
        payload=b"args",
        max_attempts=3,
        fence=0,
        worker_id=None,
        finished_at=desk.now,
    )


def test_a_cancelled_waiting_job_leaves_a_run_that_never_began(desk):
    job_id = desk.put()
    desk.advance(SECOND)
    desk.cancel(job_id)

    assert desk.runs(job_id) == [
        Run(
            job_id=job_id,
            task="t",
            queue="default",
            attempt=1,
            verdict=Verdict.CANCELLED,
            worker_id=None,
            fence=0,
            started_at=None,
            finished_at=desk.now,
            enqueued_at=desk.now - SECOND,
        )
    ]


def test_a_running_job_is_taken_from_its_worker(desk):
    claim = desk.started(worker=7)
    claimed_at = desk.now
    desk.advance(SECOND)

    assert desk.cancel(claim.job_id) == {claim.job_id: JobState.RUNNING}
    assert desk.runs(claim.job_id) == [
        Run(
            job_id=claim.job_id,
            task="t",
            queue="default",
            attempt=1,
            verdict=Verdict.CANCELLED,
            worker_id=7,
            fence=1,
            started_at=claimed_at,
            finished_at=desk.now,
            enqueued_at=claim.enqueued_at,
        )
    ]
    assert desk.held(7) == []


def test_the_next_heartbeat_tells_the_worker(desk):
    claim, kept = desk.started(), desk.started()
    desk.cancel(claim.job_id)

    beat = desk.beat(1, claim, kept)

    assert (beat.alive, beat.lost) == (True, (claim.job_id,))


def test_cancelling_counts_no_failure_and_keeps_those_there_were(desk):
    claim = desk.started(max_attempts=3)
    desk.end(claim, Verdict.FAILED)
    desk.cancel(claim.job_id)

    job = desk.job(claim.job_id)
    assert (job.state, job.failures) == (JobState.CANCELLED, 1)
    assert desk.runs(claim.job_id)[-1].attempt == 2


def test_what_is_not_live_is_not_cancelled(desk):
    done = desk.started()
    desk.end(done, Verdict.SUCCEEDED)
    dead = desk.bury()

    assert desk.cancel(done.job_id, dead, 987_654) == {done.job_id: None, dead: None, 987_654: None}
    assert desk.job(done.job_id).state is JobState.SUCCEEDED
    assert desk.job(dead).state is JobState.DEAD


def test_a_job_is_cancelled_once(desk):
    job_id = desk.put()

    assert [desk.cancel(job_id), desk.cancel(job_id)] == [{job_id: JobState.READY}, {job_id: None}]
    assert len(desk.runs(job_id)) == 1


def test_several_are_cancelled_at_once_and_others_are_left_alone(desk):
    ready, delayed, other = desk.put(), desk.put(delay=HOUR), desk.put()

    assert desk.cancel(ready, delayed) == {ready: JobState.READY, delayed: JobState.DELAYED}
    assert [job.id for job in desk.jobs()] == [other]


def test_cancelling_nothing_is_no_work(desk):
    assert desk.cancel() == {}


def test_a_hastened_job_is_due_now(desk):
    desk.join()
    job_id = desk.put(delay=HOUR)
    desk.advance(SECOND)

    assert desk.hasten(job_id) == [job_id]
    assert (desk.job(job_id).state, desk.job(job_id).run_at) == (JobState.READY, desk.now)
    assert [claim.job_id for claim in desk.claim()] == [job_id]


def test_a_hastened_job_is_found_behind_later_claims(desk):
    desk.join()
    delayed, first = desk.put(delay=HOUR), desk.put()
    assert [claim.job_id for claim in desk.claim()] == [first]

    desk.hasten(delayed)

    assert [claim.job_id for claim in desk.claim()] == [delayed]


def test_only_delayed_jobs_are_hastened(desk):
    running, ready = desk.started(), desk.put()
    before = desk.job(running.job_id), desk.job(ready)
    desk.advance(SECOND)

    assert desk.hasten(running.job_id, ready, 987_654) == []
    assert (desk.job(running.job_id), desk.job(ready)) == before


def test_a_job_waiting_for_its_retry_is_hastened_and_keeps_its_failures(desk):
    claim = desk.started()
    desk.end(claim, Verdict.FAILED, delay=HOUR)

    assert desk.hasten(claim.job_id) == [claim.job_id]
    job = desk.job(claim.job_id)
    assert (job.state, job.failures, len(job.errors)) == (JobState.READY, 1, 1)


def test_hastening_nothing_is_no_work(desk):
    assert desk.hasten() == []
