"""The heart: leases kept, lost and given up in time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.telemetry.events import (
    ClaimsLost,
    LeaseEnded,
    LeaseOutlasted,
    ProcessStarted,
    RunEnded,
    RunStarted,
    SettlementRefused,
)
from tests.engine.kit import LEASE, MINUTE, SECOND, Floor, until


def _patient(floor: Floor) -> list[str]:
    """A task that ends only when it is told to; it notes how."""
    ended: list[str] = []

    @floor.task
    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    return ended


async def _running(floor: Floor, count: int = 1) -> list[int]:
    ids = [await floor.put("patient") for _ in range(count)]
    if floor.worker.membership.id is None:
        await floor.join()
    await floor.claimer.tick()
    await until(lambda: floor.active_runs.running == count and len(floor.heard.of(RunStarted)) >= count)
    await asyncio.sleep(0)
    return ids


def test_it_joins_once_and_then_renews(floor: Floor, run: Any) -> None:
    async def story() -> None:
        for _ in range(10):
            await floor.heart.tick()
            floor.clock.advance(5 * SECOND)

        [member] = await floor.store.processes.all(at=floor.clock.stamp())
        assert (member.id, member.alive) == (floor.id, True)
        assert len(floor.heard.of(ProcessStarted)) == 1

    run(story())


def test_it_waits_less_than_its_interval_between_two_beats(floor: Floor, run: Any) -> None:
    async def story() -> None:
        for _ in range(20):
            wait = await floor.heart.tick()
            assert timedelta(seconds=4.5) <= wait <= 5 * SECOND

    run(story())


def test_a_join_whose_answer_was_lost_is_tried_under_a_new_id(floor: Floor, run: Any) -> None:
    async def story() -> None:
        floor.store.after("processes.join")
        with pytest.raises(AnswerLost):
            await floor.heart.tick()
        assert not floor.worker.membership.active
        await floor.heart.tick()

        assert len(await floor.store.processes.all(at=floor.clock.stamp())) == 2
        assert floor.worker.membership.active

    run(story())


def test_a_lost_claim_stops_its_handler_and_no_other(floor: Floor, run: Any) -> None:
    ended = _patient(floor)

    async def story() -> None:
        lost, kept = await _running(floor, 2)
        await floor.store.jobs.cancel([lost], at=floor.clock.stamp())
        await floor.heart.tick()
        await until(lambda: floor.active_runs.running == 1)

        assert ended == ["cancelled"]
        await until(lambda: floor.heard.of(ClaimsLost))
        assert [event.job_ids for event in floor.heard.of(ClaimsLost)] == [(lost,)]
        assert (await floor.job(kept)).state is JobState.RUNNING
        floor.active_runs.release_all()
        await floor.finish()

    run(story())


def test_a_job_that_came_back_under_a_new_claim_is_not_dropped_for_the_old_one(
    floor: Floor, run: Any
) -> None:
    """The beat asks about the old claim; while it is on its way the job ends, and is claimed anew."""
    ended = _patient(floor)

    async def story() -> None:
        [job_id] = await _running(floor)
        old = floor.active_runs.holding()
        floor.active_runs.release_all()
        await floor.finish()
        await floor.claimer.tick()
        await until(lambda: floor.active_runs.running == 1)
        await asyncio.sleep(0)
        assert floor.active_runs.holding() != old
        real = floor.worker.holding
        floor.worker.holding = lambda: old  # type: ignore[method-assign]
        await floor.heart.tick()
        floor.worker.holding = real  # type: ignore[method-assign]
        await asyncio.sleep(0)

        assert floor.active_runs.running == 1
        assert ended == ["cancelled"]
        assert (await floor.job(job_id)).state is JobState.RUNNING
        floor.active_runs.release_all()
        await floor.finish()

    run(story())


def test_an_ended_lease_stops_every_handler_and_a_new_one_is_taken(floor: Floor, run: Any) -> None:
    ended = _patient(floor)

    async def story() -> None:
        ids = await _running(floor, 3)
        old = floor.id
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await floor.heart.tick()
        await until(lambda: not floor.active_runs.running)

        assert ended == ["cancelled"] * 3
        assert floor.id != old
        assert [(event.running, event.expired) for event in floor.heard.of(LeaseEnded)] == [(3, True)]
        assert floor.result_writer.pending == 0
        while (await floor.store.processes.reap(limit=10, at=floor.clock.stamp())).jobs:
            pass
        for job_id in ids:
            job = await floor.job(job_id)
            assert (job.state, job.crashes, job.failures) == (JobState.READY, 0, 0)

    run(story())


def test_a_late_settlement_is_refused_and_told(floor: Floor, run: Any) -> None:
    gate = asyncio.Event()

    @floor.task
    async def slow() -> None:
        await gate.wait()

    async def story() -> None:
        job_id = await floor.put("slow")
        await floor.join()
        await floor.claimer.tick()
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        gate.set()
        await floor.finish()

        assert [event.job_id for event in floor.heard.of(SettlementRefused)] == [job_id]
        assert floor.heard.of(RunEnded) == []
        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.CRASHED]

    run(story())


def test_a_handler_that_will_not_stop_after_its_lease_writes_nothing(floor: Floor, run: Any) -> None:
    gate = asyncio.Event()

    @floor.task
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await gate.wait()
        await gate.wait()

    async def story() -> None:
        job_id = await floor.put("stubborn")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.heard.of(RunStarted))
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await floor.heart.tick()
        gate.set()
        await floor.finish()

        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.CRASHED]
        assert floor.heard.of(RunEnded) == []

    run(story())


def test_a_worker_that_cannot_renew_stops_its_handlers_before_the_lease_ends(floor: Floor, run: Any) -> None:
    ended = _patient(floor)

    async def story() -> None:
        ids = await _running(floor, 2)
        began = floor.clock.monotonic()
        floor.store.before("processes.beat", times=100)
        while not floor.heard.of(LeaseEnded):
            floor.clock.advance(SECOND)
            with pytest.raises(StoreUnavailable):
                await floor.heart.tick()
        await floor.finish()

        assert floor.clock.monotonic() - began <= LEASE.total_seconds() * 0.8
        assert ended == ["cancelled"] * 2
        assert [event.expired for event in floor.heard.of(LeaseEnded)] == [False]
        assert not floor.worker.membership.active
        for job_id in ids:
            job = await floor.job(job_id)
            assert (job.state, job.failures, job.crashes) == (JobState.READY, 0, 0)

    run(story())


def _down(floor: Floor, *answers: Any) -> None:
    """Beats fail from now on; the store is asked whether it is down, and answers so: the last one again and
    again."""
    left = list(answers)
    floor.store.before("processes.beat", times=1000)

    async def is_down() -> bool:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    floor.store.health.is_down = is_down


async def _beats_for(floor: Floor, time: timedelta) -> None:
    for _ in range(int(time / SECOND)):
        floor.clock.advance(SECOND)
        with pytest.raises(StoreUnavailable):
            await floor.heart.tick()


def test_handlers_go_on_through_an_outage_of_the_store_itself(floor: Floor, run: Any) -> None:
    ended = _patient(floor)

    async def story() -> None:
        ids = await _running(floor, 2)
        same = floor.id
        _down(floor, True)
        await _beats_for(floor, 4 * MINUTE)
        floor.store.heal()
        await floor.heart.tick()

        assert (ended, floor.id, floor.heard.of(LeaseEnded)) == ([], same, [])
        assert len(floor.heard.of(LeaseOutlasted)) == 1
        assert floor.worker.membership.active
        for job_id in ids:
            assert (await floor.job(job_id)).state is JobState.RUNNING
        floor.active_runs.release_all()
        await floor.finish()

    run(story())


@pytest.mark.parametrize("silence", [False, TimeoutError("no route")])
def test_a_worker_that_is_cut_off_after_an_outage_stops_its_handlers_within_a_lease(
    floor: Floor, run: Any, silence: Any
) -> None:
    ended = _patient(floor)

    async def story() -> None:
        await _running(floor, 2)
        _down(floor, *[True] * 60, silence)
        await _beats_for(floor, MINUTE)
        assert ended == []
        last_known = floor.clock.monotonic()
        while not floor.heard.of(LeaseEnded):
            await _beats_for(floor, SECOND)
        await floor.finish()

        assert floor.clock.monotonic() - last_known <= LEASE.total_seconds() * 0.8
        assert ended == ["cancelled"] * 2

    run(story())


def test_it_stops_in_time_when_nobody_says_whether_the_store_is_down(new_floor: Any, run: Any) -> None:
    floor = new_floor(lease=SECOND, heartbeat=SECOND / 10)
    ended = _patient(floor)

    async def story() -> None:
        await _running(floor)
        gate = asyncio.Event()
        floor.store.before("processes.beat", times=100)

        async def is_down() -> bool:
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()
            await gate.wait()
            return True

        floor.store.health.is_down = is_down
        began = time.monotonic()
        floor.clock.advance(SECOND * 0.78)
        with pytest.raises(StoreUnavailable):
            await floor.heart.tick()
        assert time.monotonic() - began < 0.2
        await until(lambda: ended)
        gate.set()
        await floor.finish()

    run(story())


@pytest.mark.parametrize("lost", [1, 2])
def test_the_last_beat_before_the_end_is_tried_twice_where_the_store_takes_calls(
    floor: Floor, run: Any, lost: int
) -> None:
    ended = _patient(floor)

    async def story() -> None:
        await _running(floor)
        floor.clock.advance(10 * SECOND)  # two seconds are left until the handlers have to be stopped
        floor.store.before("processes.beat", times=lost)
        with contextlib.nullcontext() if lost == 1 else pytest.raises(StoreUnavailable):
            await floor.heart.tick()
        assert floor.worker.membership.active is (lost == 1)
        floor.active_runs.release_all()
        await floor.finish()

        assert [event.expired for event in floor.heard.of(LeaseEnded)] == [False] * (lost - 1)

    run(story())
    assert ended == ["cancelled"]


def test_one_lost_beat_stops_nothing(floor: Floor, run: Any) -> None:
    _patient(floor)

    async def story() -> None:
        await _running(floor)
        floor.clock.advance(5 * SECOND)
        floor.store.before("processes.beat")
        with pytest.raises(StoreUnavailable):
            await floor.heart.tick()
        assert floor.worker.membership.active
        await floor.heart.tick()

        assert floor.active_runs.running == 1
        floor.active_runs.release_all()
        await floor.finish()

    run(story())


def test_it_resumes_under_the_same_lease_when_the_store_answers_in_time(floor: Floor, run: Any) -> None:
    _patient(floor)
    woken: list[None] = []
    floor.worker.signals.lease_held.connect(lambda: woken.append(None))

    async def story() -> None:
        await _running(floor)
        same = floor.id
        floor.clock.advance(11 * SECOND)
        floor.store.before("processes.beat", times=2)
        with pytest.raises(StoreUnavailable):
            await floor.heart.tick()
        assert not floor.worker.membership.active
        await floor.finish()
        woken.clear()
        await floor.heart.tick()

        assert (floor.worker.membership.active, floor.id, woken) == (True, same, [None])
        await floor.claimer.tick()
        assert floor.active_runs.running == 1
        await until(lambda: len(floor.heard.of(RunStarted)) == 2)
        await asyncio.sleep(0)
        floor.active_runs.release_all()
        await floor.finish()

    run(story())


def test_it_takes_a_new_lease_when_the_store_answers_too_late(floor: Floor, run: Any) -> None:
    async def story() -> None:
        await floor.join()
        old = floor.id
        floor.clock.advance(11 * SECOND)
        floor.store.before("processes.beat", times=2)
        with pytest.raises(StoreUnavailable):
            await floor.heart.tick()
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await floor.heart.tick()

        assert floor.worker.membership.active and floor.id != old

    run(story())


def test_a_store_that_hangs_and_will_not_be_cancelled_does_not_keep_the_heart_past_its_lease(
    new_floor: Any, run: Any
) -> None:
    floor = new_floor(lease=SECOND, heartbeat=SECOND / 10)
    ended = _patient(floor)

    async def story() -> None:
        await _running(floor)
        gate = asyncio.Event()

        async def hang() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()
            await gate.wait()  # as a session that is given time to be cancelled

        for _ in range(2):
            floor.store.during("processes.beat", hang)
        async with asyncio.timeout(5):
            with pytest.raises(StoreUnavailable):
                floor.clock.advance(SECOND * 0.78)
                await floor.heart.tick()
            await until(lambda: ended)
        gate.set()
        await floor.finish()

        assert [event.expired for event in floor.heard.of(LeaseEnded)] == [False]

    run(story())


def test_leaving_clean_forgets_the_member_and_otherwise_leaves_it_to_the_reaper(
    new_floor: Any, run: Any
) -> None:
    tidy, untidy = new_floor(), new_floor()
    _patient(untidy)

    async def story() -> None:
        await tidy.join()
        [job_id] = await _running(untidy)
        await tidy.heart.leave(clean=True)
        await untidy.heart.leave(clean=False)
        assert len(await tidy.store.processes.all(at=tidy.clock.stamp())) == 1

        assert (await tidy.store.processes.reap(limit=10, at=tidy.clock.stamp())).jobs == 1
        assert (await tidy.job(job_id)).state is JobState.READY
        await tidy.store.processes.reap(limit=10, at=tidy.clock.stamp())
        assert await tidy.store.processes.all(at=tidy.clock.stamp()) == []
        untidy.active_runs.drop_all()
        await untidy.finish()

    run(story())


def test_a_process_that_has_left_does_not_join_again(floor: Floor, run: Any) -> None:
    async def story() -> None:
        await floor.join()
        await floor.heart.leave(clean=True)
        await floor.heart.tick()

        assert await floor.store.processes.all(at=floor.clock.stamp()) == []

    run(story())


@pytest.mark.parametrize("call", ["processes.join", "processes.beat"])
def test_a_leave_that_comes_during_a_call_has_the_last_word(floor: Floor, run: Any, call: str) -> None:
    async def story() -> None:
        if call == "processes.beat":
            await floor.join()
        leaving: list[asyncio.Task[None]] = []

        async def leave() -> None:
            leaving.append(asyncio.create_task(floor.heart.leave(clean=True)))
            await asyncio.sleep(0)

        floor.store.during(call, leave)
        await floor.heart.tick()
        await leaving[0]

        assert await floor.store.processes.all(at=floor.clock.stamp()) == []
        assert floor.worker.membership.id is None

    run(story())


def test_a_leave_that_failed_is_not_taken_for_done(floor: Floor, run: Any) -> None:
    async def story() -> None:
        await floor.join()
        floor.store.before("processes.leave", times=2)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await floor.heart.leave(clean=True)
        await floor.heart.leave(clean=True)

        assert await floor.store.processes.all(at=floor.clock.stamp()) == []

    run(story())
