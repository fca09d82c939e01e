"""The schema of a store: numbered migrations, and the migrations that a database has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from mainspring.errors import SchemaMismatch
from mainspring.model.value import Value
from mainspring.store.database import Database, Transaction

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Migration(Value, frozen=True, kw_only=True):
    """One step of the schema. The store keeps its checksum, so that an edited file is found."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(package: str) -> list[Migration]:
    """Every migration of one dialect, oldest first."""
    folder = resources.files(package) / "migrations"
    found = []
    for entry in folder.iterdir():
        if match := _FILE.fullmatch(entry.name):
            sql = entry.read_text(encoding="utf-8")
            name = entry.name.removesuffix(".sql")
            found.append(Migration(version=int(match[1]), name=name, sql=sql))
    found.sort(key=lambda step: step.version)
    if [step.version for step in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"{package}/migrations: numbers must run from 1 without a gap")
    return found


def pending(known: Sequence[Migration], applied: Mapping[int, str]) -> list[Migration]:
    """The migrations that are still to be applied. `applied` has the checksum of each applied version. It
    refuses a store that has newer migrations than this code, or migrations from other files."""
    if applied and max(applied) > len(known):
        raise SchemaMismatch(max(applied), len(known))
    for step in known:
        if applied.get(step.version, step.checksum) != step.checksum:
            raise SchemaMismatch(
                max(applied), len(known), f"migration {step.name} was applied from another text"
            )
    return [step for step in known if step.version not in applied]


class Schema:
    """The migrations of one database, and the migrations that this code needs."""

    def __init__(self, database: Database, known: Sequence[Migration]) -> None:
        self._database = database
        self._known = known

    async def migrate(self) -> list[str]:
        """Bring the schema to the version of this code; answer the applied migrations. The call is safe to
        run twice, in two processes at the same time, and again after the process was killed."""
        applied = []
        # Each migration is a transaction, so a killed migration can be continued. The lock makes a second
        # process wait, and this process then finds nothing to do.
        while name := await self._database.within("migrate", self._step):
            applied.append(name)
        await self._database.within("migrate", self._prepare)
        return applied

    async def verify(self) -> None:
        """Raise SchemaMismatch unless every known migration, and no other, has been applied."""

        async def work(tx: Transaction) -> None:
            [found] = await tx.fetch("migrations_exist")
            applied = await _applied(tx) if found["yes"] else {}
            if pending(self._known, applied):
                raise SchemaMismatch(max(applied, default=0), len(self._known))

        await self._database.reading("verify", work)

    async def _step(self, tx: Transaction) -> str | None:
        await tx.fetch("lock_migrations")
        await tx.fetch("make_schema")
        await tx.fetch("make_migrations")
        steps = pending(self._known, await _applied(tx))
        if not steps:
            return None
        step = steps[0]
        await tx.script(step.sql)
        await tx.fetch(
            "record_migration", version=step.version, name=step.name, checksum=step.checksum, at=None
        )
        return step.name

    async def _prepare(self, tx: Transaction) -> None:
        await tx.fetch("lock_migrations")
        await tx.fetch("add_partitions", at=None)


async def _applied(tx: Transaction) -> dict[int, str]:
    return {row["version"]: row["checksum"] for row in await tx.fetch("applied_migrations")}
