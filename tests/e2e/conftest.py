"""A site per test: a database of its own, and the processes that the test starts on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from tests.support.disks import SmallDisk, small_disk
from tests.support.postgres import PostgresServer
from tests.support.processes import Site

TARGET = Path(__file__).with_name("target.py")


@contextmanager
def _site(url: str, folder: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    store = open_store(url, clock=SystemClock())
    site = Site(url, store, folder=folder, target=TARGET, run=run)
    try:
        run(store.migrate())
        yield site
    finally:
        site.end()
        run(store.close())


@pytest.fixture
def site(database_url: str, tmp_path: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    """Once per backend."""
    with _site(database_url, tmp_path, run) as opened:
        yield opened


@pytest.fixture
def server_site(server: PostgresServer, tmp_path: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    """On a PostgreSQL server of the test's own."""
    with _site(server.url(), tmp_path, run) as opened:
        yield opened


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of four megabytes."""
    with small_disk(tmp_path / "disk", megabytes=4) as mounted:
        yield mounted


@pytest.fixture
def disk_site(disk: SmallDisk, tmp_path: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    """An SQLite file on that disk; logs are elsewhere."""
    with _site(f"sqlite:///{disk.folder / 'mainspring.db'}", tmp_path, run) as opened:
        yield opened
