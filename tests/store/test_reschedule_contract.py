"""The contract of `reschedule` and `edit` of jobs that wait, on every store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mainspring.model.job import Job, JobState, Key, NewJob, Scope
from mainspring.model.limit import LimitKey
from mainspring.model.run import Verdict
from tests.support.desk import DAY, HOUR, MINUTE, Desk
from tests.support.flows import Story, definition

ONE = (LimitKey(name="one", concurrency=1),)
OTHER = (LimitKey(name="other", concurrency=1),)


@pytest.fixture
def at_work(desk: Desk) -> Desk:
    desk.join(lease=400 * HOUR)
    return desk


def claimed(desk: Desk, **how: Any) -> list[int]:
    return [claim.job_id for claim in desk.claim(**how)]


# Another time.


def test_a_job_that_waits_runs_at_the_new_time(at_work):
    delayed, ready = at_work.put(delay=DAY), at_work.put()

    assert at_work.reschedule(ready, delayed, to=at_work.now + HOUR) == [ready, delayed]

    assert claimed(at_work) == []
    assert [(at_work.job(each).state, at_work.job(each).run_at) for each in (ready, delayed)] == [
        (JobState.DELAYED, at_work.now + HOUR)
    ] * 2
    at_work.advance(HOUR)
    assert sorted(claimed(at_work)) == sorted([ready, delayed])


def test_a_job_may_be_due_at_once(at_work):
    job_id = at_work.put(delay=DAY)

    assert at_work.reschedule(job_id, to=at_work.now) == [job_id]

    assert claimed(at_work) == [job_id]


def test_nothing_but_its_time_changes(at_work):
    job_id = at_work.put(
        "send", b"[1]", queue="mail", priority=4, max_attempts=3, expires_at=at_work.now + DAY
    )
    before = at_work.job(job_id)

    at_work.reschedule(job_id, to=at_work.now + HOUR)

    assert at_work.job(job_id) == msgspec.structs.replace(
        before, state=JobState.DELAYED, run_at=at_work.now + HOUR
    )


def test_what_runs_or_has_ended_is_left_as_it_is(at_work):
    ended = at_work.started()
    at_work.end(ended, Verdict.SUCCEEDED)
    dead, running = at_work.bury(), at_work.started()
    before = [at_work.job(each) for each in (ended.job_id, running.job_id, dead)]

    assert at_work.reschedule(ended.job_id, running.job_id, dead, 987_654, to=at_work.now + HOUR) == []

    assert [at_work.job(each) for each in (ended.job_id, running.job_id, dead)] == before
    at_work.end(running, Verdict.SUCCEEDED)


def test_a_deadline_stands(at_work):
    job_id = at_work.put(expires=HOUR)

    assert at_work.reschedule(job_id, to=at_work.now + HOUR) == []
    assert at_work.reschedule(job_id, to=at_work.now + HOUR - MINUTE) == [job_id]


def test_one_that_is_to_be_tried_again_keeps_its_failures(at_work):
    claim = at_work.started(max_attempts=3)
    at_work.end(claim, Verdict.FAILED, delay=DAY)

    assert at_work.reschedule(claim.job_id, to=at_work.now) == [claim.job_id]

    assert at_work.job(claim.job_id).failures == 1
    [again] = at_work.claim()
    assert again.fence > claim.fence


def test_one_in_line_waits_for_its_new_time_and_then_for_its_limit(at_work):
    first, second = at_work.put(limit_keys=ONE), at_work.put(limit_keys=ONE)
    at_work.reschedule(first, to=at_work.now + HOUR)

    assert at_work.admit_all() == 1
    [claim] = at_work.claim()
    assert claim.job_id == second
    at_work.advance(HOUR)
    assert at_work.admit_all() == 0
    at_work.end(claim, Verdict.SUCCEEDED)
    assert at_work.admit_all() == 1
    assert claimed(at_work) == [first]


def test_one_that_has_passed_its_limit_gives_its_place_back(at_work):
    first, second = at_work.put(limit_keys=ONE), at_work.put(limit_keys=ONE)
    at_work.admit_all()
    assert at_work.job(first).state is JobState.READY

    assert at_work.reschedule(first, to=at_work.now + HOUR) == [first]

    assert at_work.admit_all() == 1
    assert claimed(at_work) == [second]


def test_the_job_of_a_workflow_that_goes_on_is_left_as_it_is(at_work):
    workflow = Story(at_work, definition(a={})).id

    assert at_work.reschedule(workflow, to=at_work.now) == []
    assert not at_work.edit_job(at_work.job(workflow), priority=3)


def test_a_step_is_rescheduled_and_not_edited(at_work):
    step = Story(at_work, definition(a={})).step("a")

    assert at_work.reschedule(step.id, to=at_work.now + HOUR) == [step.id]
    assert not at_work.edit_job(at_work.job(step.id), priority=3)


# Other contents.


def test_every_part_of_a_job_can_be_changed(at_work):
    job_id = at_work.put("send", b"[1]", queue="mail", priority=4, max_attempts=3, delay=HOUR, trace="t")
    before = at_work.job(job_id)

    assert at_work.edit_job(
        before, payload=b"[2]", priority=-7, queue="post", max_attempts=9, expires_at=at_work.now + DAY
    )

    assert at_work.job(job_id) == msgspec.structs.replace(
        before, payload=b"[2]", priority=-7, queue="post", max_attempts=9, expires_at=at_work.now + DAY
    )


def test_what_is_not_named_stays(at_work):
    job_id = at_work.put(
        payload=b"[1]", queue="mail", priority=4, max_attempts=3, expires=HOUR, limit_keys=ONE
    )
    before = at_work.job(job_id)

    assert at_work.edit_job(before, priority=5)

    assert at_work.job(job_id) == msgspec.structs.replace(before, priority=5)


def test_a_deadline_counts_from_when_the_job_is_due_and_can_be_taken_away(at_work):
    job_id = at_work.put(delay=HOUR)

    assert at_work.edit_job(at_work.job(job_id), expires=MINUTE)
    assert at_work.job(job_id).expires_at == at_work.now + HOUR + MINUTE
    assert at_work.edit_job(at_work.job(job_id), no_deadline=True)
    assert at_work.job(job_id).expires_at is None


def test_a_job_is_claimed_from_its_new_queue_in_the_order_of_its_new_priority(at_work):
    late, early = at_work.put(queue="new", priority=1), at_work.put()

    assert at_work.edit_job(at_work.job(early), queue="new", priority=2)

    assert claimed(at_work) == []
    assert claimed(at_work, queues=("new",)) == [early, late]


def test_a_queue_that_is_paused_keeps_what_is_moved_into_it(at_work):
    job_id = at_work.put()
    at_work.pause_queue("quiet")

    assert at_work.edit_job(at_work.job(job_id), queue="quiet", priority=9)

    assert claimed(at_work, queues=("quiet", "default")) == []
    at_work.resume_queue("quiet")
    assert claimed(at_work, queues=("quiet", "default")) == [job_id]


def test_a_job_that_is_not_as_it_was_read_is_left_as_it_is(at_work):
    job_id = at_work.put(payload=b"[1]", max_attempts=5)
    read = at_work.job(job_id)
    claim = at_work.take()
    assert not at_work.edit_job(read, priority=9)
    at_work.end(claim, Verdict.FAILED)
    # It waits again, but it is not what was read.
    assert not at_work.edit_job(read, priority=9)
    read = at_work.job(job_id)
    assert at_work.edit_job(read, payload=b"[2]")
    assert not at_work.edit_job(read, payload=b"[3]")

    assert (at_work.job(job_id).payload, at_work.job(job_id).priority) == (b"[2]", 0)


def test_what_runs_or_has_ended_is_not_changed(at_work):
    ended = at_work.started()
    at_work.end(ended, Verdict.SUCCEEDED)
    dead, running = at_work.bury(), at_work.started()

    for job_id in (ended.job_id, dead, running.job_id):
        before = at_work.job(job_id)
        assert not at_work.edit_job(before, payload=b"[9]", priority=9)
        assert at_work.job(job_id) == before


def test_attempts_must_be_more_than_have_failed(at_work):
    claim = at_work.started(max_attempts=3)
    at_work.end(claim, Verdict.FAILED)

    assert not at_work.edit_job(at_work.job(claim.job_id), max_attempts=1)
    assert at_work.edit_job(at_work.job(claim.job_id), max_attempts=2)


def test_its_key_stays(at_work):
    key = Key(digest=b"k" * 32, name="k", scope=Scope.QUEUED)
    [made] = at_work.put_unique(NewJob(task="t", payload=b"[1]", unique=key))

    assert at_work.edit_job(at_work.job(made.job_id), payload=b"[2]")

    [other] = at_work.put_unique(NewJob(task="t", payload=b"[1]", unique=key))
    assert (other.job_id, other.created) == (made.job_id, False)


# Other limits.


def state(desk: Desk, job_id: int) -> tuple[bool, JobState]:
    job: Job = desk.job(job_id)
    return job.waits_for_limit, job.state


def test_a_job_may_come_under_a_limit(at_work):
    free, limited = at_work.put(), at_work.put(limit_keys=ONE)
    at_work.admit_all()

    assert at_work.edit_job(at_work.job(free), limit_keys=ONE)

    assert claimed(at_work) == [limited]
    assert at_work.admit_all() == 0


def test_a_delayed_job_under_a_new_limit_still_waits_for_its_time(at_work):
    job_id = at_work.put(delay=HOUR)

    assert at_work.edit_job(at_work.job(job_id), limit_keys=ONE)

    assert at_work.job(job_id).run_at == at_work.now + HOUR
    assert at_work.admit_all() == 0
    at_work.advance(HOUR)
    assert at_work.admit_all() == 1
    assert claimed(at_work) == [job_id]


def test_a_job_may_lose_its_limits(at_work):
    holder, waiting = at_work.put(limit_keys=ONE), at_work.put(limit_keys=ONE)
    at_work.admit_all()
    assert claimed(at_work) == [holder]

    assert at_work.edit_job(at_work.job(waiting), limit_keys=())

    assert state(at_work, waiting) == (False, JobState.READY)
    assert claimed(at_work) == [waiting]


@pytest.mark.parametrize("limit_keys", [OTHER, ()], ids=["another", "none"])
def test_one_that_has_passed_gives_its_place_back_when_its_limit_changes(at_work, limit_keys):
    first, second = at_work.put(limit_keys=ONE), at_work.put(limit_keys=ONE)
    at_work.admit_all()
    assert state(at_work, first) == (False, JobState.READY)

    assert at_work.edit_job(at_work.job(first), limit_keys=limit_keys)

    at_work.admit_all()
    assert sorted(claimed(at_work)) == sorted([first, second])
    assert {info.limit_key.name: info.used for info in at_work.limit_keys()} == (
        {"one": 1, "other": 1} if limit_keys else {"one": 1}
    )


def test_one_that_has_passed_keeps_its_place_when_its_limits_are_the_same(at_work):
    first, second = at_work.put(limit_keys=ONE), at_work.put(limit_keys=ONE)
    at_work.admit_all()

    assert at_work.edit_job(at_work.job(first), payload=b"[2]", limit_keys=ONE)

    assert at_work.admit_all() == 0
    assert claimed(at_work) == [first]
    assert state(at_work, second)[0]
