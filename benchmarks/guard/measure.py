"""Takes the counts: every workload at two sizes on both stores, a few times over."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import asyncpg

from benchmarks.bench import Bench
from benchmarks.guard.counts import Counts, least
from benchmarks.guard.interpreter import executing
from benchmarks.guard.meters import Meter, PostgresMeter, sqlite_meter
from benchmarks.guard.relay import relayed
from benchmarks.guard.workloads import WORKLOADS, Work, Workload
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from mainspring.store.postgres.wake import Notifier
from mainspring.store.sqlite import wake
from tests.support.postgres import PostgresServer

_SETTINGS = {
    # Whoever comes by on his own account writes to the log too.
    "autovacuum": "off",
    "checkpoint_timeout": "1d",
    "max_wal_size": "4GB",
    # The first writer of a page after a checkpoint would pay for all of it.
    "full_page_writes": "off",
    "bgwriter_lru_maxpages": "0",
}

Figures = dict[str, Counts]
"""By store and workload: `sqlite: enqueue in bulk`."""


def measured(times: int = 1, only: Collection[str] | None = None) -> Figures:
    """Every figure, on both stores, or only these; with so many times the rounds that are usual."""
    figures: Figures = {}
    for engine, opened in (("sqlite", sqlite), ("postgresql", postgres)):
        here = {f"{engine}: {each.name}": each for each in WORKLOADS if engine in each.only}
        wanted = {name: each for name, each in here.items() if only is None or name in only}
        if wanted:
            with opened() as meter:
                asyncio.run(_migrated(meter))
                for name, workload in wanted.items():
                    found = slope(meter, workload, workload.repeats * times)
                    figures[name] = found.only(workload.kinds)
    return figures


@contextmanager
def sqlite() -> Iterator[Meter]:
    with tempfile.TemporaryDirectory() as folder, sqlite_meter(Path(folder)) as meter:
        yield meter


@contextmanager
def postgres() -> Iterator[Meter]:
    """A server of our own: its log tells of nobody else."""
    with PostgresServer(settings=_SETTINGS) as server:
        asyncio.run(_create(server.url()))
        with relayed(server.url("guard")) as relay:
            yield PostgresMeter(Bench("postgresql", relay.url), relay, server.url("guard"))


def slope(meter: Meter, workload: Workload, repeats: int) -> Counts:
    """What one job more takes. The first round of all only loads what the others use."""
    sample(meter, workload, workload.small)
    sizes = (workload.small, workload.large)
    small, large = (least([sample(meter, workload, size) for _ in range(repeats)]) for size in sizes)
    return large.less(small).over(workload.large - workload.small)


def sample(meter: Meter, workload: Workload, size: int) -> Counts:
    """All counts of one round, start and end included."""

    async def prepared() -> tuple[Work, Counts]:
        await meter.bench.empty()
        work = await workload.prepared(meter.bench, size)
        await meter.settle()
        return work, await meter.read()

    work, before = asyncio.run(prepared())
    # Hints to workers are rationed by the clock, a few hundred a second at most: no job has its own. Counting
    # takes so long that it would have many.
    seldom = mock.patch.object(wake, "stirs", lambda path: None)
    with mock.patch.object(Notifier, "poke"), seldom, executing() as executed:
        asyncio.run(work())
    instructions, calls = executed.taken()
    counted = asyncio.run(meter.read()).less(before)
    return Counts(instructions, calls, counted.statements, counted.trips, counted.log)


async def _migrated(meter: Meter) -> None:
    store = open_store(meter.bench.url, clock=SystemClock())
    await store.migrate()
    await store.close()


async def _create(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE DATABASE guard")
    await connection.close()
