"""What a PostgreSQL server has on its books: log written, commits, dead rows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import asyncpg

ALONE_WITHIN = 10.0
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Ledger:
    wal: int
    commits: int
    dead_rows: int


def ledger(url: str) -> Ledger:
    """When nobody else is connected any more: a session tells the statistics what it did when it ends, and
    before that only now and then."""
    return asyncio.run(_read(url))


def analyze(url: str) -> None:
    """What the server does within a minute of such a load, done before the next step and not in it. There is
    no checkpoint: after one, every page is logged whole at its first change, and the log is measured."""
    asyncio.run(_analyze(url))


async def _read(url: str) -> Ledger:
    connection = await asyncpg.connect(url)
    try:
        await _alone(connection)
        row = await connection.fetchrow(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS wal,"
            " (SELECT sum(xact_commit)::bigint FROM pg_stat_database) AS commits,"
            " (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables) AS dead_rows"
        )
        assert row is not None
        return Ledger(**dict(row))
    finally:
        await connection.close()


async def _alone(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    give_up = time.monotonic() + ALONE_WITHIN
    others = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    while await connection.fetchval(others):
        if time.monotonic() > give_up:
            raise TimeoutError("sessions to end")
        await asyncio.sleep(LOOK_SECONDS)


async def _analyze(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
