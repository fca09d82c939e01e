"""Measures of whole scheduler processes: killed, in company, and how much memory they take."""

from __future__ import annotations

import contextlib
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measures import HOUR, Figures, lateness_ms, no_schedules, schedules
from mainspring.waiting import pause

SECOND = timedelta(seconds=1)
NOTICE = 3 * SECOND
"""How long before its slot a burst is announced: schedulers look at least once a second."""


class SchedulerProcess:
    """One `python -m mainspring scheduler`."""

    def __init__(self, bench: Bench, folder: Path, number: int) -> None:
        self._log = folder / f"scheduler-{number}.log"
        command = [sys.executable, "-m", "mainspring", "scheduler", "benchmarks.target:app"]
        command += ["--database-url", bench.url]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    async def has_joined(self) -> bool:
        return " started (process " in self._log.read_text()

    def has_fired(self, slot: datetime) -> bool:
        """Whether it was this one that wrote the slot's rows."""
        return f"slot {slot.isoformat()}: " in self._log.read_text()

    @property
    def peak_mb(self) -> float | None:
        """The most memory it had so far, since it is a Python of its own; None where /proc does not tell.
        Not from `wait4`: what that answers counts the process that started it, too."""
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
        return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()


class Fleet:
    """Scheduler processes on one database, numbered in the order of their start."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench, self._folder = bench, folder
        self._started = 0
        self.alive: list[SchedulerProcess] = []

    async def add(self) -> SchedulerProcess:
        self._started += 1
        process = SchedulerProcess(self._bench, self._folder, self._started)
        self.alive.append(process)
        await self._bench.until(process.has_joined, "a scheduler to start")
        return process

    def kill(self, process: SchedulerProcess) -> None:
        self.alive.remove(process)
        process.kill()


@contextlib.asynccontextmanager
async def fleet(bench: Bench, count: int) -> AsyncIterator[Fleet]:
    with tempfile.TemporaryDirectory() as folder:
        opened = Fleet(bench, Path(folder))
        try:
            for _ in range(count):
                await opened.add()
            yield opened
        finally:
            for process in opened.alive:
                process.stop()


async def failover(bench: Bench, kills: int) -> Figures:
    """Milliseconds from a slot to its ledger row, for the slots next to come when one of two schedulers is
    killed: the one that fired last. The kills are spread over the second between two slots, so that some
    of them meet the next slot itself."""
    await bench.empty()
    late: list[float] = []
    async with bench.app() as app, fleet(bench, 2) as processes:
        store = await app._store()
        await schedules(bench, app, 1, SECOND, (await store.now(at=None)).replace(microsecond=0) + 2 * SECOND)

        async def next_slot(after: datetime | None = None) -> datetime:
            async def came() -> bool:
                rows = await store.slots.of("burst-0", limit=1)
                return bool(rows) and (after is None or rows[0].slot_at > after)

            await bench.until(came, "the next slot")
            return (await store.slots.of("burst-0", limit=1))[0].slot_at

        last = await next_slot()
        for number in range(kills):
            last = await next_slot(last)

            async def named(slot: datetime = last) -> bool:
                return any(process.has_fired(slot) for process in processes.alive)

            await bench.until(named, "a scheduler to say that it fired")
            [victim] = [each for each in processes.alive if each.has_fired(last)]
            due = last + SECOND * (number / kills) - await store.now(at=None)
            await pause(max(due, timedelta()))
            processes.kill(victim)
            killed_after = last
            last = await next_slot(last + SECOND)
            rows = [row for row in await store.slots.of("burst-0", limit=10) if row.slot_at > killed_after]
            late.append(max((row.decided_at - row.slot_at) / SECOND * 1000 for row in rows))
            await processes.add()
    await no_schedules(bench)
    return {
        f"next slot after a kill p50 of {kills}, ms": statistics.median(late),
        f"next slot after a kill max of {kills}, ms": max(late),
    }


async def burst(bench: Bench, count: int, processes: int) -> Figures:
    """Seconds from a slot until every one of `count` schedules of one expression has its ledger row and its
    job, written by so many scheduler processes in real time; and what the largest of them took of memory
    from its start. The end is the database's: when the last chunk was begun."""
    await bench.empty()
    async with bench.app() as app:
        store = await app._store()
        await schedules(bench, app, count, HOUR, await store.now(at=None) + HOUR)
        async with fleet(bench, processes) as running:
            slot = await store.now(at=None) + NOTICE
            await bench.execute(f"UPDATE {bench.table('specs')} SET next_at = {bench.instant(slot)}")
            await pause(NOTICE)

            async def done() -> bool:
                await pause(SECOND / 5)  # counting is work for the same two cores
                return await bench.count("jobs") == count

            await bench.until(done, f"{count} jobs")
            peaks = [peak for each in running.alive if (peak := each.peak_mb) is not None]
    assert await bench.count("slots") == count
    took = (await lateness_ms(bench))[-1] / 1000
    await no_schedules(bench)
    word = "process" if processes == 1 else "processes"
    figures = {f"burst of {count:,}, {processes} scheduler {word}, s": took}
    if peaks:
        figures[f"burst of {count:,}, {processes} scheduler {word}, peak MB"] = max(peaks)
    return figures
