"""A scheduler and a worker of one app on one event loop, each moved by one call, and a record of the runs."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, cast

from mainspring.app import Mainspring
from mainspring.config import WorkerConfig
from mainspring.model.job import Failure
from mainspring.model.process import NewProcess, Role
from mainspring.model.value import Value
from mainspring.process.heartbeat import Heartbeat
from mainspring.scheduler.scheduler import BATCH, Scheduler
from mainspring.scheduler.workflow_resolver import WorkflowResolver
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry
from mainspring.tasks.task import Task
from mainspring.telemetry.events import Event, RunEnded, RunStarted, SettlementRefused, Telemetry
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
        self._store, self._clock, self._watch = store, app._clock, watch
        config, scheduling = (
            WorkerConfig(queues=self.queues, concurrency=1, threads=1),
            app.settings.scheduler,
        )
        self._worker = Worker(
            store,
            watch.registry,
            config,
            clock=app._clock,
            entropy=app._entropy,
            telemetry=watch.telemetry,
            pool=pool,
        )
        self._heart = Heartbeat(
            lambda: store,
            NewProcess(
                id=0, role=Role.WORKER, name=NAME, queues=self.queues, tasks=tuple(app._registry.tasks)
            ),
            self._worker.membership,
            self._worker,
            lease=config.lease,
            every=config.heartbeat,
            clock=app._clock,
            entropy=app._entropy,
            telemetry=watch.telemetry,
        )
        self._scheduler = Scheduler(
            store,
            app._clock,
            watch.telemetry,
            poll=scheduling.poll,
            chunk=scheduling.chunk,
            breaker=scheduling.breaker,
        )
        self._resolver = WorkflowResolver(
            store.workflows, app._clock, app._entropy, watch.telemetry, poll=config.poll
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


REFUSED = "refused"
"""The job was taken away, as by a cancel, while its handler ran."""


class RunFailed(Exception):
    """A run that failed without an exception of its handler: it took too long, or its result is no JSON."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.type}: {failure.message}")
        self.failure = failure


class Ran(Value, frozen=True, kw_only=True):
    """One run that has ended; `verdict` is succeeded, failed, dead, released or refused."""

    job_id: int
    task: str
    verdict: str
    attempt: int | None = None
    """Counted from 1; not known of a run that was refused."""
    failure: Failure | None = None
    error: BaseException | None = None
    """What the handler raised; set with `failure`."""


class Watch:
    """What the runs of one harness came to. One run at a time: what was raised last is its own."""

    def __init__(self, registry: Registry, telemetry: Telemetry) -> None:
        self.registry = _WatchedRegistry(registry, self)
        self.telemetry = telemetry.behind(self._hear)
        self.ran: list[Ran] = []
        self._raised: tuple[BaseException, TracebackType | None] | None = None

    def watched(self, task: Task[..., Any]) -> Task[..., Any]:
        """The same task; what its function raises is remembered on its way."""
        function = task.function

        def call(*args: object, **kwargs: object) -> object:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self._remember(error)
                raise

        async def acall(*args: object, **kwargs: object) -> object:
            try:
                return await cast("Any", function(*args, **kwargs))
            except BaseException as error:
                self._remember(error)
                raise

        other = copy.copy(task)
        other.function = cast("Callable[..., Any]", acall if task.signature.is_async else call)
        return other

    def error_of(self, failure: Failure) -> BaseException:
        """What was raised, with the traceback as it left the handler, not as it went through the engine."""
        raised, self._raised = self._raised, None
        if raised is None:
            return RunFailed(failure)
        return raised[0].with_traceback(raised[1])

    def _remember(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            return  # by the engine, which tells why
        own = error.__traceback__.tb_next if error.__traceback__ else None
        self._raised = (error, own or error.__traceback__)

    def _hear(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._raised = None
            case SettlementRefused():
                self.ran.append(Ran(job_id=event.job_id, task=event.task, verdict=REFUSED))
            case RunEnded():
                self.ran.append(
                    Ran(
                        job_id=event.job_id,
                        task=event.task,
                        attempt=event.attempt,
                        verdict=event.verdict.value,
                        failure=event.failure,
                        error=None if event.failure is None else self.error_of(event.failure),
                    )
                )
            case _:
                pass


class _WatchedRegistry(Registry):
    """A registry whose tasks are watched."""

    def __init__(self, real: Registry, watch: Watch) -> None:
        super().__init__()
        self._real, self._watch = real, watch
        self.tasks, self.schedules = real.tasks, real.schedules

    def get(self, name: str) -> Task[..., object]:
        return self._watch.watched(self._real.get(name))
