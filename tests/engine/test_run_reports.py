"""What runs say of themselves, on their way from the handler to the store."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.tasks.context import Context
from mainspring.tasks.retry import Retry
from mainspring.worker.run_reports import EVERY, IDLE
from tests.engine.kit import SECOND, Floor, until

ONCE = Retry(attempts=1)


async def log_of(floor: Floor, job_id: int) -> list[str]:
    """The captured lines of a job's one run, without their moments."""
    [log] = await floor.store.runs.logs(job_id)
    return [line.removeprefix("2030-01-01T00:00:00.000Z ") for line in log.text.splitlines()]


def writes(floor: Floor) -> list[list[Any]]:
    return [list(args[0]) for name, args, _ in floor.store.calls if name == "runs.note_progress"]


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


# Progress.


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_progress_is_written_while_the_handler_runs_and_gone_when_it_has_ended(
    floor: Floor, run: Any, gate: threading.Event, kind: str
) -> None:
    if kind == "async":

        @floor.task(name="slow")
        async def slow(ctx: Context) -> None:
            ctx.progress(0.4, "3 of 7 files")
            await until(gate.is_set)
    else:

        @floor.task(name="slow")
        def slow_too(ctx: Context) -> None:
            ctx.progress(0.4, "3 of 7 files")
            assert gate.wait(40)

    async def story() -> None:
        woken = asyncio.Event()
        floor.worker.signals.progress_waits.connect(woken.set)
        job_id = await floor.put("slow")
        assert await floor.worker.reports.tick() == IDLE
        await floor.join()
        await floor.claimer.tick()
        await asyncio.wait_for(woken.wait(), 40)
        assert await floor.worker.reports.tick() == EVERY

        found = await floor.store.runs.progress(job_id)
        assert (found.fraction, found.note, found.at) == (0.4, "3 of 7 files", floor.clock.now())
        gate.set()
        await floor.finish()
        assert await floor.store.runs.progress(job_id) is None

    run(story())


def test_many_words_of_many_jobs_are_one_write_of_the_newest(
    floor: Floor, run: Any, gate: threading.Event
) -> None:
    @floor.task
    async def slow(ctx: Context) -> None:
        for number in range(101):
            ctx.progress(number / 100, f"{number}")
        await until(gate.is_set)

    async def story() -> None:
        ids = [await floor.put("slow") for _ in range(5)]
        woken: list[None] = []
        floor.worker.signals.progress_waits.connect(lambda: woken.append(None))
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: len(floor.worker.reports._news) == 5)
        await floor.worker.reports.tick()

        [written] = writes(floor)
        assert sorted((note.job_id, note.note) for note in written) == [(job_id, "100") for job_id in ids]
        assert await floor.worker.reports.tick() == IDLE
        assert len(writes(floor)) == 1
        await until(lambda: woken)
        assert len(woken) == 1, "only the first word after a rest wakes the loop"
        gate.set()
        await floor.finish()

    run(story())


def test_progress_that_could_not_be_written_is_written_later_unless_there_is_newer(
    floor: Floor, run: Any, gate: threading.Event
) -> None:
    contexts: list[Context] = []

    @floor.task
    async def slow(ctx: Context) -> None:
        contexts.append(ctx)
        ctx.progress(0.1)
        await until(gate.is_set)

    async def story() -> None:
        job_id = await floor.put("slow")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: contexts)
        floor.store.before("runs.note_progress", times=2)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await floor.worker.reports.tick()
            contexts[0].progress(0.2)
        await floor.worker.reports.tick()

        assert (await floor.store.runs.progress(job_id)).fraction == 0.2
        gate.set()
        await floor.finish()

    run(story())


def test_a_run_that_has_ended_is_not_heard(floor: Floor, run: Any) -> None:
    contexts: list[Context] = []

    @floor.task
    async def quick(ctx: Context) -> None:
        contexts.append(ctx)
        ctx.progress(0.5)
        ctx.log.info("inside")

    async def story() -> None:
        job_id = await floor.put("quick")
        await floor.work()
        contexts[0].progress(0.9)
        contexts[0].log.info("outside")
        await floor.worker.reports.tick()

        assert writes(floor) == []
        assert await log_of(floor, job_id) == ["info    inside"]
        assert not floor.worker.reports.by_claim

    run(story())


def test_a_wrong_fraction_fails_the_attempt_with_the_reason(floor: Floor, run: Any) -> None:
    @floor.task(retry=ONCE)
    async def wrong(ctx: Context) -> None:
        ctx.progress(40)

    async def story() -> None:
        await floor.put("wrong")
        await floor.work()
        [dead] = await floor.dead()
        assert dead.errors[0].message == "progress.fraction: expected a number from 0 to 1, got 40"

    run(story())


# Logs.


def test_lines_of_ctx_log_are_kept_with_their_run_even_if_the_process_is_quiet(
    floor: Floor, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "mainspring.job")

    @floor.task
    async def talk(ctx: Context) -> None:
        ctx.log.debug("not kept")
        ctx.log.info("hello %s", "Ada", extra={"tenant": "acme"})
        ctx.log.warning("careful\nsecond line")
        try:
            raise ValueError("boom")
        except ValueError:
            ctx.log.exception("it went wrong")

    async def story() -> None:
        job_id = await floor.put("talk")
        await floor.work()

        lines = await log_of(floor, job_id)
        assert lines[:4] == [
            "info    hello Ada",
            "warning careful",
            "    second line",
            "error   it went wrong",
        ]
        assert lines[4] == "    Traceback (most recent call last):"
        assert lines[-1] == "    ValueError: boom"

    run(story())
    [record] = [each for each in caplog.records if each.name == "mainspring.job"]
    assert (record.getMessage(), record.funcName) == ("it went wrong", "talk")
    assert record.__dict__["task"] == "talk"


def test_debugging_is_kept_where_the_process_shows_it(
    floor: Floor, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mainspring.job")

    @floor.task
    def talk(ctx: Context) -> None:
        ctx.log.debug("kept")

    async def story() -> None:
        job_id = await floor.put("talk")
        await floor.work()
        assert await log_of(floor, job_id) == ["debug   kept"]

    run(story())


def test_a_line_that_cannot_be_formatted_is_kept_as_it_is_and_fails_nothing(floor: Floor, run: Any) -> None:
    @floor.task
    async def talk(ctx: Context) -> None:
        ctx.log.info("%d files", "three")

    async def story() -> None:
        job_id = await floor.put("talk")
        await floor.work()
        assert (await floor.job(job_id)).state is JobState.SUCCEEDED
        assert await log_of(floor, job_id) == ["info    '%d files' (could not be formatted: TypeError)"]

    logging.raiseExceptions, before = False, logging.raiseExceptions
    try:
        run(story())
    finally:
        logging.raiseExceptions = before


def test_every_attempt_has_its_own_log_and_a_silent_one_has_none(floor: Floor, run: Any) -> None:
    @floor.task(retry=Retry(attempts=3, base="1s", jitter=False))
    async def flaky(ctx: Context) -> None:
        if ctx.attempt != 2:
            ctx.log.info("attempt %d", ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("boom")

    async def story() -> None:
        job_id = await floor.put("flaky", max_attempts=3)
        for _ in range(3):
            await floor.work()
            floor.clock.advance(4 * SECOND)
            await floor.heart.tick()

        runs, logs = await floor.runs(job_id), await floor.store.runs.logs(job_id)
        assert [each.verdict for each in runs] == [Verdict.FAILED, Verdict.FAILED, Verdict.SUCCEEDED]
        assert [(log.worker_id, log.fence) for log in logs] == [
            (each.worker_id, each.fence) for each in (runs[0], runs[2])
        ]
        assert [log.text.split()[-1] for log in logs] == ["1", "3"]

    run(story())


def test_a_log_is_cut_to_the_setting(new_floor: Callable[..., Floor], run: Any) -> None:
    floor = new_floor(log_limit=1024)

    @floor.task
    async def talk(ctx: Context) -> None:
        for number in range(10_000):
            ctx.log.info("line %d", number)

    async def story() -> None:
        job_id = await floor.put("talk")
        await floor.work()
        lines = await log_of(floor, job_id)
        assert (lines[0], lines[-1]) == ("info    line 0", "info    line 9999")
        assert sum(map(len, lines)) < 1200
        assert sum("were cut here" in line for line in lines) == 1

    run(story())


def test_a_job_that_is_released_keeps_what_it_logged(floor: Floor, run: Any) -> None:
    @floor.task
    async def slow(ctx: Context) -> None:
        ctx.log.info("so far")
        await asyncio.Event().wait()

    async def story() -> None:
        job_id = await floor.put("slow")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.worker.reports.by_claim)
        floor.active_runs.release_all()
        await floor.finish()

        [ended] = await floor.runs(job_id)
        assert ended.verdict is Verdict.RELEASED
        assert await log_of(floor, job_id) == ["info    so far"]

    run(story())


def test_a_claim_that_was_lost_leaves_no_log(floor: Floor, run: Any) -> None:
    @floor.task
    async def slow(ctx: Context) -> None:
        ctx.log.info("so far")
        await asyncio.Event().wait()

    async def story() -> None:
        job_id = await floor.put("slow")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.worker.reports.by_claim)
        await floor.store.jobs.cancel([job_id], at=floor.clock.stamp())
        await floor.heart.tick()
        await floor.finish()

        assert await floor.store.runs.logs(job_id) == []
        assert not floor.worker.reports.by_claim

    run(story())


def test_a_log_that_the_store_will_not_take_costs_neither_the_other_jobs_nor_the_worker(
    floor: Floor, run: Any
) -> None:
    @floor.task(retry=ONCE)
    async def talk(ctx: Context) -> None:
        ctx.log.info("hello")

    async def story() -> None:
        job_id = await floor.put("talk")
        floor.store.before("queue.settle", StoreError("cannot take it"), times=2)
        await floor.work()

        [dead] = await floor.dead()
        assert dead.id == job_id
        assert await floor.store.runs.logs(job_id) == []

    run(story())


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_all_loggers_inside_the_handlers_context_are_captured_when_asked_for(
    new_floor: Callable[..., Floor], run: Any, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    caplog.set_level(logging.INFO)
    floor = new_floor(capture_logs="all")
    other = logging.getLogger("somebody.else")

    if kind == "async":

        @floor.task(name="talk")
        async def talk(name: str) -> None:
            other.info("from %s", name)
            await asyncio.sleep(0)
            await asyncio.gather(asyncio.to_thread(other.info, "a thread of %s", name))
    else:

        @floor.task(name="talk")
        def talk_too(name: str) -> None:
            other.info("from %s", name)
            other.info("a thread of %s", name)

    @floor.task
    async def with_context(ctx: Context) -> None:
        ctx.log.info("mine")
        other.info("theirs")

    async def story() -> None:
        ids = [await floor.put("talk", payload=b'{"args":["%s"]}' % name) for name in (b"a", b"b")]
        both = await floor.put("with_context")
        await floor.work()
        other.info("outside of any run")

        for job_id, name in zip(ids, "ab", strict=True):
            lines = [f"info    somebody.else: from {name}", f"info    somebody.else: a thread of {name}"]
            assert await log_of(floor, job_id) == lines
        assert await log_of(floor, both) == ["info    mine", "info    somebody.else: theirs"]

    root = logging.getLogger()
    before = list(root.handlers)
    run(story())
    floor.close()
    assert root.handlers == before


@pytest.mark.parametrize("capture", ["ctx", "none"])
def test_other_loggers_are_not_captured_otherwise_and_no_handler_is_added(
    new_floor: Callable[..., Floor], run: Any, capture: str
) -> None:
    floor = new_floor(capture_logs=capture)
    root = logging.getLogger()
    before = list(root.handlers)

    @floor.task
    async def talk(ctx: Context) -> None:
        logging.getLogger("somebody.else").error("theirs")
        if capture == "none":
            ctx.log.error("mine")
        assert root.handlers == before

    async def story() -> None:
        job_id = await floor.put("talk")
        await floor.work()
        assert (await floor.job(job_id)).state is JobState.SUCCEEDED
        assert await floor.store.runs.logs(job_id) == []

    run(story())


# Results, and heavy batches.


def test_a_result_above_the_setting_fails_the_attempt_and_says_so(floor: Floor, run: Any) -> None:
    floor.worker.children._handlers.result_bytes = 10

    @floor.task(retry=ONCE)
    async def big(size: int) -> str:
        return "x" * size

    async def story() -> None:
        fits = await floor.put("big", payload=b'{"args":[8]}')
        await floor.put("big", payload=b'{"args":[9]}')
        await floor.work()

        assert (await floor.job(fits)).result == b'"xxxxxxxx"'
        [dead] = await floor.dead()
        assert dead.errors[0].message == (
            "result: expected at most 10 bytes of JSON (results.max_bytes), got '11 bytes'"
        )

    run(story())


def test_heavy_settlements_are_written_in_several_batches(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.worker.result_writer.HEAVY", 1000)

    @floor.task
    async def heavy(ctx: Context, size: int) -> str:
        ctx.log.info("l" * 100)
        return "x" * size

    async def story() -> None:
        sizes = [400, 400, 400, 5000, 1, 1]
        ids = [await floor.put("heavy", payload=b'{"args":[%d]}' % size) for size in sizes]
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: not floor.active_runs.running)
        rests = []
        while floor.result_writer.pending:
            rests.append(await floor.result_writer.tick())

        batches = [len(args[0]) for name, args, _ in floor.store.calls if name == "queue.settle"]
        assert batches == [1, 1, 1, 1, 2]
        assert rests == [timedelta()] * 4 + [timedelta(seconds=60)]
        assert floor.result_writer._weight == 0
        assert [len((await floor.job(job_id)).result or b"") - 2 for job_id in ids] == sizes

    run(story())
