"""What the driver raises, in our words: above all whether a call may have happened."""

from __future__ import annotations

import asyncpg
import pytest

from mainspring.errors import AnswerLost, SchemaMismatch, StoreError, StoreFull, StoreUnavailable
from mainspring.store.postgres.troubles import translated


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
