"""The contract of the read side, on every store."""

from __future__ import annotations

from mainspring.model.job import JobState, NewJob
from mainspring.model.queue import QueueDepth
from mainspring.model.run import Verdict
from tests.support.desk import HOUR, LEASE, MINUTE, SECOND


def ids(jobs):
    return [job.id for job in jobs]


def test_names_of_schedules_outlive_them(desk):
    for name in ("b", "a"):
        desk.schedule(name)
    desk.delete("b")

    assert desk.run(desk.store.schedules.names()) == ["a", "b"]


def test_the_newest_runs_of_many_jobs_are_read_at_once(desk):
    tried, done, unborn = desk.started(max_attempts=3), desk.put(task="u"), desk.put(task="v")
    for _ in range(2):
        desk.end(tried, Verdict.FAILED)
        desk.advance(SECOND)
        tried = desk.take()
    desk.end(tried, Verdict.SUCCEEDED, result=b"7")
    desk.end(desk.take(tasks=("u",)), Verdict.SUCCEEDED)

    found = desk.run(desk.store.runs.of_many([tried.job_id, done, unborn], most=2))

    assert [run.verdict for run in found[tried.job_id]] == [Verdict.FAILED, Verdict.SUCCEEDED]
    assert found.keys() == {tried.job_id, done}
    last = found[tried.job_id][-1]
    assert (last.result, last.enqueued_at, last.attempt) == (None, desk.runs(tried.job_id)[0].enqueued_at, 3)
    assert found[tried.job_id][0].failure.message == "boom"
    assert desk.run(desk.store.runs.of_many([], most=2)) == {}


def test_where_live_jobs_stand_is_read_at_once(desk):
    delayed, ready, running = desk.put(delay=HOUR), desk.put(queue="a"), desk.started(queue="b")
    dead, gone = desk.bury(queue="c"), 987_654

    found = desk.run(desk.store.jobs.standings([delayed, ready, running.job_id, dead, gone], at=desk.now))

    assert {job_id: each.state for job_id, each in found.items()} == {
        delayed: JobState.DELAYED,
        ready: JobState.READY,
        running.job_id: JobState.RUNNING,
    }
    assert (found[running.job_id].worker_id, found[running.job_id].claimed_at) == (1, desk.now)
    assert (found[ready].worker_id, found[ready].claimed_at) == (None, None)
    assert (found[delayed].run_at, found[delayed].enqueued_at) == (desk.now + HOUR, desk.now)


def test_a_job_that_never_was_is_none(desk):
    assert desk.find(987_654) is None


def test_a_job_is_found_in_every_state(desk):
    delayed, ready = desk.put(delay=HOUR), desk.put()
    done, gone = desk.started(queue="a"), desk.started(queue="a")
    dead = desk.bury(queue="a")
    running = desk.started(queue="a")
    desk.end(done, Verdict.SUCCEEDED)
    desk.cancel(gone.job_id)
    dropped = desk.started(queue="b")
    desk.end(dropped, Verdict.DISCARDED)

    ended = (done.job_id, dead, gone.job_id, dropped.job_id)
    found = [desk.job(job_id) for job_id in (delayed, ready, running.job_id, *ended)]

    assert [job.state for job in found] == list(JobState)


def test_jobs_lists_the_live_ones_newest_id_first(desk):
    first, second, third = desk.put(), desk.put(delay=HOUR), desk.put()
    desk.end(desk.take(), Verdict.SUCCEEDED)

    assert ids(desk.jobs()) == [third, second]
    assert first not in ids(desk.jobs())


def test_jobs_lists_by_state(desk):
    claims = [desk.started() for _ in range(5)]
    done, gone, died, dropped, running = claims
    desk.end(done, Verdict.SUCCEEDED)
    desk.cancel(gone.job_id)
    desk.end(died, Verdict.DEAD)
    desk.end(dropped, Verdict.DISCARDED)
    ready, delayed = desk.put(), desk.put(delay=HOUR)

    listed = {state: ids(desk.jobs(state=state)) for state in JobState}

    assert listed == {
        JobState.DELAYED: [delayed],
        JobState.READY: [ready],
        JobState.RUNNING: [running.job_id],
        JobState.SUCCEEDED: [done.job_id],
        JobState.DEAD: [died.job_id],
        JobState.CANCELLED: [gone.job_id],
        JobState.DISCARDED: [dropped.job_id],
    }


def test_a_listed_job_is_the_same_as_the_one_looked_up(desk):
    claims = [desk.started(task="send", queue="mail", priority=n, payload=b"%d" % n) for n in range(4)]
    done, gone, died, _ = claims
    desk.advance(SECOND)
    desk.end(done, Verdict.SUCCEEDED, result=b"1", took=SECOND)
    desk.cancel(gone.job_id)
    desk.end(died, Verdict.DEAD)
    desk.put()
    desk.put(delay=HOUR)

    for state in JobState:
        for job in desk.jobs(state=state):
            assert job == desk.job(job.id)


def test_state_follows_the_clock(desk):
    job_id = desk.put(delay=MINUTE)
    assert ids(desk.jobs(state=JobState.DELAYED)) == [job_id]

    desk.advance(MINUTE)

    assert ids(desk.jobs(state=JobState.DELAYED)) == []
    assert ids(desk.jobs(state=JobState.READY)) == [job_id]


def test_jobs_lists_by_task_and_queue(desk):
    mail = desk.put("send", queue="mail")
    fax = desk.put("send", queue="fax")
    other = desk.put("other", queue="mail")

    assert ids(desk.jobs(task="send")) == [fax, mail]
    assert ids(desk.jobs(queue="mail")) == [other, mail]
    assert ids(desk.jobs(task="send", queue="mail")) == [mail]
    assert desk.jobs(task="never heard of") == desk.jobs(queue="never heard of") == []


def test_finished_jobs_are_listed_by_task_and_queue_too(desk):
    for task, queue in (("a", "x"), ("a", "y"), ("b", "x")):
        desk.end(desk.started(task=task, queue=queue), Verdict.SUCCEEDED)

    listed = desk.jobs(state=JobState.SUCCEEDED, task="a", queue="x")

    assert [(job.task, job.queue) for job in listed] == [("a", "x")]
    assert len(desk.jobs(state=JobState.SUCCEEDED, task="a")) == 2


def test_jobs_come_page_by_page(desk):
    put = desk.put_all(*[NewJob(task="t", payload=b"")] * 7)

    pages, before = [], None
    while page := ids(desk.jobs(limit=3, before=before)):
        pages.append(page)
        before = page[-1]

    assert pages == [put[:3:-1], put[3:0:-1], put[0:1]]


def test_finished_jobs_come_page_by_page(desk):
    claims = [desk.started() for _ in range(5)]
    for claim in claims:
        desk.end(claim, Verdict.SUCCEEDED)

    first = ids(desk.jobs(state=JobState.SUCCEEDED, limit=2))
    second = ids(desk.jobs(state=JobState.SUCCEEDED, limit=2, before=first[-1]))

    assert first + second == [claim.job_id for claim in claims[:0:-1]]


def test_a_page_is_fifty_jobs_unless_told_otherwise(desk):
    desk.put_all(*[NewJob(task="t", payload=b"")] * 51)

    assert len(desk.jobs()) == 50


def test_runs_come_oldest_first(desk):
    claim = desk.started(worker=1, max_attempts=9)
    desk.advance(SECOND)
    desk.end(claim, Verdict.FAILED)
    desk.end(desk.take(1), Verdict.RELEASED)
    desk.take(1)
    desk.lose(1)
    desk.end(desk.take(2), Verdict.SUCCEEDED)

    told = [(run.verdict, run.attempt, run.fence) for run in desk.runs(claim.job_id)]

    assert told == [
        (Verdict.FAILED, 1, 1),
        (Verdict.RELEASED, 2, 2),
        (Verdict.CRASHED, 2, 3),
        (Verdict.SUCCEEDED, 2, 4),
    ]


def test_runs_of_other_jobs_are_left_out(desk):
    first, second = desk.started(), desk.started()
    desk.end(first, Verdict.SUCCEEDED)
    desk.end(second, Verdict.SUCCEEDED)

    assert [run.job_id for run in desk.runs(first.job_id)] == [first.job_id]


def test_a_job_that_has_not_run_has_no_runs(desk):
    assert desk.runs(desk.put()) == []


def test_depth_counts_live_jobs_by_queue_and_task(desk):
    desk.started(task="a", queue="x")
    oldest = desk.now - HOUR
    desk.put("a", queue="x", run_at=oldest)
    desk.put("a", queue="x")
    desk.put("a", queue="x", delay=MINUTE)
    desk.put("b", queue="x")
    desk.put("a", queue="y", delay=HOUR)
    desk.end(desk.started(task="c", queue="z"), Verdict.SUCCEEDED)

    depth = sorted(desk.depth(), key=lambda row: (row.queue, row.task))

    assert depth == [
        QueueDepth(queue="x", task="a", ready=2, delayed=1, running=1, oldest_ready_at=oldest),
        QueueDepth(queue="x", task="b", ready=1, delayed=0, running=0, oldest_ready_at=desk.now),
        QueueDepth(queue="y", task="a", ready=0, delayed=1, running=0, oldest_ready_at=None),
    ]


def test_depth_of_an_empty_store_is_empty(desk):
    assert desk.depth() == []


def test_members_of_an_empty_store_are_none(desk):
    assert desk.processes() == []


def test_a_member_whose_lease_ended_is_listed_as_not_alive_until_it_is_reaped(desk):
    desk.join(1)
    desk.advance(LEASE)

    assert [(member.id, member.alive) for member in desk.processes()] == [(1, False)]


def test_slots_come_newest_first_and_no_more_than_the_limit(desk):
    desk.schedule()
    for _ in range(4):
        desk.advance(MINUTE)
        desk.fire_due()

    assert [slot.slot_at for slot in desk.slots(limit=2)] == [desk.now, desk.now - MINUTE]
    assert len(desk.slots(limit=100)) == 4


def test_slots_of_a_schedule_that_never_was_are_none(desk):
    assert desk.slots("never heard of") == []
