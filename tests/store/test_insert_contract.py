"""The contract of `insert`, on every store."""

from __future__ import annotations

import pytest

from mainspring.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, Job, JobState, NewJob
from tests.support.desk import HOUR, MINUTE, SECOND


def test_a_new_job_is_on_record_with_every_field_it_was_given(desk):
    job_id = desk.put("send", b'{"n":1}', queue="mail", priority=7, max_attempts=5)

    assert desk.job(job_id) == Job(
        id=job_id,
        task="send",
        queue="mail",
        priority=7,
        state=JobState.READY,
        run_at=desk.now,
        enqueued_at=desk.now,
        payload=b'{"n":1}',
        max_attempts=5,
        failures=0,
        crashes=0,
        fence=0,
        worker_id=None,
        schedule_id=None,
        slot_at=None,
        finished_at=None,
        result=None,
        errors=(),
    )


def test_a_job_without_a_time_is_ready_at_once(desk):
    assert desk.job(desk.put()).state is JobState.READY


def test_a_delay_counts_from_the_stores_now(desk):
    desk.advance(HOUR)

    job = desk.job(desk.put(delay=MINUTE))

    assert (job.state, job.run_at, job.enqueued_at) == (JobState.DELAYED, desk.now + MINUTE, desk.now)


def test_a_given_run_at_is_kept_to_the_microsecond(desk):
    run_at = desk.now.replace(hour=7, minute=13, second=59, microsecond=999_999)

    assert desk.job(desk.put(run_at=run_at)).run_at == run_at


def test_a_given_run_at_is_taken_and_not_the_delay(desk):
    assert desk.job(desk.put(run_at=desk.now + HOUR, delay=MINUTE)).run_at == desk.now + HOUR


def test_a_run_at_in_the_past_is_kept_and_is_ready(desk):
    job = desk.job(desk.put(run_at=desk.now - HOUR))

    assert (job.state, job.run_at) == (JobState.READY, desk.now - HOUR)


def test_a_job_becomes_ready_at_its_very_moment(desk):
    job_id = desk.put(delay=SECOND)
    desk.advance(SECOND)

    assert desk.job(job_id).state is JobState.READY


def test_ids_are_answered_in_the_order_of_the_batch(desk):
    ids = desk.put_all(*(NewJob(task="t", payload=b"%d" % n) for n in range(50)))

    assert [desk.job(job_id).payload for job_id in ids] == [b"%d" % n for n in range(50)]


def test_later_batches_get_higher_ids(desk):
    batches = [desk.put_all(*[NewJob(task="t", payload=b"")] * size) for size in (3, 1, 150, 2)]

    ids = [job_id for batch in batches for job_id in batch]
    assert ids == sorted(set(ids))
    assert ids[0] > 0


def test_one_batch_may_mix_queues_tasks_and_priorities(desk):
    jobs = [
        NewJob(task="a", payload=b"1", queue="one", priority=LOWEST_PRIORITY),
        NewJob(task="b", payload=b"2", queue="two", priority=HIGHEST_PRIORITY, delay=MINUTE),
        NewJob(task="a", payload=b"3", queue="two", max_attempts=9),
    ]

    found = [desk.job(job_id) for job_id in desk.put_all(*jobs)]

    assert [(j.task, j.queue, j.priority, j.payload, j.max_attempts) for j in found] == [
        ("a", "one", LOWEST_PRIORITY, b"1", 1),
        ("b", "two", HIGHEST_PRIORITY, b"2", 1),
        ("a", "two", 0, b"3", 9),
    ]
    assert [j.state for j in found] == [JobState.READY, JobState.DELAYED, JobState.READY]


def test_an_empty_batch_is_no_work(desk):
    assert desk.put_all() == []
    assert desk.jobs() == []


def test_a_batch_of_thousands_is_taken_whole(desk):
    jobs = [NewJob(task="t", payload=b"%d" % n, priority=n % 3, delay=SECOND * (n % 2)) for n in range(2500)]

    ids = desk.put_all(*jobs)

    assert len(set(ids)) == 2500
    [depth] = desk.depth()
    assert (depth.ready, depth.delayed) == (1250, 1250)
    last = desk.job(ids[-1])
    assert (last.payload, last.priority, last.run_at) == (b"2499", 0, desk.now + SECOND)


@pytest.mark.parametrize("payload", [b"", b"\x00\xff\x80binary", "žluťoučký ☃".encode(), b"x" * 1_000_000])
def test_a_payload_comes_back_byte_for_byte(desk, payload):
    job_id = desk.put(payload=payload)

    assert desk.job(job_id).payload == payload
    assert desk.take().payload == payload


@pytest.mark.parametrize("name", ["x" * 200, "naïve ☃", 'quote\'s "double"; DROP TABLE jobs; --'])
def test_names_come_back_as_they_were_written(desk, name):
    job = desk.job(desk.put(task=name, queue=name))

    assert (job.task, job.queue) == (name, name)
