"""Lines about jobs: each names its job, task and queue, a failure carries its exception, a lost claim its new
holder; and the lines about a store that is away."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
import pytest

from mainspring import Isolation, Retry
from mainspring.errors import AnswerLost, StoreError, StoreFull, StoreUnavailable
from mainspring.model.job import Claim, Failure, JobName, Whereabouts
from mainspring.model.run import Verdict
from mainspring.telemetry.events import (
    ClaimsLost,
    Event,
    HandlerLeaked,
    JobsExpired,
    JobsQuarantined,
    LoopBlocked,
    RunEnded,
    RunStarted,
    SettlementRefused,
    StoreTrouble,
)
from mainspring.telemetry.log import CALM, PATIENCE, TAIL, StoreLines, log_event
from mainspring.telemetry.run_fields import reported
from mainspring.testing.clock import ManualClock
from mainspring.worker.outcomes import failure_of
from tests.engine import isolated
from tests.engine.kit import Floor, until

SECOND = timedelta(seconds=1)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
CLAIM = Claim(
    job_id=7,
    worker_id=1,
    fence=3,
    task="mail",
    queue="slow",
    payload=b"{}",
    failures=1,
    max_attempts=3,
    run_at=NOW,
    enqueued_at=NOW,
)
NAME = JobName(job_id=7, task="mail", queue="slow")
OF_RUN: dict[str, Any] = {"job_id": 7, "task": "mail", "attempt": 2, "queue": "slow"}
HELD = Whereabouts(job_id=7, live=True, holder="box-2")


def ended(**fields: Any) -> RunEnded:
    return RunEnded(**OF_RUN, **{"verdict": Verdict.FAILED, "took": SECOND, "delay": SECOND, **fields})


EVENTS: list[Event] = [
    RunStarted(**OF_RUN),
    ended(failure=Failure(type="ValueError", message="boom")),
    HandlerLeaked(job_id=7, task="mail", what="thread", left=1, claim=CLAIM),
    LoopBlocked(job_id=7, task="mail", claim=CLAIM),
    SettlementRefused(
        job_id=7, task="mail", fence=3, verdict=Verdict.SUCCEEDED, claim=CLAIM, whereabouts=HELD
    ),
    ClaimsLost(job_ids=(7,), claims=(CLAIM,), whereabouts=(HELD,)),
    JobsQuarantined(job_ids=(7,), jobs=(NAME,)),
    JobsExpired(job_ids=(7,), jobs=(NAME,)),
]


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    for name in ("mainspring", "mainspring.runs"):  # another test may have set either
        caplog.set_level(logging.DEBUG, name)
    kept, logger = Kept(), logging.getLogger("mainspring")
    logger.addHandler(kept)
    yield kept.lines
    logger.removeHandler(kept)


def test_every_event_about_jobs_is_here() -> None:
    about = {kind for kind in get_args(Event) if {"job_id", "job_ids"} & set(kind.__struct_fields__)}

    assert about == {type(event) for event in EVENTS}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_line_about_a_job_names_it_and_its_task_and_queue(
    event: Event, lines: list[logging.LogRecord]
) -> None:
    log_event(event)

    [line] = lines
    said = {name: getattr(line, name, None) for name in ("job_id", "task", "queue")}
    assert said == {"job_id": 7, "task": "mail", "queue": "slow"}
    assert line.getMessage().startswith("job 7 mail: ")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (HELD, "worker box-2 has the job now"),
        (Whereabouts(job_id=7, live=True), "the job waits in its queue again"),
        (Whereabouts(job_id=7, live=False), "the job was cancelled, or has ended elsewhere"),
        (None, "the job is not ours any more"),
    ],
)
def test_a_lost_claim_says_who_has_the_job(
    where: Whereabouts | None, words: str, lines: list[logging.LogRecord]
) -> None:
    known = () if where is None else (where,)
    log_event(ClaimsLost(job_ids=(7,), claims=(CLAIM,), whereabouts=known))
    refused = SettlementRefused(job_id=7, task="mail", fence=3, verdict=Verdict.SUCCEEDED, claim=CLAIM)
    log_event(msgspec.structs.replace(refused, whereabouts=where))

    assert [words in line.getMessage() for line in lines] == [True, True]


def test_a_worker_whose_job_was_taken_over_is_told_by_whom(
    floor: Floor, run: Any, lines: list[logging.LogRecord]
) -> None:
    rival = Floor(floor.store, floor.clock, seed=2, name="box-2")

    async def slow() -> None:
        await until(lambda: False, 600)

    floor.task(slow)
    rival.task(slow)

    async def story() -> None:
        await floor.put("slow")
        await floor.join()
        await floor.claimer.tick()
        floor.clock.advance(floor.config.lease + SECOND)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await rival.join()
        await rival.claimer.tick()
        await floor.heart.tick()
        await until(lambda: floor.heard.of(ClaimsLost))
        rival.active_runs.drop_all()
        await until(lambda: not (floor.active_runs.running or rival.active_runs.running))

    run(story())
    [lost] = floor.heard.of(ClaimsLost)
    [where] = lost.whereabouts
    [claim] = lost.claims
    assert (where.job_id, where.live, where.holder) == (claim.job_id, True, "w")


# Exceptions.


def failures(lines: list[logging.LogRecord]) -> list[Any]:
    return [line.exc_info for line in lines if getattr(line, "status", None) in ("failed", "dead", "crashed")]


def logged(floor: Floor) -> None:
    for event in floor.heard.of(RunEnded):
        log_event(event)


def frames(told: Any) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(told[2])]


def test_a_failure_is_logged_with_its_exception_and_the_handlers_own_frames(
    floor: Floor, run: Any, lines: list[logging.LogRecord]
) -> None:
    def helper() -> None:
        raise ValueError("boom")

    @floor.task(retry=Retry(attempts=1))
    async def on_the_loop() -> None:
        helper()

    @floor.task(retry=Retry(attempts=2))
    def in_a_thread() -> None:
        helper()

    async def story() -> None:
        await floor.put("on_the_loop", max_attempts=1)
        await floor.put("in_a_thread", max_attempts=2)
        await floor.work()

    run(story())
    logged(floor)
    told = failures(lines)
    assert [each[0] for each in told] == [ValueError, ValueError]
    assert [each[1].args for each in told] == [("boom",), ("boom",)]
    for each in told:
        assert frames(each)[-2:] in (["on_the_loop", "helper"], ["in_a_thread", "helper"])
        assert not {"_run", "_plain"} & set(frames(each)), "our own frames say nothing"
    assert not floor.result_writer._errors, "an exception keeps what its frames hold: it is let go of"


def test_a_timeout_is_logged_as_one_with_the_place_where_the_handler_stood(
    floor: Floor, run: Any, lines: list[logging.LogRecord]
) -> None:
    @floor.task(timeout="20ms", retry=Retry(attempts=1))
    async def slow() -> None:
        await until(lambda: False, 600)

    async def story() -> None:
        await floor.put("slow", max_attempts=1)
        await floor.work()

    run(story())
    logged(floor)
    [told] = failures(lines)
    assert told[0] is TimeoutError
    assert "within its timeout of 0.02 s" in str(told[1])
    assert "slow" in frames(told)


def test_what_a_child_process_raised_is_logged_with_its_traceback_as_text(
    floor: Floor, run: Any, lines: list[logging.LogRecord]
) -> None:
    floor.task(isolate=Isolation(), retry=Retry(attempts=1))(isolated.raises)
    floor.task(isolate=Isolation(), retry=Retry(attempts=1))(isolated.segfault)

    async def story() -> None:
        await floor.put("raises", max_attempts=1)
        await floor.put("segfault", max_attempts=1)
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: not floor.active_runs.running, 60)
        await floor.finish()
        await floor.worker.children.close()

    run(story())
    logged(floor)
    told = {each[0].__name__: each for each in failures(lines)}
    assert {"ValueError", "ChildCrashed"} == set(told)
    text = "".join(traceback.format_exception(*told["ValueError"]))
    assert "in raises\n" in text and text.endswith("ValueError: boom\n")


def test_an_exception_that_cannot_be_written_out_is_not_handed_to_the_log(
    floor: Floor, run: Any, lines: list[logging.LogRecord]
) -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    @floor.task(retry=Retry(attempts=1))
    async def hostile() -> None:
        raise Hostile

    async def story() -> None:
        await floor.put("hostile", max_attempts=1)
        await floor.work()

    run(story())
    logged(floor)
    [told] = failures(lines)
    assert told[0].__name__ == "Hostile" and told[0] is not Hostile
    assert "could not be had" in str(told[1])


def test_a_reported_failure_reads_like_the_original() -> None:
    try:
        raise KeyError("gone")
    except KeyError as error:
        failure = failure_of(error)

    text = "".join(traceback.format_exception(reported(failure)))
    assert failure.traceback.strip() in text
    assert text.endswith("KeyError: 'gone'\n")


# The store.


class Said:
    """Lines about the store, and a clock to move."""

    def __init__(self, lines: list[logging.LogRecord]) -> None:
        self.clock = ManualClock()
        self.store = StoreLines(self.clock.monotonic)
        self._lines = lines

    def fails(self, loop: str = "claimer", error: StoreError | None = None) -> None:
        self.store.failed(StoreTrouble.of(loop, error or StoreUnavailable("refused"), SECOND))

    def passes(self, seconds: float) -> None:
        self.clock.advance(seconds * SECOND)

    @property
    def lines(self) -> list[str]:
        return [each.getMessage() for each in self._lines if each.levelno >= logging.INFO]


@pytest.fixture
def said(lines: list[logging.LogRecord]) -> Said:
    return Said(lines)


def test_an_outage_is_one_line_however_many_loops_notice_it_and_its_end_is_another(said: Said) -> None:
    for _ in range(10):
        for loop in ("claimer", "reaper", "waker", "heart"):
            said.fails(loop, AnswerLost("reap") if loop == "reaper" else None)
        said.passes(0.5)
    for loop in ("heart", "claimer", "reaper"):
        said.store.recovered(loop)
    said.passes(1)
    said.fails("waker")
    said.store.recovered("waker")

    assert said.lines == [
        "the store cannot be reached (claimer: refused); tried until it can be",
        "the store answers again after 5.0 s",
    ]


def test_a_store_that_comes_and_goes_is_told_of_once_a_minute(said: Said) -> None:
    for _ in range(30):
        said.fails()
        said.passes(1)
        said.store.recovered("claimer")
        said.passes(TAIL + 1)

    assert said.lines[:2] == [
        "the store cannot be reached (claimer: refused); tried until it can be",
        "the store answers again after 1.0 s",
    ]
    assert said.lines[2].endswith("since the last such line it was away 12 times")
    assert len(said.lines) == 6


def test_a_long_outage_soon_after_a_short_one_is_told(said: Said) -> None:
    said.fails()
    said.store.recovered("claimer")
    said.passes(CALM / 2)
    said.fails()
    assert len(said.lines) == 2
    said.passes(PATIENCE)
    said.fails()
    said.store.answered()

    assert said.lines[2:] == [
        "the store cannot be reached (claimer: refused); tried until it can be",
        "the store answers again after 10.0 s",
    ]


def test_a_store_that_answers_with_an_error_is_no_outage(said: Said) -> None:
    for _ in range(5):
        said.fails("pruner", StoreFull("no space"))
        said.passes(1)
    said.fails("claimer")
    said.store.recovered("pruner")

    assert said.lines == [
        "pruner: no space; tried until it works",
        "the store cannot be reached (claimer: refused); tried until it can be",
        "pruner: goes on",
        "the store answers again after 0.0 ms",
    ]
