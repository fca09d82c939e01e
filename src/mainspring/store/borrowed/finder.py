"""Which kind of connection `tx=` is, told by the names of its classes: nothing is imported for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mainspring.errors import InvalidArgument, UsageError
from mainspring.store.borrowed.guest import Awaiting, Blocking, Lent

_EXPECTED = (
    "a connection with a transaction: psycopg, asyncpg, SQLAlchemy (Session, AsyncSession, Connection,"
    " AsyncConnection), a Django alias or connection, or sqlite3"
)


def blocking(tx: object) -> Blocking:
    """The guest for a call that blocks."""
    guest = _guest(tx)
    if hasattr(guest, "blocking"):
        raise UsageError(
            f"tx: {_kind(tx)} is awaited: await aenqueue(), aenqueue_many() or acomplete() with it"
        )
    found: Blocking = guest
    found.check()
    return found


def awaiting(tx: object) -> Awaiting:
    """The guest for a call that is awaited."""
    guest = _guest(tx)
    if not hasattr(guest, "blocking"):
        raise UsageError(f"tx: {_kind(tx)} blocks: call enqueue(), enqueue_many() or complete() with it")
    found: Awaiting = guest
    found.check()
    return found


def _guest(tx: object) -> Any:
    if isinstance(tx, Lent):
        return tx.guest()
    if isinstance(tx, str):
        return _django_alias(tx)
    for cls in type(tx).__mro__:
        found = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if found is not None:
            return found(tx)
    raise InvalidArgument("tx", type(tx), _EXPECTED)


def _kind(tx: object) -> str:
    return f"{type(tx).__module__.partition('.')[0]}'s {type(tx).__name__}"


def _sqlite(tx: object) -> object:
    from mainspring.store.borrowed.sqlite import SQLiteGuest

    return SQLiteGuest(tx)


def _psycopg(tx: object) -> object:
    from mainspring.store.borrowed.psycopg import PsycopgGuest

    return PsycopgGuest(tx)


def _async_psycopg(tx: object) -> object:
    from mainspring.store.borrowed.psycopg import AsyncPsycopgGuest

    return AsyncPsycopgGuest(tx)


def _asyncpg(tx: object) -> object:
    from mainspring.store.borrowed.asyncpg import AsyncpgGuest

    return AsyncpgGuest(tx)


def _sqlalchemy(tx: object) -> object:
    from mainspring.store.borrowed.sqlalchemy import SQLAlchemyGuest, connection_of

    return SQLAlchemyGuest(connection_of(tx))


def _async_sqlalchemy(tx: object) -> object:
    from mainspring.store.borrowed.sqlalchemy import AsyncSQLAlchemyGuest

    return AsyncSQLAlchemyGuest(tx)


def _django(tx: object) -> object:
    from mainspring.store.borrowed.django import DjangoGuest

    return DjangoGuest(tx)


def _django_alias(alias: str) -> object:
    from mainspring.store.borrowed.django import DjangoGuest, by_alias

    return DjangoGuest(by_alias(alias))


_KINDS: dict[tuple[str, str], Callable[[object], object]] = {
    ("sqlite3", "Connection"): _sqlite,
    ("psycopg", "Connection"): _psycopg,
    ("psycopg", "AsyncConnection"): _async_psycopg,
    ("asyncpg", "Connection"): _asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _asyncpg,
    ("sqlalchemy", "Connection"): _sqlalchemy,
    ("sqlalchemy", "Session"): _sqlalchemy,
    ("sqlalchemy", "scoped_session"): _sqlalchemy,
    ("sqlalchemy", "AsyncConnection"): _async_sqlalchemy,
    ("sqlalchemy", "AsyncSession"): _async_sqlalchemy,
    ("sqlalchemy", "async_scoped_session"): _async_sqlalchemy,
    ("django", "BaseDatabaseWrapper"): _django,
    ("django", "ConnectionProxy"): _django,
}
