"""Who may come in from outside, and the log of what they ordered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from mainspring.model.access import NewSession, NewToken, Session, Token
from mainspring.model.act import Act, ActFilter, NewAct
from mainspring.store.ports.stamp import Stamp


class AccessStore(Protocol):
    """Tokens and sessions. What they are known by is never kept, only its digest."""

    async def add_token(self, token: NewToken, *, at: Stamp) -> Token:
        """Keep a token."""

    async def tokens(self, *, at: Stamp) -> list[Token]:
        """Every token on record, dead ones too, newest first."""

    async def token(self, digest: bytes, *, at: Stamp) -> Token | None:
        """The live token of this digest; that it was used is noted, at most once a minute."""

    async def revoke_token(self, token_id: int, *, at: Stamp) -> bool:
        """End a token and every session opened with it; False when it was not alive."""

    async def open_session(self, session: NewSession, *, longest: timedelta, at: Stamp) -> Session:
        """A session from now on. Those older than `longest` are forgotten on the way."""

    async def session(
        self, digest: bytes, *, idle: timedelta, longest: timedelta, at: Stamp
    ) -> Session | None:
        """The session of this digest, unless it was closed, its token is dead, it was not seen for `idle`, or
        it is older than `longest`. That it was seen is noted, at most once a minute."""

    async def close_sessions(
        self, *, session_id: int | None = None, name: str | None = None, at: Stamp
    ) -> int:
        """End one session, or all of one name; answer how many."""

    async def sessions(self, *, idle: timedelta, longest: timedelta, at: Stamp) -> list[Session]:
        """Those that are open, newest first."""


class ActStore(Protocol):
    """The log of acts. Entries are appended one after the other and never change."""

    async def append_acts(self, acts: Sequence[NewAct], *, at: Stamp) -> list[Act]:
        """Append entries, in order. Durable on return."""

    async def find_acts(self, which: ActFilter) -> list[Act]:
        """Orders and refusals, newest first. How the orders ended is an entry of its own: `act_ends`."""

    async def act_ends(self, order_ids: Sequence[int]) -> dict[int, Act]:
        """The entries that tell the end of these orders, by order. One that is missing is in doubt."""

    async def acts_after(self, act_id: int, *, limit: int) -> list[Act]:
        """Every entry in the order they were made: for whoever checks the chain."""

    async def acts_head(self) -> tuple[int, bytes]:
        """The id and the digest of the last entry; 0 and zeros before the first."""
