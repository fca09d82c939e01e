"""Statements behind a pooler that gives each transaction another session: PgBouncer in transaction mode.

The settings of our sessions are made at connect, or in each transaction where a session lasts no longer.
Nothing may be left on a session there. So statements have no names, settings are made inside the transaction
that needs them, and a session is known by the mark that our statements begin with, for its process id is ours
for one transaction only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from mainspring.model.value import Value

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection = PoolConnectionProxy[asyncpg.Record]
    Driver = asyncpg.Connection[asyncpg.Record]
else:
    Driver = asyncpg.Connection

PLAIN = frozenset(
    {
        "insert_due_job",
        "insert_job",
        "insert_jobs",
        "insert_limited_jobs",
        "reserve_ids",
        "now",
    }
)
"""They read no table, so there is no plan to steer: they take one round trip, and no transaction around."""
_TYPES = ("bigint", "bool", "bytea", "int", "interval", "jsonb", "smallint", "text", "timestamptz")
"""Our statements take and answer arrays of these. The driver asks about each, once for a connection."""
TOLD = {"application_name": "mainspring", "timezone": "UTC"}
"""What poolers take at connect, too, and see to wherever we are sent."""
ISOLATION = "read committed"
"""Of every transaction of ours. A role or a database may have another by default: then statements that wait
for each other would fail instead."""
STEERING = {
    # Plans must not flip with the size of the backlog: always the index, always the same plan.
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    # Nothing of ours may hold a lock or a snapshot for long.
    "statement_timeout": "60s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
}
DURABLE = {**STEERING, "synchronous_commit": "on"}
RELAXED = {**STEERING, "synchronous_commit": "off"}


class Mark(Value, frozen=True, kw_only=True):
    """What the statements of one connection begin with: whoever runs one of them is at our work."""

    text: str
    plain: bool = True
    """Whether a statement without a transaction around it is isolated as ours are to be."""


class PooledConnection(Driver):
    """A connection to a pooler. A statement is described once; then each call sends its text and runs it in
    one round trip, which is one transaction and so one session. The driver would describe it every time."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.mark = Mark(text="")
        self._described: dict[object, Any] = {}

    async def learn(self) -> None:
        """Give it a mark of its own, and the driver what it wants to know of types."""
        arrays = ", ".join(f"NULL::{name}[]" for name in _TYPES)
        # One transaction, for the driver turns a setting off and on again while it asks.
        async with self.transaction():
            await self.fetch(f"SELECT {arrays}")
            token = await self.fetchval("SELECT gen_random_uuid()::text")
            isolation = await self.fetchval("SELECT current_setting('default_transaction_isolation')")
        self.mark = Mark(text=f"/* mainspring {token} */ ", plain=isolation == ISOLATION)

    async def _get_statement(self, query: str, *args: Any, **options: Any) -> Any:
        # The driver's own cache is off: what it describes without one has no name, and its text is sent again
        # whenever it is run. Were this method called otherwise in another version, two trips would be taken.
        describe = super()._get_statement  # type: ignore[misc]
        if options.get("named") or not options.get("use_cache", True):
            return await describe(query, *args, **options)
        key = (query, *sorted(options.items(), key=_name))
        if key not in self._described:
            self._described[key] = await describe(query, *args, **options)
        return self._described[key]


@asynccontextmanager
async def steered(connection: Connection, mark: Mark, settings: dict[str, str]) -> AsyncIterator[None]:
    """A transaction with these settings, which end with it."""
    made = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())
    try:
        await connection.execute(f"{mark.text}BEGIN ISOLATION LEVEL {ISOLATION}; {made}")
        yield
    except BaseException:
        # Also when it was cut short while it began, and nobody knows how far it came: the next user of this
        # connection must not find a transaction on it.
        if not connection.is_closed():
            await connection.execute(f"{mark.text}ROLLBACK")
        raise
    await connection.execute(f"{mark.text}COMMIT")


def _name(option: tuple[str, object]) -> str:
    return option[0]
