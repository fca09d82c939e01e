"""A scheduler and a worker of one app, the engine's own, on one event loop. Nothing moves unless told to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mainspring.app import Mainspring
from mainspring.config import WorkerConfig
from mainspring.model.fleet import Member, Role
from mainspring.process.heartbeat import Heartbeat
from mainspring.scheduler.scheduler import BATCH, Scheduler
from mainspring.scheduler.workflow_resolver import WorkflowResolver
from mainspring.store.store import Store
from mainspring.testing.watch import Ran, Watch
from mainspring.worker.threads import FunctionPool
from mainspring.worker.worker import Worker

NAME = "mainspring.testing"


class Floor:
    """One job at a time, best first, so that the same test gives the same order every time."""

    def __init__(
        self,
        app: Mainspring,
        store: Store,
        watch: Watch,
        *,
        queues: Sequence[str],
        pool: FunctionPool | None,
    ) -> None:
        self.queues = tuple(queues)
        self._store, self._clock, self._watch = store, app.clock, watch
        config, scheduling = (
            WorkerConfig(queues=self.queues, concurrency=1, threads=1),
            app.settings.scheduler,
        )
        self._worker = Worker(
            store,
            watch.registry,
            config,
            clock=app.clock,
            entropy=app.entropy,
            telemetry=watch.telemetry,
            pool=pool,
        )
        self._heart = Heartbeat(
            lambda: store,
            Member(id=0, role=Role.WORKER, name=NAME, queues=self.queues, tasks=tuple(app.registry.tasks)),
            self._worker.membership,
            self._worker,
            lease=config.lease,
            every=config.heartbeat,
            clock=app.clock,
            entropy=app.entropy,
            telemetry=watch.telemetry,
        )
        self._scheduler = Scheduler(
            store,
            app.clock,
            watch.telemetry,
            poll=scheduling.poll,
            chunk=scheduling.chunk,
            breaker=scheduling.breaker,
        )
        self._resolver = WorkflowResolver(
            store.workflows, app.clock, app.entropy, watch.telemetry, poll=config.poll
        )
        self._freed = asyncio.Event()
        self._worker.signals.run_ended.connect(self._freed.set)

    async def fire(self) -> bool:
        """One pass of the scheduler; answer whether another has more to open at this moment."""
        _, due = await self._store.slots.due_specs(limit=BATCH, at=self._clock.stamp())
        await self._scheduler.tick()
        if not due:
            return False
        _, left = await self._store.slots.due_specs(limit=BATCH, at=self._clock.stamp())
        return bool(left) and left != due

    async def work(self) -> Ran | None:
        """Claim the best job that is due, run it and write how it ended; None when there is none."""
        await self._heart.tick()
        while (await self._store.limits.admit(at=self._clock.stamp())).admitted:
            pass
        while await self._resolver.relieve():
            pass
        self._freed.clear()
        await self._worker.claimer.tick()
        if not self._worker.active_runs.running:
            return None
        await self._freed.wait()
        while self._worker.result_writer.pending:
            await self._worker.result_writer.tick()
        return self._watch.ran[-1]

    def close(self) -> None:
        """Take no further work. The lease ends with the clock, or with the database."""
        self._worker.close()
