"""The store seam, cut by who calls it. The engine never sees a cursor, a row or a driver's error.

Every method is one transaction. Batches go in and come out, in model values. `at` is the clock's
stamp: None means the database's own clock decides. The seam is internal: it may change in any
release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from mainspring.errors import AnswerLost
from mainspring.model.backfill import Advance, Backfill, BackfillJob, NewBackfill
from mainspring.model.calendar import StoredCalendar
from mainspring.model.fleet import Beat, Member, MemberInfo, Reaped
from mainspring.model.history import DeadFilter, DeadJob, JobFilter, QueueDepth, Run
from mainspring.model.job import Cancelled, Claim, Job, JobState, NewJob
from mainspring.model.lease import Held, Lease, LeaseInfo
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

Stamp = datetime | None
T_co = TypeVar("T_co", covariant=True)


class JobQueue(Protocol):
    """The hot path."""

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        """Put jobs into their queues; answer their ids, in order. Durable on return.

        A broken connection is resolved inside: either all jobs are there once, or the call raises
        StoreUnavailable (none is) or AnswerLost (nobody could be asked; it names the ids).
        """

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
        """Write how runs ended; answer the ids of the jobs refused, because the claim named is no
        longer the job's. Durable on return. SUCCEEDED and DEAD take the job out of the queue;
        FAILED counts one failure, keeps the error and waits `delay`; RELEASED costs nothing.
        """

    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        """Ids of those jobs whose run under exactly this claim is in history: for after an answer
        to `settle` was lost."""

    async def cancel(self, job_ids: Sequence[int], *, at: Stamp) -> list[Cancelled]:
        """Take live jobs out of the queue for good. A running one is taken from its worker: its
        settlement will be refused, and the next heartbeat tells it to stop."""

    async def hasten(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Make waiting (delayed) jobs due now; answer the ids that were."""

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop history (runs and ledger) of the whole UTC days that ended `keep` ago or earlier, and
        steps of that age whose job nobody knows any more, and see to it that there is room for the days
        ahead. Dead letters are never touched. Answers how many rows or partitions went: zero means
        there was nothing."""


class DeadLetters(Protocol):
    """Jobs that failed for the last time. They leave only by these two doors."""

    async def replay(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Put dead jobs back into their queue under the same id, with all attempts restored;
        answer the ids that were."""

    async def purge(self, job_ids: Sequence[int]) -> int:
        """Delete dead letters for good; answer how many."""


class ScheduleStore(Protocol):
    """Specs, fires and the ledger."""

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, author: str | None = None, at: Stamp
    ) -> list[str]:
        """Write schedules by name, each change as a new version; answer the names that were new or
        changed. A schedule that is the same is left alone, so that any number of processes may
        declare it. Without an author it is code that speaks: what somebody edited since stays."""

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """From now on their slots are skipped as paused; answer the names that were running. When
        this returns, no fire that began before can still make a job of theirs."""

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """End a pause; answer the names that were paused. Slots of the pause are not caught up."""

    async def skip_slots(self, name: str, *, count: int, at: Stamp) -> bool:
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
        each counts as a crash of the job, not as a failure. Finding the dead, giving back and
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


class Errand(Protocol[T_co]):
    """Something to be done on a connection of the caller's own, inside the transaction it is in. Whether it
    happens is decided by that transaction. `tx` is what the caller calls its connection."""

    def run(self, tx: object) -> T_co:
        """Do it on a connection that blocks."""

    async def arun(self, tx: object) -> T_co:
        """Do it on one that is awaited."""


class Borrower(Protocol):
    """What a store can do on other people's connections. Nothing is opened for it."""

    def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> Errand[list[int]]:
        """As JobQueue.insert. Workers are hinted when the transaction commits."""

    def settle(self, settlement: Settlement, *, at: Stamp) -> Errand[bool]:
        """As JobQueue.settle; False when the claim named is no longer the job's."""

    def step(self, job_id: int, name: str) -> Errand[bool]:
        """As EffectStore.step."""

    def record_step(self, claim: Claim, name: str, *, at: Stamp) -> Errand[bool]:
        """As EffectStore.record_step."""


class Loan(Protocol):
    """A connection of the store's, in a transaction, for a handler to write into. It ends with `commit`
    or `rollback`."""

    @property
    def connection(self) -> object:
        """What the handler is given; it may also be passed as `tx`."""

    async def commit(self, settlement: Settlement, *, at: Stamp) -> bool:
        """Write how the run ended and commit it with whatever the handler wrote, durable on return. False,
        and nothing of all that remains, when the claim named is no longer the job's. Any error but
        AnswerLost means that nothing remains."""

    async def rollback(self) -> None:
        """Nothing that was written remains."""

    async def committed(self, settlement: Settlement, lost: AnswerLost) -> bool:
        """Whether a commit whose answer was lost has happened; that cannot change any more."""


class EffectStore(Protocol):
    """What handlers do once and no more."""

    @property
    def borrower(self) -> Borrower:
        """For connections of the handlers' own."""

    async def lend(self) -> Loan:
        """Begin a transaction for a handler."""

    async def step(self, job_id: int, name: str) -> bool:
        """Whether a run of this job has recorded this step."""

    async def record_step(self, claim: Claim, name: str, *, at: Stamp) -> bool:
        """Record a step as done; False, and nothing changes, when the claim is no longer the job's, or
        the step is on record already. Durable on return."""


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

    async def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""

    async def schedule(self, name: str) -> Schedule | None:
        """One schedule."""

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
    CalendarStore,
    FleetStore,
    LeaseStore,
    EffectStore,
    HistoryStore,
    Admin,
    Wakeups,
    Protocol,
):
    """Everything an adapter provides."""
