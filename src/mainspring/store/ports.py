"""The store seam, cut by who calls it. The engine never sees a cursor, a row or a driver's error.

Every method is one transaction. Batches go in and come out, in model values. `at` is the clock's
stamp: None means the database's own clock decides. The seam is internal: it may change in any
release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mainspring.model.backfill import Advance, Backfill, BackfillJob, NewBackfill
from mainspring.model.calendar import StoredCalendar
from mainspring.model.failure import Failure
from mainspring.model.fleet import Beat, Member, MemberInfo, Reaped
from mainspring.model.history import DeadFilter, DeadGroup, DeadJob, JobFilter, QueueDepth, Run
from mainspring.model.job import Cancelled, Claim, Job, JobState, NewJob
from mainspring.model.lease import Held, Lease, LeaseInfo
from mainspring.model.limit import Admission, GateInfo
from mainspring.model.queue import QueuePause
from mainspring.model.report import Ending, Progress, ProgressNote, RunLog
from mainspring.model.schedule import (
    Chunk,
    NewSchedule,
    Opening,
    Schedule,
    ScheduleVersion,
    Slot,
    Spec,
)
from mainspring.model.settlement import Settlement
from mainspring.model.unique import Inserted

Stamp = datetime | None
Expected = Mapping[str, Schedule | None]
"""By name, what the caller has read and wants to stand as it was; None for what must not be there."""


class JobQueue(Protocol):
    """The hot path."""

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        """Put jobs into their queues; answer their ids, in order. Durable on return.

        A broken connection is resolved inside: either all jobs are there once, or the call raises
        StoreUnavailable (none is) or AnswerLost (nobody could be asked; it names the ids).
        """

    async def insert_unique(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[Inserted]:
        """The same for a batch in which jobs have keys: each is made, or the job that has its key stands
        for it. Raises DuplicateJob, and writes nothing, where a key says so."""

    async def claim(
        self, worker_id: int, *, queues: Sequence[str], tasks: Sequence[str], limit: int, at: Stamp
    ) -> list[Claim]:
        """Hand up to `limit` due, unclaimed jobs of these queues and tasks to this worker.

        Best first: highest priority, then earliest `run_at`, then lowest id. Nothing is handed to
        a worker whose lease has ended. No attempt is counted. May be lost in a database crash:
        the job is then simply due again.
        """

    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        """Every claim the store has under this worker: for after an answer to `claim` was lost."""

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        """Write how runs ended, and what was captured of their logs; answer the ids of the jobs refused,
        because the claim named is no longer the job's. Durable on return. SUCCEEDED, DISCARDED and DEAD
        take the job out of the queue; FAILED counts one failure, keeps the error and waits `delay`;
        CRASHED does the same with one crash, or with a reason buries the job; SNOOZED and RELEASED cost
        nothing. DEAD counts a failure unless the handler never ran.
        """

    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        """Ids of those jobs whose run under exactly this claim is in history: for after an answer
        to `settle` was lost."""

    async def cancel(self, job_ids: Sequence[int], *, at: Stamp) -> list[Cancelled]:
        """Take live jobs out of the queue for good. A running one is taken from its worker: its
        settlement will be refused, and the next heartbeat tells it to stop."""

    async def hasten(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Make waiting (delayed) jobs due now; answer the ids that were."""

    async def expire(self, *, limit: int, at: Stamp) -> list[int]:
        """Make dead letters, with reason `expired`, of jobs whose deadline has come and that nobody holds,
        at most `limit` a pass; answer their ids. Each leaves a run that never started."""

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop history (runs, their logs and the ledger) of the whole UTC days that ended `keep` ago
        or earlier, and see to it that there is room for the days ahead. Dead letters are never
        touched. Answers how many rows or partitions went: zero means there was nothing."""


class DeadLetters(Protocol):
    """Jobs that are not tried again. They leave only by replay and purge."""

    async def replay(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Put dead jobs back into their queue under the same id, with all attempts restored and
        without a deadline; answer the ids that were."""

    async def edit_dead(
        self, job_id: int, *, payload: bytes, expected: bytes, note: Failure, at: Stamp
    ) -> bool:
        """Give a dead letter other arguments, if it still has those expected; they stay on record as a
        run with verdict `edited` and this note."""

    async def purge(self, job_ids: Sequence[int]) -> int:
        """Delete dead letters for good; answer how many."""


class ScheduleStore(Protocol):
    """Specs, fires and the ledger."""

    async def put_schedules(
        self,
        schedules: Sequence[NewSchedule],
        *,
        author: str | None = None,
        note: str | None = None,
        expected: Expected | None = None,
        at: Stamp,
    ) -> list[str]:
        """Write schedules by name, each change as a new version; answer the names that were new or
        changed. A schedule that is the same is left alone, so that any number of processes may
        declare it. Without an author it is code that speaks: what somebody edited since stays.
        Where one is not as `expected`, nothing is written and Outdated says so."""

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """From now on their slots are skipped as paused; answer the names that were running. When
        this returns, no fire that began before can still make a job of theirs."""

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """End a pause; answer the names that were paused. Slots of the pause are not caught up."""

    async def hand_back_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """Let code have what somebody edited: what it says next counts. Nothing else changes until
        then. Answers the names that were edited."""

    async def skip_slots(self, name: str, *, count: int, author: str, at: Stamp) -> bool:
        """Have the next `count` slots skipped as requested; False when there is no such schedule."""

    async def trigger_schedule(self, name: str, *, at: Stamp) -> int | None:
        """A job of this schedule now, besides its slots and whatever its policies; its id, or None."""

    async def delete_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """Take schedules away; their ledger and versions stay. Answers the names that were there."""

    async def due_specs(self, *, limit: int, at: Stamp) -> tuple[datetime, list[Spec]]:
        """The store's now, and the specs whose `next_at` has come, earliest first."""

    async def unplanned_specs(self, *, limit: int) -> list[Spec]:
        """Specs whose `following_at` is not yet known."""

    async def plan_specs(self, specs: Sequence[Spec]) -> None:
        """Fill in `following_at`, where the spec still stands at the same `next_at`."""

    async def open_fires(self, openings: Sequence[Opening], *, at: Stamp) -> int:
        """Move specs on and open a fire for each slot, where the spec still stands at `expected`.
        Answers how many were ours."""

    async def fire(self, *, limit: int, at: Stamp) -> Chunk | None:
        """Take the oldest open fire and write the next `limit` schedules' ledger rows and jobs,
        and the fire's cursor, in one transaction. None when no fire is open to us."""

    async def release_held(self, *, at: Stamp) -> int:
        """Make due the oldest job of each schedule that waited for others which have ended; answer
        how many."""

    async def next_due(self, *, at: Stamp) -> timedelta | None:
        """How long until the earliest spec is due (not negative), by the store's clock."""


class BackfillStore(Protocol):
    """Slots of the past, run on request."""

    async def add_backfill(self, backfill: NewBackfill, *, at: Stamp) -> int:
        """Put a backfill on record with all its slots; answer its id. Schedulers make its jobs."""

    async def advance_backfills(self, *, at: Stamp) -> Advance:
        """Make jobs of the next slots of every active backfill, as many as may be live at once, each
        with its row of the ledger in the same transaction. One that has no slot and no job left ends."""

    async def cancel_backfill(self, backfill_id: int, *, author: str, at: Stamp) -> bool:
        """Make no more jobs of it; those there are go on. False when it is not active."""

    async def backfills(self, *, limit: int) -> list[Backfill]:
        """Newest first."""

    async def backfill(self, backfill_id: int) -> Backfill | None:
        """One backfill."""

    async def backfill_jobs(self, schedule_ids: Sequence[int], *, start: datetime) -> list[BackfillJob]:
        """Jobs that backfills made of slots of these schedules, from `start` on."""


class LimitStore(Protocol):
    """Gates that jobs with limits must pass, and queues that are paused."""

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        """Let through, in one transaction, whom there is room for: one pass at a time in all the fleet. A
        job that is through can be claimed. Its place is free again when it ends, by whatever way, or
        goes back before its gates to be tried later. `after` is the answer of the pass before."""

    async def gates(
        self, *, name: str | None = None, key: str | None = None, limit: int, holders: int
    ) -> list[GateInfo]:
        """Gates by name and key, each with the first `holders` of the jobs that are through."""

    async def gates_of(self, job_id: int, *, holders: int) -> list[GateInfo]:
        """The gates of one live job; none for one without limits."""

    async def pause_queue(self, queue: str, *, author: str, note: str | None, at: Stamp) -> bool:
        """Claim nothing more from it; False when it was paused. When this returns, no claim that began
        before can still take a job."""

    async def resume_queue(self, queue: str) -> bool:
        """End the pause of a queue; False when it was not paused."""

    async def queue_pauses(self) -> list[QueuePause]:
        """Queues that are paused, by name."""


class CalendarStore(Protocol):
    """Business calendars that triggers name."""

    async def put_calendars(self, calendars: Sequence[StoredCalendar]) -> None:
        """Keep these versions. One that is there already is left as it is: a version never changes."""

    async def calendars(self) -> list[StoredCalendar]:
        """Every version of every calendar."""


class FleetStore(Protocol):
    """Leases of processes."""

    async def join(self, member: Member, *, lease: timedelta, at: Stamp) -> None:
        """Enter a process start, alive until now + lease."""

    async def beat(
        self, member_id: int, *, lease: timedelta, claims: Sequence[tuple[int, int]], at: Stamp
    ) -> Beat:
        """Renew the lease if it has not ended, and say which of the (job, fence) pairs are no
        longer this member's."""

    async def leave(self, member_id: int, *, clean: bool, at: Stamp) -> None:
        """End the lease now. `clean` promises that no claim is left under it."""

    async def reap(self, *, limit: int, at: Stamp) -> Reaped:
        """Give back the claims of members whose lease has ended, at most `limit` jobs a pass;
        each counts as a crash of the job, not as a failure, and a job that has crashed too often is
        a dead letter with reason `crashed`. Finding the dead, giving back and
        forgetting may be transactions of their own: any reaper goes on where one died."""

    async def mourn(self, *, at: Stamp) -> int:
        """Put on record, as dead, members that hold claims but have no row, so that the next `reap`
        gives their claims back. There should be none: this is the net under a clean leave that was
        not. Answers how many there were."""


class LeaseStore(Protocol):
    """Leases of user code. Every write is durable on return."""

    async def acquire(
        self, name: str, *, holder_id: int, holder: str, ttl: timedelta, at: Stamp
    ) -> Lease | Held:
        """Take the lease of this name until now + ttl, if nobody else holds it, with a token one above
        the last. A holder that asks again while it has the lease is answered the same token: for after
        an answer was lost."""

    async def renew(self, name: str, *, holder_id: int, token: int, ttl: timedelta, at: Stamp) -> bool:
        """Hold it until now + ttl; False, and nothing changes, if it has ended or is another's."""

    async def release(self, name: str, *, holder_id: int, token: int, at: Stamp) -> bool:
        """End it now, so that another may have it; False, and nothing changes, if it has ended or is
        another's. The token is kept."""

    async def leases(self, *, at: Stamp) -> list[LeaseInfo]:
        """Every name that was ever leased, by name, held or not."""


class ReportStore(Protocol):
    """What runs say of themselves. Jobs that say nothing touch none of it."""

    async def note_progress(self, notes: Sequence[ProgressNote], *, at: Stamp) -> None:
        """Write how far runs are, in one statement, each under a claim that still stands; others are
        left out. One note a job. May be lost in a database crash: the next one says more."""

    async def progress(self, job_id: int) -> Progress | None:
        """How far a running job's run said it was; None for a job that is not running or said nothing."""

    async def sweep_progress(self, *, at: Stamp) -> int:
        """Forget what runs said that have ended; answer how many."""

    async def run_logs(self, job_id: int) -> list[RunLog]:
        """What was captured of one job's runs, oldest first; runs that logged nothing have none."""

    async def drop_results(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop the results of the whole UTC days that ended `keep` ago or earlier; their runs stay, with
        RESULT_GONE in its place. Answers how many there were."""

    async def endings(self, job_ids: Sequence[int]) -> dict[int, Ending]:
        """How those of these jobs ended that have."""


class HistoryStore(Protocol):
    """The read side."""

    async def job(self, job_id: int, *, at: Stamp) -> Job | None:
        """One job, wherever it stands: live, dead or finished."""

    async def jobs(self, which: JobFilter, *, at: Stamp) -> list[Job]:
        """Live jobs, and finished ones if the filter's state asks for them; newest id first."""

    async def states(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, JobState]:
        """Where each of these jobs stands; one that nobody knows any more is left out."""

    async def runs(self, job_id: int) -> list[Run]:
        """Every run of one job, oldest first."""

    async def dead(self, which: DeadFilter) -> list[DeadJob]:
        """Dead letters, newest id first."""

    async def count_dead(self, which: DeadFilter) -> int:
        """How many dead letters there are, counted up to the filter's limit."""

    async def dead_groups(self, which: DeadFilter) -> list[DeadGroup]:
        """Dead letters by task and last error, the largest group first."""

    async def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""

    async def schedule(self, name: str) -> Schedule | None:
        """One schedule."""

    async def strays(self, declared: Sequence[str], *, limit: int) -> list[str]:
        """Names of the schedules that go on firing and are none of these, by name, at most `limit`."""

    async def schedule_names(self) -> list[str]:
        """Every name on record, also of schedules that were deleted."""

    async def versions(self, name: str) -> list[ScheduleVersion]:
        """Every version of one schedule, also of one that was deleted, oldest first."""

    async def slots(
        self,
        schedule: str,
        *,
        limit: int,
        start: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Slot]:
        """The ledger of one schedule, newest slot first: those from `start` on and before `before`."""

    async def members(self, *, at: Stamp) -> list[MemberInfo]:
        """Every process on record, oldest start first."""

    async def depth(self, *, at: Stamp) -> list[QueueDepth]:
        """Live jobs by queue and task."""


class Admin(Protocol):
    """Schema and life of the store itself."""

    async def now(self, *, at: Stamp) -> datetime:
        """The store's clock, or the stamp."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to this code's version; answer what was applied. Safe to run twice,
        in two places at once, and again after being killed."""

    async def verify(self) -> None:
        """Raise SchemaMismatch unless the schema is exactly this code's."""

    async def facts(self) -> dict[str, str]:
        """What an operator wants to know about the engine: its version and relevant settings."""

    async def close(self) -> None:
        """Send pending hints and let go of every connection and thread."""


class Waker(Protocol):
    """Keeps hints coming; runs as a loop. Losing a hint costs latency only."""

    name: str

    async def tick(self) -> timedelta:
        """One pass: listen or look; answer how long to wait."""

    async def close(self) -> None:
        """Stop listening."""


class Wakeups(Protocol):
    """Hints that work may exist."""

    def waker(self, on_hint: Callable[[], None]) -> Waker:
        """A loop that calls `on_hint`, on the running event loop, when jobs may have come in."""


class Store(
    JobQueue,
    DeadLetters,
    ScheduleStore,
    BackfillStore,
    LimitStore,
    CalendarStore,
    FleetStore,
    LeaseStore,
    ReportStore,
    HistoryStore,
    Admin,
    Wakeups,
    Protocol,
):
    """Everything an adapter provides."""
