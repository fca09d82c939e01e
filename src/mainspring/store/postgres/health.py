"""What PostgreSQL tells of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model.health import Partitions, Snapshot, StoreHealth, TableHealth, UnreadableRow
from mainspring.store.postgres.connection import Database

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

HIDDEN = "what the sessions of other users do: grant this role pg_read_all_stats"


class PostgresHealth:
    """HealthStore on PostgreSQL. The server's own views may be closed to us, one by one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def health(self) -> StoreHealth:
        withheld: list[str] = []
        tables = await self._ask("table_health", "the state of tables", withheld)
        partitions = await self._ask("partition_health", "the days of history", withheld)
        snapshots = await self._ask("snapshot_health", "the oldest snapshot", withheld)
        found = await self._ask("server_health", "sessions and sizes", withheld)
        server = dict(found[0]) if found else {}
        if server.pop("hidden", 0):
            withheld.append(HIDDEN)
        return StoreHealth(
            engine="postgresql",
            tables=tuple(_table(row) for row in tables),
            partitions=tuple(
                Partitions(
                    table=row["table_name"],
                    count=row["count"],
                    first=row["first"],
                    last=row["last"],
                    ahead=row["ahead"] or 0,
                    strays=row["strays"],
                )
                for row in partitions
            ),
            snapshots=tuple(
                Snapshot(what=row["what"], age=row["age"], bytes=row["bytes"]) for row in snapshots
            ),
            unreadable=tuple(aside(row) for row in await self._database.fetch("unreadable_rows")),
            withheld=tuple(withheld),
            **server,
        )

    async def damage(self) -> list[str] | None:
        return None

    async def _ask(self, statement: str, about: str, withheld: list[str]) -> list[Record]:
        try:
            return await self._database.fetch(statement)
        except StoreUnavailable:
            raise
        except StoreError as error:
            withheld.append(f"{about}: {error}")
            return []


def aside(row: Record) -> UnreadableRow:
    return UnreadableRow(table=row["kind"], key=row["ref"], at=row["at"])


def _table(row: Record) -> TableHealth:
    updates = row["updates"]
    return TableHealth(
        name=row["name"],
        rows=row["rows"],
        dead_rows=row["dead_rows"],
        bytes=row["bytes"],
        index_bytes=row["index_bytes"],
        updates=updates,
        hot=row["hot_updates"] / updates if updates else None,
        vacuumed_at=row["vacuumed_at"],
        analyzed_at=row["analyzed_at"],
    )
