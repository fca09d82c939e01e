"""How users write tasks, for the type checker: every `type: ignore` below is a mistake it must catch."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, assert_type

from mainspring import Step, Workflow
from mainspring.app import Mainspring
from mainspring.model.job import NewJob
from mainspring.targets import Kafka, ProgramLimits, RedisStream, TargetTask
from mainspring.tasks.context import Context, Discard, Snooze
from mainspring.tasks.enqueue import JobHandle, Sender
from mainspring.tasks.registry import Registry, TaskDecorator
from mainspring.tasks.retry import On, Retry
from mainspring.tasks.schedule import declare_schedule
from mainspring.tasks.task import Isolation
from mainspring.tasks.unique import Unique


def bare_and_configured(task: TaskDecorator) -> None:
    @task
    def bare(a: int) -> str:
        return str(a)

    @task()
    def called(a: int, *, b: str = "") -> None: ...

    @task(retry=Retry(attempts=5), timeout="2m", name="other", queue="mail", priority=10)
    def configured(a: int) -> float:
        return a / 2

    @task(isolate=Isolation(memory="512MB", processes=50, grace="5s", runs=10))
    async def alone(a: int) -> int:
        return a

    @task(isolate=True)
    def apart() -> None: ...

    assert_type(alone.enqueue(1), JobHandle[int])
    apart.enqueue()
    assert_type(bare(1), str)
    assert_type(bare.enqueue(1), JobHandle[str])
    assert_type(bare.enqueue(1).result(timeout=5), str)
    assert_type(bare.job(a=1), NewJob)
    assert_type(configured(1), float)
    called.enqueue(1, b="x")
    configured.enqueue(1)

    bare.enqueue("1")  # type: ignore[arg-type]
    bare("1")  # type: ignore[arg-type]
    bare.enqueue()  # type: ignore[call-arg]
    bare.enqueue(1, 2)  # type: ignore[call-arg]
    bare.job(b=1)  # type: ignore[call-arg]
    called.enqueue(1, b=2)  # type: ignore[arg-type]
    configured.enqueue("1")  # type: ignore[arg-type]


async def with_a_context(task: TaskDecorator, ctx: Context) -> None:
    @task
    async def bill(ctx: Context, tenant: str, month: str) -> int:
        ctx.log.info("billing %s", tenant, extra={"token": ctx.token})
        ctx.progress(0.4, "3 of 7 files")
        ctx.progress("0.4")  # type: ignore[arg-type]
        return 0 if ctx.cancelled else ctx.attempt

    @task(queue="slow")
    def sweep(ctx: Context) -> None: ...

    running: Coroutine[Any, Any, int] = bill(ctx, "acme", month="2026-10")
    assert_type(await running, int)
    bill.enqueue("acme", month="2026-10")
    assert_type(await bill.aenqueue("acme", "2026-10"), JobHandle[int])
    assert_type(bill.enqueue("acme", "2026-10"), JobHandle[int])
    assert_type(await (await bill.aenqueue("acme", "2026-10")).aresult(timeout="5s"), int)
    assert_type(sweep.enqueue(), JobHandle[None])
    sweep.enqueue()

    bill.enqueue("acme")  # type: ignore[call-arg]
    bill.enqueue("acme", month=10)  # type: ignore[arg-type]
    bill.enqueue("acme", mouth="2026-10")  # type: ignore[call-arg]
    await bill.aenqueue("acme", "2026-10", "more")  # type: ignore[call-arg]
    sweep.enqueue("acme")  # type: ignore[call-arg]
    sweep()  # type: ignore[call-arg]
    await bill("acme", "2026-10")  # type: ignore[call-arg, arg-type]


async def a_coroutine_results_in_what_it_returns(task: TaskDecorator) -> None:
    @task
    async def fetch(url: str) -> bytes:
        return url.encode()

    @task(queue="slow")
    async def fetch_slowly(url: str) -> list[int]:
        return [len(url)]

    assert_type(await fetch("a"), bytes)
    assert_type(fetch.enqueue("a"), JobHandle[bytes])
    assert_type(fetch_slowly.enqueue("a").result(), list[int])
    assert_type(fetch_slowly.using(delay="1m").enqueue("a"), JobHandle[list[int]])

    fetch.enqueue(5)  # type: ignore[arg-type]
    fetch.enqueue("a").result(timeout=[])  # type: ignore[arg-type]


async def effects_of_a_run(ctx: Context, task: TaskDecorator) -> None:
    @task
    def send(address: str) -> None: ...

    async with ctx.transaction(result=1) as connection:
        await send.using(tx=connection).aenqueue("a@example.com")
    transaction = ctx.transaction()
    with transaction as blocking:
        assert_type(blocking.execute("SELECT 1"), str)
        assert_type(blocking.fetch("SELECT ?", 1), list[Any])
        transaction.result = {"sent": 1}
    async with ctx.once("charge", tx=object()) as first:
        assert_type(first, bool)
    with ctx.once("charge") as again:
        assert_type(again, bool)
    ctx.complete(tx="default", result=[1])
    await ctx.acomplete(tx=object())

    blocking.execute(1)  # type: ignore[arg-type]
    ctx.once()  # type: ignore[call-arg]
    ctx.complete()  # type: ignore[call-arg]
    ctx.transaction(1)  # type: ignore[call-arg]


async def steps_of_a_run(ctx: Context, task: TaskDecorator, app: Mainspring) -> None:
    def charge(order: int, *, cents: int = 0) -> list[str]:
        return [str(order + cents)]

    async def ship(order: int) -> float:
        return float(order)

    @task
    def plain(order: int) -> str:
        return str(order)

    @task
    async def coro(ctx: Context, order: int) -> bytes:
        return b""

    assert_type(await ctx.astep("charge", charge, 7, cents=5), list[str])
    assert_type(await ctx.astep("ship", ship, 7), float)
    assert_type(await ctx.astep("plain", plain, 7), str)
    assert_type(await ctx.astep("coro", coro, 7), bytes)
    assert_type(ctx.step("charge", charge, 7, cents=5), list[str])
    assert_type(ctx.step("ship", ship, 7), float)
    assert_type(ctx.step("plain", plain, order=7), str)
    assert_type(ctx.step("coro", coro, 7), bytes)
    assert_type(await ctx.await_event("approved", timeout="7d", default=None), Any)
    assert_type(ctx.wait_event("approved"), Any)
    await ctx.asleep("3d", name="cool-off")
    ctx.sleep(5)
    assert_type(app.send_event("approved", {"by": "ann"}, job=plain.enqueue(1)), bool)
    assert_type(await app.asend_event("approved", job=7), bool)

    await ctx.astep("charge", charge, "7")  # type: ignore[call-overload]
    await ctx.astep("ship", ship)  # type: ignore[call-overload]
    await ctx.astep(charge, 7)  # type: ignore[call-overload]
    ctx.step("plain", plain, "7")  # type: ignore[call-overload]
    await ctx.asleep()  # type: ignore[call-arg]
    await ctx.asleep([])  # type: ignore[arg-type]
    app.send_event("approved", job="7")  # type: ignore[arg-type]


def options_of_one_call(task: TaskDecorator) -> None:
    @task
    def send(address: str) -> None: ...

    send.using(delay="10m", priority=5).enqueue("a@example.com")
    send.using(run_at=datetime(2027, 1, 1, tzinfo=UTC), attempts=1, queue="mail").job("a@example.com")

    send.using(tx=object(), delay="10m").enqueue("a@example.com")

    send.using(tx=object()).enqueue(5)  # type: ignore[arg-type]
    send.using(delay="10m").enqueue(5)  # type: ignore[arg-type]
    send.using(run_at="tomorrow")  # type: ignore[arg-type]
    send.using("10m")  # type: ignore[call-arg]


def the_retry_language(task: TaskDecorator) -> None:
    rules = [On(ConnectionError, attempts=10, base="5s"), On((KeyError, ValueError), give_up=True)]

    @task(retry=Retry(shape=["10s", "1m"], rules=rules), expires="1h")
    def send(address: str) -> None:
        raise Snooze("10m") from Discard("why")

    Retry(shape="linear")
    send.using(expires="10m").enqueue("a@example.com")
    send.using(expires=datetime(2027, 1, 1, tzinfo=UTC)).enqueue("a@example.com")

    Retry(rules=[ValueError])  # type: ignore[list-item]
    On("ValueError")  # type: ignore[arg-type]
    On(ValueError())  # type: ignore[arg-type]
    Discard()  # type: ignore[call-arg]


def unknown_options(task: TaskDecorator) -> None:
    task(retries=5)  # type: ignore[call-overload]
    task(retry=5)  # type: ignore[call-overload]
    Retry(attempts="5")  # type: ignore[arg-type]


def any_task_can_be_scheduled_and_registered(task: TaskDecorator, registry: Registry) -> None:
    @task
    def report(ctx: Context, tenant: str) -> int:
        return len(tenant)

    registry.add_schedule(declare_schedule("nightly", report, cron="@daily", args=["acme"]))

    declare_schedule("nightly", "report", cron="@daily")  # type: ignore[arg-type]


async def targets_are_tasks(app: Mainspring, ctx: Context) -> None:
    notify = app.http("notify", "https://example.com/", timeout="5s", secret=["whsec_a", "whsec_b"])
    assert_type(notify, TargetTask)
    assert_type(notify.enqueue(event="paid"), JobHandle[dict[str, object]])
    assert_type(await notify(ctx, event="paid"), dict[str, object])
    app.schedule("hourly", notify, every="1h", kwargs={"event": "tick"})
    app.shell("backup", ["pg_dump", "{name}"], limits=ProgramLimits(memory=2**30), permanent_codes=[64])
    app.publish("orders", RedisStream("redis://localhost", "orders"), retry=Retry(attempts=9))
    app.publish("events", Kafka("localhost:9092", "events", key="customer"))

    app.http("notify", headers=["X-A"])  # type: ignore[arg-type]
    app.shell("backup", ["true"], limits=5)  # type: ignore[arg-type]
    app.publish("orders", "redis://localhost")  # type: ignore[arg-type]
    app.http("notify", methods="POST")  # type: ignore[call-arg]


async def workflows_are_written_in_python(app: Mainspring, task: TaskDecorator) -> None:
    @task
    async def fetch(ctx: Context, day: str) -> list[str]:
        return [day]

    @task
    def transform(part: str, *, upper: bool = False) -> int:
        return len(part)

    @task
    def load(sizes: list[int]) -> dict[str, int]:
        return {"rows": sum(sizes)}

    flow = app.workflow("nightly-load", deadline="2h", queue="loads", limits=[], unique=Unique(by=["day"]))
    assert_type(flow, Workflow)
    raw = flow.step(fetch, day=flow.param("day", slot="%Y"))
    parts = flow.map(transform, over=raw, upper=True)
    table = flow.step(load, parts, when="always", only_if="day != 'x'", after=[raw], name="table")
    assert_type(raw, Step[list[str]])
    assert_type(parts, Step[list[int]])
    assert_type(table, Step[dict[str, int]])
    assert_type(table.after(raw, parts), Step[dict[str, int]])
    anything: Step[object] = table
    flow.step(load, table["rows"][0], after=anything)
    flow.undo(table, transform, "x", upper=False)
    flow.returns({"table": table, "day": flow.param("day")})
    outer = app.workflow("outer")
    assert_type(outer.step(flow, day="2026-11-15"), Step[Any])
    outer.step(flow.using(priority=5), day="2026-11-15")
    app.schedule("nightly", flow, cron="0 2 * * *", tz="Europe/Berlin", kwargs={"day": "2026-11-15"})
    app.schedule("weekly", flow, cron="0 2 * * 1", misfire="newest")  # type: ignore[arg-type]
    assert_type(flow.start(day="2026-11-15"), JobHandle[Any])
    assert_type(await flow.astart(day="2026-11-15"), JobHandle[Any])
    assert_type(flow.job(day="2026-11-15"), NewJob)
    assert_type(flow.using(key="one", delay="1m").start(day="x"), JobHandle[Any])

    flow.step("fetch")  # type: ignore[call-overload]
    flow.step(fetch, "x", when="never")  # type: ignore[call-overload]
    flow.step(fetch, "x", only_if=5)  # type: ignore[call-overload]
    flow.map(transform, raw)  # type: ignore[call-arg]
    flow.map(flow, over=raw)  # type: ignore[arg-type]
    flow.undo("table", transform, "x")  # type: ignore[arg-type]
    table.after("raw")  # type: ignore[arg-type]
    app.workflow("x", deadline=[])  # type: ignore[arg-type]
    flow.using(delays="1m")  # type: ignore[call-arg]


async def closed_options(app: Mainspring, job: JobHandle[int], ctx: Context) -> None:
    @app.task
    def plain(order: int) -> int:
        return order

    app.schedule("a", plain, every="1h", misfire="all", overlap="queue_one")
    app.schedule("a", plain, cron="0 2 * * *", gap="skip", fold="both", on_holiday="next")
    plain.using(key="k", scope="queued", on_duplicate="replace").enqueue(1)
    Unique(scope="finished", on_duplicate="error")
    assert_type(job.result(timeout="5s"), int)
    assert_type(await job.aresult(timeout="5s"), int)

    app.schedule("a", plain, every="1h", misfire="never")  # type: ignore[arg-type]
    app.schedule("a", plain, every="1h", overlap="sometimes")  # type: ignore[arg-type]
    app.schedule("a", plain, cron="0 2 * * *", gap="jump")  # type: ignore[arg-type]
    app.schedule("a", plain, cron="0 2 * * *", fold="third")  # type: ignore[arg-type]
    app.schedule("a", plain, every="1h", on_holiday="work")  # type: ignore[arg-type]
    plain.using(key="k", scope="for ever")  # type: ignore[arg-type]
    plain.using(key="k", on_duplicate="drop")  # type: ignore[arg-type]
    Unique(scope="for ever")  # type: ignore[arg-type]
    app.http("hook", "https://example.com", method="SEND")  # type: ignore[arg-type]


class NotASender:
    def enqueue(self, jobs: list[NewJob]) -> JobHandle[Any]: ...  # type: ignore[empty-body]


def a_sender_has_both_colours(registry: Registry, sender: Sender) -> None:
    TaskDecorator(registry, sender)
    TaskDecorator(registry, NotASender())  # type: ignore[arg-type]
