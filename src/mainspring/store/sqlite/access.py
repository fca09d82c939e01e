"""Tokens and sessions on SQLite."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import msgspec

from mainspring.model.access import AccessRole, NewSession, NewToken, Session, Token
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session as Transaction
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import maybe_moment, micros, moment, span

_names = msgspec.json.Decoder(tuple[str, ...])


class SQLiteAccess:
    """AccessStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_token(self, token: NewToken, *, at: Stamp) -> Token:
        def work(session: Transaction) -> Token:
            row = session.row(
                "add_token",
                digest=token.digest,
                name=token.name,
                role=token.role.value,
                scopes=_written(token.scopes),
                hint=token.hint,
                author=token.author,
                expires_at=micros(token.expires_at),
                now=session.now(at),
            )
            return _token(row)

        return await self._database.write(work)

    async def tokens(self, *, at: Stamp) -> list[Token]:
        found = await self._database.read(
            lambda session: session.rows("tokens_on_record", now=session.now(at))
        )
        return [_token(row) for row in found]

    async def token(self, digest: bytes, *, at: Stamp) -> Token | None:
        found = await self._database.read(
            lambda session: session.rows("token", digest=digest, now=session.now(at))
        )
        if not found:
            return None
        await self._note("note_token", found[0], at)
        return _token(found[0])

    async def revoke_token(self, token_id: int, *, at: Stamp) -> bool:
        def work(session: Transaction) -> bool:
            revoked = session.rows("revoke_token", id=token_id, now=session.now(at))
            session.rows("close_sessions_of_token", id=token_id)
            return bool(revoked)

        return await self._database.write(work)

    async def open_session(self, session: NewSession, *, longest: timedelta, at: Stamp) -> Session:
        def work(transaction: Transaction) -> Session:
            now = transaction.now(at)
            transaction.rows("forget_sessions", longest=span(longest), now=now)
            row = transaction.row(
                "open_session",
                digest=session.digest,
                name=session.name,
                role=session.role.value,
                scopes=_written(session.scopes),
                token_id=session.token_id,
                now=now,
            )
            return _session(row)

        return await self._database.write(work)

    async def session(
        self, digest: bytes, *, idle: timedelta, longest: timedelta, at: Stamp
    ) -> Session | None:
        def work(transaction: Transaction) -> list[sqlite3.Row]:
            limits = {"idle": span(idle), "longest": span(longest), "now": transaction.now(at)}
            return transaction.rows("session_on_record", digest=digest, **limits)

        found = await self._database.read(work)
        if not found:
            return None
        await self._note("note_session", found[0], at)
        return _session(found[0])

    async def close_sessions(
        self, *, session_id: int | None = None, name: str | None = None, at: Stamp
    ) -> int:
        def work(transaction: Transaction) -> int:
            closed = [] if session_id is None else transaction.rows("close_session", id=session_id)
            return len(closed) + len([] if name is None else transaction.rows("close_sessions_of", name=name))

        return await self._database.write(work)

    async def sessions(self, *, idle: timedelta, longest: timedelta, at: Stamp) -> list[Session]:
        def work(transaction: Transaction) -> list[sqlite3.Row]:
            limits = {"idle": span(idle), "longest": span(longest), "now": transaction.now(at)}
            return transaction.rows("open_sessions", **limits)

        return [_session(row) for row in await self._database.read(work)]

    async def _note(self, statement: str, row: sqlite3.Row, at: Stamp) -> None:
        if row["worth_noting"]:
            await self._database.write(
                lambda session: session.change(statement, id=row["id"], now=session.now(at)), durable=False
            )


def _written(names: tuple[str, ...]) -> str:
    return msgspec.json.encode(names).decode()


def _token(row: sqlite3.Row) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        role=AccessRole(row["role"]),
        hint=row["hint"],
        author=row["author"],
        scopes=_names.decode(row["scopes"]),
        created_at=moment(row["created_at"]),
        expires_at=maybe_moment(row["expires_at"]),
        last_used_at=maybe_moment(row["last_used_at"]),
        revoked_at=maybe_moment(row["revoked_at"]),
        alive=bool(row["alive"]),
    )


def _session(row: sqlite3.Row) -> Session:
    return Session(
        id=row["id"],
        name=row["name"],
        role=AccessRole(row["role"]),
        scopes=_names.decode(row["scopes"]),
        token_id=row["token_id"],
        opened_at=moment(row["opened_at"]),
        seen_at=moment(row["seen_at"]),
        token_expires_at=maybe_moment(row["token_expires_at"]),
    )
