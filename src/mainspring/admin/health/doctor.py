"""The checks of `mainspring doctor`, each with a sentence; the checks of the tables come last."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Self

from mainspring.admin.health.finding import Check, Level, fail, ok, warn
from mainspring.clock import Clock
from mainspring.errors import AnswerLost, SchemaMismatch, StoreUnavailable
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.health import Partitions, Snapshot, StoreHealth, TableHealth
from mainspring.model.process import ProcessInfo, Role
from mainspring.model.queue import QueueDepth
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.triggers.misfire import LATE
from mainspring.triggers.zones import tzdata_version
from mainspring.version import __version__

SKEW = timedelta(seconds=2)
WAITED_LONG = timedelta(minutes=1)
DEAD_COUNTED = 1000
SHOWN = 5
MEBIBYTE = 2**20
MANY_DEAD = 50_000
DEAD_PART = 0.5
MANY_UPDATES = 10_000
LEAST_HOT = 0.5
"""The least part of the updates of jobs that are HOT. A claim changes no index; a retry does."""
OLD_SNAPSHOT = timedelta(minutes=10)
MUCH_LOG = 1024 * MEBIBYTE
LONG_STATEMENT = timedelta(minutes=1)
DAYS_AHEAD = 2
FULL = 0.8
LONG_WAL = 256 * MEBIBYTE
"""The write-ahead log of an SQLite file. SQLite moves it into the database from eight mebibytes on."""
MUCH_ROOM = 256 * MEBIBYTE


async def examine(store: Store, clock: Clock) -> list[Check]:
    """Every possible check. After a failed database or schema check the later checks are left out."""
    checks = [ok("python", f"Python {platform.python_version()}, mainspring {__version__}"), _zones()]
    reached = await _reached(store, clock)
    checks += reached
    if reached[0].level is Level.FAIL:
        return checks
    schema = await _schema(store)
    checks.append(schema)
    if schema.level is Level.FAIL:
        return checks
    now = await store.now(at=clock.stamp())
    processes = [each for each in await store.processes.all(at=clock.stamp()) if each.alive]
    depth = await store.queues.depth(at=clock.stamp(), about=True)
    counts = await store.schedules.counts(late=LATE, at=clock.stamp())
    health = await store.health.look()
    return [
        *checks,
        *_fleet(processes),
        *_skews(processes),
        *_unserved(processes, depth),
        _schedules(processes, counts.total),
        await _lag(store, clock),
        _waiting(depth, now),
        await _dead_letters(store),
        *findings(health, now),
        _unreadable(health),
        await _alerts(store),
    ]


def unreachable(checks: Sequence[Check]) -> bool:
    """Whether the database did not answer."""
    return any(each.name == "database" and each.level is Level.FAIL for each in checks)


def findings(health: StoreHealth, now: datetime) -> list[Check]:
    """The findings about the store. A subject without a problem has one sentence."""
    checks = [
        *_tables(health.tables, now),
        *_partitions(health.partitions),
        *_snapshots(health.snapshots),
        *_sessions(health),
        *_file(health),
    ]
    return checks + [warn("rights", f"could not be found out: {each}") for each in health.withheld]


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
    """A session or slot that prevents the removal of old rows."""

    what: str
    age_seconds: float | None
    bytes: int | None


class HealthView(Value, frozen=True, kw_only=True):
    """The state of the store, and the findings."""

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
        """Of the health of a store, and the findings in it."""
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


def _zones() -> Check:
    version = tzdata_version()
    if version[:1].isdigit():
        return ok("time zones", f"tz data {version}")
    return warn("time zones", "the tz data does not say its version; install the tzdata package")


async def _reached(store: Store, clock: Clock) -> list[Check]:
    try:
        await store.now(at=clock.stamp())  # opens the connection, whose time must not count
        asked, before = clock.now(), clock.monotonic()
        theirs = await store.now(at=clock.stamp())
        took = timedelta(seconds=clock.monotonic() - before)
        facts = await store.health.facts()
    except (StoreUnavailable, AnswerLost) as error:
        return [fail("database", str(error))]
    engine, version = facts.pop("engine"), facts.pop("version")
    about = ", ".join(f"{name} {value}" for name, value in facts.items() if name not in _OWN_CHECK)
    milliseconds = took / timedelta(milliseconds=1)
    return [
        ok("database", f"{engine} {version} answers in {milliseconds:.1f} ms; {about}"),
        _clocks(theirs - (asked + took / 2), took),
        *(check(facts[name]) for name, check in _OWN_CHECK.items() if name in facts),
    ]


def _fsync(value: str) -> Check:
    if value == "on":
        return ok("durability", "fsync is on")
    return warn("durability", f"fsync is {value}: if the server's machine crashes, stored jobs are lost")


def _wal_reset(value: str) -> Check:
    return ok("wal reset", f"SQLite's WAL-reset bug: {value}")


_OWN_CHECK: dict[str, Callable[[str], Check]] = {"fsync": _fsync, "wal_reset_bug": _wal_reset}


def _clocks(skew: timedelta, took: timedelta) -> Check:
    seconds = skew.total_seconds()
    if abs(skew) > SKEW + took:
        return warn(
            "clock", f"the database's clock is {seconds:+.1f} s from this machine's; its clock decides"
        )
    return ok("clock", f"the database's clock is {seconds:+.3f} s from this machine's")


async def _schema(store: Store) -> Check:
    try:
        await store.verify()
    except SchemaMismatch as error:
        return fail("schema", str(error))
    return ok("schema", f"the schema is this version's; the database's id is {await store.identity()}")


def _fleet(processes: Sequence[ProcessInfo]) -> list[Check]:
    workers = sum(each.role is Role.WORKER for each in processes)
    counted = f"live workers: {workers}, live schedulers: {len(processes) - workers}"
    checks = [ok("fleet", counted) if processes else warn("fleet", "no live worker or scheduler")]
    for what, values in (
        ("mainspring", {each.version for each in processes}),
        ("tz data", {each.tzdata for each in processes}),
    ):
        if len(values) > 1:
            checks.append(warn("fleet", f"live processes differ in {what}: {', '.join(sorted(values))}"))
    return checks


def _skews(processes: Sequence[ProcessInfo]) -> list[Check]:
    return [
        warn("clock", f"{each.name}: its clock is {each.skew.total_seconds():+.1f} s from the database's")
        for each in processes
        if each.skew is not None and abs(each.skew) > SKEW
    ]


def _unserved(processes: Sequence[ProcessInfo], depth: Sequence[QueueDepth]) -> list[Check]:
    checks = []
    for each in depth:
        serving = [process for process in processes if each.queue in process.queues]
        waiting = f"{each.task}: {'about ' if each.about else ''}{each.ready} ready in queue {each.queue}"
        if each.ready and not serving:
            checks.append(fail("queues", f"{waiting}, which no live worker serves"))
        elif each.ready and not any(each.task in process.tasks for process in serving):
            checks.append(fail("queues", f"{waiting}, where no live worker knows the task"))
    return checks or [ok("queues", "every ready job has a live worker that serves it")]


def _schedules(processes: Sequence[ProcessInfo], count: int) -> Check:
    if count and not any(each.role is Role.SCHEDULER for each in processes):
        return fail("schedules", f"schedules on record: {count}, and no live scheduler: nothing fires")
    return ok("schedules", f"schedules on record: {count}")


async def _lag(store: Store, clock: Clock) -> Check:
    now, due = await store.slots.due_specs(limit=1, at=clock.stamp())
    lag = now - due[0].next_at if due else timedelta()
    if lag <= LATE:
        return ok("lag", "no slot is overdue")
    return warn("lag", f"the oldest slot that nobody has fired is {lag.total_seconds():.0f} s overdue")


def _waiting(depth: Sequence[QueueDepth], now: datetime) -> Check:
    oldest = min((each.oldest_ready_at for each in depth if each.oldest_ready_at), default=None)
    if oldest is None:
        return ok("waiting", "no job waits for a worker")
    waited = now - oldest
    sentence = f"the oldest ready job has waited {waited.total_seconds():.0f} s"
    return warn("waiting", sentence) if waited > WAITED_LONG else ok("waiting", sentence)


async def _dead_letters(store: Store) -> Check:
    count = len(await store.dead_letters.find(DeadFilter(limit=DEAD_COUNTED)))
    if count == 0:
        return ok("dead letters", "none")
    least = "at least " if count == DEAD_COUNTED else ""
    return warn("dead letters", f"{least}{count}; see `mainspring dead list`")


def _unreadable(health: StoreHealth) -> Check:
    rows = health.unreadable
    if not rows:
        return ok("rows", "none had to be set aside")
    named = ", ".join(f"{row.key} of {row.table}" for row in rows[:SHOWN])
    more = ", …" if len(rows) > SHOWN else ""
    return warn("rows", f"could not be read and were moved into unreadable_rows: {named}{more}")


async def _alerts(store: Store) -> Check:
    standing = [each for each in await store.alerts.standing() if each.opened_at is not None]
    undelivered = await store.alerts.undelivered_notes(limit=DEAD_COUNTED)
    if undelivered:
        last = undelivered[0]
        return warn("alerts", f"{last.shown} did not take what it was sent: {last.problem}")
    if standing:
        return warn("alerts", f"{len(standing)} open; see `mainspring alerts list`")
    return ok("alerts", "none is open")


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


def _ago(length: timedelta) -> str:
    return f"{_length(length)} ago"


def _length(length: timedelta | None) -> str:
    minutes = 0 if length is None else length // timedelta(minutes=1)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


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


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
