"""The content of the health page."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.admin.database import steps
from mainspring.admin.health.doctor import examine
from mainspring.admin.health.finding import Check, Level
from mainspring.admin.health.stats import RUNS, Series, Stats
from mainspring.clock import Clock
from mainspring.model.health import StoreHealth, TableHealth
from mainspring.model.value import Value
from mainspring.store.store import Store

_ORDER = {Level.FAIL: 0, Level.WARN: 1, Level.OK: 2}


class TableRow(Value, frozen=True, kw_only=True):
    """One table, and its dead rows."""

    table: TableHealth
    share: int
    """Percent of all bytes."""
    dead: int
    """Percent of its rows that are dead."""


class LogCost(Value, frozen=True, kw_only=True):
    """The bytes that the database wrote to its log, for each run."""

    bytes: int
    runs: int
    per_run: int


class HealthSheet(Value, frozen=True, kw_only=True):
    """The content of the health page."""

    checks: tuple[Check, ...]
    """Problems first."""
    worst: Level
    health: StoreHealth
    facts: dict[str, str]
    """The version and the settings of the engine."""
    schema_version: int
    schema_name: str
    """The newest migration that this code has; the doctor says whether the database has it."""
    tables: tuple[TableRow, ...]
    """The largest first."""
    cost: LogCost | None
    """Over the last hours; None if the length of the log is not known, or nothing ran."""


async def health_sheet(store: Store, clock: Clock) -> HealthSheet:
    """Read all parts; each part is a bounded read."""
    checks = await examine(store, clock)
    health, facts = await store.health.look(), await store.health.facts()
    newest = steps(health.engine)[-1]
    return HealthSheet(
        checks=tuple(sorted(checks, key=lambda each: _ORDER[each.level])),
        worst=min((each.level for each in checks), key=_ORDER.__getitem__, default=Level.OK),
        health=health,
        facts=facts,
        schema_version=int(str(newest["version"])),
        schema_name=str(newest["name"]),
        tables=rows(health.tables),
        cost=log_cost(await Stats(store, clock).series()),
    )


def rows(tables: Sequence[TableHealth]) -> tuple[TableRow, ...]:
    """Tables with their shares, the largest first."""
    whole = sum(each.bytes + each.index_bytes for each in tables) or 1
    found = [
        TableRow(
            table=each,
            share=round(100 * (each.bytes + each.index_bytes) / whole),
            dead=round(100 * each.dead_rows / max(1, each.rows + each.dead_rows)),
        )
        for each in tables
    ]
    return tuple(sorted(found, key=lambda row: -(row.table.bytes + row.table.index_bytes)))


def log_cost(series: Series) -> LogCost | None:
    """Between the first and the last moment at which the length of the log is known."""
    known = [place for place, each in enumerate(series.fleet) if each.mark is not None]
    if len(known) < 2:
        return None
    first, last = known[0], known[-1]
    written = (series.fleet[last].mark or 0) - (series.fleet[first].mark or 0)
    # A mark is read when its step is written, so the runs of the first step were before the first mark.
    runs = sum(each.count(*RUNS) for each in series.jobs[first + 1 : last + 1])
    if runs <= 0 or written < 0:
        return None
    return LogCost(bytes=written, runs=runs, per_run=written // runs)
