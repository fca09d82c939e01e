"""`python -m benchmarks [--jobs N] [--features] [--json FILE]`: every measure on both stores, durable."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg

from benchmarks import fair, fleet, measures
from benchmarks.bench import Bench
from benchmarks.features import features
from mainspring import __version__
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from tests.support.postgres import PostgresServer

GOALS = {
    "drain with 1 worker process, jobs/s": "≥ 20,000",
    "enqueue in bulk, jobs/s": "≥ 80,000",
    "pickup p50, ms": "≤ 5",
    "herd of 100,000 schedules, s": "≤ 2",
    "start delay beside a flood, fair, p99, ms": "< 1,000",
}

KILLS = 12


async def all_measures(bench: Bench, jobs: int, concurrency: int, *, only_features: bool) -> measures.Figures:
    """Every figure for one database."""
    store = open_store(bench.url, clock=SystemClock())
    await store.migrate()
    await store.close()
    figures: measures.Figures = {}
    steps: list[Callable[[], Awaitable[measures.Figures]]] = [
        lambda: measures.wal(bench, min(jobs, 2000)),
        lambda: measures.enqueue(bench, jobs),
        lambda: measures.drain(bench, jobs, 1, concurrency),
        lambda: measures.drain(bench, jobs, 2, concurrency),
        lambda: measures.isolated(bench, jobs // 4, concurrency),
        lambda: fair.fair(bench, jobs * 5, concurrency),
        lambda: measures.pickup(bench, max(min(jobs // 100, 200), 20)),
        lambda: measures.herd(bench, jobs * 5),
        lambda: measures.lateness(bench, jobs // 20),
        lambda: measures.lateness(bench, jobs // 2),
        lambda: measures.rest(bench, jobs * 50),
        lambda: fleet.failover(bench, KILLS),
        lambda: fleet.herd(bench, jobs // 20, 1),
        lambda: fleet.herd(bench, jobs * 5, 1),
        lambda: fleet.herd(bench, jobs * 5, 2),
    ]
    costs: list[Callable[[], Awaitable[measures.Figures]]] = [lambda: features(bench, jobs // 4, concurrency)]
    steps = costs if only_features else steps + costs
    for step in steps:
        figures |= await step()
        print(f"  {bench.engine}: {len(figures)} figures", file=sys.stderr)
    return figures


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--features", action="store_true", help="only what each feature costs")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = parser.parse_args()
    results: dict[str, measures.Figures] = {}

    def measured(bench: Bench) -> Awaitable[measures.Figures]:
        return all_measures(bench, chosen.jobs, chosen.concurrency, only_features=chosen.features)

    with tempfile.TemporaryDirectory() as folder:
        sqlite = Bench("sqlite", f"sqlite:///{folder}/bench.db")
        results["sqlite"] = await measured(sqlite)
    with PostgresServer(fsync=True) as server:
        admin = await asyncpg.connect(server.url())
        await admin.execute("CREATE DATABASE bench")
        version = admin.get_server_version()
        await admin.close()
        postgres = Bench("postgresql", server.url("bench"))
        results["postgresql"] = await measured(postgres)
    about = {
        "mainspring": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": f"{version.major}.{version.minor}",
        "cores": os.cpu_count(),
        "jobs": chosen.jobs,
        "concurrency": chosen.concurrency,
    }
    show(about, results)
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps({"about": about, "figures": results}, indent=2) + "\n")


def show(about: dict[str, object], results: dict[str, measures.Figures]) -> None:
    """The table people read."""
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(f"\n{'':<46}{'SQLite':>14}{'PostgreSQL':>14}  goal (PostgreSQL)")
    for name in results["postgresql"]:
        cells = "".join(
            f"{figures[name]:>14,.{2 if figures[name] < 100 else 0}f}" for figures in results.values()
        )
        print(f"{name:<46}{cells}  {GOALS.get(name, '')}")


if __name__ == "__main__":
    asyncio.run(main())
