"""Leases of user code: one holder at a time for each name, and a token that rises with every holder."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.model.value import Value


class Lease(Value, frozen=True, kw_only=True):
    """A lease as it was granted."""

    name: str
    token: int
    """Rises with every new holder of the name, for ever: the fence for what the holder writes elsewhere."""
    holder_id: int
    """Random for each acquisition, never a host name."""
    acquired_at: datetime
    expires_at: datetime


class Held(Value, frozen=True, kw_only=True):
    """The answer when somebody else has the lease."""

    name: str
    holder: str
    """Who, for people to read."""
    until: datetime
    """When it ends, unless it is renewed or released before."""
    remaining: timedelta
    """How long that is by the store's clock; not positive when it ended while we asked."""


class LeaseInfo(Value, frozen=True, kw_only=True):
    """A lease on record, for people to read."""

    name: str
    token: int
    holder: str
    """The last one, when nobody holds it now."""
    acquired_at: datetime
    expires_at: datetime
    held: bool
