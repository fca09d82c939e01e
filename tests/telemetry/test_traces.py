"""Spans from enqueue through run, by the context that the job carries: in threads and children too."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mainspring import Context, Mainspring, Retry
from mainspring.model.history import DeadFilter
from mainspring.model.trace import read_trace, trace_id, written_trace
from mainspring.process.serve import serve
from tests.telemetry import traced

EXPORTER = InMemorySpanExporter()
MINE = trace.get_tracer("mine")


@pytest.fixture
def spans() -> Iterator[Any]:
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        trace.set_tracer_provider(provider)
    EXPORTER.clear()
    yield lambda name: [each for each in EXPORTER.get_finished_spans() if each.name == name]


@pytest.fixture
def app(database_url: str) -> Mainspring:
    app = Mainspring(database_url)
    app.configure({"traces.enabled": True, "worker.poll": "50ms"})
    return app


def test_a_run_goes_on_with_the_trace_of_its_enqueue(app: Mainspring, run: Any, spans: Any) -> None:
    seen: dict[str, str | None] = {}

    @app.task
    async def on_the_loop(ctx: Context) -> None:
        with MINE.start_as_current_span("inside the loop"):
            seen["loop"] = ctx.trace_id
        await in_a_thread.aenqueue()  # from a handler: its run's child

    @app.task
    def in_a_thread(ctx: Context) -> None:
        with MINE.start_as_current_span("inside the thread"):
            seen["thread"] = ctx.trace_id

    child = app.task(isolate=True)(traced.in_a_child)

    async def story() -> dict[str, Any]:
        with MINE.start_as_current_span("request"):
            await on_the_loop.aenqueue()
            job = await child.aenqueue()
        await serve(app, scheduler=False, burst=True)
        answer = await job.result()
        await app.aclose()
        return answer

    in_child = run(story())
    [request], [sent], [ran] = spans("request"), spans("enqueue on_the_loop"), spans("run on_the_loop")
    assert sent.kind is trace.SpanKind.PRODUCER and ran.kind is trace.SpanKind.CONSUMER
    assert sent.parent.span_id == request.context.span_id
    assert ran.parent.span_id == sent.context.span_id
    assert [link.context.span_id for link in ran.links] == [sent.context.span_id]
    [inside] = spans("inside the loop")
    assert inside.parent.span_id == ran.context.span_id
    [then], [in_thread], [threaded] = (
        spans("enqueue in_a_thread"),
        spans("run in_a_thread"),
        spans("inside the thread"),
    )
    assert then.parent.span_id == ran.context.span_id
    assert threaded.parent.span_id == in_thread.context.span_id
    [isolated] = spans("run in_a_child")
    assert in_child == {
        "trace": _id(isolated),
        "span": f"{isolated.context.span_id:016x}",
        "ctx": _id(request),
    }
    everything = EXPORTER.get_finished_spans()
    assert {_id(each) for each in everything} == {_id(request)} == set(seen.values())
    assert ran.attributes["mainspring.verdict"] == "succeeded" and ran.status.is_ok is not False
    assert ran.attributes["messaging.destination.name"] == "default"


def test_retries_dead_letters_and_replays_keep_the_trace(app: Mainspring, run: Any, spans: Any) -> None:
    @app.task(retry=Retry(attempts=2, base=0))
    async def breaks() -> None:
        raise ValueError("no such customer")

    async def story() -> str | None:
        await breaks.aenqueue()
        await serve(app, scheduler=False, burst=True)
        store = await app.store()
        [letter] = await store.dead_letters.find(DeadFilter())
        await store.dead_letters.replay([letter.id], at=None)
        await serve(app, scheduler=False, burst=True)
        await app.aclose()
        return letter.trace

    kept = run(story())
    [sent], runs = spans("enqueue breaks"), spans("run breaks")
    assert [each.attributes["mainspring.verdict"] for each in runs] == ["failed", "dead", "failed", "dead"]
    assert [each.attributes["mainspring.attempt"] for each in runs] == [1, 2, 1, 2]
    assert {_id(each) for each in runs} == {_id(sent)} == {trace_id(kept)}
    [raised] = runs[0].events
    assert raised.name == "exception" and raised.attributes["exception.message"] == "no such customer"
    assert runs[0].status.status_code is trace.StatusCode.ERROR


def test_slots_begin_traces_of_their_own_and_steps_go_on_with_their_workflows(
    app: Mainspring, run: Any, spans: Any
) -> None:
    @app.task
    async def one() -> list[int]:
        return [1, 2]

    @app.task
    async def each(part: int) -> int:
        return part

    flow = app.workflow("flow")
    flow.map(each, over=flow.step(one))
    app.schedule("ticks", flow, every="1h")

    async def story() -> None:
        store = await app.store()
        await app.write_schedules()
        for _ in range(2):
            await store.schedules.trigger("ticks", at=None)
            await serve(app, scheduler=False, burst=True)
        await app.aclose()

    run(story())
    roots, steps, items = spans("run workflow:flow"), spans("run one"), spans("run each")
    assert [root.parent for root in roots] == [None, None]
    assert len({_id(root) for root in roots}) == 2, "each slot has a trace of its own"
    assert [_id(step) for step in steps] == [_id(root) for root in roots]
    assert sorted(_id(item) for item in items) == sorted([_id(root) for root in roots] * 2)


def test_a_transaction_of_the_callers_carries_it_too(
    app: Mainspring, run: Any, spans: Any, backend: str
) -> None:
    @app.task
    async def noop() -> None: ...

    if backend == "sqlite":
        with closing(sqlite3.connect(app.settings.database.url.removeprefix("sqlite:///"))) as connection:
            [job] = app.enqueue_many([noop.job()], tx=connection)
            connection.commit()
    else:
        with psycopg.connect(app.settings.database.url) as connection:
            [job] = app.enqueue_many([noop.job()], tx=connection)

    async def story() -> str | None:
        found = await (await app.store()).jobs.get(job.id, at=None)
        await app.aclose()
        return None if found is None else found.trace

    kept = run(story())
    [sent] = spans("enqueue noop")
    assert trace_id(kept) == _id(sent)


def test_a_batch_of_thousands_is_copied_with_its_trace(app: Mainspring, run: Any, spans: Any) -> None:
    @app.task
    async def noop() -> None: ...

    async def story() -> set[str | None]:
        jobs = await app.aenqueue_many(noop.job() for _ in range(1200))
        store = await app.store()
        found = [await store.jobs.get(each.id, at=None) for each in (jobs[0], jobs[-1])]
        await app.aclose()
        return {each.trace for each in found if each is not None}

    [kept] = run(story())
    [sent] = spans("enqueue noop")
    assert kept is not None and read_trace(kept)["traceparent"].split("-")[1] == _id(sent)
    assert sent.attributes["messaging.batch.message_count"] == 1200


@pytest.mark.parametrize(
    ("parent", "state", "kept"),
    [
        (f"00-{'a' * 32}-{'b' * 16}-01", "k=v", f"00-{'a' * 32}-{'b' * 16}-01 k=v"),
        (f"00-{'a' * 32}-{'b' * 16}-01", "x" * 513, f"00-{'a' * 32}-{'b' * 16}-01"),
        (f"00-{'a' * 32}-{'b' * 16}-01", "k=v\r\nevil", f"00-{'a' * 32}-{'b' * 16}-01"),
        (f"00-{'0' * 32}-{'b' * 16}-01", None, None),
        (f"00-{'a' * 32}-{'b' * 16}-01\n", None, None),
        (None, "k=v", None),
    ],
)
def test_only_what_the_standard_allows_is_kept(
    parent: str | None, state: str | None, kept: str | None
) -> None:
    assert written_trace(parent, state) == kept


def _id(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"
