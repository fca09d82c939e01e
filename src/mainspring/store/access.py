"""Tokens and sessions of HTTP clients and users."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.access import NewSession, NewToken, Session, Token
from mainspring.store.audit_log import carried_out, carried_out_alone
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.rows import reader

_token = reader(Token)
_session = reader(Session)
_NOTE_EVERY = timedelta(minutes=1)
"""The time of last use is written at most this often."""


class Access:
    """Tokens and sessions. The secret of a token or session is never stored, only its digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_token(self, token: NewToken, *, at: Stamp) -> Token:
        """Store a token."""
        return await carried_out_alone(
            self._database,
            "add_token",
            lambda rows: _token(rows[0]),
            digest=token.digest,
            name=token.name,
            role=token.role.value,
            scopes=list(token.scopes),
            hint=token.hint,
            author=token.author,
            expires_at=token.expires_at,
            at=at,
        )

    @reads
    async def tokens(self, *, at: Stamp) -> list[Token]:
        """Every token on record, also those that were revoked or have expired, newest first."""
        return [_token(row) for row in await self._database.fetch("tokens_on_record", at=at)]

    @reads
    async def token(self, digest: bytes, *, at: Stamp) -> Token | None:
        """The live token of this digest. Its time of last use is written at most once a minute."""
        found = await self._database.relaxed("token", digest=digest, note_every=_NOTE_EVERY, at=at)
        if not found:
            return None
        await self._note("note_token", found[0], at)
        return _token(found[0])

    async def revoke_token(self, token_id: int, *, at: Stamp) -> bool:
        """End a token and every session opened with it; False when it was not alive."""

        async def work(tx: Transaction) -> bool:
            revoked = await tx.fetch("revoke_token", id=token_id, at=at)
            await tx.fetch("close_sessions_of_token", id=token_id)
            return bool(revoked)

        return await carried_out(self._database, "revoke_token", work)

    async def open_session(self, session: NewSession, *, longest: timedelta, at: Stamp) -> Session:
        """Open a session now. Sessions older than `longest` are deleted in the same transaction."""

        async def work(tx: Transaction) -> Session:
            await tx.fetch("forget_sessions", longest=longest, at=at)
            [row] = await tx.fetch(
                "open_session",
                digest=session.digest,
                name=session.name,
                role=session.role.value,
                scopes=list(session.scopes),
                token_id=session.token_id,
                at=at,
            )
            return _session(row)

        return await carried_out(self._database, "open_session", work)

    @reads
    async def session(
        self, digest: bytes, *, idle: timedelta, longest: timedelta, at: Stamp
    ) -> Session | None:
        """The session of this digest; None when it was closed, its token is not alive, it was not used for
        `idle`, or it is older than `longest`. Its time of last use is written at most once a minute."""
        found = await self._database.relaxed(
            "session_on_record", digest=digest, idle=idle, longest=longest, note_every=_NOTE_EVERY, at=at
        )
        if not found:
            return None
        await self._note("note_session", found[0], at)
        return _session(found[0])

    async def close_sessions(
        self, *, session_id: int | None = None, name: str | None = None, at: Stamp
    ) -> int:
        """End one session, or all sessions of one name; answer how many."""

        async def work(tx: Transaction) -> int:
            closed = [] if session_id is None else await tx.fetch("close_session", id=session_id)
            named = [] if name is None else await tx.fetch("close_sessions_of", name=name)
            return len(closed) + len(named)

        return await carried_out(self._database, "close_sessions", work)

    @reads
    async def sessions(self, *, idle: timedelta, longest: timedelta, at: Stamp) -> list[Session]:
        """Open sessions, newest first."""
        found = await self._database.fetch("open_sessions", idle=idle, longest=longest, at=at)
        return [_session(row) for row in found]

    async def _note(self, statement: str, row: Row, at: Stamp) -> None:
        if row["worth_noting"]:
            await self._database.relaxed(statement, id=row["id"], at=at)
