"""Our workflows and plain jobs, measured as the peers are: fresh database, warm workers, own client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager

from benchmarks.bench import Bench
from benchmarks.noise import Noise
from benchmarks.servers import postgres
from benchmarks.workflows.figure import PLAIN, Figure, Taken
from benchmarks.workflows.known import LENGTH
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store

CONCURRENCY = 200
LABELS = {"sqlite": "Mainspring, SQLite", "postgresql": "Mainspring, PostgreSQL"}
WARM_UP = 100

TERMS = (
    "Every settled step is committed, with fsync, before the next one may run. Each step is a job that any "
    f"worker may take; a fan-out's members come from a step's result. {CONCURRENCY} jobs at once in a worker "
    "process. Plain jobs are the same functions with the same results, enqueued in one call."
)


@contextlib.contextmanager
def sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/bench.db"


def database(engine: str) -> AbstractContextManager[str]:
    return sqlite() if engine == "sqlite" else postgres()


@contextlib.asynccontextmanager
async def crew(engine: str, processes: int) -> AsyncIterator[str]:
    """The address of an empty database that so many warm workers serve."""
    with database(engine) as url:
        bench = Bench(engine, url)
        store = open_store(url, clock=SystemClock())
        await store.migrate()
        await store.close()
        async with bench.workers(processes, CONCURRENCY, "benchmarks.workflows.target:app"):
            for workload in ("fan-out and fan-in", "chains", PLAIN):
                await client(url, workload, WARM_UP, limit=120)
            yield url


async def client(url: str, workload: str, size: int, *, limit: float) -> Taken:
    command = [sys.executable, "-m", "benchmarks.workflows.client", url, workload, str(size)]
    noise = Noise()
    done = await asyncio.to_thread(
        subprocess.run, command, stdout=subprocess.PIPE, text=True, timeout=limit, check=True
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    return Taken(ended=answer["ended"], seen=answer["seen"], others=noise.others)


def sizes(wide: int, chains: int) -> list[tuple[str, int, int]]:
    """Every workload with its size and its steps: of the fan-outs a narrow one, too, so that the cost of one
    completion can be seen not to grow with the number of its siblings."""
    narrow = max(wide // 10, 1)
    flows = [
        ("fan-out and fan-in", narrow, narrow),
        ("fan-out and fan-in", wide, wide),
        ("chains", chains, chains * LENGTH),
    ]
    return [(PLAIN, steps, steps) for steps in sorted({steps for _, _, steps in flows})] + flows


async def measured(
    engine: str, processes: int, wide: int, chains: int, repeat: int, limit: float
) -> list[Figure]:
    """Every workload once in a turn: what is compared was measured in the same minute."""
    taken: dict[tuple[str, int, int], list[Taken]] = {each: [] for each in sizes(wide, chains)}
    for _ in range(repeat):
        async with crew(engine, processes) as url:
            for (workload, size, _steps), found in taken.items():
                found.append(await client(url, workload, size, limit=limit))
    return [
        Figure(LABELS[engine], workload, processes, size, steps, tuple(found))
        for (workload, size, steps), found in taken.items()
    ]
