"""What a PostgreSQL server has on its books: log written, commits, dead rows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncpg

SETTLES_SECONDS = 1.2
"""Sessions tell the statistics what they did at most once a second."""


@dataclass(frozen=True)
class Ledger:
    wal: int
    commits: int
    dead_rows: int


def ledger(url: str) -> Ledger:
    return asyncio.run(_read(url))


def settle(url: str) -> None:
    """What any server does within a minute of such a load, done before the next step and not during it."""
    asyncio.run(_settle(url))


async def _read(url: str) -> Ledger:
    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS wal,"
            " (SELECT sum(xact_commit)::bigint FROM pg_stat_database) AS commits,"
            " (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables) AS dead_rows"
        )
        assert row is not None
        return Ledger(**dict(row))
    finally:
        await connection.close()


async def _settle(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()
