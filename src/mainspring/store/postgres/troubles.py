"""The one place that reads the driver's errors and raises ours; and what may be done twice.

A session that breaks leaves its caller without an answer. Only where the statement may have had an effect
that its caller must look up is that an `AnswerLost`. What reads is asked again, and so is what is the same
when it is done twice. Of a transaction nothing remains unless its COMMIT had been sent.
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
"""Classes of what passes, whatever was asked: no resources, objects in use, the operator, the system."""
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
"""Of what may be repeated: when a server has gone, every session that was at hand is dead."""
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
        # A block of numbers that nobody uses is a gap.
        "reserve_ids",
        # A run that begins is on record as begun.
        "begin_orphan",
        # What has been ended is not there any more; a hint too many costs a look.
        "end_session",
        "end_marked",
        "notify",
    }
)
"""They write, but a second time changes nothing that counts, and answers as the first would have."""


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
    """Inside it a session is asked for."""
    try:
        yield
    except (asyncpg.PostgresError, *BROKEN) as error:
        if isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in str(error):
            raise InvalidConfig("database.url", _said(error), UNSTEERED) from error
        raise StoreUnavailable(f"cannot connect to PostgreSQL: {_said(error)}") from error


def is_refusal(error: BaseException) -> bool:
    """Whether somebody who would know says that no session can be had by anybody: the host, on whose port
    nobody listens, or a server that starts, stops or recovers. A session that was ended says nothing of the
    others."""
    if isinstance(error, asyncpg.CannotConnectNowError | ConnectionRefusedError | FileNotFoundError):
        return True
    # Where a name has several addresses, asyncio tells of all of them in one text.
    codes = [int(code) for code in _CODES(str(error))] if isinstance(error, OSError) else []
    return bool(codes) and set(codes) == {errno.ECONNREFUSED}


@contextmanager
def released() -> Iterator[None]:
    """Inside it one is given back."""
    # The session is broken and the pool has dropped it; what matters was said by the statement.
    try:
        yield
    except BROKEN:
        return


@contextmanager
def translated(what: str, session: object) -> Iterator[None]:
    """Inside it a statement is run on the session, of which a lost answer is told."""
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
