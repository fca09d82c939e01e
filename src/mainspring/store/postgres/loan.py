"""Transactions for handlers on PostgreSQL."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from mainspring.errors import AnswerLost, StoreError, UsageError
from mainspring.model.run import Settlement
from mainspring.store.database import Stamp
from mainspring.store.postgres.borrower import PostgresBorrower
from mainspring.store.postgres.connection import Database, Session
from mainspring.store.postgres.pooled import Mark
from mainspring.store.postgres.settling import recorded, settle_batch

if TYPE_CHECKING:
    from asyncpg.transaction import Transaction

    from mainspring.store.postgres.connection import Connection, Record


class PostgresLoan:
    """One session, in one transaction."""

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

    async def _settle(self, settlement: Settlement, at: Stamp) -> bool:
        if not self.connection.is_in_transaction():
            raise UsageError("the handler has ended the transaction that it was given")
        if await settle_batch(self._fetch, settlement.verdict, [settlement], at):
            await self._transaction.commit()
            return True
        await self._transaction.rollback()
        return False

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

    def _require_owner(self) -> None:
        if os.getpid() != self._pid:  # what we say on the session would be said for the parent
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
