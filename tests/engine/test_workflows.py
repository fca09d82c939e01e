"""Workflows as users declare them, through the engine's own loops under a clock that stands still."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from mainspring import Context, Discard, Limit, Mainspring, Retry
from mainspring.errors import JobCancelled, JobFailed, UsageError
from mainspring.model.job import JobState
from mainspring.model.workflow import StepState, Stopping, WorkflowState
from mainspring.testing import Harness
from mainspring.testing.eager import eager


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("sqlite:///:memory:")


def etl(app: Mainspring, told: list[object]) -> object:
    @app.task
    async def fetch(day: str) -> list[int]:
        told.append(day)
        return [1, 2, 3]

    @app.task
    def transform(part: int, factor: int) -> int:
        return part * factor

    @app.task
    async def load(parts: list[int]) -> int:
        return sum(parts)

    @app.task
    async def notify(total: int | None) -> None:
        told.append(total)

    flow = app.workflow("nightly-load")
    raw = flow.step(fetch, day=flow.param("day"))
    parts = flow.map(transform, over=raw, factor=10)
    table = flow.step(load, parts)
    flow.step(notify, table, when="always")
    flow.returns(table)
    return flow


def test_a_graph_runs_and_answers_what_it_returns(app: Mainspring) -> None:
    told: list[object] = []
    flow = etl(app, told)
    with Harness(app) as mainspring:
        job = flow.start(day="2026-11-15")
        ran = mainspring.run_until_idle()
        assert job.result(timeout="1s") == 60
        assert told == ["2026-11-15", 60]
        assert [each.task for each in ran] == [
            "workflow:nightly-load",
            "fetch",
            "transform",
            "transform",
            "transform",
            "load",
            "notify",
        ]


def test_a_schedule_starts_it_with_the_slots_date_and_skips_while_it_runs(app: Mainspring) -> None:
    told: list[object] = []
    flow = etl(app, told)
    app.schedule("nightly", flow, cron="0 2 * * *", tz="Europe/Berlin")
    start = datetime(2030, 6, 1, 12, tzinfo=UTC)
    with Harness(app, start=start) as mainspring:
        mainspring.run_for("1d")
        assert told == ["2030-06-02", 60]


def test_overlap_sees_a_workflow_that_still_runs(app: Mainspring) -> None:
    @app.task(timeout="3h")
    async def slow() -> None:
        """Runs when the test lets it."""

    flow = app.workflow("slow")
    flow.step(slow.using(delay="90m"))
    app.schedule("hourly", flow, cron="0 * * * *")
    with Harness(app, start=datetime(2030, 6, 1, 11, 59, tzinfo=UTC)) as mainspring:
        mainspring.run_for("3h")
        store = mainspring._store
        slots = asyncio.run(_ask(store.slots.of("hourly", limit=10)))
    assert [(slot.slot_at.hour, slot.reason) for slot in reversed(slots)] == [
        (12, None),
        (13, "overlap"),
        (14, None),
    ]


async def _ask(question: object) -> object:
    return await question  # type: ignore[misc]


def test_a_failure_is_told_by_the_handle_and_what_runs_always_ran(app: Mainspring) -> None:
    told: list[str] = []

    @app.task
    async def fails() -> int:
        raise ValueError("no")

    @app.task
    async def never(given: int) -> None:
        told.append("never")

    @app.task
    async def tidy(given: int | None) -> None:
        told.append(f"tidy {given}")

    flow = app.workflow("doomed")
    bad = flow.step(fails)
    flow.step(never, bad)
    flow.step(tidy, bad, when="always")
    with Harness(app, errors="collect") as mainspring:
        job = flow.start()
        mainspring.run_until_idle(advance=True)
        with pytest.raises(JobFailed, match="failed: fails"):
            job.result(timeout="1s")
    assert told == ["tidy None"]


def test_retries_of_a_step_are_its_own(app: Mainspring) -> None:
    tries: list[int] = []

    @app.task(retry=Retry(attempts=3, base="10s"))
    async def shaky(ctx: Context) -> int:
        tries.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return 7

    flow = app.workflow("shaky-flow")
    flow.returns(flow.step(shaky))
    with Harness(app, errors="collect") as mainspring:
        job = flow.start()
        mainspring.run_until_idle(advance=True)
        assert job.result(timeout="1s") == 7
    assert tries == [1, 2, 3]


def test_a_workflow_is_a_step_of_another(app: Mainspring) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    inner = app.workflow("inner")
    inner.returns(inner.step(double, inner.param("n")))
    outer = app.workflow("outer")
    doubled = outer.step(inner, n=outer.param("n"))
    outer.returns(outer.step(double, doubled))
    with Harness(app) as mainspring:
        job = outer.start(n=3)
        mainspring.run_until_idle()
        assert job.result(timeout="1s") == 12


def test_conditions_and_discards_skip(app: Mainspring) -> None:
    told: list[str] = []

    @app.task
    async def count() -> dict[str, int]:
        return {"rows": 0}

    @app.task
    async def ship() -> None:
        told.append("ship")

    @app.task
    async def shy() -> int:
        raise Discard("nothing to do")

    @app.task
    async def after(name: str) -> None:
        told.append(name)

    flow = app.workflow("picky")
    flow.step(count)
    flow.step(ship, only_if="count['rows'] > 0")
    skipped = flow.step(shy)
    flow.step(after, "order alone", after=[skipped])
    with Harness(app, errors="collect") as mainspring:
        job = flow.start()
        mainspring.run_until_idle()
        job.result(timeout="1s")
    assert told == ["order alone"]


def test_a_cancel_is_told_by_the_handle(app: Mainspring) -> None:
    @app.task
    async def later() -> None:
        raise AssertionError("it was cancelled")

    flow = app.workflow("later-flow")
    flow.step(later.using(delay="1h"))
    with Harness(app) as mainspring:
        job = flow.start()
        mainspring.run_until_idle()
        store = mainspring._store
        done = store.workflows.stop(
            job.id, Stopping.CANCELLED, author="ann", note=None, at=mainspring.clock.stamp()
        )
        assert asyncio.run(_ask(done)) is True
        mainspring.clock.advance(timedelta(hours=2))
        mainspring.run_until_idle()
        with pytest.raises(JobCancelled):
            job.result(timeout="1s")
        workflow = asyncio.run(_ask(store.workflows.get(job.id)))
        assert workflow.state is WorkflowState.CANCELLED
        [step] = asyncio.run(_ask(store.workflows.steps_of(job.id, most=10)))
        assert step.state is StepState.CANCELLED


def test_limits_and_keys_of_a_workflow_hold_while_it_runs(app: Mainspring) -> None:
    @app.task
    async def part(n: int) -> int:
        return n

    flow = app.workflow("one-at-a-time", limits=[Limit("flows", concurrency=1)])
    flow.returns(flow.step(part.using(delay="1m"), flow.param("n")))
    with Harness(app) as mainspring:
        first, second = flow.start(n=1), flow.start(n=2)
        keyed = flow.using(key="k").start(n=3)
        same = flow.using(key="k").start(n=4)
        assert (same.id, same.created) == (keyed.id, False)
        mainspring.run_until_idle()
        assert mainspring._store is not None
        states = asyncio.run(
            _ask(mainspring._store.jobs.states([first.id, second.id], at=mainspring.clock.stamp()))
        )
        assert states[first.id] is JobState.RUNNING
        assert states[second.id] is not JobState.RUNNING
        mainspring.run_until_idle(advance=True)
        assert [job.result(timeout="1s") for job in (first, second, keyed)] == [1, 2, 3]


def test_eager_mode_says_that_it_cannot(app: Mainspring) -> None:
    @app.task
    async def one() -> int:
        return 1

    flow = app.workflow("lonely")
    flow.step(one)
    with eager(app), pytest.raises(UsageError, match="Harness"):
        flow.start()
