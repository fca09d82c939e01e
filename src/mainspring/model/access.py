"""Who may do what from outside: roles, actors, tokens and sessions."""

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
    "acts",
    "access",
)
"""What routes are about, and tokens may be confined to."""


class AccessRole(StrEnum):
    """What an actor may do; each may do what those before it may."""

    VIEWER = "viewer"
    """Read."""
    OPERATOR = "operator"
    """Enqueue, cancel, retry, replay, pause, trigger, backfill."""
    ADMIN = "admin"
    """Purge, delete, and give others access."""

    def includes(self, other: AccessRole) -> bool:
        """Whether who has this role may do what `other` may."""
        order = tuple(AccessRole)
        return order.index(self) >= order.index(other)


class Actor(Value, frozen=True, kw_only=True):
    """Somebody who asks or orders something; the name goes on record."""

    name: str
    role: AccessRole
    via: str
    """By which door they came: cli, token, session, oidc, host (an app that holds our pages)."""
    scopes: tuple[str, ...] = ()
    """The nouns (jobs, schedules, …) they are confined to; none for all."""
    token_id: int | None = None
    session_id: int | None = None
    until: datetime | None = None
    """When their access ends of itself; None for never."""

    def may(self, role: AccessRole, noun: str) -> bool:
        """Whether they may do on this noun what needs that role."""
        return self.role.includes(role) and (not self.scopes or noun in self.scopes)


class NewToken(Value, frozen=True, kw_only=True):
    """A token to be kept. The token itself never is: `digest` is its SHA-256."""

    name: str
    role: AccessRole
    digest: bytes
    hint: str
    """Its first characters, by which people know it in a list."""
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
    """A browser that has signed in. `digest` is the SHA-256 of what its cookie says."""

    digest: bytes
    name: str
    role: AccessRole
    scopes: tuple[str, ...] = ()
    token_id: int | None = None
    """The token it was opened with: the session ends with it."""


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
