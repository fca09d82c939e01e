"""Alerts: what may be wrong, what a look at the store found, and the messages about it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.process import ProcessInfo, Role
from mainspring.model.queue import QueuePause
from mainspring.model.value import Value

COUNTED = 1_000
"""Dead letters of a task are counted up to here; those of all, up to here or to what is too many."""


class Rule(StrEnum):
    """What may be wrong with a schedule, a task, a queue or a process: the subject of its trouble."""

    MISSED = "missed"
    """A slot that should have been decided was not."""
    SLOTS_DROPPED = "slots_dropped"
    """A schedule lost missed slots: they were older than its catch_up, or the circuit breaker was open."""
    LATE_START = "late_start"
    """A slot's job is due and has not started."""
    LATE_FINISH = "late_finish"
    """A slot's job has not ended by when its schedule expects it."""
    FAILED = "failed"
    """Jobs of a task became dead letters."""
    FAILING = "failing"
    """A schedule's last jobs all became dead letters."""
    RETRYING = "retrying"
    """Runs of a task fail and are tried again, and none succeeds."""
    DEAD_GROWTH = "dead_growth"
    """Many jobs became dead letters in a short time."""
    OLDEST_WAITING = "oldest_waiting"
    """The oldest job that is due in a queue waits for too long."""
    NO_WORKER = "no_worker"
    """A queue has jobs that are due, and no live worker takes them."""
    NO_SCHEDULER = "no_scheduler"
    """There are schedules, and no scheduler is alive."""
    SCHEDULER_LAG = "scheduler_lag"
    """Schedulers are alive and behind."""
    PROCESS_LOST = "process_lost"
    """A process did not renew its lease."""
    CLOCK_SKEW = "clock_skew"
    """The clock of a process is far from the database's."""
    OUTAGE = "outage"
    """For a time nothing ran at all. It is over, and is reported once."""
    STORE = "store"
    """A process cannot reach the store. Each process reports for itself."""


class Severity(StrEnum):
    """How much it matters; critical alerts are sent in quiet hours too."""

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
    """How long it must last before it becomes an alert."""
    recorded: bool = False
    """`since` is on record, and the hold counts from there; else from when it was first seen."""
    after_start: bool = False
    """A start or a deploy looks like this too: it is reported only when a start must be over."""


class Waiting(Value, frozen=True, kw_only=True):
    """The oldest job of a queue, at one priority, that is due and not claimed."""

    queue: str
    task: str
    job_id: int
    due_at: datetime


class Overdue(Value, frozen=True, kw_only=True):
    """A slot that has passed and is not decided."""

    schedule: str
    slot_at: datetime
    expect_start_within: timedelta | None = None


class Dropped(Value, frozen=True, kw_only=True):
    """Slots of a schedule that were dropped lately, and that no backfill has run since."""

    schedule: str
    since: datetime
    until: datetime
    """The first and the last of the slots."""
    dropped_at: datetime
    """When the first of them was dropped."""
    breaker: bool
    """Whether the circuit breaker left any of them out."""


class LateJob(Value, frozen=True, kw_only=True):
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
    """A worker had it once."""
    expect_start_within: timedelta | None = None
    expect_finish_by: timedelta | None = None


class Lost(Value, frozen=True, kw_only=True):
    """A process whose lease ended without a clean stop."""

    name: str
    role: Role
    lost_at: datetime


class Died(Value, frozen=True, kw_only=True):
    """The dead letters of one task within the window, by the newest of them."""

    task: str
    jobs: int
    """How many; counted up to `COUNTED`."""
    since: datetime
    """When the first of them died."""
    job_id: int
    died_at: datetime
    reason: str
    schedule: str | None = None


class Retrying(Value, frozen=True, kw_only=True):
    """A task whose runs have failed since its last good minutes."""

    task: str
    failed: int
    succeeded: int
    since: datetime


class Outage(Value, frozen=True, kw_only=True):
    """A time in which no process was alive and nothing was counted: nothing ran."""

    began_at: datetime
    ended_at: datetime


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
    failed_window: timedelta
    dead_window: timedelta
    dead_growth: int
    lost_window: timedelta
    failing: int
    """Dead letters of a schedule from which on it is looked at."""
    streak: int
    """Slots of a schedule that are looked at for failures."""
    dropped_window: timedelta = timedelta(days=1)
    most: int = 1000
    """Of one kind, this many are named: schedules, tasks, queues, processes."""
    scanned: int = 20_000
    """Candidates of one kind that are looked at."""


class Facts(Value, frozen=True, kw_only=True):
    """What one look at the store found. Every list is bounded, and has each schedule, task, queue or process
    once or twice: many of one do not hide another. What was longer is said in `cut`."""

    now: datetime
    processes: tuple[ProcessInfo, ...] = ()
    lost: tuple[Lost, ...] = ()
    scheduled: bool = False
    """Whether any schedule has a slot to come."""
    behind_since: datetime | None = None
    """The earliest slot that is due and not decided."""
    overdue: tuple[Overdue, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    late: tuple[LateJob, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    pauses: tuple[QueuePause, ...] = ()
    died: tuple[Died, ...] = ()
    """By task, the newest first."""
    grown: int = 0
    """Dead letters of the window, counted up to a bound."""
    grown_since: datetime | None = None
    """When the first of those that were counted died."""
    streaks: tuple[Streak, ...] = ()
    retrying: tuple[Retrying, ...] = ()
    gaps: tuple[Outage, ...] = ()
    cut: tuple[Rule, ...] = ()
    """Rules whose list was cut: what is not in it may still be so."""


class AlertMove(StrEnum):
    """What happens to an alert. Each is written only if it has not happened yet."""

    OPENED = "opened"
    """The trouble has lasted long enough."""
    CLEARING = "clearing"
    """It is not seen any more."""
    STANDING = "standing"
    """It is seen again."""
    REPEATED = "repeated"
    CLOSED = "closed"
    """It was not seen for long enough."""
    FORGOTTEN = "forgotten"
    """It passed before it was to be reported."""


class NoteKind(StrEnum):
    """The kind of a note."""

    OPENED = "opened"
    REPEATED = "repeated"
    RECOVERED = "recovered"


class NoteState(StrEnum):
    """The state of a note."""

    WAITING = "waiting"
    SENDING = "sending"
    """A process is about to send it, or has sent it and could not record that: then it is sent again, with
    its id."""
    SENT = "sent"
    FAILED = "failed"
    """Given up."""


class Alert(Value, frozen=True, kw_only=True):
    """An alert on record."""

    id: int
    uid: int
    """Random: with it receivers recognise a note that they already have."""
    rule: Rule
    subject: str
    severity: Severity
    sentence: str
    since: datetime
    """When what is wrong began."""
    seen_at: datetime
    opened_at: datetime | None
    """None while it is not yet certain that it is to be reported."""
    clearing_at: datetime | None
    closed_at: datetime | None
    repeats: int
    repeated_at: datetime | None
    acked_at: datetime | None
    acked_by: str | None


class NewNote(Value, frozen=True, kw_only=True):
    """Something to be sent to one notifier."""

    kind: NoteKind
    target: str
    """A digest of its address, which may hold a secret."""
    shown: str
    due_at: datetime
    place: int = 0
    """Of repeats, which."""


class AlertChange(Value, frozen=True, kw_only=True):
    """A move of one alert, or a new one, and what is to be said of it: both are written, or neither."""

    notes: tuple[NewNote, ...] = ()
    alert_id: int = 0
    move: AlertMove | None = None
    """None for a trouble that was first seen now; OPENED with no id for one that opens at once."""
    trouble: Trouble | None = None
    uid: int = 0
    place: int = 0


class AlertNote(Value, frozen=True, kw_only=True):
    """A note on record, with its alert."""

    id: int
    alert: Alert
    kind: NoteKind
    place: int
    target: str
    shown: str
    state: NoteState
    due_at: datetime
    batch: str | None
    tries: int
    created_at: datetime
    ended_at: datetime | None
    problem: str | None


class NoteEnd(Value, frozen=True, kw_only=True):
    """The result of sending notes together."""

    note_ids: tuple[int, ...]
    batch: str
    problem: str | None = None
    again_in: timedelta | None = None
    """With a problem: None gives up."""

    @property
    def state(self) -> NoteState:
        """How the notes stand afterwards."""
        if self.problem is None:
            return NoteState.SENT
        return NoteState.FAILED if self.again_in is None else NoteState.WAITING


class AlertFilter(Value, frozen=True, kw_only=True):
    """Which alerts to list, newest first; `before` is the last id of the page above."""

    open: bool | None = None
    rule: Rule | None = None
    subject: str | None = None
    before: int | None = None
    limit: int = 50


class MessagePart(Value, frozen=True, kw_only=True):
    """One alert in a message."""

    kind: NoteKind
    key: str
    """Rule and subject: what opens under a key recovers under it."""
    rule: Rule
    subject: str
    severity: Severity
    sentence: str
    since: datetime
    alert_id: int = 0
    """Under which it is on record; zero for one that could not be written."""


class Message(Value, frozen=True, kw_only=True):
    """One or more alerts for one receiver. It may come twice, then with the same id."""

    id: str
    parts: tuple[MessagePart, ...]
    test: bool = False

    @property
    def severity(self) -> Severity:
        """The worst of its parts."""
        return max((part.severity for part in self.parts), key=tuple(Severity).index)
