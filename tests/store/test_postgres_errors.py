"""What the driver raises, in our words: above all whether a call may have happened."""

from __future__ import annotations

import asyncpg
import pytest

from mainspring.errors import AnswerLost, SchemaMismatch, StoreError, StoreFull, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.store.postgres.troubles import ReadOnly, translated


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (asyncpg.SerializationError("x"), StoreUnavailable),
        (asyncpg.DeadlockDetectedError("x"), StoreUnavailable),
        (asyncpg.LockNotAvailableError("x"), StoreUnavailable),
        (asyncpg.CannotConnectNowError("x"), StoreUnavailable),
        (asyncpg.DiskFullError("x"), StoreFull),
        (asyncpg.IdleInTransactionSessionTimeoutError("x"), AnswerLost),
        (asyncpg.UndefinedTableError("x"), SchemaMismatch),
        (asyncpg.ConnectionDoesNotExistError("x"), AnswerLost),
        (asyncpg.InterfaceError("connection is closed"), AnswerLost),
        (asyncpg.InternalClientError("cannot switch to state 12"), AnswerLost),
        (asyncpg.AdminShutdownError("x"), AnswerLost),
        (ConnectionResetError("x"), AnswerLost),
        (TimeoutError(), AnswerLost),
        (asyncpg.OutOfMemoryError("x"), StoreUnavailable),
        (asyncpg.PostgresIOError("x"), StoreUnavailable),
        (asyncpg.ReadOnlySQLTransactionError("x"), ReadOnly),
        (asyncpg.InternalServerError("x"), StoreError),
        (asyncpg.DataError("x"), StoreError),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else type(each).__name__,
)
def test_a_drivers_error_is_told_as(raised: Exception, told: type[StoreError]) -> None:
    with pytest.raises(StoreError) as error, translated("claim_jobs", None):
        raise raised

    assert type(error.value) is told


def test_a_session_whose_answer_was_lost_is_not_used_again(postgres_url: str, run, clock) -> None:
    from mainspring.store.opener import open_store

    async def story() -> None:
        store = open_store(postgres_url, clock=clock)
        sessions = []
        with pytest.raises(AnswerLost):
            async with store._database._connection(relaxed=True) as connection:
                sessions.append(connection._con)
                raise AnswerLost("claim_jobs")
        assert sessions[0].is_closed()
        await store.now(at=None)
        await store.close()

    run(story())


def test_a_session_with_a_server_that_takes_no_writes_is_not_used_again(
    postgres_url: str, run, clock
) -> None:
    from mainspring.store.opener import open_store

    async def story() -> None:
        admin = await asyncpg.connect(postgres_url)
        name = await admin.fetchval("SELECT current_database()")
        store = open_store(postgres_url, clock=clock)
        # Sessions that are opened now take no writes, as with a standby, and go on so when it is over.
        await admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            with pytest.raises(StoreUnavailable, match="read-only"):
                await store.queue.insert([NewJob(task="t", payload=b"{}")], at=None)
        finally:
            await admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            await admin.close()
        ids = await store.queue.insert([NewJob(task="t", payload=b"{}")], at=None)
        assert len(ids) == 1
        await store.close()

    run(story())
