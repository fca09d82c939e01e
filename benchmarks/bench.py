"""What every benchmark needs: a database, worker processes, and counting in the store."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg

from benchmarks.target import app as target
from mainspring import Mainspring
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from mainspring.tasks.task import Task

PATIENCE_SECONDS = 300.0
LOOK_SECONDS = 0.1
TABLES = ("jobs", "runs", "dead_jobs", "slots", "unique_keys", "limit_holders", "progress", "run_logs")
PAYLOAD = b'{"tenant":"acme","month":"2026-10"}'


@dataclass(frozen=True)
class Bench:
    """One database under test."""

    engine: str
    url: str

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database itself: a benchmark counts what is stored, not what was sent."""
        if self.engine == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path)) as file:
                return file.execute(sql).fetchall()
        connection = await asyncpg.connect(self.url)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    @property
    def path(self) -> str:
        return self.url.removeprefix("sqlite:///")

    def table(self, name: str) -> str:
        return name if self.engine == "sqlite" else f"mainspring.{name}"

    def instant(self, moment: datetime) -> str:
        """As it is written in this database's SQL."""
        if self.engine == "sqlite":
            return str(round(moment.timestamp() * 1_000_000))
        return f"timestamptz '{moment.isoformat()}'"

    async def count(self, table: str) -> int:
        [(count,)] = await self.rows(f"SELECT count(*) FROM {self.table(table)}")
        return int(count)

    async def last_end(self, *, before: int | None = None) -> datetime:
        """When the last run ended; of jobs with lower ids than this one's."""
        some = "" if before is None else f" WHERE job_id < {before}"
        [(ended,)] = await self.rows(f"SELECT max(finished_at) FROM {self.table('runs')}{some}")
        return datetime.fromtimestamp(ended / 1e6, UTC) if self.engine == "sqlite" else ended

    async def empty(self) -> None:
        """Start from nothing: on PostgreSQL without the dead rows of what was there before."""
        if self.engine == "postgresql":
            await self.execute("TRUNCATE " + ", ".join(self.table(table) for table in TABLES))
            # What the planner knows of jobs that were taken away so is true of no queue that people have.
            await self.execute("DELETE FROM pg_statistic WHERE starelid = 'mainspring.jobs'::regclass")
            await self.analyze()
            await self.execute("CHECKPOINT")
            return
        for table in TABLES:
            await self.execute(f"DELETE FROM {table}")

    async def analyze(self) -> None:
        """What the server does within a minute of such a load, done before the next step and not in it."""
        if self.engine == "postgresql":
            await self.execute("ANALYZE mainspring.jobs")

    async def until_done(self, count: int) -> None:
        """Until so many jobs that were put in have their history rows. Counting is work for the cores that
        are measured, so the one that comes last is looked for, seldom, by its key; then they are counted."""
        [(last,)] = await self.rows(f"SELECT max(id) FROM {self.table('jobs')}")

        async def gone() -> bool:
            return not await self.rows(f"SELECT 1 FROM {self.table('jobs')} WHERE id = {last}")

        async def done() -> bool:
            return await self.count("runs") == count

        if last is not None:
            await self.until(gone, f"job {last} to be done", every=LOOK_SECONDS)
        await self.until(done, f"{count} jobs to be done", every=LOOK_SECONDS)

    @contextlib.asynccontextmanager
    async def bare(self) -> AsyncIterator[Callable[[], Awaitable[object]]]:
        """Puts one row into a table with a key and nothing else, durable when it returns."""
        if self.engine == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as file:
                file.execute("PRAGMA synchronous = FULL")
                file.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, payload BLOB)")

                async def put() -> object:
                    return file.execute("INSERT INTO bare (payload) VALUES (?)", (PAYLOAD,))

                yield put
                file.execute("DROP TABLE bare")
            return
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(
                "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea)"
            )
            insert = await connection.prepare("INSERT INTO bare (payload) VALUES ($1) RETURNING id")
            yield lambda: insert.fetchval(PAYLOAD)
            await connection.execute("DROP TABLE bare")
        finally:
            await connection.close()

    async def copy_schedule(self, name: str, count: int) -> None:
        """As many more schedules like this one, straight into the table: writing them is not measured."""
        burst = name.rpartition("-")[0]
        same = "spec_id, {names}, priority, max_attempts, payload, misfire, catch_up, active_from, overlap"
        if self.engine == "sqlite":
            columns = same.format(names="task, queue")
            numbers = f"WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})"
            more = f"SELECT '{burst}-' || n, {columns} FROM schedules, n WHERE name = '{name}'"
            await self.execute(f"{numbers} INSERT INTO schedules (name, {columns}) {more}")
            return
        columns = same.format(names="task_id, queue_id")
        more = f"SELECT '{burst}-' || n, {columns} FROM mainspring.schedules, generate_series(1, {count}) n"
        await self.execute(f"INSERT INTO mainspring.schedules (name, {columns}) {more} WHERE name = '{name}'")
        await self.execute("ANALYZE mainspring.schedules")

    async def execute(self, sql: str) -> None:
        if self.engine == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=10)) as file, file:
                file.execute(sql)
            return
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    @contextlib.asynccontextmanager
    async def app(self, target: Mainspring = target) -> AsyncIterator[Mainspring]:
        """An app on this database, with the benchmark's tasks and queues."""
        app = Mainspring(self.url)
        for queue, rules in target._registry.queues.items():
            app._registry.add_queue(queue, rules)
        for name, task in target._registry.tasks.items():
            app.task(name=name, isolate=task.isolation or False)(task.function)
        async with app:
            yield app

    @contextlib.asynccontextmanager
    async def workers(
        self, count: int, concurrency: int, target: str = "benchmarks.target:app"
    ) -> AsyncIterator[None]:
        """Real worker processes, ready and idle when the body begins."""
        command = [sys.executable, "-m", "mainspring", "worker", target]
        command += ["--concurrency", str(concurrency), "--database-url", self.url, "--log-level", "error"]
        processes = [subprocess.Popen(command) for _ in range(count)]
        try:
            await self._until_members(count)
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(timeout=30)

    async def until(
        self, condition: Callable[[], Awaitable[bool]], what: str, *, every: float = 0.02
    ) -> None:
        """Look again until it holds."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not await condition():
            if time.monotonic() > give_up:
                raise TimeoutError(what)
            await asyncio.sleep(every)

    async def _until_members(self, count: int) -> None:
        """Until that many processes are alive."""
        store = open_store(self.url, clock=SystemClock())
        try:

            async def ready() -> bool:
                return sum(process.alive for process in await store.processes.all(at=None)) >= count

            await self.until(ready, f"{count} workers to join")
        finally:
            await store.close()


def task_of(app: Mainspring, name: str) -> Task[..., Any]:
    """A task of the app under test."""
    return app._registry.get(name)
