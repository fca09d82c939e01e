"""Tokens and sessions on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.model.access import AccessRole, NewSession, NewToken, Session, Token
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


class PostgresAccess:
    """AccessStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_token(self, token: NewToken, *, at: Stamp) -> Token:
        [row] = await self._database.fetch(
            "add_token",
            digest=token.digest,
            name=token.name,
            role=token.role.value,
            scopes=list(token.scopes),
            hint=token.hint,
            author=token.author,
            expires_at=token.expires_at,
            at=at,
        )
        return _token(row)

    async def tokens(self, *, at: Stamp) -> list[Token]:
        return [_token(row) for row in await self._database.fetch("tokens_on_record", at=at)]

    async def token(self, digest: bytes, *, at: Stamp) -> Token | None:
        found = await self._database.relaxed("token", digest=digest, at=at)
        if not found:
            return None
        await self._note("note_token", found[0], at)
        return _token(found[0])

    async def revoke_token(self, token_id: int, *, at: Stamp) -> bool:
        async with self._database.transaction("revoke_token") as transaction:
            revoked = await transaction.fetch("revoke_token", id=token_id, at=at)
            await transaction.fetch("close_sessions_of_token", id=token_id)
        return bool(revoked)

    async def open_session(self, session: NewSession, *, longest: timedelta, at: Stamp) -> Session:
        async with self._database.transaction("open_session") as transaction:
            await transaction.fetch("forget_sessions", longest=longest, at=at)
            [row] = await transaction.fetch(
                "open_session",
                digest=session.digest,
                name=session.name,
                role=session.role.value,
                scopes=list(session.scopes),
                token_id=session.token_id,
                at=at,
            )
        return _session(row)

    async def session(
        self, digest: bytes, *, idle: timedelta, longest: timedelta, at: Stamp
    ) -> Session | None:
        limits = {"idle": idle, "longest": longest, "at": at}
        found = await self._database.relaxed("session_on_record", digest=digest, **limits)
        if not found:
            return None
        await self._note("note_session", found[0], at)
        return _session(found[0])

    async def close_sessions(
        self, *, session_id: int | None = None, name: str | None = None, at: Stamp
    ) -> int:
        closed = 0
        if session_id is not None:
            closed += len(await self._database.fetch("close_session", id=session_id))
        if name is not None:
            closed += len(await self._database.fetch("close_sessions_of", name=name))
        return closed

    async def sessions(self, *, idle: timedelta, longest: timedelta, at: Stamp) -> list[Session]:
        found = await self._database.fetch("open_sessions", idle=idle, longest=longest, at=at)
        return [_session(row) for row in found]

    async def _note(self, statement: str, row: Record, at: Stamp) -> None:
        if row["worth_noting"]:
            await self._database.relaxed(statement, id=row["id"], at=at)


def _token(row: Record) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        role=AccessRole(row["role"]),
        hint=row["hint"],
        author=row["author"],
        scopes=tuple(row["scopes"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
        alive=row["alive"],
    )


def _session(row: Record) -> Session:
    return Session(
        id=row["id"],
        name=row["name"],
        role=AccessRole(row["role"]),
        scopes=tuple(row["scopes"]),
        token_id=row["token_id"],
        opened_at=row["opened_at"],
        seen_at=row["seen_at"],
        token_expires_at=row["token_expires_at"],
    )
