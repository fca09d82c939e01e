"""The audit log: commands of people and programs. Entries are only appended."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from mainspring.model.value import Value


class AuditPhase(StrEnum):
    """An order that is one transaction has one entry, DONE or FAILED. Any other order has an entry ORDERED
    before it begins, and a second one when its end is known: without the second it is in doubt."""

    ORDERED = "ordered"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    """The actor was not allowed to."""


class NewAuditEntry(Value, frozen=True, kw_only=True):
    """An entry to be appended."""

    phase: AuditPhase
    action: str
    """Noun and verb: jobs.cancel."""
    actor: str
    role: str
    via: str
    object: str = ""
    """The object of the command: an id or a name."""
    details: bytes = b"{}"
    """JSON: what was asked for, what came of it, or both; secrets are redacted."""
    order: int | None = None
    """Of the second entry of an order: the first."""
    address: str = ""
    """Where the request came from."""


class AuditEntry(Value, frozen=True, kw_only=True):
    """An entry on record. `digest` covers the entry and the digest of the one before it."""

    id: int
    at: datetime
    phase: AuditPhase
    action: str
    actor: str
    role: str
    via: str
    object: str
    details: bytes
    order: int | None
    address: str
    digest: bytes


class AuditFilter(Value, frozen=True, kw_only=True):
    """Which entries, newest first; `before` is the last id of the page above."""

    action: str | None = None
    actor: str | None = None
    object: str | None = None
    before: int | None = None
    limit: int = 50
