"""A worker, one tick at a time: what becomes of a job on its way through the hands."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.errors import StoreUnavailable
from mainspring.model.job import JobState, NewJob
from mainspring.model.run import Verdict
from mainspring.tasks.context import Context, Snooze
from mainspring.tasks.retry import Retry
from mainspring.telemetry.events import RunEnded, RunStarted
from tests.engine.kit import MINUTE, SECOND, Floor, until

ONCE = Retry(attempts=1)
PLAIN = Retry(attempts=3, base="10s", factor=2, jitter=False)


def test_a_job_goes_all_the_way_from_the_queue_to_history(floor: Floor, run: Any) -> None:
    @floor.task
    async def add(a: int, b: int) -> int:
        return a + b

    async def story() -> None:
        job_id = await floor.put("add", payload=b'{"args":[1,2]}')
        await floor.work()

        job = await floor.job(job_id)
        [ended] = await floor.runs(job_id)
        assert (job.state, job.result) == (JobState.SUCCEEDED, b"3")
        assert (ended.verdict, ended.attempt, ended.worker_id) == (Verdict.SUCCEEDED, 1, floor.id)
        assert [event.job_id for event in floor.heard.of(RunStarted)] == [job_id]
        assert [event.verdict for event in floor.heard.of(RunEnded)] == [Verdict.SUCCEEDED]

    run(story())


def test_a_failing_job_waits_its_backoff_and_dies_with_every_error(floor: Floor, run: Any) -> None:
    @floor.task(retry=PLAIN)
    async def fail(ctx: Context) -> None:
        raise ValueError(f"boom {ctx.attempt}")

    async def story() -> None:
        job_id = await floor.put("fail", max_attempts=3)
        await floor.work()
        assert (await floor.job(job_id)).state is JobState.DELAYED

        for wait in (10 * SECOND, 20 * SECOND):
            floor.clock.advance(wait - timedelta(milliseconds=1))
            await floor.heart.tick()
            before = len(floor.heard.of(RunStarted))
            await floor.work()
            assert len(floor.heard.of(RunStarted)) == before, "it ran before its wait was over"
            floor.clock.advance(timedelta(milliseconds=1))
            await floor.work()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason, dead.failures) == (job_id, "failed", 3)
        assert [error.message for error in dead.errors] == ["boom 1", "boom 2", "boom 3"]
        assert [error.attempt for error in dead.errors] == [1, 2, 3]
        assert [each.verdict for each in await floor.runs(job_id)] == [
            Verdict.FAILED,
            Verdict.FAILED,
            Verdict.DEAD,
        ]

    run(story())


def test_a_plain_function_runs_in_a_thread_of_its_own(floor: Floor, run: Any) -> None:
    where: list[threading.Thread] = []

    @floor.task
    def plain() -> None:
        where.append(threading.current_thread())

    async def story() -> None:
        await floor.put("plain")
        await floor.work()

        assert where[0] is not threading.current_thread()
        assert where[0].name.startswith("mainspring-handler")

    run(story())


def test_a_busy_plain_function_does_not_hold_up_the_event_loop(floor: Floor, run: Any) -> None:
    gate = threading.Event()

    @floor.task
    def plain() -> str:
        assert gate.wait(10)
        return "through"

    async def story() -> None:
        job_id = await floor.put("plain")
        await floor.join()
        await floor.claimer.tick()
        await floor.heart.tick()  # the loop is free
        gate.set()
        await floor.finish()

        assert (await floor.job(job_id)).result == b'"through"'

    run(story())


def test_the_context_names_the_run_and_its_token_outlives_attempts(floor: Floor, run: Any) -> None:
    seen: list[tuple[Any, ...]] = []

    @floor.task(retry=PLAIN)
    async def look(ctx: Context) -> None:
        seen.append(
            (
                ctx.job_id,
                ctx.task,
                ctx.attempt,
                ctx.max_attempts,
                ctx.slot,
                ctx.token,
                ctx.fence,
                ctx.cancelled,
            )
        )
        raise ValueError

    async def story() -> None:
        job_id = await floor.put("look", max_attempts=2)
        await floor.work()
        floor.clock.advance(10 * SECOND)
        await floor.work()

        first, second = seen
        assert first[:5] == (job_id, "look", 1, 2, None)
        assert second[:5] == (job_id, "look", 2, 2, None)
        assert first[5] == second[5] and len(first[5]) == 64
        assert first[6] < second[6]
        assert (first[7], second[7]) == (False, False)

    run(story())


def test_a_handler_that_takes_too_long_fails_with_a_message_that_says_so(floor: Floor, run: Any) -> None:
    @floor.task(timeout="10ms", retry=ONCE)
    async def slow() -> None:
        await asyncio.Event().wait()

    @floor.task(timeout="10ms", retry=ONCE)
    async def raises_its_own() -> None:
        raise TimeoutError("of my own")

    async def story() -> None:
        await floor.put("slow")
        await floor.put("raises_its_own")
        await floor.work()

        errors = {dead.task: dead.errors[0] for dead in await floor.dead()}
        assert (errors["slow"].type, errors["slow"].message) == (
            "TimeoutError",
            "the handler did not end within its timeout of 0.01 s",
        )
        assert errors["raises_its_own"].message == "of my own"

    run(story())


class Sly(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message for you")


class Closing(GeneratorExit):
    """Looks like the end of a coroutine and is none."""


class Fatal(BaseException):
    pass


async def _cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


def _raiser(error: BaseException) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


NASTY: dict[str, Callable[[], Any]] = {
    "system_exit": _raiser(SystemExit(3)),
    "keyboard_interrupt": _raiser(KeyboardInterrupt()),
    "generator_exit": _raiser(GeneratorExit()),
    "like_generator_exit": _raiser(Closing()),
    "cancelled": _raiser(asyncio.CancelledError()),
    "stop_iteration": _raiser(StopIteration(1)),
    "stop_async_iteration": _raiser(StopAsyncIteration()),
    "no_message": _raiser(Sly()),
    "fatal": _raiser(Fatal("x")),
    "surrogate": _raiser(ValueError("\ud800 and \x00")),
    "huge": _raiser(ValueError("x" * 1_000_000)),
    "a_group": _raiser(BaseExceptionGroup("many", [ValueError(1), SystemExit(2)])),
    "unserialisable": lambda: object(),
    "too_large": lambda: "x" * 100_000,
    "nan": lambda: float("nan"),
    "too_deep": lambda: functools.reduce(lambda inner, _: [inner], range(200), []),
}
FINAL = {"unserialisable", "too_large", "nan", "too_deep"}
"""What it did is done: another run would do it again, and answer the same."""


@pytest.mark.parametrize("colour", ["async", "sync"])
@pytest.mark.parametrize("name", NASTY)
def test_whatever_a_handler_does_is_one_failed_attempt_and_the_worker_lives(
    floor: Floor, run: Any, name: str, colour: str
) -> None:
    if colour == "sync":

        @floor.task(name="nasty", retry=PLAIN)
        def plain() -> Any:
            return NASTY[name]()
    else:

        @floor.task(name="nasty", retry=PLAIN)
        async def coloured() -> Any:
            return NASTY[name]()

    @floor.task
    async def good() -> None:
        pass

    async def story() -> None:
        nasty = await floor.put("nasty", max_attempts=2)
        await floor.work()
        after = await floor.put("good")
        await floor.work()

        job = await floor.job(nasty)
        assert (job.failures, job.crashes, job.worker_id) == (1, 0, None)
        verdict = Verdict.DEAD if name in FINAL else Verdict.FAILED
        assert [each.verdict for each in await floor.runs(nasty)] == [verdict]
        assert (await floor.job(after)).state is JobState.SUCCEEDED
        assert floor.active_runs.running == 0

    run(story())


def test_a_handler_that_cancels_its_own_task_has_failed_and_is_not_given_back_for_ever(
    floor: Floor, run: Any
) -> None:
    floor.task(name="suicide", retry=PLAIN)(_cancels_itself)

    async def story() -> None:
        job_id = await floor.put("suicide", max_attempts=2)
        await floor.work()

        job = await floor.job(job_id)
        assert (job.failures, job.worker_id) == (1, None)

    run(story())


def test_a_payload_that_cannot_be_read_is_a_failed_attempt(floor: Floor, run: Any) -> None:
    @floor.task(retry=ONCE)
    async def good() -> None:
        pass

    async def story() -> None:
        await floor.put("good", payload=b'{"args": 7}')
        await floor.put("good", payload=b'{"args": [1, 2, 3]}')
        await floor.work()

        assert len(await floor.dead()) == 2

    run(story())


def test_release_costs_no_attempt_even_if_the_handler_raises_on_its_way_out(floor: Floor, run: Any) -> None:
    @floor.task
    async def patient() -> None:
        await asyncio.Event().wait()

    @floor.task
    async def sulky() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("cleaning up went wrong")

    async def story() -> None:
        ids = [await floor.put("patient"), await floor.put("sulky")]
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: len(floor.heard.of(RunStarted)) == 2)
        await asyncio.sleep(0)
        assert floor.active_runs.release_all() == 2
        await floor.finish()

        for job_id in ids:
            job = await floor.job(job_id)
            assert (job.state, job.failures, job.crashes) == (JobState.READY, 0, 0)
            assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.RELEASED]

    run(story())


def test_a_handler_that_ends_well_while_it_is_released_has_succeeded(floor: Floor, run: Any) -> None:
    @floor.task
    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done"

    async def story() -> None:
        job_id = await floor.put("stubborn")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.heard.of(RunStarted))
        await asyncio.sleep(0)
        floor.active_runs.release_all()
        await floor.finish()

        assert (await floor.job(job_id)).state is JobState.SUCCEEDED

    run(story())


def test_a_run_ended_before_it_began_leaves_no_trace(floor: Floor, run: Any) -> None:
    @floor.task
    async def never() -> None:
        raise AssertionError

    async def story() -> None:
        job_id = await floor.put("never")
        await floor.join()
        await floor.claimer.tick()  # in hand, and its task has not had a turn yet
        floor.active_runs.release_all()
        await floor.finish()

        assert (await floor.job(job_id)).state is JobState.READY
        assert await floor.runs(job_id) == []
        assert floor.heard.of(RunStarted) == []
        assert [event.verdict for event in floor.heard.of(RunEnded)] == [Verdict.RELEASED]

    run(story())


def test_the_context_of_a_plain_function_says_when_it_should_end(floor: Floor, run: Any) -> None:
    began, seen = threading.Event(), []

    @floor.task
    def plain(ctx: Context) -> None:
        began.set()
        for _ in range(2000):
            if ctx.cancelled:
                seen.append(True)
                return
            threading.Event().wait(0.005)

    async def story() -> None:
        await floor.put("plain")
        await floor.join()
        await floor.claimer.tick()
        await until(began.is_set)
        floor.active_runs.release_all()
        await until(lambda: seen)
        await floor.finish()

    run(story())


def test_jobs_of_tasks_nobody_here_knows_are_left_alone(floor: Floor, run: Any) -> None:
    @floor.task
    async def known() -> None:
        pass

    async def story() -> None:
        stranger = await floor.put("unknown")
        await floor.put("known")
        await floor.work()
        await floor.work()

        job = await floor.job(stranger)
        assert (job.state, job.failures, job.fence) == (JobState.READY, 0, 0)

    run(story())


def test_never_more_jobs_are_in_hand_than_there_are_hands(new_floor: Any, run: Any) -> None:
    floor = new_floor(concurrency=3)
    running, most = 0, 0

    @floor.task
    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    async def story() -> None:
        await floor.store.queue.insert([NewJob(task="count", payload=b"{}")] * 20, at=floor.clock.stamp())
        await floor.join()
        for _ in range(40):
            await floor.claimer.tick()
            assert floor.active_runs.running <= 3
            await asyncio.sleep(0)
            await floor.result_writer.tick()
        await floor.finish()

        assert len(floor.heard.of(RunEnded)) == 20
        assert most == 3

    run(story())


def test_settlements_that_cannot_be_written_press_back_on_claims(new_floor: Any, run: Any) -> None:
    floor = new_floor(concurrency=2)

    @floor.task
    async def quick() -> None:
        pass

    async def story() -> None:
        await floor.store.queue.insert([NewJob(task="quick", payload=b"{}")] * 50, at=floor.clock.stamp())
        floor.store.before("queue.settle", times=1000)
        await floor.join()
        for _ in range(20):
            await floor.claimer.tick()
            await until(lambda: not floor.active_runs.running)
            with pytest.raises(StoreUnavailable):
                await floor.result_writer.tick()
        assert floor.result_writer.pending == 4  # twice its hands, and not one more
        assert floor.active_runs.free == 0

        floor.store.heal()
        while len(floor.heard.of(RunEnded)) < 50:
            await floor.result_writer.tick()
            await floor.claimer.tick()
            await until(lambda: not floor.active_runs.running)

    run(story())


def test_the_most_important_jobs_are_taken_first(new_floor: Any, run: Any) -> None:
    floor = new_floor(concurrency=1)
    order: list[int] = []

    @floor.task
    async def note(priority: int) -> None:
        order.append(priority)

    async def story() -> None:
        for priority in (0, -5, 7, 100, 7):
            await floor.put("note", payload=b'{"args":[%d]}' % priority, priority=priority)
        for _ in range(5):
            await floor.work()

        assert order == [100, 7, 7, 0, -5]

    run(story())


def test_delayed_jobs_run_when_their_time_has_come_and_not_before(floor: Floor, run: Any) -> None:
    @floor.task
    async def later() -> None:
        pass

    async def story() -> None:
        job_id = await floor.put("later", delay=MINUTE)
        await floor.work()
        assert (await floor.job(job_id)).state is JobState.DELAYED

        for _ in range(12):
            floor.clock.advance(5 * SECOND)
            await floor.heart.tick()
        await floor.work()
        assert (await floor.job(job_id)).state is JobState.SUCCEEDED

    run(story())


def test_a_cancelled_job_stops_its_handler_at_the_next_beat(floor: Floor, run: Any) -> None:
    stopped: list[bool] = []

    @floor.task
    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    async def story() -> None:
        job_id = await floor.put("patient")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.heard.of(RunStarted))
        await asyncio.sleep(0)
        await floor.store.jobs.cancel([job_id], at=floor.clock.stamp())
        await floor.heart.tick()
        await floor.finish()

        assert stopped == [True]
        assert (await floor.job(job_id)).state is JobState.CANCELLED
        assert floor.heard.of(RunEnded) == []

    run(story())


def test_declaring_tasks_opens_no_store() -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def nothing() -> None: ...

    assert app._in_memory is None


def test_the_wait_for_a_thread_is_no_part_of_a_plain_functions_timeout(new_floor: Any, run: Any) -> None:
    floor, gate = new_floor(threads=1), threading.Event()

    @floor.task
    def blocks() -> None:
        gate.wait(10)

    @floor.task(timeout="50ms", retry=ONCE)
    def quick() -> None: ...

    async def story() -> None:
        await floor.put("blocks")
        job_id = await floor.put("quick")
        await floor.join()
        await floor.claimer.tick()
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, gate.set)
        await floor.finish()

        assert (await floor.job(job_id)).state is JobState.SUCCEEDED

    run(story())


def test_a_plain_function_that_notices_gets_to_end_before_its_job_goes_back(floor: Floor, run: Any) -> None:
    order: list[str] = []

    @floor.task
    def careful(ctx: Context) -> None:
        while not ctx.cancelled:
            time.sleep(0.001)
        order.append("handler ended")

    async def story() -> None:
        job_id = await floor.put("careful")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.heard.of(RunStarted))
        floor.active_runs.release_all()
        await floor.finish()
        order.append("settled")

        assert order == ["handler ended", "settled"]
        job = await floor.job(job_id)
        assert (job.state, job.failures) == (JobState.READY, 0)

    run(story())


@pytest.mark.parametrize("colour", ["async", "plain", "with_context"])
def test_an_error_that_is_no_handlers_ends_the_run_and_does_not_stay_in_hand(
    floor: Floor, run: Any, colour: str
) -> None:
    class Odd(Snooze):
        def __init__(self) -> None:  # and not its parent's: it does not say for how long
            pass

    @floor.task(name="async", retry=Retry(attempts=2, base=0))
    async def odd() -> None:
        raise Odd

    @floor.task(name="plain", retry=Retry(attempts=2, base=0))
    def odd_plain() -> None:
        raise Odd

    @floor.task(name="with_context", retry=Retry(attempts=2, base=0))
    def odd_with_context(ctx: Context) -> None:
        raise Odd

    job_id = run(floor.put(colour, max_attempts=2))
    run(floor.work())

    job = run(floor.job(job_id))
    assert floor.active_runs.running == 0
    assert [error.type.rpartition(".")[2] for error in job.errors] == ["Odd"]


def test_plain_functions_without_a_thread_have_failed_and_others_go_on(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    @floor.task(retry=Retry(attempts=2, base=0))
    def plain() -> None: ...

    @floor.task
    async def other() -> None: ...

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def story() -> None:
        first = await floor.put("plain", max_attempts=2)
        second = await floor.put("other")
        third = await floor.put("plain", max_attempts=2)
        await floor.join()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            await floor.claimer.tick()
            await until(lambda: not floor.active_runs.running)
            await floor.finish()

        assert (await floor.job(second)).state is JobState.SUCCEEDED
        for job_id in (first, third):
            [error] = (await floor.job(job_id)).errors
            assert error.message == "can't start new thread"

    run(story())


def test_a_claim_that_is_granted_anew_runs_though_the_same_was_dropped(floor: Floor, run: Any) -> None:
    """The server crashed and forgot the grant, a beat found that, and then the job was claimed again."""
    gate = asyncio.Event()
    ran: list[int] = []

    @floor.task
    async def slow() -> None:
        ran.append(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await gate.wait()  # it takes its time to end
            raise

    async def story() -> None:
        await floor.put("slow")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: len(ran) == 1)
        [claim] = await floor.store.queue.held(floor.id, at=floor.clock.stamp())
        assert [each.job_id for each in floor.active_runs.drop([(claim.job_id, claim.fence)])] == [
            claim.job_id
        ]
        floor.active_runs.start([claim])
        await until(lambda: len(ran) == 2)
        gate.set()
        await until(lambda: floor.active_runs.running == 1)

        assert floor.active_runs.holding() == [(claim.job_id, claim.fence)]
        floor.active_runs.release_all()
        await floor.finish()
        assert (await floor.job(claim.job_id)).state is JobState.READY

    run(story())
