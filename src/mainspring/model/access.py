"""Access from outside: roles, actors, tokens and sessions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from mainspring.model.value import Value

NOUNS = (
    "jobs",
    "dead",
    "events",
    "schedules",
    "backfills",
    "ledger",
    "workflows",
    "queues",
    "limits",
    "fleet",
    "stats",
    "alerts",
    "health",
    "metrics",
    "audit_log",
    "access",
)
"""The subjects of routes. A token may be restricted to some of them."""


class AccessRole(StrEnum):
    """What an actor may do; each may do what those before it may."""

    VIEWER = "viewer"
    """Read."""
    OPERATOR = "operator"
    """Enqueue, cancel, retry, replay, pause, trigger, backfill."""
    ADMIN = "admin"
    """Purge, delete, and give others access."""

    def includes(self, other: AccessRole) -> bool:
        """Whether this role may do all that `other` may."""
        order = tuple(AccessRole)
        return order.index(self) >= order.index(other)


class Actor(Value, frozen=True, kw_only=True):
    """The user or program that sends a request or a command; the name is recorded."""

    name: str
    role: AccessRole
    via: str
    """How the actor came in: cli, token, session, oidc, host (an app that mounts our pages)."""
    scopes: tuple[str, ...] = ()
    """The nouns (jobs, schedules, …) that the actor may use; empty for all."""
    token_id: int | None = None
    session_id: int | None = None
    until: datetime | None = None
    """When the access expires; None for never."""

    def may(self, role: AccessRole, noun: str) -> bool:
        """Whether the actor may do what needs that role on this noun."""
        return self.role.includes(role) and (not self.scopes or noun in self.scopes)


class NewToken(Value, frozen=True, kw_only=True):
    """A token to be stored. The token itself is not stored: `digest` is its SHA-256."""

    name: str
    role: AccessRole
    digest: bytes
    hint: str
    """Its first characters, so that people recognise it in a list."""
    author: str
    scopes: tuple[str, ...] = ()
    expires_at: datetime | None = None


class Token(Value, frozen=True, kw_only=True):
    """A token on record."""

    id: int
    name: str
    role: AccessRole
    hint: str
    author: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    alive: bool
    """Neither revoked nor expired, by the store's clock."""


class NewSession(Value, frozen=True, kw_only=True):
    """A browser that has signed in. `digest` is the SHA-256 of the value of its cookie."""

    digest: bytes
    name: str
    role: AccessRole
    scopes: tuple[str, ...] = ()
    token_id: int | None = None
    """The token that opened the session: the session ends with it."""


class Session(Value, frozen=True, kw_only=True):
    """A session on record."""

    id: int
    name: str
    role: AccessRole
    scopes: tuple[str, ...]
    token_id: int | None
    opened_at: datetime
    seen_at: datetime
    token_expires_at: datetime | None = None
    """When the token that it was opened with ends."""
