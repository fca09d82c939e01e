"""What each feature costs where it is used, beside the same jobs without it."""

from __future__ import annotations

import resource
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.bench import Bench
from benchmarks.measures import Figures
from mainspring import Context, Limit, Mainspring, Unique
from mainspring.model.job import NewJob
from mainspring.process.serve import serve

CHUNK = 1000
ROUNDS = 3
TENANTS = ("acme", "umbrella")
PLAIN = "plain"


async def noop(tenant: str, month: str) -> None:
    """As little as a handler can do."""


async def with_context(ctx: Context, tenant: str, month: str) -> None:
    """The same, and it is told about its run."""


async def with_progress(ctx: Context, tenant: str, month: str) -> None:
    ctx.progress(0.5, "half of it")


async def with_log(ctx: Context, tenant: str, month: str) -> None:
    ctx.log.info("invoiced")


async def with_result(tenant: str, month: str) -> dict[str, int]:
    return {"cents": 700}


async def with_transaction(ctx: Context, tenant: str, month: str) -> None:
    async with ctx.transaction() as connection:
        await connection.fetchval("SELECT 1")


@dataclass(frozen=True)
class Feature:
    """A task that uses one."""

    name: str
    handler: Callable[..., Any] = noop
    options: dict[str, Any] = field(default_factory=dict)
    share: float = 1.0
    """Of the jobs: slow ones get by with fewer."""
    fair: bool = False
    costs_enqueue: bool = False
    """Whether putting a job in is a different thing, too."""

    def app(self, bench: Bench, concurrency: int) -> Mainspring:
        """One of its own: what an app declares may cost all its tasks."""
        app = Mainspring(bench.url)
        app.configure({"worker.concurrency": concurrency})
        if self.fair:
            app.queue("default", fair_by="tenant")
        app.task(name="noop", **self.options)(self.handler)
        return app


FEATURES = (
    Feature(PLAIN, costs_enqueue=True),
    Feature("context", with_context),
    Feature("unique keys", options={"unique": Unique()}, costs_enqueue=True),
    Feature(
        "limit that never binds", options={"limits": [Limit("wide", concurrency=100_000)]}, costs_enqueue=True
    ),
    Feature("limit of 10", options={"limits": [Limit("narrow", concurrency=10)]}, share=0.1),
    Feature("fair turns of 2", fair=True, share=0.5),
    Feature("progress", with_progress),
    Feature("log of one line", with_log),
    Feature("small result", with_result),
    Feature("transaction", with_transaction, share=0.1),
    Feature("expires", options={"expires": "1h"}, costs_enqueue=True),
    Feature("isolated", options={"isolate": True}, share=0.2),
)


@dataclass(frozen=True)
class Cost:
    """Of one job: microseconds of this process and its children, and by the clock."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Taken:
    """One feature's costs in one round."""

    enqueue: Cost
    drain: Cost


class Stopwatch:
    """The processor's time beside the clock's: it is much less disturbed by what else runs on the machine."""

    def __init__(self) -> None:
        self._cpu, self._wall = _cpu(), perf_counter()

    def of(self, count: int, *, less: Cost | None = None) -> Cost:
        """Since its start, for each of so many jobs; without what one job took, start and end included."""
        cpu, wall = (_cpu() - self._cpu) * 1e6, (perf_counter() - self._wall) * 1e6
        if less is not None:
            cpu, wall = cpu - less.cpu, wall - less.wall
        return Cost(cpu=cpu / count, wall=wall / count)


async def features(bench: Bench, count: int, concurrency: int) -> Figures:
    """Every feature in turn, a few times over, in one worker inside this process: what is compared was
    measured in the same minute. Ratios are to the plain jobs of the same round."""
    for _ in range(2):  # the first one loads what all the others use
        idle = (await _taken(bench, FEATURES[0], 1, concurrency, idle=None)).drain
    rounds: list[dict[str, Taken]] = []
    for number in range(ROUNDS):
        taken = {}
        for feature in FEATURES:
            jobs = max(int(count * feature.share), 20)
            taken[feature.name] = await _taken(bench, feature, jobs, concurrency, idle=idle)
        rounds.append(taken)
        print(f"  {bench.engine}: features, round {number + 1} of {ROUNDS}", file=sys.stderr)
    figures: Figures = {}
    for feature in FEATURES:
        figures |= dict(_figures(feature, rounds))
    return figures


def _figures(feature: Feature, rounds: list[dict[str, Taken]]) -> Iterator[tuple[str, float]]:
    name = feature.name

    def middle(pick: Callable[[dict[str, Taken]], float]) -> float:
        return statistics.median(map(pick, rounds))

    yield f"{name}: drain, jobs/s", 1e6 / middle(lambda each: each[name].drain.wall)
    yield f"{name}: drain, CPU µs a job", middle(lambda each: each[name].drain.cpu)
    if name != PLAIN:
        ratio = middle(lambda each: each[name].drain.cpu / each[PLAIN].drain.cpu)
        yield f"{name}: drain, CPU × plain", ratio
    if feature.costs_enqueue:
        yield f"{name}: enqueue, CPU µs a job", middle(lambda each: each[name].enqueue.cpu)
        if name != PLAIN:
            ratio = middle(lambda each: each[name].enqueue.cpu / each[PLAIN].enqueue.cpu)
            yield f"{name}: enqueue, CPU × plain", ratio


async def _taken(bench: Bench, feature: Feature, count: int, concurrency: int, *, idle: Cost | None) -> Taken:
    await bench.empty()
    async with feature.app(bench, concurrency) as app:
        watch = Stopwatch()
        for chunk in _chunks(app, count):
            await app.aenqueue_many(chunk)
        enqueue = watch.of(count)
        watch = Stopwatch()
        await serve(app, scheduler=False, burst=True)
        drain = watch.of(count, less=idle)
    ends = await bench.rows(f"SELECT verdict, count(*) FROM {bench.table('runs')} GROUP BY verdict")
    assert ends == [(0, count)], f"{feature.name}: {count} jobs should have succeeded, verdicts are {ends}"
    return Taken(enqueue=enqueue, drain=drain)


def _chunks(app: Mainspring, count: int) -> Iterator[Iterable[NewJob]]:
    task = app.registry.get("noop")
    for start in range(0, count, CHUNK):
        # A month of its own for each: with keys, every one is a job.
        numbers = range(start, min(start + CHUNK, count))
        yield (task.job(tenant=TENANTS[n % len(TENANTS)], month=f"{n:07}") for n in numbers)


def _cpu() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)
