"""The condition of a database: its tables, what delays its vacuum, and its size."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from mainspring.model.value import Value


class TableHealth(Value, frozen=True, kw_only=True):
    """One table, with all its partitions. Numbers of rows are the database's own estimates."""

    name: str
    rows: int
    dead_rows: int
    """Rows that no transaction sees any more and that have not been removed."""
    bytes: int
    index_bytes: int
    updates: int
    hot: float | None
    """The part of updates that left the indices alone; None where there were none."""
    vacuumed_at: datetime | None
    analyzed_at: datetime | None


class Partitions(Value, frozen=True, kw_only=True):
    """The days of a table that has one partition for each."""

    table: str
    count: int
    first: date | None
    last: date | None
    ahead: int
    """Days to come that have theirs."""
    strays: int
    """Rows that were of no such day, counted up to a thousand."""


class Snapshot(Value, frozen=True, kw_only=True):
    """Something that keeps the database from clearing away what has been deleted since it began."""

    what: str
    age: timedelta | None
    bytes: int | None = None
    """What has been written to the log since, if it keeps that too."""


class UnreadableRow(Value, frozen=True, kw_only=True):
    """A row that could not be read and was set aside."""

    table: str
    key: str
    at: datetime


class StoreHealth(Value, frozen=True, kw_only=True):
    """What a database reports about itself. What it does not have or does not report is None or empty."""

    engine: str
    bytes: int | None = None
    log_bytes: int | None = None
    """SQLite: how long the write-ahead log is. PostgreSQL: how much has ever been written to it."""
    free_bytes: int | None = None
    """Room inside the file that is not in use."""
    journal: str | None = None
    tables: tuple[TableHealth, ...] = ()
    partitions: tuple[Partitions, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    """The oldest first."""
    sessions: int | None = None
    most_sessions: int | None = None
    longest: timedelta | None = None
    """How long the longest statement has been running."""
    unreadable: tuple[UnreadableRow, ...] = ()
    """Rows that were set aside, the newest first, at most a hundred."""
    withheld: tuple[str, ...] = ()
    """What could not be read, and why."""
