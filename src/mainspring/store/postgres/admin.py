"""Schema and facts of a PostgreSQL store."""

from __future__ import annotations

from datetime import datetime

from mainspring.errors import SchemaMismatch
from mainspring.store.migrations import migrations, pending, require_current
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import SQL, Database, Transaction

MIGRATIONS = migrations("mainspring.store.postgres")


class PostgresAdmin:
    """Admin on PostgreSQL, but for `close`, which is the store's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def now(self, *, at: Stamp) -> datetime:
        [row] = await self._database.relaxed("now", at=at)
        now: datetime = row["now"]
        return now

    async def migrate(self) -> list[str]:
        applied: list[str] = []
        while True:
            # A transaction each: killed in between, the next run goes on from there.
            async with self._database.transaction("migrate") as transaction:
                await transaction.fetch("lock_migrations")
                await transaction.script(SQL["begin_migrations"][0])
                steps = pending(MIGRATIONS, await _applied(transaction))
                if not steps:
                    break
                step = steps[0]
                await transaction.script(step.sql)
                await transaction.fetch(
                    "record_migration", version=step.version, name=step.name, checksum=step.checksum
                )
            applied.append(step.name)
        async with self._database.transaction("migrate") as transaction:
            await transaction.fetch("lock_migrations")
            await transaction.fetch("add_partitions", at=None)
        return applied

    async def verify(self) -> None:
        async with self._database.transaction("verify") as transaction:
            [row] = await transaction.fetch("migrations_exist")
            if not row["yes"]:
                raise SchemaMismatch(0, len(MIGRATIONS))
            require_current(MIGRATIONS, await _applied(transaction))

    async def facts(self) -> dict[str, str]:
        [row] = await self._database.fetch("facts")
        return {"engine": "postgresql", **dict(row)}


async def _applied(transaction: Transaction) -> dict[int, str]:
    return {row["version"]: row["checksum"] for row in await transaction.fetch("applied_migrations")}
