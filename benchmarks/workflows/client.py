"""Our client, a process of its own as the peers' are.

`python -m benchmarks.workflows.client URL WORKLOAD SIZE` starts the work, waits until it is done, checks
every answer and prints the seconds it took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta

from benchmarks.bench import Bench
from benchmarks.workflows.figure import PLAIN
from benchmarks.workflows.target import LENGTH, app, chain, same, wide
from mainspring.waiting import pause

LOOK = timedelta(milliseconds=100)
"""Between two looks: they are work for the same two cores, and the end is the database's."""


async def drive_plain(bench: Bench, size: int) -> None:
    await app.aenqueue_many(same.job(number) for number in range(size))
    while await bench.count("jobs"):
        await pause(LOOK)


async def drive_wide(bench: Bench, size: int) -> None:
    [handle] = await app.aenqueue_many([wide.job(n=size)])
    assert await handle.aresult() == sum(range(size))


async def drive_chains(bench: Bench, size: int) -> None:
    handles = await app.aenqueue_many(chain.job(n=number) for number in range(size))
    answers = await asyncio.gather(*(handle.aresult() for handle in handles))
    assert answers == [number + LENGTH for number in range(size)]


WORKLOADS = {PLAIN: drive_plain, "fan-out and fan-in": drive_wide, "chains": drive_chains}


async def main(url: str, workload: str, size: str) -> None:
    engine = "sqlite" if url.startswith("sqlite") else "postgresql"
    bench = Bench(engine, url)
    app._configure({"database.url": url})
    async with app:
        await app._store()  # connected before the clock starts
        before = await bench.count("runs")
        began, clock = datetime.now(UTC), time.perf_counter()
        await WORKLOADS[workload](bench, int(size))
        seen = time.perf_counter() - clock
        ended = (await bench.last_end() - began).total_seconds()
        steps = int(size) * (LENGTH if workload == "chains" else 1)
        assert await bench.count("runs") - before >= steps, "every step is a run in the history"
    print(json.dumps({"ended": ended, "seen": seen}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
