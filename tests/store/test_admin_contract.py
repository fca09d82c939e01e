"""The contract of migrations, the store's clock and its life, on every store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import SchemaMismatch
from mainspring.model.job import JobFilter, JobState, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from tests.support.desk import DAY, HOUR, MINUTE, settlement


@pytest.fixture
def opened(run, clock):
    """Opens stores that are closed when the test ends."""
    stores = []

    def open_one(url):
        stores.append(open_store(url, clock=clock))
        return stores[-1]

    yield open_one
    for store in stores:
        run(store.close())


def real_now():
    return datetime.now(UTC)


def test_migrating_an_empty_store_answers_what_was_applied(empty_database_url, opened, run):
    applied = run(opened(empty_database_url).migrate())

    assert applied[0].startswith("0001_")
    assert applied == sorted(applied)


def test_migrating_twice_applies_nothing_the_second_time(empty_database_url, opened, run):
    store = opened(empty_database_url)
    run(store.migrate())

    assert run(store.migrate()) == []
    run(store.verify())


def test_two_processes_may_migrate_at_once(empty_database_url, opened, run):
    stores = [opened(empty_database_url) for _ in range(4)]

    async def all_at_once():
        return await asyncio.gather(*(store.migrate() for store in stores))

    applied = run(all_at_once())

    names = [name for each in applied for name in each]
    assert sorted(names) == sorted(set(names))
    assert names
    run(stores[0].verify())


def test_verifying_an_empty_store_raises_schema_mismatch(empty_database_url, opened, run):
    with pytest.raises(SchemaMismatch) as caught:
        run(opened(empty_database_url).verify())

    assert caught.value.found == 0
    assert caught.value.needed >= 1


def test_verifying_does_not_migrate(empty_database_url, opened, run):
    store = opened(empty_database_url)
    for _ in range(2):
        with pytest.raises(SchemaMismatch):
            run(store.verify())


def test_a_migrated_store_is_verified(store, run):
    run(store.verify())


def test_migrating_keeps_what_is_there(database_url, opened, run, clock):
    first = opened(database_url)
    [job_id] = run(first.queue.insert([NewJob(task="t", payload=b"kept")], at=clock.stamp()))
    second = opened(database_url)
    run(second.migrate())

    assert run(second.jobs.get(job_id, at=clock.stamp())).payload == b"kept"


def test_what_one_store_writes_another_reads(database_url, opened, run, clock):
    writer, reader = opened(database_url), opened(database_url)
    assert run(reader.jobs.find(JobFilter(), at=clock.stamp())) == []
    [job_id] = run(writer.queue.insert([NewJob(task="new", payload=b"x", queue="new")], at=clock.stamp()))

    job = run(reader.jobs.get(job_id, at=clock.stamp()))

    assert (job.task, job.queue) == ("new", "new")


def test_what_is_written_is_there_after_a_close(database_url, opened, run, clock):
    first = open_store(database_url, clock=clock)
    [job_id] = run(first.queue.insert([NewJob(task="t", payload=b"x")], at=clock.stamp()))
    run(first.close())

    assert run(opened(database_url).jobs.get(job_id, at=clock.stamp())).state is JobState.READY


def test_closing_twice_is_no_error(database_url, run, clock):
    store = open_store(database_url, clock=clock)
    run(store.health.facts())
    run(store.close())
    run(store.close())


def test_a_store_that_was_never_used_can_be_closed(empty_database_url, run, clock):
    run(open_store(empty_database_url, clock=clock).close())


def test_a_stamp_is_the_stores_now(store, run, clock):
    assert run(store.now(at=clock.stamp())) == clock.now()


def test_a_stamp_is_answered_in_utc(store, run, clock):
    assert run(store.now(at=clock.stamp())).utcoffset() == timedelta()


def test_facts_are_words_for_an_operator(store, run):
    facts = run(store.health.facts())

    assert facts
    assert all(isinstance(key, str) and isinstance(value, str) and value for key, value in facts.items())


# With no stamp, the database's clock decides.


def test_without_a_stamp_now_is_the_databases(store, run):
    before = real_now()
    now = run(store.now(at=None))

    assert before - MINUTE < now < real_now() + MINUTE
    assert now.tzinfo is not None


def test_without_a_stamp_jobs_are_enqueued_claimed_and_settled_by_the_databases_clock(store, run):
    before = real_now() - MINUTE
    [now_id, later_id] = run(
        store.queue.insert(
            [NewJob(task="t", payload=b""), NewJob(task="t", payload=b"", delay=HOUR)], at=None
        )
    )
    run(store.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=MINUTE, at=None))
    [claim] = run(store.queue.claim(1, queues=["default"], tasks=["t"], limit=10, at=None))
    run(store.queue.settle([settlement(claim, Verdict.SUCCEEDED)], at=None))
    after = real_now() + MINUTE

    done, later = run(store.jobs.get(now_id, at=None)), run(store.jobs.get(later_id, at=None))
    assert before < done.enqueued_at <= done.finished_at < after
    assert before + HOUR < later.run_at < after + HOUR
    assert (done.state, later.state) == (JobState.SUCCEEDED, JobState.DELAYED)


def test_without_a_stamp_a_failure_is_dated_by_the_databases_clock(store, run):
    before = real_now() - MINUTE
    run(store.queue.insert([NewJob(task="t", payload=b"")], at=None))
    run(store.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=MINUTE, at=None))
    [claim] = run(store.queue.claim(1, queues=["default"], tasks=["t"], limit=10, at=None))
    run(store.queue.settle([settlement(claim, Verdict.FAILED, delay=HOUR)], at=None))

    [error] = run(store.jobs.get(claim.job_id, at=None)).errors
    assert before < error.at < real_now() + MINUTE


def test_without_a_stamp_leases_are_judged_by_the_databases_clock(store, run, clock):
    before = real_now()
    run(store.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=HOUR, at=None))
    assert run(store.processes.beat(1, lease=HOUR, claims=[], at=None)).alive

    [member] = run(store.processes.all(at=None))
    assert before + HOUR - MINUTE < member.lease_until < real_now() + HOUR + MINUTE
    assert run(store.processes.reap(limit=10, at=None)).processes == ()


def test_without_a_stamp_slots_are_due_and_fired_by_the_databases_clock(store, run):
    from tests.support.desk import Desk

    class RealClock:
        def now(self):
            return real_now()

        def stamp(self):
            return None

    desk = Desk(store, RealClock(), run)
    run(store.schedules.put([desk.new_schedule(next_at=real_now() + DAY)], at=None))
    assert DAY - MINUTE < run(store.slots.next_due(at=None)) < DAY + MINUTE
    past = real_now() - 2 * DAY
    run(
        store.schedules.put(
            [desk.new_schedule("p", trigger="p", next_at=past, catch_up=DAY)], at=real_now() - 3 * DAY
        )
    )
    now, [spec] = run(store.slots.due_specs(limit=10, at=None))
    assert abs(now - real_now()) < MINUTE
    run(store.slots.open_firings([desk.opening(spec, next_at=None)], at=None))

    chunk = run(store.slots.fire(limit=10, at=None))

    assert (chunk.fired, chunk.skipped) == (0, 1)
    assert 2 * DAY - MINUTE < chunk.late < 2 * DAY + MINUTE
