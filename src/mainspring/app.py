"""The composition root: picks store, clock and settings, and wires everything else."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mainspring.calendars import Calendar
from mainspring.clock import Clock, SystemClock
from mainspring.config import Settings, load
from mainspring.declare.decorator import TaskDecorator
from mainspring.declare.handle import JobHandle
from mainspring.declare.registry import Registry
from mainspring.declare.schedule import ScheduleDeclaration, declare_schedule
from mainspring.declare.task import Task
from mainspring.duration import Duration
from mainspring.entropy import Entropy, SystemEntropy
from mainspring.model.job import NewJob
from mainspring.store.opener import open_store
from mainspring.store.ports import Store
from mainspring.sync import Portal
from mainspring.telemetry import SchedulesWritten, Telemetry


class Mainspring:
    """Tasks, schedules and the store they live in.

    Without a URL the database comes from MAINSPRING_DATABASE_URL, DATABASE_URL, mainspring.toml,
    or is the file mainspring.db. Nothing is opened before it is needed.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.entropy: Entropy = entropy or SystemEntropy()
        self.telemetry = telemetry or Telemetry()
        self.registry = Registry()
        self.task = TaskDecorator(self.registry, self)
        self._url = url
        self._settings: Settings | None = None
        self._origins: Mapping[str, str] = {}
        self._portal = Portal(goodbye=self.aclose)
        self._stores: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Store]]
        self._stores = weakref.WeakKeyDictionary()
        self._in_memory: Store | None = None
        self._opening = threading.Lock()

    @property
    def settings(self) -> Settings:
        """Read once, when first asked for."""
        return self._settings or self.configure()

    @property
    def origins(self) -> Mapping[str, str]:
        """Where each setting came from."""
        _ = self.settings
        return self._origins

    def configure(self, flags: Mapping[str, object] | None = None, *, file: Path | None = None) -> Settings:
        """Read the settings, with these flags over everything else."""
        self._settings, self._origins = load(flags=flags or {}, code_url=self._url, file=file)
        return self._settings

    def schedule(
        self,
        name: str,
        task: Task[..., Any],
        *,
        cron: str | None = None,
        every: Duration | None = None,
        rrule: str | None = None,
        at: datetime | Sequence[datetime] | None = None,
        tz: str = "UTC",
        gap: str = "shift",
        fold: str = "first",
        anchor: datetime | None = None,
        dtstart: datetime | None = None,
        exdates: Sequence[datetime] = (),
        rdates: Sequence[datetime] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        max_fires: int | None = None,
        calendar: Calendar | None = None,
        on_holiday: str | None = None,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        misfire: str = "latest",
        catch_up: Duration = "1d",
        queue: str | None = None,
        priority: int | None = None,
    ) -> ScheduleDeclaration:
        """Declare that a task runs by itself. It is written to the store when a scheduler starts.

        On the nights the clocks change, a cron expression with a fixed hour follows `gap` ("shift",
        "skip") and `fold` ("first", "second", "both"). `anchor` goes with `every`; `dtstart`,
        `exdates` and `rdates` go with `rrule`. Slots from `start` on and before `end` count, and no
        more than `max_fires` of them. With a `calendar`, a slot on no business day follows
        `on_holiday` ("skip", "next", "previous").
        """
        declared = declare_schedule(
            name,
            task,
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
            queue=queue,
            priority=priority,
        )
        self.registry.add_schedule(declared)
        return declared

    def enqueue(self, jobs: Sequence[NewJob]) -> list[JobHandle]:
        """Put prepared jobs into their queues, all or none; when it returns, they are stored."""
        return self._portal.call(lambda: self.aenqueue(jobs), instead="aenqueue")

    async def aenqueue(self, jobs: Sequence[NewJob]) -> list[JobHandle]:
        """The same on an event loop."""
        store = await self.store()
        ids = await store.insert(jobs, at=self.clock.stamp())
        return [
            JobHandle(id=job_id, task=job.task, queue=job.queue)
            for job_id, job in zip(ids, jobs, strict=True)
        ]

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[JobHandle]:
        """`app.enqueue_many(invoice.job(tenant) for tenant in tenants)`: one round trip for all."""
        return self.enqueue(list(jobs))

    async def aenqueue_many(self, jobs: Iterable[NewJob]) -> list[JobHandle]:
        """The same on an event loop."""
        return await self.aenqueue(list(jobs))

    async def write_schedules(self) -> list[str]:
        """Write the declared schedules to the store; answer the names that were new or changed."""
        store = await self.store()
        now = await store.now(at=self.clock.stamp())
        declared = [each.new_schedule(now) for each in self.registry.schedules.values()]
        names = await store.put_schedules(declared, at=self.clock.stamp()) if declared else []
        if names:
            self.telemetry.emit(SchedulesWritten(names=tuple(names)))
        return names

    async def store(self) -> Store:
        """This event loop's store, opened at the first call. An SQLite file is brought up to date
        by whoever opens it; PostgreSQL wants `mainspring db migrate`."""
        loop = asyncio.get_running_loop()
        opening = self._stores.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._stores[loop] = loop.create_task(self._open())
        return await asyncio.shield(opening)

    @property
    def in_memory(self) -> Store | None:
        """The store, if it is a database in memory: other threads must share it, for a second one
        would be another database."""
        return self._in_memory

    async def aclose(self) -> None:
        """Let go of this event loop's store."""
        opening = self._stores.pop(asyncio.get_running_loop(), None)
        if opening is None:
            return
        # One that could not be opened has told its caller so; there is nothing to let go of.
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            store = opening.result()
            if store is not self._in_memory:
                await store.close()

    def close(self) -> None:
        """Let go of what blocking calls have opened."""
        self._portal.close()

    async def __aenter__(self) -> Self:
        await self.store()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self._portal.call(self.store, instead="async with app")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _open(self) -> Store:
        url = self.settings.database.url
        if url == "sqlite://:memory:":
            with self._opening:  # two event loops must not make two databases
                if self._in_memory is None:
                    self._in_memory = open_store(url, clock=self.clock)
                store = self._in_memory
            await store.migrate()  # by each, for the other may still be at it
            return store
        store = open_store(url, clock=self.clock)
        if url.startswith("sqlite:"):
            await store.migrate()
        return store
