"""`python -m benchmarks.pages [--scale 1] [--times 20] [--json FILE] [--url URL]`: pages over full tables.

Ends with 1 when the slowest of a page's calls, one in twenty left out, took half a second or more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg

from benchmarks.pages.fill import Size, fill
from benchmarks.pages.reads import reads
from mainspring import Mainspring, __version__
from tests.support.postgres import PostgresServer

ALLOWED = 0.5
SETTINGS = {
    "shared_buffers": "1GB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}

Read = Callable[[], Awaitable[object]]
Spent = Callable[[], Awaitable[float]]
Times = dict[str, dict[str, float]]


async def measure(asked: dict[str, Read], times: int, spent: Spent) -> Times:
    """Milliseconds of each. The first call, which also plans the statement, is told apart. `work` is what
    processors did for one call, here and in the server, whatever else the machine has to do."""
    found: Times = {}
    for name, read in asked.items():
        took = []
        for turn in range(times + 1):
            if turn == 1:
                before = await spent()
            began = time.perf_counter()
            await read()
            took.append((time.perf_counter() - began) * 1000)
        work = (await spent() - before) * 1000 / times
        first, rest = took[0], sorted(took[1:])
        found[name] = {
            "first": round(first, 1),
            "p50": round(rest[len(rest) // 2], 1),
            "p95": round(rest[min(len(rest) * 95 // 100, len(rest) - 1)], 1),
            "work": round(work, 1),
        }
        sys.stdout.write(f"{name:48}" + "".join(f"{each:10.1f}" for each in found[name].values()) + "\n")
        sys.stdout.flush()
    return found


class Work:
    """Seconds of processors that this process and its sessions have used."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._watch: asyncpg.Connection[asyncpg.Record] | None = None

    async def spent(self) -> float:
        if self._watch is None:
            self._watch = await asyncpg.connect(self._url)
        rows = await self._watch.fetch(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'mainspring'"
        )
        return time.process_time() + sum(_seconds(row["pid"]) for row in rows)

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()


def _seconds(pid: int) -> float:
    """Of a process on this machine; none for one elsewhere."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def run(url: str, size: Size, times: int) -> Times:
    """Reads, then whatever routes there are."""
    app = Mainspring(url)
    work = Work(url)
    sys.stdout.write(f"{'ms':48}{'first':>10}{'p50':>10}{'p95':>10}{'work':>10}\n")
    try:
        store = await app._store()
        found = await measure(reads(app.admin("benchmark"), store, size), times, work.spent)
    finally:
        await app.aclose()
    from benchmarks.pages.routes import requests

    app = Mainspring(url)
    try:
        return found | await measure(requests(app, size), times, work.spent)
    finally:
        await app.aclose()
        await work.close()


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "mainspring": __version__,
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    """Fill, measure, tell."""
    parser = argparse.ArgumentParser(prog="benchmarks.pages")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--url", help="a database that is filled already; nothing is written")
    chosen = parser.parse_args()
    size, about = Size().scaled(chosen.scale), machine()
    if chosen.url:
        found = asyncio.run(run(chosen.url, size, chosen.times))
    else:
        with PostgresServer(settings=SETTINGS) as server:
            about |= {"postgresql": server.version}
            took = asyncio.run(fill(server.url(), size))
            sys.stdout.write(f"filled in {took:.0f} s\n")
            found = asyncio.run(run(server.url(), size, chosen.times))
    about |= {"load_after": round(os.getloadavg()[0], 1)}
    if chosen.json:
        rows = {"live": size.live, "runs": size.runs, "schedules": size.schedules, "dead": size.dead}
        text = json.dumps({"machine": about, "rows": rows, "milliseconds": found}, indent=2)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    slow = [name for name, figures in found.items() if figures["p95"] >= ALLOWED * 1000]
    for name in slow:
        sys.stdout.write(f"too slow: {name}\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
