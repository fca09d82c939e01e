"""Errors: the errors of the driver become errors of the store; and the statements that may run twice.

If a session breaks, its caller gets no answer. This is an `AnswerLost` only if the statement may have had an
effect that the caller must look up. A statement that only reads, or that has the same effect when it runs
twice, is repeated. A transaction has written nothing unless its COMMIT was sent.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from mainspring.errors import (
    AnswerLost,
    InvalidConfig,
    SchemaMismatch,
    StoreError,
    StoreFull,
    StoreUnavailable,
)

_NOT_TAKEN = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.TooManyConnectionsError,
    asyncpg.CannotConnectNowError,
)
_CODES = re.compile(r"\[Errno (\d+)\]").findall
_PASSING = ("53", "55", "57", "58")
"""Classes of temporary errors: no resources, objects in use, the operator, the system."""
BROKEN = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the driver lost track of a session that is breaking under it
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    ConnectionError,
    TimeoutError,
    OSError,
)
_UNPREPARED = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
UNSTEERED = "PostgreSQL itself, or pool=transaction among its options when a pooler is in between"
_NO_SCHEMA = (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.UndefinedColumnError)
TRIES = 3
"""The number of tries of a statement that may be repeated. After the end of a server, every kept session is
broken."""
IDEMPOTENT = frozenset(
    {
        # Numbers for names and the like, which are found when they are there.
        "add_queues",
        "add_tasks",
        "add_priority_levels",
        "put_limit_keys",
        "put_limit_sets",
        "put_definition",
        "put_calendar",
        # A block of numbers that is not used is a gap.
        "reserve_ids",
        # A run that begins is on record as begun.
        "begin_orphan",
        # What has been ended is not there any more; a hint too many costs a look.
        "end_session",
        "end_marked",
        "notify",
    }
)
"""These statements write, but the second run has no further effect, and the same answer."""


class ReadOnly(StoreUnavailable):
    """The session is with a server that takes no writes: a standby, or a primary that has been made one. A
    new session may find the right one."""


class Broken(StoreUnavailable):
    """The session broke, and nothing that was asked for on it can have remained, or had to."""


class PartitionMoved(StoreUnavailable):
    """A row was about to go into the default partition while one of its own was made: the server refuses it,
    for it had looked at the partitions before."""


@contextmanager
def connecting() -> Iterator[None]:
    """Inside it, the caller asks for a session."""
    try:
        yield
    except (asyncpg.PostgresError, *BROKEN) as error:
        if isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in str(error):
            raise InvalidConfig("database.url", _said(error), UNSTEERED) from error
        raise StoreUnavailable(f"cannot connect to PostgreSQL: {_said(error)}") from error


def is_refusal(error: BaseException) -> bool:
    """Whether the error shows that no process can get a session: nothing listens on the port of the host, or
    the server starts, stops or recovers. The end of one session is no such error."""
    if isinstance(error, asyncpg.CannotConnectNowError | ConnectionRefusedError | FileNotFoundError):
        return True
    # If a name has several addresses, asyncio puts all errors into one text.
    codes = [int(code) for code in _CODES(str(error))] if isinstance(error, OSError) else []
    return bool(codes) and set(codes) == {errno.ECONNREFUSED}


@contextmanager
def released() -> Iterator[None]:
    """Inside it, a session is given back."""
    # The session is broken, and the pool has dropped it. The statement has raised its own error already.
    try:
        yield
    except BROKEN:
        return


@contextmanager
def translated(what: str, session: object) -> Iterator[None]:
    """Inside it, a statement runs on the session. AnswerLost names this session."""
    try:
        yield
    except _NOT_TAKEN as error:
        raise StoreUnavailable(f"{what}: {_said(error)}") from error
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise ReadOnly(f"{what}: {_said(error)}") from error
    except asyncpg.DiskFullError as error:
        raise StoreFull(f"{what}: PostgreSQL has no room left: {_said(error)}") from error
    except _UNPREPARED as error:
        raise InvalidConfig("database.url", _said(error), UNSTEERED) from error
    except _NO_SCHEMA as error:
        raise SchemaMismatch(0, 1, _said(error)) from error
    except BROKEN as error:
        raise AnswerLost(what, session=session) from error
    except asyncpg.CheckViolationError as error:
        if "_default" in (error.table_name or "") and "partition constraint" in str(error):
            raise PartitionMoved(f"{what}: {_said(error)}") from error
        raise StoreError(f"{what}: {_said(error)}") from error
    except asyncpg.PostgresError as error:
        passing = (error.sqlstate or "")[:2] in _PASSING
        raise (StoreUnavailable if passing else StoreError)(f"{what}: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
