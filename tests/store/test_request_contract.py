"""The contract of requests that may come twice, on every store: one answer, and one set of jobs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mainspring.errors import DuplicateJob, KeyReused
from mainspring.model.job import Answered, Inserted, JobFilter, Key, NewJob, OnDuplicate, RequestKey
from tests.support.desk import DAY, HOUR, Desk


def key(name: str = "k", digest: bytes = b"same", caller: str = "ada") -> RequestKey:
    return RequestKey(caller=caller, key=name, digest=digest)


def once(desk: Desk, request: RequestKey, *jobs: NewJob) -> Answered:
    return desk.run(desk.store.queue.insert_once(request, jobs, at=desk.clock.stamp()))


def ids(desk: Desk) -> list[int]:
    return [each.id for each in desk.run(desk.store.jobs.find(JobFilter(), at=desk.clock.stamp()))]


def job(**fields: Any) -> NewJob:
    return NewJob(task="t", payload=b"{}", **fields)


def test_the_same_request_gets_the_same_answer_and_makes_nothing_more(desk: Desk) -> None:
    taken = Key(digest=b"one", name="one")
    first = once(desk, key(), job(), job(unique=taken), job(unique=taken))
    again = once(desk, key(), job(), job(unique=taken), job(unique=taken))

    made, keyed, stood_for = first.jobs
    assert not first.again
    assert (made.created, keyed.created, stood_for) == (
        True,
        True,
        Inserted(job_id=keyed.job_id, created=False),
    )
    assert again == Answered(jobs=first.jobs, again=True)
    assert sorted(ids(desk)) == sorted([made.job_id, keyed.job_id])


def test_another_key_and_another_callers_same_key_are_other_requests(desk: Desk) -> None:
    answers = [once(desk, each, job()) for each in (key(), key("other"), key(caller="bob"))]

    assert len({each.jobs[0].job_id for each in answers}) == len(ids(desk)) == 3


def test_a_key_that_stands_for_something_else_is_refused(desk: Desk) -> None:
    once(desk, key(), job())

    with pytest.raises(KeyReused, match="'k' was used for another request"):
        once(desk, key(digest=b"other"), job())

    assert len(ids(desk)) == 1


def test_a_request_that_was_refused_is_not_on_record(desk: Desk) -> None:
    desk.put_unique(job(unique=Key(digest=b"one", name="one")))
    refusing = job(unique=Key(digest=b"one", name="one", on_duplicate=OnDuplicate.ERROR))

    with pytest.raises(DuplicateJob):
        once(desk, key(), job(), refusing)
    later = once(desk, key(digest=b"other"), job())

    assert not later.again
    assert len(ids(desk)) == 2


def test_fifty_at_once_are_one(desk: Desk) -> None:
    async def all_at_once() -> list[Answered]:
        return await asyncio.gather(
            *(desk.store.queue.insert_once(key(), [job()], at=desk.clock.stamp()) for _ in range(50))
        )

    answers = desk.run(all_at_once())

    assert {each.jobs for each in answers} == {answers[0].jobs}
    assert sum(not each.again for each in answers) == 1
    assert len(ids(desk)) == 1


def test_answers_are_kept_for_a_day_and_pruned_after_two(desk: Desk) -> None:
    first = once(desk, key(), job())
    desk.advance(DAY)
    desk.run(desk.store.prune(keep=30 * DAY, at=desk.clock.stamp()))
    kept = once(desk, key(), job())
    desk.advance(DAY + HOUR)
    desk.run(desk.store.prune(keep=30 * DAY, at=desk.clock.stamp()))

    assert kept == Answered(jobs=first.jobs, again=True)
    assert not once(desk, key(), job()).again
