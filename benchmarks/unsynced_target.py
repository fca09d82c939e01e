"""The benchmarks' app in a process whose SQLite never waits for the disk: what the difference costs is
measured with it. No user has this choice."""

from __future__ import annotations

import sqlite3

from benchmarks.target import app
from mainspring.store.sqlite import thread

__all__ = ["app"]


def _never(connection: sqlite3.Connection, durable: bool) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


vars(thread)["set_durable"] = _never
