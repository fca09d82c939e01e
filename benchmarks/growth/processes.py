"""What processes take of the machine, read from /proc; None where there is none."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from benchmarks.bench import Bench

_TICKS = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """Of processors, that it has used; none once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / _TICKS


def resident_mb(pid: int, *, peak: bool = False) -> float | None:
    """Its memory."""
    word = "VmHWM:" if peak else "VmRSS:"
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(word):
                return int(line.split()[1]) / 1024
    return None


async def server_seconds(bench: Bench, servers: Sequence[int]) -> float:
    """Of these processes and all sessions that are there now. Those that ended meanwhile are not counted."""
    rows = await bench.rows("SELECT pid FROM pg_stat_activity")
    return sum(map(seconds, servers)) + sum(seconds(pid) for (pid,) in rows)


@contextlib.asynccontextmanager
async def started(
    bench: Bench, role: str, count: int, *options: str, url: str | None = None, members: int | None = None
) -> AsyncIterator[list[subprocess.Popen[bytes]]]:
    """So many `python -m mainspring ROLE`, all of which have joined; ended with the body."""
    command = [sys.executable, "-m", "mainspring", role, "benchmarks.growth.target:app"]
    command += ["--database-url", url or bench.url, "--log-level", "error", *options]
    processes = [subprocess.Popen(command) for _ in range(count)]
    alive = "SELECT count(*) FROM mainspring.processes WHERE NOT dead AND lease_until > now()"
    wanted = count if members is None else members

    async def joined() -> bool:
        if any(process.poll() is not None for process in processes):
            raise RuntimeError(f"a {role} ended before it had joined")
        [(found,)] = await bench.rows(alive)
        return bool(found >= wanted)

    try:
        await bench.until(joined, f"{count} of {role} to join")
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        await asyncio.gather(*(asyncio.to_thread(_ended, process) for process in processes))


def _ended(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
