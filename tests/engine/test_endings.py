"""How runs end that neither succeed nor simply fail: snoozed, discarded, given up, crashed, expired."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from mainspring.entropy import SeededEntropy
from mainspring.model.job import Failure, JobState
from mainspring.model.run import Crashed, Reason, Verdict
from mainspring.scheduler.housekeeping import PASSES_BETWEEN_COUNTS, Reaper, Sweeper
from mainspring.tasks.context import Context, Discard, Snooze
from mainspring.tasks.retry import On, Retry
from mainspring.telemetry.events import DeadLettersCounted, JobsExpired, JobsQuarantined, RunEnded, RunStarted
from tests.engine.kit import HOUR, MINUTE, SECOND, Floor, until

PLAIN = Retry(attempts=3, base="10s", jitter=False)


class Busy(Exception):
    retry_after = timedelta(minutes=5)


class Hopeless(Exception):
    permanent = True


async def put_and_work(floor: Floor, task: str, **fields: Any) -> int:
    job_id = await floor.put(task, **{"max_attempts": 3, **fields})
    await floor.work()
    return job_id


def test_a_snoozed_job_comes_back_as_the_same_attempt(floor: Floor, run: Any) -> None:
    attempts = []

    @floor.task
    def poll(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        if len(attempts) < 3:
            raise Snooze("10m")
        return "done"

    async def story() -> None:
        job_id = await put_and_work(floor, "poll", max_attempts=1)
        for _ in range(2):
            job = await floor.job(job_id)
            assert (job.state, job.run_at) == (JobState.DELAYED, floor.clock.now() + timedelta(minutes=10))
            floor.clock.advance(timedelta(minutes=10))
            await floor.heart.tick()  # its lease has ended meanwhile: it joins anew
            await floor.heart.tick()
            await floor.work()

        assert (await floor.job(job_id)).state is JobState.SUCCEEDED
        verdicts = [each.verdict for each in await floor.runs(job_id)]
        assert verdicts == [Verdict.SNOOZED, Verdict.SNOOZED, Verdict.SUCCEEDED]
        assert attempts == [1, 1, 1]

    run(story())


def test_a_discarded_job_ends_with_its_reason_and_no_dead_letter(floor: Floor, run: Any) -> None:
    @floor.task
    async def bill() -> None:
        raise Discard("the order was withdrawn")

    async def story() -> None:
        job_id = await put_and_work(floor, "bill")

        assert (await floor.job(job_id)).state is JobState.DISCARDED
        [ended] = await floor.runs(job_id)
        assert ended.failure is not None
        assert (ended.verdict, ended.failure.message) == (Verdict.DISCARDED, "the order was withdrawn")
        assert await floor.dead() == []

    run(story())


def test_what_is_permanent_dies_at_once(floor: Floor, run: Any) -> None:
    @floor.task(retry=PLAIN)
    async def ask() -> None:
        raise Hopeless("no such account")

    async def story() -> None:
        job_id = await put_and_work(floor, "ask")

        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.failures) == (job_id, "permanent", 1)
        assert dead.errors[0].message == "no such account"
        assert [event.reason for event in floor.heard.of(RunEnded)] == [Reason.PERMANENT]

    run(story())


def test_a_rule_by_exception_gives_up_waits_longer_or_allows_more(floor: Floor, run: Any) -> None:
    raised: list[Exception] = []
    rules = [On(KeyError, give_up=True), On(ConnectionError, attempts=5, base="1h", cap="1h")]

    @floor.task(retry=Retry(attempts=2, base="10s", jitter=False, rules=rules))
    async def fetch() -> None:
        raise raised[-1]

    async def fails_with(error: Exception, failures: int) -> Any:
        raised.append(error)
        job_id = await floor.put("fetch", max_attempts=2)
        for _ in range(failures):
            await floor.work()
            await floor.store.jobs.run_now([job_id], at=floor.clock.stamp())
        return await floor.job(job_id)

    async def story() -> None:
        assert (await fails_with(KeyError("gone"), 1)).state is JobState.DEAD
        assert (await fails_with(RuntimeError("boom"), 2)).state is JobState.DEAD
        slow = await fails_with(ConnectionError("refused"), 4)
        assert (slow.state, slow.failures) == (JobState.READY, 4)
        await floor.work()
        assert (await floor.job(slow.id)).state is JobState.DEAD
        waits = [event.delay for event in floor.heard.of(RunEnded) if event.job_id == slow.id]
        assert waits[:4] == [HOUR] * 4

    run(story())


def test_a_job_with_a_number_of_its_own_keeps_to_it(floor: Floor, run: Any) -> None:
    @floor.task(retry=Retry(attempts=3, rules=[On(ConnectionError, attempts=9)]))
    async def fetch() -> None:
        raise ConnectionError

    async def story() -> None:
        job_id = await put_and_work(floor, "fetch", max_attempts=1)

        assert (await floor.job(job_id)).state is JobState.DEAD

    run(story())


def test_what_asks_for_a_longer_wait_gets_it(floor: Floor, run: Any) -> None:
    @floor.task(retry=PLAIN)
    async def call() -> None:
        raise Busy

    async def story() -> None:
        job_id = await put_and_work(floor, "call")

        assert (await floor.job(job_id)).run_at == floor.clock.now() + timedelta(minutes=5)

    run(story())


def test_a_rule_for_timeouts_holds_for_our_own(floor: Floor, run: Any) -> None:
    @floor.task(timeout=0.02, retry=Retry(attempts=3, rules=[On(TimeoutError, give_up=True)]))
    async def slow() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        await put_and_work(floor, "slow")

        [dead] = await floor.dead()
        assert (dead.reason, dead.errors[0].type) == ("permanent", "TimeoutError")

    run(story())


def crashing(floor: Floor) -> None:
    """Have every run end as the executor of child processes would say it."""

    async def crash(_: Any) -> Crashed:
        return Crashed(failure=Failure(type="Crashed", message="signal 11"))

    floor.worker.executors[-1]._call = crash  # type: ignore[attr-defined]


def test_a_crashed_run_goes_back_after_a_wait_and_is_quarantined_at_the_third(floor: Floor, run: Any) -> None:
    @floor.task(retry=PLAIN)
    async def poison() -> None: ...

    async def story() -> None:
        crashing(floor)
        job_id = await put_and_work(floor, "poison", max_attempts=1)
        for crashes, wait in ((1, 10 * SECOND), (2, 20 * SECOND)):
            job = await floor.job(job_id)
            assert (job.state, job.crashes, job.failures) == (JobState.DELAYED, crashes, 0)
            assert job.run_at == floor.clock.now() + wait
            assert floor.heard.of(JobsQuarantined) == []
            await floor.store.jobs.run_now([job_id], at=floor.clock.stamp())
            floor.clock.advance(SECOND)
            await floor.work()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.crashes) == (job_id, "crashed", 3)
        assert [error.message for error in dead.errors] == ["signal 11"] * 3
        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.CRASHED] * 3
        assert [each.job_ids for each in floor.heard.of(JobsQuarantined)] == [(job_id,)]

    run(story())


def test_the_reaper_tells_of_jobs_it_quarantines(
    floor: Floor, new_floor: Callable[..., Floor], run: Any
) -> None:
    async def story() -> None:
        job_id = await floor.put("poison")
        for _ in range(4):  # of the first death nobody knows whether the run had begun
            doomed = new_floor()
            begun = asyncio.Event()

            @doomed.task
            async def poison(begun: asyncio.Event = begun) -> None:
                begun.set()
                await asyncio.Event().wait()

            await doomed.join()
            await doomed.claimer.tick()
            await until(begun.is_set)
            reaper = Reaper(floor.store, floor.clock, SeededEntropy(1), floor.telemetry)  # type: ignore[arg-type]
            for _ in range(17):
                floor.clock.advance(SECOND)
                await reaper.tick()
            doomed.active_runs.drop_all()
            await until(lambda doomed=doomed: not doomed.active_runs.running)

        [dead] = await floor.dead()
        assert (dead.id, dead.reason) == (job_id, "crashed")
        assert [each.job_ids for each in floor.heard.of(JobsQuarantined)] == [(job_id,)]

    run(story())


def test_a_job_claimed_after_its_deadline_does_not_run(floor: Floor, run: Any) -> None:
    ran = []

    @floor.task
    async def report() -> None:
        ran.append(True)

    async def story() -> None:
        await floor.join()
        job_id = await floor.put("report", expires=SECOND)
        floor.clock.advance(2 * SECOND)
        await floor.work()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.failures) == (job_id, "expired", 0)
        assert (ran, floor.heard.of(RunStarted)) == ([], [])

    run(story())


def test_a_failure_whose_retry_would_come_too_late_is_the_last(floor: Floor, run: Any) -> None:
    @floor.task(retry=PLAIN)
    async def fail() -> None:
        raise ValueError("boom")

    async def story() -> None:
        in_time = await put_and_work(floor, "fail", expires=11 * SECOND)
        too_late = await put_and_work(floor, "fail", expires=10 * SECOND)

        assert (await floor.job(in_time)).state is JobState.DELAYED
        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.failures) == (too_late, "expired", 1)
        assert dead.errors[0].message == "boom"

    run(story())


def test_a_running_handler_is_ended_at_the_deadline(floor: Floor, run: Any) -> None:
    ended = []

    @floor.task(retry=PLAIN, timeout="1h")
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def story() -> None:
        job_id = await put_and_work(floor, "slow", expires=timedelta(milliseconds=50))

        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.failures, ended) == (job_id, "expired", 1, [True])
        assert dead.errors[0].type == "Expired"

    run(story())


def test_a_job_that_waits_for_a_thread_beyond_its_deadline_does_not_begin(
    new_floor: Callable[..., Floor], run: Any
) -> None:
    floor = new_floor(threads=1)
    go, ran = threading.Event(), []

    @floor.task
    def first() -> None:
        go.wait(20)

    @floor.task
    def second() -> None:
        ran.append(True)

    async def story() -> None:
        await floor.join()
        await floor.put("first")
        await floor.claimer.tick()
        job_id = await floor.put("second", expires=timedelta(milliseconds=50))
        await floor.claimer.tick()
        await until(lambda: floor.active_runs.running == 1)
        go.set()
        await floor.finish()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.failures, ran) == (job_id, "expired", 0, [])

    run(story())


def test_the_tighter_of_timeout_and_deadline_holds(floor: Floor, run: Any) -> None:
    @floor.task(retry=PLAIN, timeout=0.02)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        job_id = await put_and_work(floor, "slow", expires=HOUR)

        [ended] = await floor.runs(job_id)
        assert ended.failure is not None
        assert (ended.verdict, ended.failure.type) == (Verdict.FAILED, "TimeoutError")

    run(story())


def test_the_sweeper_ends_what_nobody_claims_and_tells(floor: Floor, run: Any) -> None:
    async def story() -> None:
        sweeper = Sweeper(floor.store, floor.clock, SeededEntropy(1), floor.telemetry)  # type: ignore[arg-type]
        job_id = await floor.put("nobody.knows", expires=MINUTE)
        await sweeper.tick()
        assert floor.heard.of(JobsExpired) == []
        floor.clock.advance(MINUTE)
        wait = await sweeper.tick()

        assert [each.job_ids for each in floor.heard.of(JobsExpired)] == [(job_id,)]
        assert [dead.reason for dead in await floor.dead()] == ["expired"]
        assert timedelta() < wait < MINUTE

    run(story())


def test_the_sweeper_counts_dead_letters_once_a_minute(floor: Floor, run: Any) -> None:
    async def story() -> None:
        sweeper = Sweeper(floor.store, floor.clock, SeededEntropy(1), floor.telemetry)  # type: ignore[arg-type]
        await floor.put("nobody.knows", expires=SECOND)
        floor.clock.advance(2 * SECOND)
        await sweeper.tick()
        floor.clock.advance(HOUR)
        await floor.put("nobody.knows", expires=SECOND)
        floor.clock.advance(2 * SECOND)
        for _ in range(PASSES_BETWEEN_COUNTS):
            await sweeper.tick()

        counts = [(event.count, event.grown) for event in floor.heard.of(DeadLettersCounted)]
        assert counts == [(1, 1), (2, 1)]

    run(story())
