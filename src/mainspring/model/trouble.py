"""What an operator should know of first: what was seen in the store, and what is wrong with it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.fleet import MemberInfo, Role
from mainspring.model.queue import QueuePause
from mainspring.model.value import Value


class Rule(StrEnum):
    """What may be wrong with a schedule, a task, a queue or a process: the subject of its trouble."""

    MISSED = "missed"
    """A slot that should have been decided was not."""
    LATE_START = "late_start"
    """A slot's job is due and has not started."""
    LATE_FINISH = "late_finish"
    """A slot's job has not ended by when its schedule expects it."""
    FAILED = "failed"
    """Jobs of a task became dead letters."""
    FAILING = "failing"
    """A schedule's last jobs all became dead letters."""
    DEAD_GROWTH = "dead_growth"
    """Many jobs became dead letters in a short time."""
    OLDEST_WAITING = "oldest_waiting"
    """The oldest job that is due in a queue waits for too long."""
    NO_WORKER = "no_worker"
    """A queue has jobs that are due, and nobody alive takes them."""
    NO_SCHEDULER = "no_scheduler"
    """There are schedules, and no scheduler is alive."""
    SCHEDULER_LAG = "scheduler_lag"
    """Schedulers are alive and behind."""
    MEMBER_LOST = "member_lost"
    """A process did not renew its lease."""
    STORE = "store"
    """A process cannot reach the store. Each tells of itself, since nobody can tell of all."""


class Severity(StrEnum):
    """How much it matters; what is critical is told in quiet hours too."""

    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"


class Trouble(Value, frozen=True, kw_only=True):
    """Something is wrong. Rule and subject together name it."""

    rule: Rule
    subject: str
    severity: Severity
    since: datetime
    """When it began."""
    sentence: str
    hold: timedelta = timedelta()
    """Who is to be woken wants it to have been so for this long."""


class Waiting(Value, frozen=True, kw_only=True):
    """The oldest job of a queue, at one priority, that is due and that nobody has."""

    queue: str
    task: str
    job_id: int
    due_at: datetime


class Overdue(Value, frozen=True, kw_only=True):
    """A slot that has passed and that nobody has decided about."""

    schedule: str
    slot_at: datetime
    expect_start_within: timedelta | None = None


class Late(Value, frozen=True, kw_only=True):
    """A slot's job that is due, or under way, for longer than expected."""

    schedule: str
    slot_at: datetime
    job_id: int
    queue: str
    due_at: datetime | None
    """None while it waits for others of its schedule, or for a limit."""
    claimed: bool
    """A worker has it now."""
    begun: bool
    """Some worker had it once."""
    expect_start_within: timedelta | None = None
    expect_finish_by: timedelta | None = None


class Lost(Value, frozen=True, kw_only=True):
    """A process whose lease ended without a word."""

    name: str
    role: Role
    lost_at: datetime


class Died(Value, frozen=True, kw_only=True):
    """A dead letter, without what it was given."""

    job_id: int
    task: str
    died_at: datetime
    reason: str
    schedule: str | None = None


class Streak(Value, frozen=True, kw_only=True):
    """The newest ended jobs of a schedule's slots that are all dead letters."""

    schedule: str
    failures: int
    since: datetime
    """The earliest slot of them that was looked at."""


class Watched(Value, frozen=True, kw_only=True):
    """How far a look goes back, and how much of each kind it brings at most."""

    missed_after: timedelta
    late_after: timedelta
    dead_window: timedelta
    lost_window: timedelta
    streak: int
    """Slots of a schedule that are looked at for failures."""
    most: int = 200


class Facts(Value, frozen=True, kw_only=True):
    """What one look at the store found. Every list is bounded: it holds the oldest or newest of its kind."""

    now: datetime
    members: tuple[MemberInfo, ...] = ()
    lost: tuple[Lost, ...] = ()
    scheduled: bool = False
    """Whether any schedule has a slot to come."""
    behind_since: datetime | None = None
    """The earliest slot that is due and not decided."""
    overdue: tuple[Overdue, ...] = ()
    late: tuple[Late, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    pauses: tuple[QueuePause, ...] = ()
    died: tuple[Died, ...] = ()
    """The newest dead letters, newest first."""
    grown: int = 0
    """Dead letters of the window, counted up to a bound."""
    streaks: tuple[Streak, ...] = ()
