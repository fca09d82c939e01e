"""The claimer on a store whose answers get lost: nothing is stuck, and nothing runs twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import JobState, NewJob
from mainspring.model.run import Verdict
from mainspring.tasks.context import Context
from mainspring.telemetry.events import RunEnded, RunStarted
from tests.engine.kit import LEASE, SECOND, Floor, until


def _counting(floor: Floor) -> list[int]:
    """A task that notes how often it ran."""
    ran: list[int] = []

    @floor.task
    async def count(n: int) -> None:
        ran.append(n)

    return ran


async def _put(floor: Floor, count: int) -> list[int]:
    jobs = [NewJob(task="count", payload=b'{"args":[%d]}' % n) for n in range(count)]
    return list(await floor.store.queue.insert(jobs, at=floor.clock.stamp()))


@pytest.mark.parametrize(
    "error", [AnswerLost("claim"), StoreUnavailable("the second look failed"), KeyError("x")]
)
def test_claims_whose_answer_was_lost_are_adopted(floor: Floor, run: Any, error: Exception) -> None:
    ran = _counting(floor)

    async def story() -> None:
        ids = await _put(floor, 5)
        await floor.join()
        floor.store.after("queue.claim", error)
        with pytest.raises(type(error)):
            await floor.claimer.tick()
        assert floor.claimer.in_doubt

        await floor.work()
        assert sorted(ran) == [0, 1, 2, 3, 4]
        assert not floor.claimer.in_doubt
        assert [(await floor.job(job_id)).state for job_id in ids] == [JobState.SUCCEEDED] * 5

    run(story())


def test_a_claimer_cancelled_in_mid_claim_is_in_doubt(floor: Floor, run: Any) -> None:
    _counting(floor)

    async def story() -> None:
        await _put(floor, 1)
        await floor.join()
        there = asyncio.Event()

        async def hang() -> None:
            there.set()
            await asyncio.Event().wait()

        floor.store.during("queue.claim", hang)
        claiming = asyncio.create_task(floor.claimer.tick())
        await there.wait()
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        assert floor.claimer.in_doubt

        await floor.work()
        assert len(floor.heard.of(RunEnded)) == 1

    run(story())


def test_runs_that_ended_but_are_not_yet_written_are_not_run_again_in_doubt(floor: Floor, run: Any) -> None:
    ran = _counting(floor)

    async def story() -> None:
        await _put(floor, 2)
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: not floor.active_runs.running)  # ended, and the settler has had no turn
        assert floor.result_writer.pending == 2
        floor.store.after("queue.claim")
        with pytest.raises(AnswerLost):
            await floor.claimer.tick()
        await floor.claimer.tick()
        assert floor.claimer.in_doubt, "what the store still holds is not yet accounted for"
        await floor.finish()
        await floor.claimer.tick()

        assert sorted(ran) == [0, 1]
        assert not floor.claimer.in_doubt

    run(story())


def test_runs_written_while_the_held_ones_are_asked_for_are_not_run_again(floor: Floor, run: Any) -> None:
    ran = _counting(floor)

    async def story() -> None:
        await _put(floor, 2)
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: not floor.active_runs.running)
        floor.store.after("queue.claim")
        with pytest.raises(AnswerLost):
            await floor.claimer.tick()

        async def write() -> None:
            await floor.result_writer.tick()

        floor.store.during("queue.held", write)
        await floor.claimer.tick()
        await floor.finish()
        await floor.claimer.tick()

        assert sorted(ran) == [0, 1]
        assert not floor.claimer.in_doubt

    run(story())


def test_runs_in_hand_go_on_undisturbed_while_others_are_adopted(floor: Floor, run: Any) -> None:
    gate = asyncio.Event()

    @floor.task
    async def patient() -> None:
        await gate.wait()

    ran = _counting(floor)

    async def story() -> None:
        slow = await floor.put("patient")
        await floor.join()
        await floor.claimer.tick()
        await _put(floor, 3)
        floor.store.after("queue.claim")
        with pytest.raises(AnswerLost):
            await floor.claimer.tick()
        await floor.claimer.tick()
        await until(lambda: floor.active_runs.running == 1)
        gate.set()
        await floor.finish()

        assert sorted(ran) == [0, 1, 2]
        assert [each.verdict for each in await floor.runs(slow)] == [Verdict.SUCCEEDED]

    run(story())


def test_doubt_lasts_until_the_store_has_been_asked(floor: Floor, run: Any) -> None:
    ran = _counting(floor)

    async def story() -> None:
        await _put(floor, 2)
        await floor.join()
        floor.store.after("queue.claim")
        floor.store.before("queue.held", times=2)
        for expected in (AnswerLost, StoreUnavailable, StoreUnavailable):
            with pytest.raises(expected):
                await floor.claimer.tick()
            assert floor.claimer.in_doubt
        await floor.work()

        assert sorted(ran) == [0, 1]

    run(story())


def test_a_claim_answered_after_the_lease_was_suspended_is_given_back(floor: Floor, run: Any) -> None:
    ran = _counting(floor)

    async def story() -> None:
        [job_id] = await _put(floor, 1)
        await floor.join()

        async def suspend() -> None:
            floor.clock.advance(11 * SECOND)
            floor.store.before("processes.beat", times=2)
            with pytest.raises(StoreUnavailable):
                await floor.heart.tick()

        floor.store.during("queue.claim", suspend)
        await floor.claimer.tick()
        await floor.finish()

        assert ran == []
        assert (await floor.job(job_id)).state is JobState.READY

    run(story())


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_claim_answered_after_we_were_stopped_is_given_back(floor: Floor, run: Any, kind: str) -> None:
    ran: list[int] = []

    async def on_the_loop() -> None:
        ran.append(1)

    def in_a_thread() -> None:
        ran.append(1)

    floor.task(name="work")(on_the_loop if kind == "async" else in_a_thread)

    async def story() -> None:
        ids = [await floor.put("work") for _ in range(4)]
        await floor.join()

        async def stop() -> None:
            floor.claimer.stop()

        floor.store.during("queue.claim", stop)
        await floor.claimer.tick()
        await floor.finish()

        assert ran == []
        assert [(await floor.job(each)).state for each in ids] == [JobState.READY] * 4
        assert [await floor.runs(each) for each in ids] == [[]] * 4

    run(story())


def test_a_claim_answered_after_the_lease_was_lost_is_not_run(floor: Floor, run: Any) -> None:
    ran = _counting(floor)

    async def story() -> None:
        [job_id] = await _put(floor, 1)
        await floor.join()

        async def lose() -> None:
            floor.clock.advance(LEASE)
            await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
            await floor.heart.tick()

        floor.store.during("queue.claim", lose)
        await floor.claimer.tick()
        await floor.finish()
        assert ran == []

        floor.clock.advance(SECOND)  # it is a orphaned job now, and those are looked for once a second
        await floor.work()
        assert ran == [0]
        assert (await floor.job(job_id)).state is JobState.SUCCEEDED

    run(story())


def test_without_a_lease_nothing_is_claimed(floor: Floor, run: Any) -> None:
    _counting(floor)

    async def story() -> None:
        await _put(floor, 1)
        await floor.claimer.tick()

        assert [name for name, _, _ in floor.store.calls if name == "queue.claim"] == []

    run(story())


def test_a_stopped_claimer_claims_nothing_more(floor: Floor, run: Any) -> None:
    _counting(floor)

    async def story() -> None:
        await _put(floor, 1)
        await floor.join()
        floor.claimer.stop()
        await floor.claimer.tick()

        assert floor.heard.of(RunStarted) == [] and floor.active_runs.running == 0

    run(story())


def test_a_run_that_settles_its_own_job_while_the_held_ones_are_asked_for_is_not_run_again(
    floor: Floor, run: Any
) -> None:
    began, gate = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    @floor.task
    async def pay(ctx: Context) -> None:
        ran.append(ctx.job_id)
        began.set()
        await gate.wait()
        async with ctx.transaction():
            pass

    async def story() -> None:
        job_id = await floor.put("pay")
        await floor.join()
        await floor.claimer.tick()
        await began.wait()
        floor.store.after("queue.claim")
        with pytest.raises(AnswerLost):
            await floor.claimer.tick()
        [mine] = floor.active_runs._runs.values()
        mine.settling = True  # as it is from the beginning of the commit on

        async def commit() -> None:
            gate.set()
            await until(lambda: not floor.active_runs.running)

        floor.store.during("queue.held", commit)
        await floor.claimer.tick()
        await floor.finish()

        assert ran == [job_id]
        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.SUCCEEDED]

    run(story())


def test_what_the_crew_cannot_take_is_asked_for_again(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = _counting(floor)

    async def story() -> None:
        await _put(floor, 3)
        await floor.join()
        with monkeypatch.context() as patch:
            patch.setattr(floor.active_runs, "start", lambda claims: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                await floor.claimer.tick()
        assert floor.claimer.in_doubt
        await floor.work()

        assert sorted(ran) == [0, 1, 2]

    run(story())
