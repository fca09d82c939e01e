"""The contract of `claim` and `held`, on every store."""

from __future__ import annotations

from mainspring.model.job import Claim, JobState, NewJob
from mainspring.model.run import Verdict
from tests.support.desk import HOUR, LEASE, MINUTE, SECOND


def ids(claims):
    return [claim.job_id for claim in claims]


def test_a_claim_carries_everything_the_handler_needs(desk):
    desk.join(7)
    job_id = desk.put("send", b'{"n":1}', queue="mail", max_attempts=3)
    desk.advance(SECOND)

    assert desk.claim(7, queues=["mail"], tasks=["send"]) == [
        Claim(
            job_id=job_id,
            worker_id=7,
            fence=1,
            task="send",
            queue="mail",
            payload=b'{"n":1}',
            failures=0,
            max_attempts=3,
            run_at=desk.now - SECOND,
            enqueued_at=desk.now - SECOND,
            waited=SECOND,
            database_id=desk.run(desk.store.identity()),
        )
    ]


def test_a_claimed_job_is_running_under_its_worker(desk):
    claim = desk.started(worker=7)

    job = desk.job(claim.job_id)
    assert (job.state, job.worker_id, job.fence) == (JobState.RUNNING, 7, 1)


def test_a_claim_counts_neither_a_failure_nor_a_crash(desk):
    claim = desk.started()

    job = desk.job(claim.job_id)
    assert (job.failures, job.crashes, claim.attempt) == (0, 0, 1)


def test_a_job_is_not_offered_before_it_is_due(desk):
    desk.join()
    desk.put(delay=MINUTE)
    desk.advance(MINUTE - SECOND)
    desk.beat()

    assert desk.claim() == []


def test_a_job_is_offered_at_its_very_moment(desk):
    job_id = desk.put(delay=MINUTE)
    desk.advance(MINUTE)
    desk.join()

    assert ids(desk.claim()) == [job_id]


def test_a_job_that_falls_due_behind_a_later_one_is_still_found(desk):
    desk.join(lease=HOUR)
    waiting = desk.put(delay=2 * SECOND)
    first = desk.put()
    assert ids(desk.claim()) == [first]
    desk.advance(2 * SECOND)

    assert ids(desk.claim()) == [waiting]


def test_a_job_put_in_with_an_earlier_time_than_the_last_claimed_is_found(desk):
    desk.join(lease=HOUR)
    first = desk.put()
    assert ids(desk.claim()) == [first]

    earlier = desk.put(run_at=desk.now - HOUR)

    assert ids(desk.claim()) == [earlier]


def test_the_highest_priority_goes_first(desk):
    desk.join()
    low, high, middle = desk.put(priority=-5), desk.put(priority=5), desk.put(priority=0)

    assert ids(desk.claim()) == [high, middle, low]


def test_a_higher_priority_beats_an_earlier_time(desk):
    desk.join()
    desk.put(run_at=desk.now - HOUR)
    high = desk.put(priority=1)

    assert ids(desk.claim(limit=1)) == [high]


def test_of_equal_priority_the_earliest_goes_first(desk):
    desk.join()
    later, earlier = desk.put(run_at=desk.now - SECOND), desk.put(run_at=desk.now - MINUTE)

    assert ids(desk.claim()) == [earlier, later]


def test_of_equal_times_the_lowest_id_goes_first(desk):
    desk.join()
    put = desk.put_all(*[NewJob(task="t", payload=b"")] * 20)

    assert ids(desk.claim(limit=20)) == put


def test_the_queue_named_first_goes_first(desk):
    desk.join()
    second = desk.put(queue="second", run_at=desk.now - HOUR)
    first = desk.put(queue="first")

    assert ids(desk.claim(queues=["first", "second"])) == [first, second]


def test_a_priority_counts_across_queues(desk):
    desk.join()
    first = desk.put(queue="first")
    second = desk.put(queue="second", priority=1)

    assert ids(desk.claim(queues=["first", "second"])) == [second, first]


def test_other_queues_are_left_alone(desk):
    desk.join()
    desk.put(queue="other")

    assert desk.claim(queues=["default"]) == []


def test_tasks_the_worker_does_not_know_wait_for_one_that_does(desk):
    desk.join()
    unknown, known = desk.put("unknown"), desk.put("known")

    assert ids(desk.claim(tasks=["known"])) == [known]
    assert desk.job(unknown).state is JobState.READY
    assert ids(desk.claim(tasks=["unknown"])) == [unknown]


def test_a_crowd_of_unknown_tasks_hides_nothing(desk):
    desk.join()
    desk.put_all(*[NewJob(task="unknown", payload=b"")] * 200)
    known = desk.put("known")

    assert ids(desk.claim(tasks=["known"], limit=1)) == [known]


def test_no_more_than_the_limit_is_handed_out(desk):
    desk.join()
    put = [desk.put() for _ in range(5)]

    assert ids(desk.claim(limit=2)) == put[:2]
    assert ids(desk.claim(limit=2)) == put[2:4]
    assert ids(desk.claim(limit=2)) == put[4:]


def test_the_limit_holds_across_queues_and_priorities(desk):
    desk.join()
    for queue in ("a", "b"):
        for priority in (0, 1):
            for _ in range(3):
                desk.put(queue=queue, priority=priority)

    claims = desk.claim(queues=["a", "b"], limit=5)

    assert [(desk.job(claim.job_id).priority, claim.queue) for claim in claims] == [
        (1, "a"),
        (1, "a"),
        (1, "a"),
        (1, "b"),
        (1, "b"),
    ]


def test_a_claimed_job_is_offered_to_nobody_else(desk):
    desk.started(worker=1)
    desk.join(2)

    assert desk.claim(2) == []


def test_a_claimed_job_is_not_offered_to_its_own_worker_again(desk):
    desk.started(worker=1)

    assert desk.claim(1) == []


def test_a_worker_that_never_joined_gets_nothing(desk):
    job_id = desk.put()

    assert desk.claim(99) == []
    assert desk.job(job_id).state is JobState.READY


def test_a_worker_whose_lease_has_ended_gets_nothing(desk):
    desk.join(lease=LEASE)
    desk.put()
    desk.advance(LEASE)

    assert desk.claim() == []


def test_a_worker_gets_jobs_up_to_the_last_moment_of_its_lease(desk):
    desk.join(lease=LEASE)
    job_id = desk.put()
    desk.advance(LEASE - SECOND)

    assert ids(desk.claim()) == [job_id]


def test_a_worker_that_left_gets_nothing(desk):
    desk.join()
    desk.put()
    desk.leave(clean=False)

    assert desk.claim() == []


def test_every_claim_of_a_job_has_a_higher_fence(desk):
    claim = desk.started()
    fences = [claim.fence]
    for _ in range(3):
        desk.end(claim, Verdict.RELEASED)
        claim = desk.take()
        fences.append(claim.fence)

    assert fences == [1, 2, 3, 4]


def test_claiming_from_a_queue_nobody_ever_used_finds_nothing(desk):
    desk.join()

    assert desk.claim(queues=["nowhere"], tasks=["nothing"]) == []


def test_a_worker_without_tasks_gets_nothing(desk):
    desk.join()
    desk.put()

    assert desk.claim(tasks=[]) == []


def test_held_answers_the_claims_as_they_were_handed_out(desk):
    desk.join()
    desk.put("a", b"1", queue="x", max_attempts=2)
    desk.put("b", b"2", queue="y", priority=3)
    claims = desk.claim(queues=["x", "y"], tasks=["a", "b"])

    assert sorted(desk.held(), key=lambda claim: claim.job_id) == sorted(
        claims, key=lambda claim: claim.job_id
    )


def test_held_leaves_out_the_claims_of_others(desk):
    mine = desk.started(worker=1)
    theirs = desk.started(worker=2)

    assert (ids(desk.held(1)), ids(desk.held(2))) == ([mine.job_id], [theirs.job_id])


def test_held_leaves_out_what_was_settled_cancelled_or_given_back(desk):
    done, back, gone, kept = (desk.started() for _ in range(4))
    desk.end(done, Verdict.SUCCEEDED)
    desk.end(back, Verdict.RELEASED, delay=HOUR)
    desk.cancel(gone.job_id)

    assert ids(desk.held()) == [kept.job_id]


def test_held_is_empty_for_a_stranger(desk):
    desk.started()

    assert desk.held(99) == []
