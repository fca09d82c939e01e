"""The database: its schema and its id; and the schema as SQL text, for migrations with another tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.errors import UsageError
from mainspring.store import statements
from mainspring.store.migrations import migrations

_DIALECTS: Mapping[str, statements.Dialect] = {"sqlite": "sqlite", "postgresql": "postgres"}
_NAMED = 5
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]+)")


class Database(Noun):
    """The schema and the id of one database."""

    async def amigrate(self) -> list[str]:
        """Bring the schema up to this version; answer the applied migrations. They are recorded afterwards,
        because there is no audit log before the first migration."""
        applied = await (await self._context.unprepared()).migrate()
        if applied:
            async with self._context.recorded("db.migrate") as ending:
                ending.details = {"applied": applied}
        return applied

    async def averify(self) -> None:
        """Raise SchemaMismatch unless the schema is exactly this version's."""
        await (await self._store()).verify()

    async def aidentity(self) -> str:
        """The random id that the database got with its schema."""
        return await (await self._store()).identity()

    @order("db.new_id", about=lambda **_: "", result=lambda ids: {"was": ids[0], "id": ids[1]})
    async def arenew_identity(self, *, force: bool = False, note: str | None = None) -> tuple[str, str]:
        """Give the database a new id; answer the old one and the new one. Refused while processes are alive,
        unless forced, because the processes keep the old id. The note is for the audit log."""
        store, digits = await self._store(), self._context.entropy.secret().hex()
        new = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
        ids = await carried_out(
            store.change_identity(new, force=force, at=self._stamp), lambda old: (old or "", new)
        )
        if not ids[0]:
            alive = [each.name for each in await store.processes.all(at=self._stamp) if each.alive]
            named = ", ".join(alive[:_NAMED]) + (", …" if len(alive) > _NAMED else "")
            raise UsageError(
                f"nothing was changed: processes of this database are alive ({named}) and keep the id that "
                "they have learnt. Stop them first, or use --force and start them anew at once. A fresh "
                "clone still has its original's processes on record, for half a minute"
            )
        return ids

    migrate = blocking(amigrate)
    verify = blocking(averify)
    identity = blocking(aidentity)
    renew_identity = blocking(arenew_identity)


def steps(dialect: str) -> list[dict[str, object]]:
    """Every migration of the dialect, oldest first."""
    return [
        {"version": step.version, "name": step.name, "checksum": step.checksum, "sql": step.sql}
        for step in migrations(f"mainspring.store.{_DIALECTS[dialect]}")
    ]


def script(dialect: str) -> str:
    """The SQL of one transaction that creates the schema and records its migrations for `verify`."""
    return "\n".join(["BEGIN;", *_statements(dialect), "COMMIT;", ""])


def _statements(dialect: str) -> Iterator[str]:
    named = statements.load(_DIALECTS[dialect])
    literals = {"at": "NULL"}
    if "clock" in named:  # SQLite's; PostgreSQL takes its own where no moment is given
        literals["now"] = f"({_filled(named['clock'], literals)})"
    yield from (f"{named[each]};" for each in ("make_schema", "make_migrations") if named[each])
    for step in migrations(f"mainspring.store.{_DIALECTS[dialect]}"):
        yield f"\n-- {step.name}\n{step.sql.rstrip()}\n"
        recorded = {
            "version": str(step.version),
            "name": f"'{step.name}'",
            "checksum": f"'{step.checksum}'",
        }
        yield f"{_filled(named['record_migration'], literals | recorded)};"
    if named["add_partitions"]:
        yield f"{_filled(named['add_partitions'], literals)};"


def _filled(statement: str, literals: Mapping[str, str]) -> str:
    return _PARAMETER.sub(lambda parameter: literals[parameter[1]], statement)
