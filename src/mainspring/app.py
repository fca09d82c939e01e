"""The app of a user: its tasks and schedules, connected with settings, store, clock and all other parts."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mainspring import forks
from mainspring.admin.schedules.plan import write_declared
from mainspring.clock import Clock, SystemClock
from mainspring.config import MEMORY, Settings, load
from mainspring.duration import Duration, duration
from mainspring.entropy import Entropy, SystemEntropy
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.access import Actor
from mainspring.model.job import NewJob
from mainspring.model.schedule import MisfireOption, OverlapOption
from mainspring.store.effects import Errand
from mainspring.store.opener import open_borrower, open_store
from mainspring.store.store import Store
from mainspring.sync import Portal
from mainspring.targets.declaring import Targets
from mainspring.tasks.enqueue import JobHandle, checked_batch, new_event, valid_job_id, without_options
from mainspring.tasks.limits import queue_rules
from mainspring.tasks.registry import Registry, TaskDecorator
from mainspring.tasks.schedule import ScheduleDeclaration, declare_schedule
from mainspring.tasks.task import Task
from mainspring.tasks.workflow import Workflow, WorkflowFactory
from mainspring.telemetry.events import SchedulesUndeclared, SchedulesWritten, Telemetry
from mainspring.telemetry.traces import Tracer, the_tracer, traced
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.rolled import RollOption
from mainspring.triggers.zones import FoldOption, GapOption

if TYPE_CHECKING:
    from mainspring.admin.admin import Admin
    from mainspring.admin.backfills import Backfills
    from mainspring.admin.dead_letters import DeadLetters
    from mainspring.admin.jobs import Jobs
    from mainspring.admin.processes import Processes
    from mainspring.admin.queues import Limits, Queues
    from mainspring.admin.schedules.orders import Schedules
    from mainspring.admin.workflows.orders import Workflows
    from mainspring.client.lease import Leasing
    from mainspring.client.results import Waiter


MOST_TOLD = 20
"""The most schedules that an event and a log line name; there may be a hundred thousand."""


class Mainspring:
    """Tasks, schedules and their store.

    Without a URL the database comes from MAINSPRING_DATABASE_URL, DATABASE_URL, mainspring.toml,
    or is the file mainspring.db. Nothing is opened before the first call that needs it.
    """

    def __init__(self, url: str | None = None) -> None:
        self._wire(url, SystemClock(), SystemEntropy(), Telemetry())

    @classmethod
    def _with(
        cls,
        url: str | None = None,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        telemetry: Telemetry | None = None,
    ) -> Self:
        """An app with other parts, for tests."""
        app = cls.__new__(cls)
        app._wire(url, clock or SystemClock(), entropy or SystemEntropy(), telemetry or Telemetry())
        return app

    def _wire(self, url: str | None, clock: Clock, entropy: Entropy, telemetry: Telemetry) -> None:
        self._clock, self._entropy, self._telemetry = clock, entropy, telemetry
        self._registry = Registry()
        self._target: str | None = None
        """`module:attr` or a file, from which another process can load this app."""
        self.task = TaskDecorator(self._registry, self)
        self.workflow = WorkflowFactory(self._registry, self)
        self._targets = Targets(self._registry, self, clock)
        self.http, self.shell, self.publish = self._targets.http, self._targets.shell, self._targets.publish
        self._url = url
        self._settings: Settings | None = None
        self._read_from: Mapping[str, str] = {}
        self._portal = Portal(goodbye=self.aclose)
        self._opened = Opened()

    @property
    def settings(self) -> Settings:
        """The settings, read when they are first needed."""
        return self._settings or self._configure()

    @property
    def _tracer(self) -> Tracer | None:
        """Makes spans; None unless `traces.enabled` is set."""
        return the_tracer() if self.settings.traces.enabled else None

    @property
    def _origins(self) -> Mapping[str, str]:
        """The source of each setting."""
        _ = self.settings
        return self._read_from

    @property
    def _in_memory(self) -> Store | None:
        """The store, if it is a database in memory: other threads must share it, because a second store
        would be another database."""
        return self._opened.in_memory

    def _configure(self, flags: Mapping[str, object] | None = None, *, file: Path | None = None) -> Settings:
        """Read the settings; these flags override all other sources."""
        self._settings, self._read_from = load(flags=flags or {}, code_url=self._url, file=file)
        return self._settings

    def schedule(
        self,
        name: str,
        task: Task[..., Any] | Workflow,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        rrule: str | None = None,
        at: datetime | Sequence[datetime] | None = None,
        tz: str = "UTC",
        gap: GapOption = "shift",
        fold: FoldOption = "first",
        anchor: datetime | None = None,
        dtstart: datetime | None = None,
        exdates: Sequence[datetime] = (),
        rdates: Sequence[datetime] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        max_fires: int | None = None,
        calendar: Calendar | None = None,
        on_holiday: RollOption | None = None,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        misfire: MisfireOption = "latest",
        catch_up: Duration | None = None,
        overlap: OverlapOption | None = None,
        allow: int | None = None,
        window: Duration | None = None,
        jitter: Duration | None = None,
        expect_start_within: Duration | None = None,
        expect_finish_by: Duration | None = None,
        queue: str | None = None,
        priority: int | None = None,
    ) -> ScheduleDeclaration:
        """Declare a schedule of a task or workflow. A scheduler writes it to the store when the scheduler
        starts.

        On the nights the clocks change, a cron expression with a fixed hour follows `gap` ("shift",
        "skip") and `fold` ("first", "second", "both"). `anchor` goes with `every`; `dtstart`,
        `exdates` and `rdates` go with `rrule`. Slots from `start` on and before `end` count, and no
        more than `max_fires` of them. With a `calendar`, a slot on no business day follows
        `on_holiday` ("skip", "next", "previous").

        `misfire` ("latest", "all", "skip") decides about slots that no scheduler fired in time: the newest
        slot, each slot (one after another), or no slot gets a job. `catch_up` limits the age of such slots.
        `overlap` ("skip", "queue_one", "queue_all", "replace") or `allow=n` decides about a slot whose
        previous job is still live. `window` gives the schedule a fixed delay of its own after each slot,
        `jitter` a random delay. An alert opens if a job has not started `expect_start_within` after its
        slot, or has not ended `expect_finish_by` after its slot.
        """
        declared = declare_schedule(
            name,
            task.task if isinstance(task, Workflow) else task,
            cron=cron,
            every=every,
            rrule=rrule,
            at=at,
            tz=tz,
            gap=gap,
            fold=fold,
            anchor=anchor,
            dtstart=dtstart,
            exdates=exdates,
            rdates=rdates,
            start=start,
            end=end,
            max_fires=max_fires,
            calendar=calendar,
            on_holiday=on_holiday,
            args=args,
            kwargs=kwargs,
            misfire=misfire,
            catch_up=catch_up,
            overlap=overlap,
            allow=allow,
            window=window,
            jitter=jitter,
            expect_start_within=expect_start_within,
            expect_finish_by=expect_finish_by,
            queue=queue,
            priority=priority,
        )
        self._registry.add_schedule(declared)
        return declared

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: int | None = None,
        per: Duration | None = None,
        burst: int | None = None,
        fair_by: str | None = None,
    ) -> None:
        """Set the limits for every job of a queue, in the whole fleet: at most `concurrency` at once, `rate`
        in each `per`. With `fair_by`, jobs take turns by the value of that parameter."""
        rules = queue_rules(name, concurrency=concurrency, rate=rate, per=per, burst=burst, fair_by=fair_by)
        self._registry.add_queue(name, rules)

    def lease(self, name: str, *, ttl: Duration = "15s", wait: Duration | None = None) -> Leasing:
        """`async with app.lease("sync-crm") as lease:` runs its body in one place at a time, with a
        `lease.token` that rises with every holder; the body is cancelled when the lease is lost. It
        waits for at most `wait`, None for ever, then raises LeaseHeld. A plain `with` blocks."""
        with forks.rest.awaited():
            from mainspring.client.lease import leasing  # not before it is needed: commands start without it

        return leasing(_LeaseHome(self), name, ttl=ttl, wait=wait, portal=self._portal)

    def enqueue_many(self, jobs: Iterable[NewJob], *, tx: object | None = None) -> list[JobHandle[Any]]:
        """`app.enqueue_many(invoice.job(tenant) for tenant in tenants)`: put prepared jobs into their queues,
        all or none, in one round trip; when it returns, they are stored. With `tx`, your own connection,
        the jobs are part of its transaction: they exist when you commit."""
        checked = checked_batch(jobs)
        if tx is not None:
            with traced(self._tracer, checked) as checked:
                return self._handles(self._borrowed(without_options(checked)).run(tx), checked)
        return self._portal.call(lambda: self._traced(checked, None), instead="await aenqueue()")

    async def aenqueue_many(
        self, jobs: Iterable[NewJob], *, tx: object | None = None
    ) -> list[JobHandle[Any]]:
        """The same on an event loop; `tx` is an async connection."""
        return await self._traced(checked_batch(jobs), tx)

    async def _traced(self, checked: list[NewJob], tx: object | None) -> list[JobHandle[Any]]:
        with traced(self._tracer, checked) as checked:
            return await self._aenqueue(checked, tx)

    async def _aenqueue(self, checked: list[NewJob], tx: object | None) -> list[JobHandle[Any]]:
        if tx is not None:
            return self._handles(await self._borrowed(without_options(checked)).arun(tx), checked)
        store = await self._store()
        if any(job.unique is not None for job in checked):
            done = await store.queue.insert_unique(checked, at=self._clock.stamp())
            return [
                JobHandle(id=one.job_id, task=job.task, queue=job.queue, created=one.created, results=self)
                for one, job in zip(done, checked, strict=True)
            ]
        return self._handles(await store.queue.insert(checked, at=self._clock.stamp()), checked)

    def _handles(self, ids: Sequence[int], jobs: Sequence[NewJob]) -> list[JobHandle[Any]]:
        return [
            JobHandle(id=job_id, task=job.task, queue=job.queue, results=self)
            for job_id, job in zip(ids, jobs, strict=True)
        ]

    def _borrowed(self, jobs: Sequence[NewJob]) -> Errand[list[int]]:
        return open_borrower(self.settings.database.url).insert(jobs, at=self._clock.stamp())

    def admin(
        self,
        actor: Actor | str | None = None,
        *,
        address: str = "",
        store: Callable[[], Awaitable[Store]] | None = None,
    ) -> Admin:
        """Questions and orders about everything in the store: `app.admin("ada").jobs.cancel(42)`. Orders are
        in the audit log under the name of the actor. The default actor is the user that the program runs as.
        A server passes the `store` that it watches; its Admin works only on its event loop."""
        with forks.rest.awaited():
            from mainspring.admin.access import valid_actor_name
            from mainspring.admin.admin import Admin  # not before it is needed
            from mainspring.admin.order import AdminContext, local_actor
            from mainspring.admin.redact import redaction

        if not isinstance(actor, Actor):
            actor = local_actor(None if actor is None else valid_actor_name(actor), via="python")
        return Admin(
            AdminContext(
                store or self._store,
                clock=self._clock,
                entropy=self._entropy,
                settings=self.settings,
                actor=actor,
                redaction=redaction(self.settings.privacy.redact),
                registry=self._registry,
                tracer=self._tracer,
                address=address,
                blocking=None if store else self._portal,
                unprepared=store or (lambda: self._store(prepare=False)),
            )
        )

    @property
    def jobs(self) -> Jobs:
        """`app.jobs.cancel(42)`, or `await app.jobs.acancel(42)`: the jobs of the store. The actor is the
        user that the program runs as; the nouns below have the same actor."""
        return self.admin().jobs

    @property
    def dead_letters(self) -> DeadLetters:
        """Jobs that are not tried again: find, edit, replay and delete them."""
        return self.admin().dead_letters

    @property
    def schedules(self) -> Schedules:
        """Stored schedules: create, edit, pause, resume, trigger and delete them at run time."""
        return self.admin().schedules

    @property
    def backfills(self) -> Backfills:
        """Backfills: slots of the past that run on request."""
        return self.admin().backfills

    @property
    def workflows(self) -> Workflows:
        """Started workflows: find, cancel, pause, resume, retry and fork them."""
        return self.admin().workflows

    @property
    def queues(self) -> Queues:
        """Queues and their waiting jobs: pause, resume and drain them."""
        return self.admin().queues

    @property
    def limits(self) -> Limits:
        """Limits that jobs wait for, and the jobs that hold their places."""
        return self.admin().limits

    @property
    def processes(self) -> Processes:
        """Stored workers and schedulers."""
        return self.admin().processes

    def job(self, job_id: int) -> JobHandle[Any]:
        """A handle for a job with this id. The store is not read before a wait for the result."""
        return JobHandle(id=valid_job_id(job_id, "job_id"), results=self)

    def send_event(
        self, name: str, payload: object = None, *, job: JobHandle[Any] | int | None = None
    ) -> bool:
        """Send an event, for which `ctx.await_event(name)` waits: to this job, or else to every job, now or
        later. The first event of a name counts; False if it was already sent. It is stored on return."""
        return self._portal.call(
            lambda: self.asend_event(name, payload, job=job), instead="await asend_event()"
        )

    async def asend_event(
        self, name: str, payload: object = None, *, job: JobHandle[Any] | int | None = None
    ) -> bool:
        """The same on an event loop."""
        event = new_event(name, payload, job)
        return await (await self._store()).events.send(event, at=self._clock.stamp())

    def result(self, job_id: int, *, timeout: Duration | None = None) -> object:
        """Wait until the job has ended and return what its handler returned, as `job.result()` does."""
        return self._portal.call(
            lambda: self.aresult(job_id, timeout=timeout),
            instead="await job.aresult()",
            while_waited_for=True,
        )

    async def aresult(self, job_id: int, *, timeout: Duration | None = None) -> object:  # noqa: ASYNC109 - as users say it
        """The same on an event loop, as `await job.aresult()` does."""
        limit = None if timeout is None else duration(timeout, "timeout", least=timedelta())
        store, loop = await self._store(), asyncio.get_running_loop()
        waiter = self._opened.waiters.get(loop)
        if waiter is None:
            with forks.rest.awaited():
                from mainspring.client.results import Waiter  # not before it is needed

            waiter = self._opened.waiters[loop] = Waiter(store, self._clock)
        return await waiter.result(job_id, limit)

    async def _write_schedules(self) -> list[str]:
        """Write the declared schedules to the store; answer the names that were new or changed."""
        store = await self._store()
        names = await write_declared(store, self._clock, self._registry)
        if names:
            self._telemetry.emit(SchedulesWritten(names=tuple(names[:MOST_TOLD]), count=len(names)))
        # A schedule taken out of the code is not taken out of the store: another app may own it.
        # There may be a million such schedules, so only the first few are read and reported.
        stray = await store.schedules.undeclared(list(self._registry.schedules), limit=MOST_TOLD + 1)
        if stray:
            told = tuple(stray[:MOST_TOLD])
            self._telemetry.emit(SchedulesUndeclared(names=told, more=len(stray) > len(told)))
        return names

    async def _store(self, *, prepare: bool = True) -> Store:
        """This event loop's store, opened at the first call. An SQLite file is brought up to date
        when it is opened; PostgreSQL needs `mainspring db migrate`, and a schema that is behind or
        ahead is refused here. Without `prepare` the caller must do both."""
        loop = asyncio.get_running_loop()
        opening = self._opened.stores.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opened.stores[loop] = loop.create_task(self._open(prepare))
        # This runs once for each job: an open store needs no wait.
        return opening.result() if opening.done() else await asyncio.shield(opening)

    async def aclose(self) -> None:
        """Close this event loop's store, and its connections to brokers."""
        waiter = self._opened.waiters.pop(asyncio.get_running_loop(), None)
        if waiter is not None:
            await waiter.close()
        await self._targets.aclose()
        opening = self._opened.stores.pop(asyncio.get_running_loop(), None)
        if opening is None:
            return
        # A store that could not be opened has raised; there is nothing to close.
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            store = opening.result()
            if store is not self._opened.in_memory:
                await store.close()

    def close(self) -> None:
        """Close what blocking calls have opened."""
        self._portal.close()

    async def __aenter__(self) -> Self:
        await self._store()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self._portal.call(self._store, instead="async with app")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _open(self, prepare: bool) -> Store:
        url = self.settings.database.url
        if url == MEMORY:
            with self._opened.lock:  # two event loops must not make two databases
                if self._opened.in_memory is None:
                    self._opened.in_memory = open_store(url, clock=self._clock)
                store = self._opened.in_memory
            if prepare:
                await store.migrate()  # each event loop does this, because the other may not have finished
            return store
        store = open_store(url, clock=self._clock)
        try:
            if prepare:
                await _prepared(store, migrate=url.startswith("sqlite:"))
        except BaseException:
            await store.close()
            raise
        return store


class _LeaseHome:
    """The parts of an app that a lease needs."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self.clock, self.entropy, self.telemetry = app._clock, app._entropy, app._telemetry

    async def store(self) -> Store:
        return await self._app._store()


class Opened:
    """What an app has opened, by event loop. A forked child starts empty: it does not use what its parent
    opened."""

    def __init__(self, in_memory: Store | None = None) -> None:
        self.stores: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Store]]
        self.waiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Waiter]
        self.in_memory = in_memory
        self._empty()
        forks.tell(self)

    def inherit(self) -> None:
        """Called in a forked child."""
        forks.abandon((self.stores, self.waiters))
        self._empty()

    def _empty(self) -> None:
        self.stores, self.waiters = weakref.WeakKeyDictionary(), weakref.WeakKeyDictionary()
        self.lock = threading.Lock()


async def _prepared(store: Store, *, migrate: bool) -> None:
    try:
        if migrate:
            await store.migrate()
        else:
            await store.verify()
    except AnswerLost as lost:
        # The caller's own call has not begun, so its outcome is not in doubt.
        raise StoreUnavailable(str(lost)) from lost
