"""`python -m benchmarks.growth [PART …] [--small] [--huge] [--minutes 30] [--json FILE]`: costs, as curves.

PostgreSQL on this machine, fsync on. `--small` takes minutes and shows that all of it works; `--huge` adds
ten million jobs and ten million schedules. The file is written again after each part, so that nothing is lost
when a later one fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

from benchmarks.bench import Bench
from benchmarks.growth import claiming, recovery, scheduling, soak, workers
from benchmarks.growth.curve import Curve
from benchmarks.noise import Noise
from mainspring import __version__
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from tests.support.pgbouncer import MISSING, PgBouncer, found
from tests.support.postgres import PostgresServer

RESULTS = Path(__file__).parents[1] / "results"
SETTINGS = {
    "shared_buffers": "512MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "max_connections": "400",
}
POOLED = 8
"""Sessions that PgBouncer keeps for all workers."""


@dataclass(frozen=True)
class Sizes:
    """How far each axis goes."""

    backlog: Sequence[int] = (10_000, 100_000, 1_000_000)
    history: Sequence[int] = (0, 1_000_000, 10_000_000)
    schedules: Sequence[int] = (10_000, 100_000, 1_000_000)
    workers: Sequence[int] = (1, 2, 4, 8, 16, 32)
    held: Sequence[int] = (10, 100, 1000)
    claims: int = 200
    jobs: int = 200_000
    concurrency: int = 200
    rate: int = 2000
    minutes: float = 30


SMALL = Sizes(
    backlog=(2_000, 10_000),
    history=(0, 20_000),
    schedules=(6_000, 20_000),
    workers=(1, 2),
    held=(10, 50),
    claims=10,
    jobs=4000,
    rate=200,
    minutes=0.4,
)


class Growth:
    """One server, and the parts that are measured on it, one after the other."""

    def __init__(self, server: PostgresServer, sizes: Sizes) -> None:
        self._server, self._sizes = server, sizes
        self._bench = Bench("postgresql", server.url("bench"))
        self.parts: dict[str, Callable[[], Awaitable[list[Curve]]]] = {
            "backlog": self._backlog,
            "history": self._history,
            "schedules": self._schedules,
            "workers": self._workers,
            "recovery": self._recovery,
            "soak": self._soak,
            "pinned": self._pinned,
        }

    async def _backlog(self) -> list[Curve]:
        return [await claiming.against_backlog(self._bench, self._sizes.backlog, self._sizes.claims)]

    async def _history(self) -> list[Curve]:
        return [await claiming.against_history(self._bench, self._sizes.history, self._sizes.claims)]

    async def _schedules(self) -> list[Curve]:
        return [await scheduling.against_schedules(self._bench, self._sizes.schedules)]

    async def _workers(self) -> list[Curve]:
        """Without PgBouncer, only with sessions of their own; the page says so."""
        curves = [await self._drains(self._bench.url, "sessions of their own")]
        if found() is None:
            print(f"  {MISSING}", file=sys.stderr)
            return curves
        pooler = PgBouncer(self._server.url(), servers=POOLED)
        try:
            url = pooler.url(self._bench.url, listen=True)
            how = f"through PgBouncer in transaction mode, {POOLED} sessions"
            return [*curves, await self._drains(url, how, pooler.pid)]
        finally:
            pooler.stop()

    async def _drains(self, url: str, how: str, pooler: int | None = None) -> Curve:
        sizes, postmaster = self._sizes, self._server.pid
        assert postmaster is not None
        servers = [pid for pid in (postmaster, pooler) if pid is not None]
        return await workers.against_workers(
            self._bench, sizes.workers, sizes.jobs, sizes.concurrency, servers, url=url, how=how
        )

    async def _recovery(self) -> list[Curve]:
        return [await recovery.against_held(self._bench, self._sizes.held)]

    async def _soak(self) -> list[Curve]:
        return [await self._soaked(pinned=False)]

    async def _pinned(self) -> list[Curve]:
        return [await self._soaked(pinned=True)]

    async def _soaked(self, *, pinned: bool) -> Curve:
        lasts = timedelta(minutes=self._sizes.minutes)
        return await soak.soak(self._bench, self._sizes.rate, lasts, pinned=pinned)


async def measured(growth: Growth, chosen: Sequence[str], about: dict[str, object], file: Path) -> None:
    """Each part, shown and kept as soon as it is there. What the file holds of other parts stays in it, so
    that one of them can be measured again."""
    for name in chosen:
        noise = Noise()
        curves = await growth.parts[name]()
        print("\n".join(line for curve in curves for line in curve.lines()))
        told = [
            {"part": name, **curve.document(), "others' share of the cores": noise.others, "about": about}
            for curve in curves
        ]
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = json.loads(file.read_text())["curves"] if file.exists() else []
        told = [*(each for each in kept if each["part"] != name), *told]
        file.write_text(json.dumps({"about": about, "curves": told}, indent=2) + "\n")


async def prepared(server: PostgresServer) -> str:
    """A database with our schema; answers the server's version."""
    connection = await asyncpg.connect(server.url())
    await connection.execute("CREATE DATABASE bench")
    version = connection.get_server_version()
    await connection.close()
    store = open_store(server.url("bench"), clock=SystemClock())
    await store.migrate()
    await store.close()
    return f"{version.major}.{version.minor}"


def sizes_of(chosen: argparse.Namespace) -> Sizes:
    if chosen.small:
        return SMALL
    sizes = Sizes(minutes=chosen.minutes)
    if not chosen.huge:
        return sizes
    return Sizes(
        backlog=(*sizes.backlog, 10_000_000),
        schedules=(*sizes.schedules, 10_000_000),
        minutes=chosen.minutes,
    )


def about_all(sizes: Sizes, version: str) -> dict[str, object]:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return {
        "commit": commit.stdout.strip() or None,
        "mainspring": __version__,
        "python": platform.python_version(),
        "asyncpg": asyncpg.__version__,
        "postgresql": version,
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "settings": {"fsync": "on", **SETTINGS},
        "sizes": {name: getattr(sizes, name) for name in Sizes.__dataclass_fields__},
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    names = ["backlog", "history", "schedules", "workers", "recovery", "soak", "pinned"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}; all of them")
    parser.add_argument("--small", action="store_true", help="sizes that take minutes")
    parser.add_argument("--huge", action="store_true", help="also ten million jobs, and schedules")
    parser.add_argument("--minutes", type=float, default=30, help="how long each soak lasts")
    parser.add_argument("--json", type=Path, default=RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-growth.json")
    chosen = parser.parse_args()
    if wrong := set(chosen.parts) - set(names):
        parser.error(f"no such part: {', '.join(sorted(wrong))}; there are {', '.join(names)}")
    sizes = sizes_of(chosen)
    with PostgresServer(fsync=True, settings=SETTINGS) as server:
        about = about_all(sizes, asyncio.run(prepared(server)))
        asyncio.run(measured(Growth(server, sizes), chosen.parts or names, about, chosen.json))


if __name__ == "__main__":
    main()
