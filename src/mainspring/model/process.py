"""Processes, each with a lease to be alive, and the named leases of user code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from mainspring.model.value import Value

WATCH_GAP = timedelta(seconds=2)
"""A longer time between two looks may have been an outage, or a clock that was set forward."""
_NEVER = datetime(9998, 1, 1, tzinfo=UTC)
LONGEST_LEASE = timedelta(days=1)


class Role(StrEnum):
    """What a process does."""

    WORKER = "worker"
    SCHEDULER = "scheduler"


class NewProcess(Value, frozen=True, kw_only=True):
    """One start of one process. The id is random, never a host name."""

    id: int
    role: Role
    name: str
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    version: str = ""
    tzdata: str = ""


class ProcessInfo(Value, frozen=True, kw_only=True):
    """A process as the store sees it."""

    id: int
    role: Role
    name: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    version: str
    tzdata: str
    started_at: datetime
    lease_until: datetime
    alive: bool
    skew: timedelta | None = None
    """How far its clock was ahead of the store's at its last heartbeat; None until then. The time that the
    heartbeat took on its way is included."""
    holding: int = 0
    """Jobs that it ran then."""


class Beat(Value, frozen=True, kw_only=True):
    """The store's answer to a heartbeat."""

    alive: bool
    """False: the lease has ended, and every claim under it is void."""
    lost: tuple[int, ...] = ()
    """Jobs named in the beat whose claim is no longer ours (cancelled, or taken away)."""


class Watch(Value, frozen=True, kw_only=True):
    """Since when some process has reached the store without a gap. A process that could not renew while no
    process could reach the store is not dead: its lease counts only for the time in which the store was
    reached."""

    since: datetime
    """The first of these looks, by the store's clock."""
    last: datetime
    """The last one before this."""

    def seen(self, at: datetime) -> Watch:
        """The same after another look. A gap begins a new watch; so does a clock that was set back."""
        return Watch(since=self.since if self.last <= at <= self.last + WATCH_GAP else at, last=at)


UNWATCHED = Watch(since=_NEVER, last=_NEVER)
"""Before the first look, and after a look that the store did not answer."""


class Reaped(Value, frozen=True, kw_only=True):
    """What one reaping pass did."""

    at: datetime | None = None
    """When it was, by the store's clock."""
    late: bool = False
    """Whether there are processes whose lease has ended and who still have time to renew it."""
    processes: tuple[str, ...] = ()
    """Names of the processes whose lease had ended."""
    jobs: int = 0
    """Claims of theirs that were taken back."""
    buried: tuple[int, ...] = ()
    """Those of the jobs that had crashed too often, and are dead letters now."""


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
    """The answer when another holder has the lease."""

    name: str
    holder: str
    """The name of the holder, for people to read."""
    until: datetime
    """When it ends, unless it is renewed or released before."""
    remaining: timedelta
    """How long that is by the store's clock; not positive when it ended while we asked."""


class LeaseInfo(Value, frozen=True, kw_only=True):
    """A lease on record, for people to read."""

    name: str
    token: int
    holder: str
    """The last holder, if the lease is free now."""
    acquired_at: datetime
    expires_at: datetime
    held: bool
