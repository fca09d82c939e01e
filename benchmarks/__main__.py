"""`make bench`: every measure of ours on both stores, durable, about a quarter of an hour.

Only some of them with `--only drain pickup`; `--scale 0.01` to try the harness out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fair, fleet, measures
from benchmarks.about import about
from benchmarks.bench import Bench
from benchmarks.beside import calm, session
from benchmarks.beside.run import Run, Size
from benchmarks.features import features
from benchmarks.figure import Book
from benchmarks.known import LABELS, OURS, System
from benchmarks.noise import Noise
from benchmarks.result import Result
from benchmarks.servers import server
from benchmarks.table import table
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store

KILLS = 12
CONCURRENCY = 1000
"""As beside others."""


@dataclass(frozen=True)
class Step:
    """One measure: what it is called, and how often it is repeated."""

    name: str
    measure: Callable[[Bench], Awaitable[measures.Figures]]
    repeats: int = 1


def steps(jobs: int, concurrency: int) -> list[Step]:
    """From this number of jobs, 20,000, follow all sizes."""
    return [
        Step(
            "wal",
            lambda bench: measures.wal(bench, jobs if bench.engine == "postgresql" else min(jobs, 2000)),
        ),
        Step("enqueue", lambda bench: measures.enqueue(bench, jobs), 3),
        Step("drain", lambda bench: measures.drain(bench, jobs, 1, concurrency), 3),
        Step("drain", lambda bench: measures.drain(bench, jobs, 2, concurrency), 3),
        Step("drain", lambda bench: measures.drain(bench, jobs * 10, 1, concurrency), 3),
        Step("drain", lambda bench: measures.drain(bench, jobs * 10, 2, concurrency), 3),
        Step("drain", lambda bench: measures.drain(bench, jobs * 50, 1, concurrency)),
        Step("unsynced", lambda bench: measures.unsynced(bench, jobs, concurrency), 3),
        Step("handlers", lambda bench: measures.handlers(bench, jobs, concurrency)),
        Step("fair", lambda bench: fair.fair(bench, jobs * 5, concurrency)),
        Step("pickup", lambda bench: measures.pickup(bench, max(min(jobs // 100, 200), 20)), 3),
        Step("burst", lambda bench: measures.burst(bench, jobs * 5)),
        Step("lateness", lambda bench: measures.lateness(bench, jobs // 20), 3),
        Step("lateness", lambda bench: measures.lateness(bench, jobs // 2), 3),
        Step("rest", lambda bench: measures.rest(bench, jobs * 50)),
        Step("failover", lambda bench: fleet.failover(bench, KILLS)),
        Step("fleet", lambda bench: fleet.burst(bench, jobs // 20, 1)),
        Step("fleet", lambda bench: fleet.burst(bench, jobs * 5, 1), 3),
        Step("fleet", lambda bench: fleet.burst(bench, jobs * 5, 2), 3),
        Step("features", lambda bench: features(bench, jobs // 4, concurrency)),
    ]


async def measured(bench: Bench, key: str, chosen: list[Step], repeats: int, book: Book) -> None:
    """Every figure of one database."""
    store = open_store(bench.url, clock=SystemClock())
    await store.migrate()
    await store.close()
    for step in chosen:
        for _ in range(step.repeats * repeats):
            noise = Noise()
            found = await step.measure(bench)
            book.add(key, step.name, found, others=noise.others, pace=noise.pace)
            told = ", ".join(f"{name} {value:,.4g}" for name, value in found.items())
            print(f"  {key}: {told}", file=sys.stderr)


def main() -> None:
    everything = steps(1, 1)
    names = list(dict.fromkeys([*(each.name for each in everything), "sustained"]))
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes")
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY)
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument(
        "--stores", nargs="+", choices=OURS.servers, default=list(OURS.servers), metavar="NAME"
    )
    parser.add_argument("--repeat", type=int, default=1, help="times as often as each is measured anyway")
    parser.add_argument("--json", type=Path, help="where to write; benchmarks/results/ unless named")
    options = parser.parse_args()
    jobs = max(round(20_000 * options.scale), 200)
    chosen = [each for each in steps(jobs, options.concurrency) if each.name in options.only]
    facts = about(jobs=jobs, concurrency=options.concurrency, repeat=options.repeat)
    systems = [System(OURS, store) for store in options.stores]
    told = {
        each.key: session.about(each) | {"server": LABELS[each.server], "language": "Python", "ours": True}
        for each in systems
    }
    book, began = Book(), time.monotonic()
    for system in systems:
        with server(system.server) as running:
            url = f"sqlite:///{running.url}" if system.server == "sqlite" else running.url
            asyncio.run(measured(Bench(system.server, url), system.key, chosen, options.repeat, book))
    if "sustained" in options.only:
        run = Run(Size().scaled(options.scale), told, book=book)
        for system in systems * options.repeat:
            calm.sustained(run, system)
    facts["minutes"] = round((time.monotonic() - began) / 60, 1)
    facts["load after"] = round(os.getloadavg()[0], 2)
    what = "ours" if options.only == names else "-".join(options.only)
    result = Result(what=what, about=facts, systems=told, figures=book.figures)
    print(table(result))
    print(f"written to {result.write(options.json)}", file=sys.stderr)


if __name__ == "__main__":
    main()
