"""A worker, a heart and a store on one event loop, ticked by hand; and stores that fail on order."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from mainspring.app import Mainspring
from mainspring.config import WorkerConfig
from mainspring.entropy import SeededEntropy
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.job import Job, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Run
from mainspring.process.heartbeat import Heartbeat
from mainspring.process.serve import CHILD
from mainspring.store.around import around
from mainspring.telemetry.events import Event, Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.worker.children.child import Answers, Launch
from mainspring.worker.children.child_channel import Hello
from mainspring.worker.children.pool import Pool
from mainspring.worker.run import Executor
from mainspring.worker.run_reports import RunReports
from mainspring.worker.worker import Worker

E = TypeVar("E", bound=Event)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEASE = 15 * SECOND
BEAT = 5 * SECOND
DEADLINE = 20.0


async def until(condition: Callable[[], Any], seconds: float = DEADLINE) -> None:
    """Let the event loop go on until it is so; fail loudly when it never is."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        await asyncio.sleep(0.001)


async def until_async(condition: Callable[[], Awaitable[Any]], seconds: float = DEADLINE) -> None:
    """The same for a condition that has to be asked for."""
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        await asyncio.sleep(0.005)


class Heard:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


class Faulty:
    """A real store whose calls fail on order: before anything happened, or after it did."""

    def __init__(self, store: Any) -> None:
        self._store = around(store, self._call)
        self._faults: dict[str, list[Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]]] = {}
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def before(self, name: str, error: Exception | None = None, *, times: int = 1) -> None:
        """The next calls of this method fail and do nothing."""

        async def fault(call: Callable[[], Awaitable[Any]]) -> Any:
            raise error or StoreUnavailable("on order")

        self._faults.setdefault(name, []).extend([fault] * times)

    def after(self, name: str, error: Exception | None = None, *, times: int = 1) -> None:
        """The next calls of this method do their work, and then their answer is lost."""

        async def fault(call: Callable[[], Awaitable[Any]]) -> Any:
            await call()
            raise error or AnswerLost(name)

        self._faults.setdefault(name, []).extend([fault] * times)

    def during(self, name: str, what: Callable[[], Awaitable[None]]) -> None:
        """The next call of this method does its work, and something else happens before its answer."""

        async def fault(call: Callable[[], Awaitable[Any]]) -> Any:
            answer = await call()
            await what()
            return answer

        self._faults.setdefault(name, []).append(fault)

    def heal(self) -> None:
        self._faults.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def _call(self, name: str, method: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self.calls.append((name, args, named))
        faults = self._faults.get(name)
        if faults:
            return await faults.pop(0)(lambda: method(*args, **named))
        return await method(*args, **named)


class Floor:
    """One worker of one app. Nothing moves unless it is ticked."""

    def __init__(
        self,
        store: Any,
        clock: ManualClock,
        *,
        seed: int = 1,
        executors: Sequence[Executor] = (),
        **config: Any,
    ) -> None:
        self.store = Faulty(store)
        self.clock = clock
        self.heard = Heard()
        self.telemetry = Telemetry(self.heard)
        self.app = Mainspring("sqlite://:memory:")  # for its registry: it is never opened
        self.config = WorkerConfig(
            **{"lease": LEASE, "heartbeat": BEAT, "concurrency": 8, "threads": 4, **config}
        )
        self.entropy = SeededEntropy(seed)
        self.answers: Answers = {}
        queue: Any = self.store
        self.worker = Worker(
            queue,
            self.app._registry,
            self.config,
            clock=clock,
            entropy=self.entropy,
            telemetry=self.telemetry,
            children=self._children,
            executors=executors,
        )
        self.heart = Heartbeat(
            lambda: queue,
            NewProcess(id=0, role=Role.WORKER, name="w"),
            self.worker.membership,
            self.worker,
            lease=self.config.lease,
            every=self.config.heartbeat,
            clock=clock,
            entropy=self.entropy,
            telemetry=self.telemetry,
        )
        self.claimer, self.active_runs, self.result_writer = (
            self.worker.claimer,
            self.worker.active_runs,
            self.worker.result_writer,
        )

    @property
    def task(self) -> Any:
        return self.app.task

    @property
    def id(self) -> int:
        assert self.worker.membership.id is not None
        return self.worker.membership.id

    async def put(self, task: str, *, payload: bytes = b"{}", **fields: Any) -> int:
        [job_id] = await self.store.queue.insert(
            [NewJob(task=task, payload=payload, **fields)], at=self.clock.stamp()
        )
        return int(job_id)

    async def join(self) -> None:
        await self.heart.tick()

    async def work(self) -> None:
        """Claim, let every run end, and write how: one round."""
        if self.worker.membership.id is None:
            await self.join()
        await self.claimer.tick()
        await self.finish()

    async def finish(self) -> None:
        """Let every run end, and write how."""
        await until(lambda: not self.active_runs.running)
        while self.result_writer.pending:
            await self.result_writer.tick()

    async def job(self, job_id: int) -> Job:
        found = await self.store.jobs.get(job_id, at=self.clock.stamp())
        assert found is not None
        return found  # type: ignore[no-any-return]

    async def runs(self, job_id: int) -> list[Run]:
        return list(await self.store.runs.of(job_id))

    async def dead(self) -> list[DeadJob]:
        return list(await self.store.dead_letters.find(DeadFilter()))

    def _children(self, journal: RunReports) -> Pool:
        launch = Launch(command=CHILD, hello=Hello(path=tuple(sys.path)))
        return Pool(self.config.children, launch, journal, self.answers)

    def close(self) -> None:
        self.worker.close()
