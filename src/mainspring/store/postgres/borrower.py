"""Calls of the store on callers' own connections to PostgreSQL, and transactions for handlers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mainspring.errors import AnswerLost, InvalidArgument, SchemaMismatch, StoreError, UsageError
from mainspring.model.job import Claim, NewJob
from mainspring.model.run import Settlement
from mainspring.store.borrowed.finder import awaiting, blocking
from mainspring.store.borrowed.guest import POSTGRES, Awaiting, Blocking
from mainspring.store.database import Stamp
from mainspring.store.effects import step_of
from mainspring.store.postgres.connection import MIGRATIONS, TEXTS, Database, Session
from mainspring.store.postgres.pooled import Mark
from mainspring.store.postgres.settling import recorded, settle_batch
from mainspring.waiting import at_once

if TYPE_CHECKING:
    from asyncpg.transaction import Transaction

    from mainspring.store.postgres.connection import Connection, Record

T = TypeVar("T")

Fetch = Callable[..., Awaitable[list[Any]]]
_NO_SCHEMA = ("3F000", "42883", "42P01")
"""No such schema, function or table."""


class PostgresErrand(Generic[T]):
    """Work as a coroutine that fetches. On a blocking connection the coroutine never has to wait."""

    def __init__(self, work: Callable[[Fetch], Coroutine[Any, Any, T]]) -> None:
        self._work = work

    def run(self, tx: object) -> T:
        guest = blocking(tx)
        _require(guest, tx)

        async def fetch(statement: str, **params: object) -> list[Any]:
            try:
                return guest.run(TEXTS[statement], params).rows
            except Exception as error:
                _explain(error)
                raise

        return at_once(self._work(fetch))

    async def arun(self, tx: object) -> T:
        guest = awaiting(tx)
        _require(guest, tx)

        async def fetch(statement: str, **params: object) -> list[Any]:
            try:
                return (await guest.run(TEXTS[statement], params)).rows
            except Exception as error:
                _explain(error)
                raise

        return await self._work(fetch)


class PostgresBorrower:
    """Borrower on PostgreSQL."""

    def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> PostgresErrand[list[int]]:
        async def work(fetch: Fetch) -> list[int]:
            if not jobs:
                return []
            rows = await fetch(
                "put_jobs",
                tasks=[job.task for job in jobs],
                payloads=[job.payload for job in jobs],
                queues=[job.queue for job in jobs],
                priorities=[job.priority for job in jobs],
                run_ats=[job.run_at for job in jobs],
                delays=[job.delay for job in jobs],
                max_attempts=[job.max_attempts for job in jobs],
                traces=[job.trace for job in jobs],
                at=at,
                version=len(MIGRATIONS),
            )
            if not rows:
                [row] = await fetch("schema_version")
                raise SchemaMismatch(row["version"], len(MIGRATIONS))
            return [row["id"] for row in sorted(rows, key=lambda row: int(row["place"]))]

        return PostgresErrand(work)

    def settle(self, settlement: Settlement, *, at: Stamp) -> PostgresErrand[bool]:
        async def work(fetch: Fetch) -> bool:
            return bool(await settle_batch(fetch, settlement.verdict, [settlement], at))

        return PostgresErrand(work)

    def step(self, job_id: int, name: str) -> PostgresErrand[bool]:
        async def work(fetch: Fetch) -> bool:
            return bool(await fetch("step", job_id=job_id, name=name))

        return PostgresErrand(work)

    def record_step(self, claim: Claim, name: str, *, at: Stamp) -> PostgresErrand[bool]:
        async def work(fetch: Fetch) -> bool:
            return bool(await fetch("record_step", **step_of(claim, name), at=at))

        return PostgresErrand(work)


class PostgresLoan:
    """A loan of one session, in one transaction."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        transaction: Transaction,
        session: Session | Mark | None,
    ) -> None:
        self.connection = connection
        self._database = database
        self._transaction = transaction
        self._session = session
        self._pid = os.getpid()

    async def commit(self, settlement: Settlement, *, at: Stamp) -> bool:
        self._require_owner()
        try:
            within = asyncio.timeout(self._database.timeout.total_seconds())
            with self._database.translating("commit", self._session):
                async with within:
                    return await self._settle(settlement, at)
        finally:
            await self._database.take_back(self.connection)

    async def rollback(self) -> None:
        self._require_owner()
        try:
            with self._database.translating("rollback", self._session):
                await self._transaction.rollback()
        except StoreError:
            return  # take_back ends the session, and the transaction with it
        finally:
            await self._database.take_back(self.connection)

    async def committed(self, settlement: Settlement, lost: AnswerLost) -> bool:
        await self._database.end_session(lost.session)
        return bool(await recorded(self._database.fetch, [settlement]))

    async def _settle(self, settlement: Settlement, at: Stamp) -> bool:
        if not self.connection.is_in_transaction():
            raise UsageError("the handler has ended the transaction that it was given")
        if await settle_batch(self._fetch, settlement.verdict, [settlement], at):
            await self._transaction.commit()
            return True
        await self._transaction.rollback()
        return False

    def _require_owner(self) -> None:
        if os.getpid() != self._pid:  # the session belongs to the parent process
            raise UsageError("this transaction is of the process that this one was forked from")

    async def _fetch(self, statement: str, **params: object) -> list[Record]:
        return await self._database.run_on(self.connection, statement, params)


class PostgresLender:
    """Lender on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def borrower(self) -> PostgresBorrower:
        return PostgresBorrower()

    async def lend(self) -> PostgresLoan:
        connection = await self._database.lend()
        try:
            transaction = connection.transaction()
            with self._database.translating("begin", None):
                await transaction.start()
            session = await self._database.session_in(connection)
        except BaseException:
            await self._database.take_back(connection)
            raise
        return PostgresLoan(self._database, connection, transaction, session)


def _require(guest: Blocking | Awaiting, tx: object) -> None:
    if guest.dialect != POSTGRES:
        raise InvalidArgument(
            "tx", tx, f"a connection to the app's own database, which is PostgreSQL, not {guest.dialect}"
        )


def _explain(error: Exception) -> None:
    """Raise SchemaMismatch for a database without the schema of the store. SQLAlchemy and Django keep the
    error of the driver in `orig` and as the cause."""
    for told in (error, getattr(error, "orig", None), error.__cause__):
        state = getattr(told, "sqlstate", None) or getattr(told, "pgcode", None)
        if state in _NO_SCHEMA and "mainspring" in str(told):
            raise SchemaMismatch(0, len(MIGRATIONS), "tx is a connection to a database without it") from error
