"""Is the database well? What it tells of itself, put into sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self

from mainspring.admin.health.finding import Check, ok, warn
from mainspring.model.health import Partitions, Snapshot, StoreHealth, TableHealth
from mainspring.model.value import Value

MEBIBYTE = 2**20
MANY_DEAD = 50_000
DEAD_PART = 0.5
MANY_UPDATES = 10_000
LEAST_HOT = 0.5
"""Of the updates of jobs. A claim leaves the indices alone; a retry does not."""
OLD_SNAPSHOT = timedelta(minutes=10)
MUCH_LOG = 1024 * MEBIBYTE
LONG_STATEMENT = timedelta(minutes=1)
DAYS_AHEAD = 2
FULL = 0.8
LONG_WAL = 256 * MEBIBYTE
"""Of an SQLite file; it is moved back into the database from eight mebibytes on."""
MUCH_ROOM = 256 * MEBIBYTE


def findings(health: StoreHealth, now: datetime) -> list[Check]:
    """What there is to say; what is as it should be is said in one sentence for each subject."""
    checks = [
        *_tables(health.tables, now),
        *_partitions(health.partitions),
        *_snapshots(health.snapshots),
        *_sessions(health),
        *_file(health),
    ]
    return checks + [warn("rights", f"could not be found out: {each}") for each in health.withheld]


def _tables(tables: tuple[TableHealth, ...], now: datetime) -> list[Check]:
    checks = []
    for each in tables:
        if each.dead_rows > MANY_DEAD and each.dead_rows > DEAD_PART * each.rows:
            last = "never" if each.vacuumed_at is None else _ago(now - each.vacuumed_at)
            checks.append(
                warn(
                    "tables",
                    f"{each.name}: {each.dead_rows:,} dead rows beside {each.rows:,} live ones, last vacuumed"
                    f" {last}: autovacuum does not keep up, or an old snapshot keeps them",
                )
            )
        if each.name == "jobs" and each.updates > MANY_UPDATES and (each.hot or 0) < LEAST_HOT:
            checks.append(
                warn("tables", f"jobs: only {each.hot or 0:.0%} of updates leave the indices alone (HOT)")
            )
    if checks or not tables:
        return checks
    size = sum(each.bytes + each.index_bytes for each in tables)
    largest = max(tables, key=lambda each: each.bytes + each.index_bytes)
    return [ok("tables", f"{size / MEBIBYTE:,.0f} MiB, most of it in {largest.name}; no table is bloated")]


def _partitions(partitions: tuple[Partitions, ...]) -> list[Check]:
    checks = []
    for each in partitions:
        if each.ahead < DAYS_AHEAD:
            checks.append(
                warn(
                    "partitions",
                    f"{each.table}: partitions for {each.ahead} days ahead; a running process makes more",
                )
            )
        if each.strays:
            checks.append(
                warn(
                    "partitions",
                    f"{each.table}: {each.strays} rows or more are in the default partition, of other days",
                )
            )
    if checks or not partitions:
        return checks
    least = min(partitions, key=lambda each: each.ahead)
    return [ok("partitions", f"there is room for {least.ahead} days ahead")]


def _snapshots(snapshots: tuple[Snapshot, ...]) -> list[Check]:
    checks = [
        warn(
            "snapshots",
            f"{each.what}: open for {_length(each.age)}; nothing deleted since then can be cleared away",
        )
        for each in snapshots
        if each.age is not None and each.age > OLD_SNAPSHOT
    ]
    checks += [
        warn("snapshots", f"{each.what}: keeps {each.bytes / MEBIBYTE:,.0f} MiB of the write-ahead log")
        for each in snapshots
        if each.bytes is not None and each.bytes > MUCH_LOG
    ]
    return checks


def _sessions(health: StoreHealth) -> list[Check]:
    if health.sessions is None or health.most_sessions is None:
        return []
    counted = f"{health.sessions} of {health.most_sessions} sessions are in use"
    checks = [
        warn("sessions", counted)
        if health.sessions > FULL * health.most_sessions
        else ok("sessions", counted)
    ]
    if health.longest is not None and health.longest > LONG_STATEMENT:
        checks.append(warn("sessions", f"a statement has been running for {_length(health.longest)}"))
    return checks


def _file(health: StoreHealth) -> list[Check]:
    if health.engine != "sqlite":
        return []
    checks = []
    if health.journal not in ("wal", "memory"):
        checks.append(
            warn("file", f"the journal mode is {health.journal}, not wal: readers and writers wait")
        )
    if (health.log_bytes or 0) > LONG_WAL:
        checks.append(
            warn(
                "file",
                f"the write-ahead log has {(health.log_bytes or 0) / MEBIBYTE:,.0f} MiB:"
                " a reader that never ends keeps it",
            )
        )
    size, free = health.bytes or 0, health.free_bytes or 0
    if free > MUCH_ROOM and free > size / 2:
        checks.append(
            warn("file", f"{free / MEBIBYTE:,.0f} of {size / MEBIBYTE:,.0f} MiB are not in use; see VACUUM")
        )
    return checks or [ok("file", f"{size / MEBIBYTE:,.1f} MiB")]


class TableView(Value, frozen=True, kw_only=True):
    """One table of the store."""

    name: str
    rows: int
    dead_rows: int
    bytes: int
    index_bytes: int
    hot: float | None
    vacuumed_at: datetime | None
    analyzed_at: datetime | None

    @classmethod
    def of(cls, table: TableHealth) -> Self:
        """Of a table."""
        return cls(**{name: getattr(table, name) for name in cls.__struct_fields__})


class SnapshotView(Value, frozen=True, kw_only=True):
    """What keeps old rows from being removed."""

    what: str
    age_seconds: float | None
    bytes: int | None


class HealthView(Value, frozen=True, kw_only=True):
    """The state of the store, and what is to be done about it."""

    engine: str
    bytes: int | None
    log_bytes: int | None
    free_bytes: int | None
    journal: str | None
    sessions: int | None
    most_sessions: int | None
    longest_seconds: float | None
    tables: tuple[TableView, ...]
    partitions: tuple[Partitions, ...]
    snapshots: tuple[SnapshotView, ...]
    findings: tuple[Check, ...]
    withheld: tuple[str, ...]

    @classmethod
    def of(cls, health: StoreHealth, checks: Sequence[Check]) -> Self:
        """Of what a store says of itself, and what was found in it."""
        return cls(
            engine=health.engine,
            bytes=health.bytes,
            log_bytes=health.log_bytes,
            free_bytes=health.free_bytes,
            journal=health.journal,
            sessions=health.sessions,
            most_sessions=health.most_sessions,
            longest_seconds=_seconds(health.longest),
            tables=tuple(TableView.of(each) for each in health.tables),
            partitions=health.partitions,
            snapshots=tuple(
                SnapshotView(what=each.what, age_seconds=_seconds(each.age), bytes=each.bytes)
                for each in health.snapshots
            ),
            findings=tuple(checks),
            withheld=health.withheld,
        )


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _ago(length: timedelta) -> str:
    return f"{_length(length)} ago"


def _length(length: timedelta | None) -> str:
    minutes = 0 if length is None else length // timedelta(minutes=1)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
