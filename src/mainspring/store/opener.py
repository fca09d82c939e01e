"""Turn a URL into a store: the one place that knows which adapters there are."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.errors import InvalidConfig, UsageError
from mainspring.store.ports import Store

CALL_WITHIN = timedelta(seconds=30)


def open_store(url: str, *, clock: Clock, timeout: timedelta = CALL_WITHIN, hints: bool = True) -> Store:
    """A store for this URL. Nothing is connected until the first call; no call takes longer than
    `timeout`. `hints` is for tests that want claims in exactly the contract's order."""
    scheme, _, rest = url.partition("://")
    match scheme:
        case "sqlite":
            from mainspring.store.sqlite.store import SQLiteStore

            return SQLiteStore(rest if rest == ":memory:" else rest.removeprefix("/"), clock)
        case "postgresql" | "postgres":
            try:
                from mainspring.store.postgres.store import PostgresStore
            except ImportError as error:
                raise UsageError("PostgreSQL needs its driver: pip install 'mainspring[postgres]'") from error
            return PostgresStore(url, clock, timeout=timeout, hints=hints)
        case _:
            raise InvalidConfig("database.url", url, "sqlite:///file.db or postgresql://user@host/database")
