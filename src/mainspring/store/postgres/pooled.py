"""Statements behind a pooler that gives each transaction another session: PgBouncer in transaction mode.

A session gets the settings of the store at connect. Behind a pooler, a process has a session for one
transaction only, and must leave nothing on it. So statements have no names, each transaction makes its
settings, and a mark at the begin of each statement identifies the session.
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
"""These statements read no table, so their plans need no settings. They take one round trip, without a
transaction."""
_TYPES = ("bigint", "bool", "bytea", "int", "interval", "jsonb", "smallint", "text", "timestamptz")
"""Statements have arrays of these types. The driver asks for each type once for a connection."""
TOLD = {"application_name": "mainspring", "timezone": "UTC"}
"""Settings that poolers also accept at connect, and make on each session."""
ISOLATION = "read committed"
"""The isolation of every transaction. A role or a database may have another default: then statements that
wait for each other would fail."""
STEERING = {
    # Plans must not flip with the size of the backlog: always the index, always the same plan.
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    # No statement may hold a lock or a snapshot for long.
    "statement_timeout": "60s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
}
DURABLE = {**STEERING, "synchronous_commit": "on"}
RELAXED = {**STEERING, "synchronous_commit": "off"}


class Mark(Value, frozen=True, kw_only=True):
    """The text at the begin of each statement of one connection. It identifies the session that runs such a
    statement."""

    text: str
    plain: bool = True
    """Whether a statement without a transaction has the isolation `ISOLATION`."""


class PooledConnection(Driver):
    """A connection to a pooler. A statement is described once; then each call sends its text and runs it in
    one round trip, which is one transaction and so one session. The driver would describe it every time."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.mark = Mark(text="")
        self._described: dict[object, Any] = {}

    async def learn(self) -> None:
        """Give the connection its own mark, and make the driver read its types."""
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
        # Also if BEGIN was cancelled and its result is not known: the next user of this connection must not
        # find a transaction on it.
        if not connection.is_closed():
            await connection.execute(f"{mark.text}ROLLBACK")
        raise
    await connection.execute(f"{mark.text}COMMIT")


def _name(option: tuple[str, object]) -> str:
    return option[0]
