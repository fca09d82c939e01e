"""The contract of limits: who may pass the limit keys, and when a place is free again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mainspring.model.job import JobState
from mainspring.model.limit import LimitKey
from mainspring.model.run import Verdict
from mainspring.model.schedule import Overlap
from mainspring.store.opener import open_store
from tests.support.desk import HOUR, MINUTE, SECOND, Desk

TWO = (LimitKey(name="two", concurrency=2),)


def put(desk: Desk, count: int = 1, limit_keys: tuple[LimitKey, ...] = TWO, **fields: Any) -> list[int]:
    return [desk.put(limit_keys=limit_keys, **fields) for _ in range(count)]


@pytest.fixture
def at_work(desk: Desk) -> Desk:
    desk.join(lease=400 * HOUR)
    return desk


def claimed(desk: Desk) -> list[int]:
    return [claim.job_id for claim in desk.claim()]


def test_a_job_with_a_limit_cannot_be_claimed_before_it_has_passed(at_work):
    [job_id] = put(at_work)
    assert claimed(at_work) == []

    assert at_work.admit() == 1
    [claim] = at_work.claim()
    assert (claim.job_id, claim.limited) == (job_id, True)


def test_no_more_pass_than_may_be_live_at_once(at_work):
    ids = put(at_work, 5)

    assert at_work.admit_all() == 2
    assert claimed(at_work) == ids[:2]
    assert at_work.admit_all() == 0


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.DEAD])
def test_a_job_that_has_ended_makes_room(at_work, verdict):
    ids = put(at_work, 4)
    at_work.admit()
    first, _ = at_work.claim()
    at_work.end(first, verdict)

    assert at_work.admit_all() == 1
    assert claimed(at_work) == [ids[2]]


def test_a_cancelled_job_makes_room(at_work):
    ids = put(at_work, 3)
    at_work.admit()
    at_work.cancel(ids[0])

    assert at_work.admit_all() == 1


def test_a_job_that_is_to_be_tried_later_makes_room_and_stands_in_line_again(at_work):
    first, second, third = put(at_work, 3, max_attempts=3)
    at_work.admit()
    failed = at_work.take()
    at_work.end(failed, Verdict.FAILED, delay=HOUR)

    assert failed.job_id == first
    assert at_work.admit_all() == 1
    assert claimed(at_work) == [second, third]
    waiting = at_work.job(first)
    assert (waiting.state, waiting.run_at) == (JobState.DELAYED, at_work.now + HOUR)
    at_work.advance(HOUR)
    assert at_work.admit_all() == 0  # both places are taken
    at_work.cancel(second)
    assert at_work.admit_all() == 1


def test_a_job_that_is_given_back_keeps_its_place(at_work):
    ids = put(at_work, 3)
    at_work.admit()
    at_work.end(at_work.take(), Verdict.RELEASED)

    assert at_work.admit_all() == 0
    assert sorted(claimed(at_work)) == ids[:2]


def test_a_job_put_off_goes_back_in_line(at_work):
    put(at_work, 3)
    at_work.admit()
    at_work.end(at_work.take(), Verdict.RELEASED, delay=MINUTE)

    assert at_work.admit_all() == 1


def test_a_dead_worker_does_not_keep_the_place_of_its_job(desk):
    at_work = desk
    at_work.join()
    [job_id] = put(at_work, 1, (LimitKey(name="one", concurrency=1),))
    put(at_work, 1, (LimitKey(name="one", concurrency=1),))
    at_work.admit()
    assert claimed(at_work) == [job_id]
    at_work.lose()

    at_work.join(2)
    again = at_work.take(2)  # its own: it passed, and nobody else did
    assert again.job_id == job_id
    at_work.end(again, Verdict.SUCCEEDED)
    assert at_work.admit_all() == 1


def test_jobs_without_limits_wait_for_nobody(at_work):
    put(at_work, 5)
    plain = at_work.put()

    assert claimed(at_work) == [plain]


def test_keys_have_gates_of_their_own(at_work):
    def tenant(name: str) -> tuple[LimitKey, ...]:
        return (LimitKey(name="tenant", key=name, concurrency=1),)

    put(at_work, 3, tenant("a"))
    put(at_work, 3, tenant("b"))

    assert at_work.admit_all() == 2
    infos = at_work.limit_keys()
    assert [(info.limit_key.key, info.used, info.waiting) for info in infos] == [("a", 1, 2), ("b", 1, 2)]


def test_a_job_must_pass_all_its_gates(at_work):
    shared = LimitKey(name="shared", concurrency=3)
    for key in ("a", "b"):
        put(at_work, 3, (LimitKey(name="tenant", key=key, concurrency=2), shared))

    assert at_work.admit_all() == 3
    used = {(info.limit_key.name, info.limit_key.key): info.used for info in at_work.limit_keys()}
    assert used["shared", ""] == 3
    assert {used["tenant", "a"], used["tenant", "b"]} == {1, 2}


def test_a_line_that_cannot_pass_does_not_hold_up_another(at_work):
    full, free = LimitKey(name="full", concurrency=1), LimitKey(name="free", concurrency=1)
    tenant = LimitKey(name="tenant", concurrency=10)
    put(at_work, 5, (tenant, full))
    [last] = put(at_work, 1, (tenant, free))

    assert at_work.admit_all() == 2
    assert last in claimed(at_work)


def test_lines_take_turns(at_work):
    shared = LimitKey(name="shared", concurrency=4)
    put(at_work, 50, (LimitKey(name="tenant", key="flood", concurrency=50), shared))
    few = put(at_work, 2, (LimitKey(name="tenant", key="few", concurrency=50), shared))

    at_work.admit_all()

    assert set(few) <= set(claimed(at_work))


def test_the_best_of_a_line_goes_first(at_work):
    one = (LimitKey(name="one", concurrency=1),)
    put(at_work, 2, one)
    [best] = put(at_work, 1, one, priority=5)

    at_work.admit()
    assert claimed(at_work) == [best]


def test_a_rate_lets_so_many_through_in_a_time(at_work):
    rate = (LimitKey(name="mail", rate=60, period=MINUTE, burst=3),)
    put(at_work, 20, rate)

    assert at_work.admit_all() == 3
    assert len(claimed(at_work)) == 3
    at_work.advance(SECOND)
    assert at_work.admit_all() == 1
    claimed(at_work)
    at_work.advance(HOUR)
    assert at_work.admit_all() == 3


def test_a_rate_does_not_pile_up_what_nobody_claims(at_work):
    """Else all of it would begin at once when a worker comes."""
    rate = (LimitKey(name="mail", rate=60, period=MINUTE, burst=3),)
    put(at_work, 20, rate)
    for _ in range(10):
        at_work.admit_all()
        at_work.advance(SECOND)

    assert len(claimed(at_work)) == 3


def test_what_a_rate_would_give_while_its_burst_waits_for_a_worker_is_lost(at_work):
    """Else two bursts would begin together when one comes."""
    rate = (LimitKey(name="mail", rate=60, period=MINUTE, burst=3),)
    put(at_work, 20, rate)
    for _ in range(10):
        at_work.admit_all()
        at_work.advance(SECOND)
    assert at_work.admit_all() == 0

    assert len(claimed(at_work)) == 3
    assert at_work.admit_all() == 0
    at_work.advance(SECOND)
    assert at_work.admit_all() == 1


def test_a_rate_says_when_the_next_may_pass(at_work):
    put(at_work, 5, (LimitKey(name="mail", rate=60, period=MINUTE, burst=1),))
    at_work.admit()
    claimed(at_work)

    done = at_work.run(at_work.store.limits.admit(at=at_work.clock.stamp()))
    assert (done.admitted, done.waiting, done.again_at) == (0, True, at_work.now + SECOND)


def test_a_window_keeps_one_key_from_filling_the_queue(at_work):
    def fair(key: str) -> tuple[LimitKey, ...]:
        return (LimitKey(name="fair", key=key, window=2),)

    put(at_work, 50, fair("flood"))
    [few] = put(at_work, 1, fair("few"))

    assert at_work.admit_all() == 3
    assert few in claimed(at_work)
    # Those that run do not count: a window is no limit of how many may.
    assert at_work.admit_all() == 2


def test_delayed_jobs_pass_when_they_are_due(at_work):
    put(at_work, 1, delay=MINUTE)
    assert at_work.admit_all() == 0
    [waiting] = at_work.jobs()
    assert (waiting.state, waiting.run_at) == (JobState.DELAYED, at_work.now + MINUTE)

    at_work.advance(MINUTE)
    assert at_work.admit_all() == 1


def test_a_delayed_job_can_be_hastened_up_to_its_gates(at_work):
    [job_id] = put(at_work, 1, delay=HOUR)
    assert at_work.hasten(job_id) == [job_id]

    assert claimed(at_work) == []
    assert at_work.admit_all() == 1


def test_a_replayed_dead_letter_stands_in_line_again(at_work):
    [job_id] = put(at_work, 1)
    put(at_work, 2)
    at_work.admit()
    at_work.end(at_work.take(), Verdict.DEAD)
    at_work.admit()

    assert at_work.replay(job_id) == [job_id]
    assert at_work.admit_all() == 0
    assert at_work.job(job_id).waits_for_limit


def test_many_at_once_stand_in_line_too(at_work):
    from mainspring.model.job import NewJob

    jobs = [NewJob(task="t", payload=b"{}", limit_keys=TWO if n % 2 else ()) for n in range(1200)]
    at_work.put_all(*jobs)

    assert at_work.admit_all() == 2
    [info] = at_work.limit_keys()
    assert (info.used, info.waiting) == (2, 598)
    assert len(info.holders) == 2


def test_what_was_declared_last_counts(at_work):
    put(at_work, 5)
    assert at_work.admit_all() == 2
    put(at_work, 1, (LimitKey(name="two", concurrency=4),))

    assert at_work.admit_all() == 2


def test_holders_and_gates_of_a_job_are_visible(at_work):
    ids = put(at_work, 3)
    plain = at_work.put()
    at_work.admit()

    [info] = at_work.run(at_work.store.limits.keys_of(ids[2], holders=10))
    assert (info.limit_key, info.used, info.waiting, info.holders) == (TWO[0], 2, 1, tuple(ids[:2]))
    assert at_work.run(at_work.store.limits.keys_of(plain, holders=10)) == []
    assert at_work.limit_keys(name="two") == [info]
    assert at_work.limit_keys(name="three") == []


def test_jobs_that_have_ended_hide_no_holder(at_work):
    ids = put(at_work, 5, (LimitKey(name="ten", concurrency=10),))
    at_work.admit()
    for claim in at_work.claim()[:4]:
        at_work.end(claim, Verdict.SUCCEEDED)

    [info] = at_work.limit_keys(holders=2)
    assert (info.used, info.holders) == (1, (ids[4],))


def test_jobs_of_a_schedule_pass_gates(at_work):
    at_work.schedule(limit_keys=TWO, overlap=Overlap.ALLOW, overlap_limit=10)
    for _ in range(3):
        at_work.advance(MINUTE)
        at_work.fire_due()
    triggered = at_work.trigger()

    assert at_work.claim() == []
    assert at_work.admit_all() == 2
    assert triggered not in claimed(at_work)
    # An edit that says nothing of limits leaves them.
    at_work.edit(payload=b"other")
    assert at_work.the_schedule().limit_set_id is not None
    at_work.edit(limit_keys=())
    assert at_work.the_schedule().limit_set_id is None


def test_a_job_that_waited_for_its_predecessor_then_waits_for_its_limit(at_work):
    at_work.schedule(limit_keys=(LimitKey(name="one", concurrency=1),), overlap=Overlap.QUEUE_ALL)
    for _ in range(2):
        at_work.advance(MINUTE)
        at_work.fire_due()
    assert at_work.release() == 0  # the first is before the limit keys, and so it is live
    at_work.admit()
    at_work.end(at_work.take(), Verdict.SUCCEEDED)

    assert at_work.release() == 1
    assert claimed(at_work) == []
    assert at_work.admit() == 1


def test_two_processes_at_once_let_no_more_through(database_url, clock, run):
    async def story() -> None:
        from mainspring.model.job import NewJob

        stores = [open_store(database_url, clock=clock) for _ in range(4)]
        limit_key = (LimitKey(name="seven", concurrency=7),)
        try:
            jobs = [NewJob(task="t", payload=b"{}", limit_keys=limit_key) for _ in range(40)]
            await stores[0].queue.insert(jobs, at=clock.stamp())
            passes = [store.limits.admit(at=clock.stamp()) for store in stores for _ in range(5)]
            done = await asyncio.gather(*passes)
            assert sum(each.admitted for each in done) == 7
            assert any(each.admitted for each in done)
        finally:
            for store in stores:
                await store.close()

    run(story())


# Queues.


def test_nothing_is_claimed_from_a_paused_queue(at_work):
    waiting, other = at_work.put(), at_work.put(queue="other")
    assert at_work.pause_queue(author="ann", note="moving")
    assert not at_work.pause_queue(author="bob")

    assert [c.job_id for c in at_work.claim(queues=("default", "other"))] == [other]
    [paused] = at_work.run(at_work.store.queues.pauses())
    assert (paused.queue, paused.paused_by, paused.note, paused.paused_at) == (
        "default",
        "ann",
        "moving",
        at_work.now,
    )
    assert at_work.resume_queue()
    assert not at_work.resume_queue()
    assert claimed(at_work) == [waiting]
    assert at_work.run(at_work.store.queues.pauses()) == []


def test_a_priority_that_is_new_to_a_paused_queue_is_paused_too(at_work):
    at_work.put()
    at_work.pause_queue()
    at_work.put(priority=7)

    assert claimed(at_work) == []


def test_a_queue_may_be_paused_before_it_has_any_job(at_work):
    at_work.pause_queue()
    at_work.put()

    assert claimed(at_work) == []


def test_gates_are_listed_from_the_one_before_on(desk):
    for key in ("a", "b", "c"):
        desk.put(limit_keys=(LimitKey(name="api", key=key, concurrency=1),))

    first = desk.limit_keys(limit=2)
    second = desk.limit_keys(limit=2, after=(first[-1].limit_key.name, first[-1].limit_key.key))

    assert [each.limit_key.key for each in (*first, *second)] == ["a", "b", "c"]
