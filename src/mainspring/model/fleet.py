"""The processes: workers and schedulers, each with a lease to live."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.value import Value


class Role(StrEnum):
    """What a process does."""

    WORKER = "worker"
    SCHEDULER = "scheduler"


class Member(Value, frozen=True, kw_only=True):
    """One start of one process. The id is random, never a host name."""

    id: int
    role: Role
    name: str
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    version: str = ""
    tzdata: str = ""


class MemberInfo(Value, frozen=True, kw_only=True):
    """A member as the store sees it."""

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
    """How far its clock was ahead of the store's when it last said that it lives; None until then. What the
    call took on its way counts against it."""
    holding: int = 0
    """Jobs that it had in hand then."""


class Beat(Value, frozen=True, kw_only=True):
    """The store's answer to a heartbeat."""

    alive: bool
    """False: the lease has ended, and every claim under it is void."""
    lost: tuple[int, ...] = ()
    """Jobs named in the beat whose claim is no longer ours (cancelled, or taken away)."""


class Reaped(Value, frozen=True, kw_only=True):
    """What one reaping pass did."""

    members: tuple[str, ...] = ()
    """Names of the processes whose lease had ended."""
    jobs: int = 0
    """Claims of theirs that were taken back."""
    buried: tuple[int, ...] = ()
    """Those of the jobs that had crashed too often, and are dead letters now."""
