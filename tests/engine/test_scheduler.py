"""Schedulers, reapers and pruners, ticked by hand: no slot missed, none doubled, whoever dies."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from mainspring.entropy import SeededEntropy
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import JobFilter, JobState
from mainspring.model.run import RESULT_GONE, Verdict
from mainspring.model.schedule import Disposition, NewSchedule, Overlap
from mainspring.scheduler.housekeeping import Pruner, Reaper
from mainspring.scheduler.scheduler import AFTER, BATCH, FIRST_CHUNK, Scheduler
from mainspring.store.store import Store
from mainspring.tasks.context import Context
from mainspring.telemetry.events import (
    HistoryPruned,
    ProcessesReaped,
    ResultsDropped,
    SlotsFired,
    Telemetry,
    TriggerRefused,
)
from mainspring.testing.clock import ManualClock
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from tests.engine.kit import HOUR, MINUTE, SECOND, Faulty, Floor, Heard

MINUTELY = Cron("* * * * *", "UTC")


def _scheduler(store: Any, clock: ManualClock, heard: Heard | None = None, *, chunk: int = 100) -> Scheduler:
    return Scheduler(store, clock, Telemetry(heard or Heard()), poll=SECOND, chunk=chunk)


def _new(name: str, clock: ManualClock, trigger: Any = MINUTELY, **fields: Any) -> NewSchedule:
    first = trigger.next_after(clock.now())
    return NewSchedule(
        name=name,
        task="t",
        trigger=trigger.encode(),
        payload=b"{}",
        next_at=first,
        following_at=trigger.next_after(first),
        # Nobody works here: with the default, the first job would be in the way of all others.
        overlap=Overlap.ALLOW,
        overlap_limit=100_000,
        **fields,
    )


async def _put(store: Store, clock: ManualClock, *schedules: NewSchedule) -> None:
    await store.schedules.put(schedules, at=clock.stamp())


async def _jobs(store: Store, clock: ManualClock) -> list[Any]:
    return await store.jobs.find(JobFilter(limit=100_000), at=clock.stamp())


def test_a_slot_is_fired_when_it_comes_and_not_before(store: Any, clock: ManualClock, run: Any) -> None:
    async def story() -> None:
        await _put(store, clock, _new("s", clock))
        scheduler = _scheduler(store, clock)
        assert await scheduler.tick() == SECOND  # at most a poll
        clock.advance(MINUTE - timedelta(milliseconds=500))
        assert await scheduler.tick() == timedelta(milliseconds=501)
        assert await store.slots.of("s", limit=10) == []
        clock.advance(timedelta(milliseconds=500))
        await scheduler.tick()

        [slot] = await store.slots.of("s", limit=10)
        [job] = await _jobs(store, clock)
        assert (slot.slot_at, slot.disposition, slot.since, slot.job_id) == (
            clock.now(),
            Disposition.FIRED,
            None,
            job.id,
        )
        assert (job.slot_at, job.run_at) == (slot.slot_at, slot.slot_at)

    run(story())


def test_a_herd_begins_with_few_so_that_they_need_not_wait_for_all(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        heard = Heard()
        await _put(store, clock, *[_new(f"s{n}", clock) for n in range(3 * FIRST_CHUNK)])
        clock.advance(MINUTE)
        await _scheduler(store, clock, heard, chunk=10 * FIRST_CHUNK).tick()
        assert [each.fired for each in heard.of(SlotsFired)] == [FIRST_CHUNK, 2 * FIRST_CHUNK]

    run(story())


@pytest.mark.parametrize("seed", range(3))
def test_three_schedulers_in_any_interleaving_fire_each_slot_once(
    store: Any, clock: ManualClock, run: Any, seed: int
) -> None:
    dice = random.Random(seed)

    async def story() -> None:
        triggers = [MINUTELY, Every(20 * SECOND), Cron("*/2 * * * *", "UTC")]
        began = clock.now()
        await _put(store, clock, *[_new(f"s{n}", clock, triggers[n % 3]) for n in range(7)])
        schedulers = [_scheduler(store, clock, chunk=2) for _ in range(3)]
        for _ in range(30):
            clock.advance(timedelta(seconds=dice.choice([5, 10])))
            await asyncio.gather(*(each.tick() for each in dice.sample(schedulers, dice.randint(1, 3))))
        await schedulers[0].tick()

        for n in range(7):
            expected, moment = [], triggers[n % 3].next_after(began)
            while moment is not None and moment <= clock.now():
                expected.append(moment)
                moment = triggers[n % 3].next_after(moment)
            slots = await store.slots.of(f"s{n}", limit=1000)
            assert sorted(slot.slot_at for slot in slots) == expected
            assert all(slot.disposition is Disposition.FIRED and slot.since is None for slot in slots)
        keys = [(job.schedule_id, job.slot_at) for job in await _jobs(store, clock)]
        assert len(keys) == len(set(keys))

    run(story())


@pytest.mark.parametrize(
    "fatal",
    ["slots.open_firings", "slots.fire", "slots.plan_specs", "slots.unplanned_specs", "slots.next_due"],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_scheduler_that_dies_anywhere_loses_nothing_and_doubles_nothing(
    store: Any, clock: ManualClock, run: Any, fatal: str, when: str
) -> None:
    async def story() -> None:
        await _put(store, clock, *[_new(f"s{n}", clock) for n in range(5)])
        clock.advance(MINUTE)
        dying = Faulty(store)
        getattr(dying, when)(fatal, AnswerLost(fatal))
        with pytest.raises(AnswerLost):
            await _scheduler(dying, clock, chunk=2).tick()
        for _ in range(2):
            await _scheduler(store, clock, chunk=2).tick()

        for n in range(5):
            [slot] = await store.slots.of(f"s{n}", limit=10)
            assert (slot.slot_at, slot.disposition) == (clock.now(), Disposition.FIRED)
        assert len(await _jobs(store, clock)) == 5

    run(story())


def test_a_scheduler_that_dies_between_two_chunks_is_followed_by_another(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        await _put(store, clock, *[_new(f"s{n}", clock) for n in range(5)])
        clock.advance(MINUTE)
        dying = Faulty(store)

        async def nothing() -> None: ...

        dying.during("slots.fire", nothing)
        dying.before("slots.fire", AnswerLost("fire"))
        with pytest.raises(AnswerLost):
            await _scheduler(dying, clock, chunk=2).tick()
        assert len(await _jobs(store, clock)) == 2
        await _scheduler(store, clock, chunk=2).tick()

        assert len(await _jobs(store, clock)) == 5

    run(story())


def test_four_hours_of_silence_cost_a_minutely_schedule_one_job(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        first = clock.now() + MINUTE
        await _put(store, clock, _new("s", clock))
        clock.advance(4 * HOUR)
        await asyncio.gather(*(_scheduler(store, clock).tick() for _ in range(2)))

        [slot] = await store.slots.of("s", limit=1000)
        assert (slot.slot_at, slot.since, slot.disposition) == (clock.now(), first, Disposition.FIRED)
        assert len(await _jobs(store, clock)) == 1
        clock.advance(MINUTE)
        await _scheduler(store, clock).tick()
        assert len(await _jobs(store, clock)) == 2

    run(story())


def test_a_slot_missed_by_more_than_the_catch_up_is_skipped_and_says_so(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        daily = Cron("0 3 * * *", "UTC")
        await _put(store, clock, _new("s", clock, daily, catch_up=HOUR))
        clock.advance(10 * HOUR)
        await _scheduler(store, clock).tick()

        [slot] = await store.slots.of("s", limit=10)
        assert (slot.disposition, slot.reason, slot.job_id) == (Disposition.SKIPPED, "too_late", None)
        assert await _jobs(store, clock) == []

    run(story())


def test_a_trigger_that_cannot_be_read_blocks_no_other_and_is_told_once(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        odd = NewSchedule(
            name="odd", task="t", trigger='{"moon":"full"}', payload=b"{}", next_at=clock.now() + SECOND
        )
        await _put(store, clock, odd, _new("s", clock))
        heard = Heard()
        scheduler = _scheduler(store, clock, heard)
        for _ in range(3):
            clock.advance(MINUTE)
            assert await scheduler.tick() == SECOND, "what stays due must not make it spin"

        assert len(await store.slots.of("s", limit=10)) == 3
        assert await store.slots.of("odd", limit=10) == []
        assert [event.trigger for event in heard.of(TriggerRefused)] == ['{"moon":"full"}']

    run(story())


def test_more_triggers_that_cannot_be_read_than_a_pass_takes_hold_up_no_other(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        odd = [
            NewSchedule(
                name=f"odd{n}",
                task="t",
                trigger=f'{{"moon":{n}}}',
                payload=b"{}",
                next_at=clock.now() + SECOND / 10,
            )
            for n in range(BATCH + 1)
        ]
        await _put(store, clock, *odd, _new("s", clock, Every(SECOND)))
        scheduler = Scheduler(store, clock, Telemetry(), poll=MINUTE, chunk=100)
        clock.advance(SECOND)

        assert [await scheduler.tick(), len(await store.slots.of("s", limit=10))] == [timedelta(), 0]
        wait = await scheduler.tick()
        assert len(await store.slots.of("s", limit=10)) == 1
        assert timedelta() < wait <= SECOND + AFTER, "as long as until its next slot, not until the next look"

    run(story())


def test_a_schedule_made_while_an_older_slot_is_due_does_not_get_that_slot(
    store: Any, clock: ManualClock, run: Any
) -> None:
    async def story() -> None:
        await _put(store, clock, _new("old", clock))
        clock.advance(MINUTE + SECOND)
        await _put(store, clock, _new("new", clock))
        await _scheduler(store, clock).tick()

        assert len(await store.slots.of("old", limit=10)) == 1
        assert await store.slots.of("new", limit=10) == []

    run(story())


def test_the_reaper_gives_back_what_a_dead_worker_held(floor: Floor, run: Any) -> None:
    @floor.task
    async def patient() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        job_id = await floor.put("patient")
        await floor.join()
        await floor.claimer.tick()
        reaper = Reaper(floor.store, floor.clock, SeededEntropy(1), floor.telemetry)  # type: ignore[arg-type]
        other = Reaper(floor.store, floor.clock, SeededEntropy(2), floor.telemetry)  # type: ignore[arg-type]
        for _ in range(15):
            await asyncio.gather(reaper.tick(), other.tick())
            assert floor.heard.of(ProcessesReaped) == []
            floor.clock.advance(SECOND)
        await asyncio.gather(reaper.tick(), other.tick())
        await reaper.tick()

        assert sum(event.jobs for event in floor.heard.of(ProcessesReaped)) == 1
        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.CRASHED]
        assert await floor.store.processes.all(at=floor.clock.stamp()) == []
        floor.active_runs.drop_all()
        await floor.finish()

    run(story())


def test_after_an_outage_the_reaper_waits_for_those_who_come_back(floor: Floor, run: Any) -> None:
    @floor.task
    async def patient() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        job_id = await floor.put("patient")
        await floor.join()
        await floor.claimer.tick()
        reaper = Reaper(floor.store, floor.clock, SeededEntropy(1), floor.telemetry)  # type: ignore[arg-type]
        for _ in range(60):
            await reaper.tick()
            await floor.heart.tick()
            floor.clock.advance(SECOND)
        floor.store.before("processes.reap", times=20)
        for _ in range(20):
            with pytest.raises(StoreUnavailable):
                await reaper.tick()
            floor.clock.advance(SECOND)
        for _ in range(14):
            await reaper.tick()
            floor.clock.advance(SECOND)
        assert reaper.expects
        await floor.heart.tick()
        for _ in range(10):
            await reaper.tick()
            floor.clock.advance(SECOND)

        assert floor.heard.of(ProcessesReaped) == []
        assert not reaper.expects
        assert (await floor.job(job_id)).state is JobState.RUNNING
        floor.active_runs.drop_all()
        await floor.finish()

    run(story())


def test_the_pruner_drops_old_history_once(floor: Floor, run: Any) -> None:
    @floor.task
    async def quick() -> None: ...

    async def story() -> None:
        job_id = await floor.put("quick")
        await floor.work()
        queue: Any = floor.store
        pruner = Pruner(queue, timedelta(days=1), floor.clock, SeededEntropy(1), floor.telemetry)
        await pruner.tick()
        assert len(await floor.runs(job_id)) == 1
        floor.clock.advance(timedelta(days=3))
        wait = await pruner.tick()
        await pruner.tick()

        assert await floor.runs(job_id) == []
        assert len(floor.heard.of(HistoryPruned)) >= 1
        assert timedelta(minutes=30) <= wait <= timedelta(minutes=90)

    run(story())


def test_the_pruner_drops_results_earlier_where_asked_and_sweeps_what_ended_runs_left(
    floor: Floor, run: Any
) -> None:
    @floor.task
    async def quick(ctx: Context) -> int:
        ctx.progress(0.5)
        await floor.worker.reports.tick()
        return 7

    async def story() -> None:
        job_id = await floor.put("quick")
        await floor.work()
        queue: Any = floor.store
        parts = (queue, timedelta(days=9), floor.clock, SeededEntropy(1), floor.telemetry)
        floor.clock.advance(timedelta(days=3))
        await Pruner(*parts).tick()
        assert (await floor.job(job_id)).result == b"7", "kept as long as the run, unless asked for"

        await Pruner(*parts, results=timedelta(days=1)).tick()

        assert [each.result for each in await floor.runs(job_id)] == [RESULT_GONE]
        assert [event.gone for event in floor.heard.of(ResultsDropped)] == [1]
        assert await floor.store.runs.sweep_progress(at=floor.clock.stamp()) == 0, "swept already"

    run(story())
