"""Waiting for jobs to end: what comes back, and how seldom the store is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.client import results as waiting
from mainspring.client.results import Waiter
from mainspring.errors import (
    InvalidArgument,
    JobCancelled,
    JobFailed,
    NotFound,
    ResultGone,
    SchemaMismatch,
    StoreUnavailable,
    UsageError,
    WaitTimeout,
)
from mainspring.model.run import Verdict
from mainspring.tasks.retry import Retry
from mainspring.testing.clock import ManualClock
from tests.engine.kit import Faulty, until
from tests.support.desk import DAY, SECOND, Desk, settlement

SOON = 60
"""Seconds in which a condition that is sure to come has come, on a busy machine too."""


@pytest.fixture
def desk(store: Any, clock: ManualClock, run: Any) -> Desk:
    """Runs the test once per backend, on an empty store."""
    return Desk(store, clock, run)


@pytest.fixture
def faulty(store: Any) -> Faulty:
    return Faulty(store)


@pytest.fixture
def waiter(faulty: Faulty, clock: ManualClock, run: Any) -> Iterator[Waiter]:
    asked: Any = faulty
    waiter = run(_made(asked, clock))
    yield waiter
    run(waiter.close())


async def _made(store: Any, clock: ManualClock) -> Waiter:
    return Waiter(store, clock)


def looks(faulty: Faulty) -> list[list[int]]:
    return [list(args[0]) for name, args, _ in faulty.calls if name == "jobs.states"]


def test_each_way_to_end_is_told(desk: Desk, waiter: Waiter, run: Any) -> None:
    done, silent, buried, gone = desk.started(), desk.started(), desk.started(), desk.put()
    desk.end(done, Verdict.SUCCEEDED, result=b'{"sum":3}')
    desk.end(silent, Verdict.SUCCEEDED)
    desk.end(buried, Verdict.DEAD)
    desk.cancel(gone)

    assert run(waiter.result(done.job_id, None)) == {"sum": 3}
    assert run(waiter.result(silent.job_id, None)) is None
    with pytest.raises(JobFailed) as failed:
        run(waiter.result(buried.job_id, None))
    assert str(failed.value) == f"job {buried.job_id} is dead (failed): ValueError: boom"
    assert (failed.value.type, failed.value.message, failed.value.traceback) == (
        "ValueError",
        "boom",
        "line 1\nline 2",
    )
    with pytest.raises(JobCancelled):
        run(waiter.result(gone, None))
    with pytest.raises(NotFound, match="job: there is none with the id 999999"):
        run(waiter.result(999_999, None))


def test_a_result_that_was_dropped_is_not_taken_for_none(desk: Desk, waiter: Waiter, run: Any) -> None:
    claim = desk.started()
    desk.end(claim, Verdict.SUCCEEDED, result=b"3")
    desk.advance(3 * DAY)
    assert run(desk.store.runs.drop_results(keep=DAY, at=desk.now)) == 1

    with pytest.raises(ResultGone):
        run(waiter.result(claim.job_id, None))


def test_a_wait_ends_when_the_job_does_though_the_clock_stands_still(
    desk: Desk, waiter: Waiter, run: Any
) -> None:
    claim = desk.started(max_attempts=9)

    async def story() -> None:
        waiting_for = asyncio.create_task(waiter.result(claim.job_id, None))
        await asyncio.sleep(0)
        await desk.store.queue.settle([settlement(claim, Verdict.FAILED)], at=desk.now)
        [again] = await desk.store.queue.claim(1, queues=["default"], tasks=["t"], limit=1, at=desk.now)
        await desk.store.queue.settle([settlement(again, Verdict.SUCCEEDED, result=b"7")], at=desk.now)
        assert await asyncio.wait_for(waiting_for, SOON) == 7

    run(story())


def test_who_waits_too_long_is_told_so_and_the_others_wait_on(desk: Desk, waiter: Waiter, run: Any) -> None:
    claim = desk.started()

    async def story() -> None:
        patient = asyncio.create_task(waiter.result(claim.job_id, None))
        with pytest.raises(WaitTimeout) as late:
            await waiter.result(claim.job_id, SECOND / 20)
        assert isinstance(late.value, TimeoutError)
        assert not patient.done()
        await desk.store.queue.settle([settlement(claim, Verdict.SUCCEEDED, result=b"1")], at=desk.now)
        assert await asyncio.wait_for(patient, SOON) == 1

    run(story())


def test_a_thousand_waits_are_one_look_at_a_time(
    desk: Desk, faulty: Faulty, waiter: Waiter, run: Any
) -> None:
    jobs = [desk.put() for _ in range(3)]
    many = [job_id for job_id in jobs for _ in range(300)]

    async def story() -> None:
        waits = [asyncio.create_task(waiter.result(job_id, None)) for job_id in many]
        await until(lambda: len(looks(faulty)) >= 3, SOON)
        assert all(sorted(look) == jobs for look in looks(faulty))
        await desk.store.jobs.cancel(jobs, at=desk.now)
        ended = await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), SOON)
        assert {type(each) for each in ended} == {JobCancelled}
        assert len([name for name, _, _ in faulty.calls if name == "runs.endings"]) == 1

    run(story())


def test_a_job_is_looked_for_ever_more_seldom_and_a_newcomer_at_once(
    desk: Desk, faulty: Faulty, waiter: Waiter, run: Any
) -> None:
    old, new = desk.put(), desk.put()

    async def story() -> None:
        first = asyncio.create_task(waiter.result(old, None))
        await until(lambda: len(looks(faulty)) >= 6, SOON)
        watch = waiter._watches[old]
        assert watch.rest > 5 * waiting.FIRST
        watch.due = waiter._time + 3600
        waiter._arrived.set()  # look again at when to look
        second = asyncio.create_task(waiter.result(new, None))
        await until(lambda: len([look for look in looks(faulty) if new in look]) >= 3, SOON)
        assert [look for look in looks(faulty) if new in look][1:] == [[new]] * (
            len([look for look in looks(faulty) if new in look]) - 1
        )
        first.cancel()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)

    run(story())


def test_nothing_runs_while_nobody_waits(desk: Desk, faulty: Faulty, waiter: Waiter, run: Any) -> None:
    job_id = desk.put()

    async def story() -> None:
        assert waiter._looking is None
        waiting_for = asyncio.create_task(waiter.result(job_id, None))
        await until(lambda: looks(faulty), SOON)
        waiting_for.cancel()
        await asyncio.gather(waiting_for, return_exceptions=True)
        await until(lambda: waiter._looking is not None and waiter._looking.done(), SOON)
        assert not waiter._watches

    run(story())


def test_an_outage_is_waited_out(
    desk: Desk, faulty: Faulty, waiter: Waiter, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LONGEST", 0.02)
    claim = desk.started()
    desk.end(claim, Verdict.SUCCEEDED, result=b"1")
    faulty.before("jobs.states", times=waiting.TRIES - 1)

    assert run(waiter.result(claim.job_id, None)) == 1
    assert len(looks(faulty)) == waiting.TRIES


def test_an_outage_that_lasts_is_told_to_all_and_the_next_wait_tries_again(
    desk: Desk, faulty: Faulty, waiter: Waiter, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LONGEST", 0.02)
    claim = desk.started()
    faulty.before("jobs.states", times=waiting.TRIES)

    async def story() -> None:
        waits = [waiter.result(claim.job_id, None) for _ in range(2)]
        ended = await asyncio.gather(*waits, return_exceptions=True)
        assert {type(each) for each in ended} == {StoreUnavailable}

    run(story())
    desk.end(claim, Verdict.SUCCEEDED, result=b"1")
    assert run(waiter.result(claim.job_id, None)) == 1


def test_what_waiting_cannot_mend_is_told_at_once(
    desk: Desk, faulty: Faulty, waiter: Waiter, run: Any
) -> None:
    faulty.before("jobs.states", SchemaMismatch(1, 2))

    with pytest.raises(SchemaMismatch):
        run(waiter.result(desk.put(), None))


def test_closing_tells_those_who_wait(desk: Desk, faulty: Faulty, waiter: Waiter, run: Any) -> None:
    job_id = desk.put()

    async def story() -> None:
        waiting_for = asyncio.create_task(waiter.result(job_id, None))
        await until(lambda: looks(faulty), SOON)
        await waiter.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await waiting_for

    run(story())


# Through the app.


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    app = Mainspring(database_url)
    yield app
    app.close()


def serve_in_a_thread(app: Mainspring) -> threading.Thread:
    """A worker that runs what is there and ends."""
    from mainspring.process.serve import aserve

    async def burst() -> None:
        await aserve(app, scheduler=False, burst=True)
        await app.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(burst()), name="mainspring-test-worker")
    thread.start()
    return thread


def test_blocking_callers_wait_for_what_a_worker_returns(app: Mainspring) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(retry=Retry(attempts=1))
    def fail() -> None:
        raise ValueError("boom")

    sums, failing = add.enqueue(1, b=2), fail.enqueue()
    worker = serve_in_a_thread(app)

    assert sums.result(timeout=SOON) == 3
    with pytest.raises(JobFailed, match="ValueError: boom"):
        failing.result(timeout=SOON)
    assert app.job(sums.id).result(timeout=SOON) == 3
    worker.join(SOON)


def test_awaiting_callers_wait_on_their_own_loop_and_blocking_them_is_refused(
    app: Mainspring, run: Any
) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        return a + b

    async def story() -> None:
        jobs = await app.aenqueue_many(add.job(n, b=n) for n in range(20))
        with pytest.raises(UsageError, match=r"await job.aresult\(\)` instead"):
            jobs[0].result()
        worker = serve_in_a_thread(app)
        assert await asyncio.gather(*(job.aresult(timeout=SOON) for job in jobs)) == [
            2 * n for n in range(20)
        ]
        await asyncio.to_thread(worker.join, SOON)
        with pytest.raises(InvalidArgument, match="timeout"):
            await jobs[0].aresult(timeout="soon")
        await app.aclose()

    run(story())


def test_a_job_that_nobody_runs_is_not_waited_for_longer_than_asked(app: Mainspring) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        return a + b

    job = add.enqueue(1, 2)

    with pytest.raises(WaitTimeout):
        job.result(timeout=0.05)
    with pytest.raises(WaitTimeout):
        job.result(timeout=0)
