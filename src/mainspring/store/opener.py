"""The opener of stores: it makes the store for a URL. Only this module knows all dialects."""

from __future__ import annotations

from datetime import timedelta

from mainspring import forks
from mainspring.clock import Clock
from mainspring.errors import InvalidConfig, UsageError
from mainspring.store.effects import Borrower
from mainspring.store.store import Store

CALL_WITHIN = timedelta(seconds=30)


def open_store(url: str, *, clock: Clock, timeout: timedelta = CALL_WITHIN, hints: bool = True) -> Store:
    """A store for this URL. The store connects at its first call. No call takes longer than
    `timeout`. `hints=False` is for tests that need claims in exactly the order of the contract."""
    with forks.rest.awaited():
        scheme, _, _ = url.partition("://")
        match scheme:
            case "sqlite":
                from mainspring.store.sqlite.store import SQLiteStore

                return SQLiteStore(_path(url), clock)
            case "postgresql" | "postgres":
                try:
                    from mainspring.store.postgres.store import PostgresStore
                except ImportError as error:
                    raise UsageError(
                        "PostgreSQL needs its driver: pip install 'mainspring[postgres]'"
                    ) from error
                return PostgresStore(url, clock, timeout=timeout, hints=hints)
            case _:
                raise InvalidConfig(
                    "database.url", url, "sqlite:///file.db or postgresql://user@host/database"
                )


def open_borrower(url: str) -> Borrower:
    """A borrower for callers' own connections to the database of this URL. It opens no connection."""
    with forks.rest.awaited():
        if url.startswith("sqlite:"):
            from mainspring.store.sqlite.borrower import SQLiteBorrower

            return SQLiteBorrower(_path(url))
        from mainspring.store.postgres.borrower import PostgresBorrower

        return PostgresBorrower()


def _path(url: str) -> str:
    rest = url.removeprefix("sqlite://")
    return rest if rest == ":memory:" else rest.removeprefix("/")
