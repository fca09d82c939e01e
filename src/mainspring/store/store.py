"""The store: an attribute for each noun, and calls on the database as a whole.

The engine never gets a cursor, a row or an error of the driver. Every method is one transaction. Methods take
and answer batches of model values. `at` is the stamp of the caller's clock: None means that the clock of the
database decides. This interface is internal: it may change in any release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from mainspring.store.access import Access
from mainspring.store.alerts import Alerts
from mainspring.store.audit_log import AuditLog, carried_out
from mainspring.store.backfills import Backfills
from mainspring.store.calendars import Calendars
from mainspring.store.database import Database, Stamp, Transaction
from mainspring.store.dead_letters import DeadLetters
from mainspring.store.effects import Effects, Lender
from mainspring.store.events import Events
from mainspring.store.health import Health
from mainspring.store.jobs import Jobs
from mainspring.store.leases import Leases
from mainspring.store.limits import Admitter, Limits, Places
from mainspring.store.migrations import Schema
from mainspring.store.processes import Processes
from mainspring.store.queue import Queue
from mainspring.store.queues import Queues
from mainspring.store.rows import moment
from mainspring.store.runs import Runs, day_before
from mainspring.store.schedules import Schedules
from mainspring.store.slots import Firing, Slots
from mainspring.store.stats import Stats
from mainspring.store.uniqueness import KEPT
from mainspring.store.workflows.calls import Workflows
from mainspring.store.workflows.session import StepJobs

BATCH = 5000
"""The number of rows that one transaction deletes, at most, so that it holds its locks for milliseconds
only."""
WORKFLOWS = 10
"""The same number for workflows, which may have thousands of steps."""
HISTORY = ("prune_runs", "prune_logs", "prune_slots")


class Waker(Protocol):
    """Receives hints, as a loop. A lost hint costs latency only."""

    name: str

    @property
    def deaf(self) -> str | None:
        """Why no hint can come, so that only polling finds jobs; None when hints can come."""

    async def tick(self) -> timedelta:
        """One pass: listen or poll; answer how long to wait."""

    async def close(self) -> None:
        """Stop listening."""


class Store(ABC):
    """All calls of the engine and of operators on a database. The constructor takes the parts that each
    dialect has in its own way."""

    def __init__(
        self,
        database: Database,
        schema: Schema,
        health: Health,
        queue: Queue,
        places: Places,
        firing: Firing,
        lender: Lender,
        admitter: Admitter,
        step_jobs: StepJobs,
    ) -> None:
        self._base, self._schema = database, schema
        self.health = health
        self.queue = queue
        self.jobs = Jobs(database, places)
        self.dead_letters = DeadLetters(database)
        self.leases = Leases(database)
        self.alerts = Alerts(database)
        self.access = Access(database)
        self.audit_log = AuditLog(database)
        self.calendars = Calendars(database)
        self.effects = Effects(database, lender)
        self.limits = Limits(database, admitter)
        self.queues = Queues(database)
        self.events = Events(database)
        self.stats = Stats(database)
        self.workflows = Workflows(database, step_jobs)
        self.processes = Processes(database)
        self.runs = Runs(database)
        self.backfills = Backfills(database)
        self.slots = Slots(database, firing)
        self.schedules = Schedules(database, places, firing)

    @abstractmethod
    def waker(self, on_hint: Callable[[], None]) -> Waker:
        """A loop that calls `on_hint`, on the running event loop, when jobs may have come in."""

    @abstractmethod
    async def close(self) -> None:
        """Send pending hints, and close every connection and thread."""

    async def now(self, *, at: Stamp) -> datetime:
        """The store's clock, or the stamp."""
        [row] = await self._base.relaxed("now", at=at)
        return moment(row["now"])

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Delete history (runs, their logs and the ledger) of the whole UTC days that ended `keep` ago or
        earlier, and workflows, steps and events of that age. Make partitions for the next days. Dead letters
        are never deleted. The answer is the number of deleted rows or partitions: zero means that there was
        nothing to delete."""
        return await _prune(self._base, self.effects, self.workflows, self.events, keep=keep, at=at)

    async def migrate(self) -> list[str]:
        """Bring the schema to the version of this code; answer the applied migrations. The call is safe to
        run twice, in two processes at the same time, and again after the process was killed."""
        return await self._schema.migrate()

    async def verify(self) -> None:
        """Raise SchemaMismatch unless the schema has exactly the version of this code."""
        await self._schema.verify()

    async def identity(self) -> str:
        """The random id that the database got with its schema: a UUID in its usual form."""
        [row] = await self._base.fetch("identity")
        found: str = row["id"]
        return found

    async def change_identity(self, new: str, *, force: bool, at: Stamp) -> str | None:
        """Give the database another id; answer the old id. While a process is alive, nothing is changed and
        the answer is None, unless `force`, because a process caches the id."""

        async def work(tx: Transaction) -> str | None:
            [old] = await tx.fetch("lock_identity")
            changed = await tx.fetch("change_identity", id=new, force=force, at=at)
            return old["id"] if changed else None

        old = await carried_out(self._base, "change_identity", work)
        if old is not None:
            self._base.renamed(new)
        return old


async def _prune(
    database: Database, effects: Effects, workflows: Workflows, events: Events, *, keep: timedelta, at: Stamp
) -> int:
    """Delete history that is older than the kept days; answer how many rows or partitions were deleted."""

    async def make_room(tx: Transaction) -> None:
        await tx.fetch("lock_migrations")
        await tx.fetch("add_partitions", at=at)

    await database.within("prune", make_room)
    [row] = await database.fetch("now", at=at)
    now = moment(row["now"])
    day = day_before(now, keep)
    gone = 0
    for statement in HISTORY:

        async def drop(tx: Transaction, statement: str = statement) -> int:
            await tx.fetch("lock_migrations")
            return len(await tx.fetch(statement, before=day, limit=BATCH))

        while count := await database.within("prune", drop):
            gone += count
    while await database.fetch("drop_keys", limit=BATCH, at=at):
        pass
    while await database.fetch("prune_requests", before=now - KEPT, limit=BATCH):
        pass
    gone += await effects.prune(before=day, limit=BATCH)
    gone += await workflows.prune(before=day, limit=WORKFLOWS)
    return gone + await events.prune(before=day, limit=BATCH)
