"""The contract of keys: one job for each, for as long as its scope says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mainspring.errors import DuplicateJob
from mainspring.model.job import Inserted, JobState, Key, NewJob, OnDuplicate, Scope
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from tests.support.desk import HOUR, MINUTE, SECOND, Desk


def job(key: str | None = "k", payload: bytes = b"{}", **fields: Any) -> NewJob:
    names = ("scope", "period", "on_duplicate")
    rules = {name: fields.pop(name) for name in names if name in fields}
    unique = None if key is None else Key(digest=key.encode().ljust(32, b"."), name=key, **rules)
    return NewJob(task="t", payload=payload, unique=unique, **fields)


def put(desk: Desk, *args: Any, **fields: Any) -> Inserted:
    [done] = desk.put_unique(job(*args, **fields))
    return done


def test_the_second_job_of_a_key_is_the_first(desk):
    first, second = put(desk), put(desk, payload=b"other")

    assert (first.created, second.created) == (True, False)
    assert first.job_id == second.job_id
    [there] = desk.jobs()
    assert (there.id, there.payload) == (first.job_id, b"{}")


def test_other_keys_and_jobs_without_one_are_not_kept_out(desk):
    done = desk.put_unique(job("a"), job("b"), job(None), job(None))

    assert all(each.created for each in done)
    assert len({each.job_id for each in done}) == len(desk.jobs()) == 4


def test_a_key_twice_in_one_batch_is_one_job(desk):
    done = desk.put_unique(job("a"), job("b"), job("a"))

    assert [each.created for each in done] == [True, True, False]
    assert done[0].job_id == done[2].job_id
    assert len(desk.jobs()) == 2


def test_until_finished_also_means_while_it_runs_and_between_attempts(desk):
    desk.join()
    first = put(desk, max_attempts=2)
    [claim] = desk.claim()
    assert put(desk).job_id == first.job_id
    desk.end(claim, Verdict.FAILED, delay=HOUR)
    assert put(desk).job_id == first.job_id


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.DEAD])
def test_once_it_has_ended_the_key_is_free(desk, verdict):
    desk.join()
    first = put(desk)
    desk.end(desk.claim()[0], verdict)

    second = put(desk)
    assert second.created
    assert second.job_id != first.job_id
    assert put(desk) == Inserted(job_id=second.job_id, created=False)


def test_a_cancelled_job_frees_its_key(desk):
    first = put(desk)
    desk.cancel(first.job_id)

    assert put(desk).created


def test_while_queued_ends_when_it_is_claimed(desk):
    desk.join()
    first = put(desk, scope=Scope.QUEUED)
    assert put(desk, scope=Scope.QUEUED).job_id == first.job_id
    desk.claim()

    second = put(desk, scope=Scope.QUEUED)
    assert second.created
    assert put(desk, scope=Scope.QUEUED).job_id == second.job_id


def test_a_period_lasts_whatever_becomes_of_the_job(desk):
    desk.join()
    rules = {"scope": Scope.PERIOD, "period": HOUR}
    first = put(desk, **rules)
    desk.end(desk.claim()[0], Verdict.SUCCEEDED)
    desk.advance(HOUR - SECOND)
    assert put(desk, **rules) == Inserted(job_id=first.job_id, created=False)

    desk.advance(SECOND)
    assert put(desk, **rules).created


def test_a_duplicate_may_be_an_error_and_then_nothing_of_its_batch_is_written(desk):
    first = put(desk)

    with pytest.raises(DuplicateJob, match=f"key: 'k' of task t is taken by job {first.job_id}"):
        desk.put_unique(job("new"), job(None), job(on_duplicate=OnDuplicate.ERROR))

    assert [each.id for each in desk.jobs()] == [first.job_id]
    assert put(desk, "new").created


def test_a_waiting_job_takes_over_what_the_second_one_says(desk):
    first = put(desk, payload=b"old", delay=HOUR)

    second = put(
        desk, payload=b"new", queue="other", priority=9, max_attempts=4, delay=MINUTE,
        on_duplicate=OnDuplicate.REPLACE,
    )  # fmt: skip

    assert second == Inserted(job_id=first.job_id, created=False, replaced=True)
    [there] = desk.jobs()
    assert (there.payload, there.queue, there.priority, there.max_attempts) == (b"new", "other", 9, 4)
    assert (there.run_at, there.state) == (desk.now + MINUTE, JobState.DELAYED)
    desk.advance(MINUTE)
    assert desk.take(queues=("other",)).job_id == first.job_id


def test_a_running_job_cannot_be_replaced(desk):
    desk.join()
    first = put(desk)
    desk.claim()

    with pytest.raises(DuplicateJob, match=f"taken by job {first.job_id}, and it runs already"):
        put(desk, payload=b"new", on_duplicate=OnDuplicate.REPLACE)
    assert desk.job(first.job_id).payload == b"{}"


def test_pruning_forgets_keys_that_keep_nobody_out(desk):
    desk.join()
    put(desk, "kept")
    put(desk, "ended")
    put(desk, "dated", scope=Scope.PERIOD, period=HOUR)
    for claim in desk.claim()[1:]:
        desk.end(claim, Verdict.SUCCEEDED)

    desk.prune(400 * 24 * HOUR)

    assert [put(desk, key).created for key in ("kept", "ended")] == [False, True]
    assert not put(desk, "dated", scope=Scope.PERIOD, period=HOUR).created


def test_two_stores_at_once_make_one_job(database_url, clock, run):
    """Each store is a process of its own, as far as the database can tell."""

    async def story() -> set[int]:
        stores = [open_store(database_url, clock=clock) for _ in range(4)]
        try:
            ids: set[int] = set()
            for turn in range(20):
                batch = [store.queue.insert_unique([job(f"k{turn}")], at=clock.stamp()) for store in stores]
                done = [each for [each] in await asyncio.gather(*batch)]
                assert len({each.job_id for each in done}) == 1, done
                assert sum(each.created for each in done) == 1, done
                ids.add(done[0].job_id)
            return ids
        finally:
            for store in stores:
                await store.close()

    assert len(run(story())) == 20


def test_batches_that_name_the_same_keys_in_other_orders_do_not_wait_for_each_other(database_url, clock, run):
    keys = [f"k{n}" for n in range(20)]

    async def story() -> None:
        stores = [open_store(database_url, clock=clock) for _ in range(2)]
        try:
            for turn in range(5):
                one = [job(f"{key}-{turn}") for key in keys]
                first, second = await asyncio.gather(
                    stores[0].queue.insert_unique(one, at=clock.stamp()),
                    stores[1].queue.insert_unique(one[::-1], at=clock.stamp()),
                )
                assert [each.job_id for each in first] == [each.job_id for each in second[::-1]]
        finally:
            for store in stores:
                await store.close()

    run(story())
