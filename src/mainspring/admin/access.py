"""Tokens and sessions of users and programs. The secret of a token is shown once."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.admin.views import iso
from mainspring.clock import Clock
from mainspring.config import AccessConfig
from mainspring.duration import Duration, duration
from mainspring.entropy import Entropy
from mainspring.errors import InvalidArgument, MoreThanOwn, NotFound
from mainspring.model.access import NOUNS, AccessRole, Actor, NewSession, NewToken, Session, Token
from mainspring.model.value import Value
from mainspring.store.store import Store

RoleOption = Literal["viewer", "operator", "admin"]
PREFIX = "ms_"
"""The begin of every token, so that scanners for leaked secrets recognise it."""
HINT = len(PREFIX) + 4
LONGEST_NAME = 100
LONGEST_TOKEN = 200
_MINUTE, _LONGEST = timedelta(minutes=1), timedelta(days=3650)


class Shown(Value, frozen=True, kw_only=True):
    """A new token with its secret. The secret is not shown again."""

    token: Token
    secret: str


class Tokens(Noun):
    """Tokens of one store."""

    @order("tokens.create", result=lambda made: {"token_id": made.token.id})
    async def acreate(
        self,
        name: str,
        *,
        role: RoleOption,
        scopes: Sequence[str] = (),
        expires: Duration | None = None,
    ) -> Shown:
        """Create a token of this name. Without `scopes` it has all scopes; without `expires` it ends when it
        is revoked. An actor cannot grant more than its own access, and not for longer."""
        valid_actor_name(name)
        store, actor, entropy = await self._store(), self._context.actor, self._context.entropy
        kept, secret = _role(role), PREFIX + _written(entropy.secret())
        now = await store.now(at=self._stamp)
        ends = None if expires is None else now + _lifetime(expires)
        _check_giver(actor, kept, _scopes(scopes), ends, expires)
        new = NewToken(
            name=name,
            role=kept,
            digest=digest_of(secret),
            hint=secret[:HINT],
            author=actor.name,
            scopes=_scopes(scopes),
            expires_at=ends,
        )
        return await carried_out(
            store.access.add_token(new, at=self._stamp), lambda token: Shown(token=token, secret=secret)
        )

    async def aall(self) -> list[Token]:
        """Every stored token, newest first."""
        return await (await self._store()).access.tokens(at=self._stamp)

    @order("tokens.revoke", result=lambda changed: {"changed": changed})
    async def arevoke(self, token_id: int) -> bool:
        """End a token and its sessions at once. False if the token had already ended."""
        if token_id not in {each.id for each in await self.aall()}:
            raise NotFound("token", token_id)
        return await carried_out((await self._store()).access.revoke_token(token_id, at=self._stamp))

    create = blocking(acreate)
    all = blocking(aall)
    revoke = blocking(arevoke)


class Sessions(Noun):
    """Sessions of browsers that have signed in."""

    async def aall(self) -> list[Session]:
        """Sessions that are open, newest first."""
        limits = _limits(self._context.settings.access)
        return await (await self._store()).access.sessions(**limits, at=self._stamp)

    @order("sessions.end")
    async def aend(self, session_id: int) -> None:
        """Sign one browser out, at once."""
        store = await self._store()
        if not await carried_out(store.access.close_sessions(session_id=session_id, at=self._stamp)):
            raise NotFound("session", session_id)

    @order("sessions.end", result=lambda count: {"ended": count})
    async def aend_of(self, name: str) -> int:
        """Sign every browser of this name out; answers how many they were."""
        store = await self._store()
        return await carried_out(store.access.close_sessions(name=valid_actor_name(name), at=self._stamp))

    all = blocking(aall)
    end = blocking(aend)
    end_of = blocking(aend_of)


class Credentials:
    """Finds the actor of a request by the secret of a token or the cookie of a session."""

    def __init__(self, store: Store, clock: Clock, entropy: Entropy, settings: AccessConfig) -> None:
        self._store, self._clock, self._entropy, self._settings = store, clock, entropy, settings

    async def token_actor(self, secret: str) -> Actor | None:
        """The actor of a token; None if the token has ended. The look-up uses the digest, so its duration
        contains no information about other tokens."""
        if not secret.startswith(PREFIX) or len(secret) > LONGEST_TOKEN:
            return None
        token = await self._store.access.token(digest_of(secret), at=self._clock.stamp())
        if token is None:
            return None
        return Actor(
            name=token.name,
            role=token.role,
            via="token",
            scopes=token.scopes,
            token_id=token.id,
            until=token.expires_at,
        )

    async def sign_in(self, actor: Actor) -> str:
        """Open a session; the answer is the value of its cookie."""
        cookie = _written(self._entropy.secret())
        new = NewSession(
            digest=digest_of(cookie),
            name=actor.name,
            role=actor.role,
            scopes=actor.scopes,
            token_id=actor.token_id,
        )
        await self._store.access.open_session(
            new, longest=self._settings.session_longest, at=self._clock.stamp()
        )
        return cookie

    async def sign_out(self, session_id: int) -> None:
        """End a session. Nothing happens if it has already ended."""
        await self._store.access.close_sessions(session_id=session_id, at=self._clock.stamp())

    async def session_actor(self, cookie: str) -> Actor | None:
        """The actor of a session; None if the session has ended. Every request calls this again."""
        if len(cookie) > LONGEST_TOKEN:
            return None
        found = await self._store.access.session(
            digest_of(cookie), **_limits(self._settings), at=self._clock.stamp()
        )
        if found is None:
            return None
        return Actor(
            name=found.name,
            role=found.role,
            via="session",
            scopes=found.scopes,
            token_id=found.token_id,
            session_id=found.id,
            until=self._session_ends(found),
        )

    def _session_ends(self, session: Session) -> datetime:
        longest = session.opened_at + self._settings.session_longest
        return longest if session.token_expires_at is None else min(longest, session.token_expires_at)


def digest_of(secret: str) -> bytes:
    """The stored form of a secret. A secret has 256 random bits, so a fast hash is safe."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def valid_actor_name(name: object) -> str:
    """The name, or InvalidArgument if it cannot be stored as the name of an actor."""
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or name.strip() != name
        or not 1 <= len(name) <= LONGEST_NAME
    ):
        raise InvalidArgument("name", name, f"one line of 1 to {LONGEST_NAME} printable characters")
    return name


class TokenView(Value, frozen=True, kw_only=True):
    """A token as programs read it."""

    id: int
    name: str
    role: AccessRole
    scopes: tuple[str, ...]
    hint: str
    author: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    alive: bool

    @classmethod
    def of(cls, token: Token, **more: Any) -> Self:
        """Of a token; `more` are the fields that a larger answer adds."""
        return cls(
            id=token.id,
            name=token.name,
            role=token.role,
            scopes=token.scopes,
            hint=f"{token.hint}…",
            author=token.author,
            created_at=token.created_at,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
            revoked_at=token.revoked_at,
            alive=token.alive,
            **more,
        )


class NewTokenView(TokenView, frozen=True, kw_only=True):
    """A token that was just made, with its secret."""

    secret: str


class SessionView(Value, frozen=True, kw_only=True):
    """A session as programs read it."""

    id: int
    name: str
    role: AccessRole
    scopes: tuple[str, ...]
    token_id: int | None
    opened_at: datetime
    seen_at: datetime

    @classmethod
    def of(cls, session: Session) -> Self:
        """Of a session."""
        return cls(
            id=session.id,
            name=session.name,
            role=session.role,
            scopes=session.scopes,
            token_id=session.token_id,
            opened_at=session.opened_at,
            seen_at=session.seen_at,
        )


def _role(role: object) -> AccessRole:
    try:
        return AccessRole(str(role))
    except ValueError:
        raise InvalidArgument("role", role, f"one of {', '.join(AccessRole)}") from None


def _written(secret: bytes) -> str:
    return urlsafe_b64encode(secret).rstrip(b"=").decode()


def _lifetime(expires: Duration) -> timedelta:
    length = duration(expires, "expires", least=_MINUTE)
    if length > _LONGEST:
        raise InvalidArgument("expires", expires, f"at most {_LONGEST.days}d")
    return length


def _check_giver(
    giver: Actor, role: AccessRole, scopes: tuple[str, ...], ends: datetime | None, expires: Duration | None
) -> None:
    if not giver.role.includes(role):
        raise MoreThanOwn("role", role.value, f"at most {giver.role.value}, which {giver.name} has")
    if giver.scopes and not (scopes and set(scopes) <= set(giver.scopes)):
        own = ", ".join(giver.scopes)
        raise MoreThanOwn("scopes", list(scopes), f"one or more of {own}, which {giver.name} has")
    if giver.until is not None and (ends is None or ends > giver.until):
        raise MoreThanOwn(
            "expires", expires, f"an end by {iso(giver.until)}, when the access of {giver.name} ends"
        )


def _scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    for each in scopes:
        if each not in NOUNS:
            raise InvalidArgument("scope", each, f"one of {', '.join(NOUNS)}")
    return tuple(dict.fromkeys(scopes))


def _limits(settings: AccessConfig) -> dict[str, timedelta]:
    return {"idle": settings.session_idle, "longest": settings.session_longest}
