"""The worker: claimer, active runs and result writer on one event loop, and what the heartbeat reports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mainspring.clock import Clock
from mainspring.config import ResultsConfig, WorkerConfig
from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.model.job import Claim
from mainspring.signals import Signals
from mainspring.store.periods import period_of
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry
from mainspring.telemetry.events import ClaimsLost, LeaseEnded, LoopBlocked, Telemetry
from mainspring.worker.active_runs import ActiveRuns
from mainspring.worker.claimer import Claimer, QueueOrder
from mainspring.worker.effects import RunEffects
from mainspring.worker.executors import ChildExecutor, CoroutineExecutor, MakeChildren, ThreadExecutor
from mainspring.worker.handlers import Handlers
from mainspring.worker.membership import Membership
from mainspring.worker.result_writer import ResultWriter
from mainspring.worker.run import Executor
from mainspring.worker.run_reports import RunReports
from mainspring.worker.threads import FunctionPool, HandlerThreads

if TYPE_CHECKING:
    from mainspring.telemetry.traces import Tracer


class Worker:
    """Everything that happens to jobs in this process. Also the heartbeat's listener."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: WorkerConfig,
        *,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        pool: FunctionPool | None = None,
        executors: Sequence[Executor] = (),
        children: MakeChildren | None = None,
        results: ResultsConfig | None = None,
        tracer: Tracer | None = None,
        signals: Signals | None = None,
    ) -> None:
        """Plain functions run in `pool`, or else in threads of the worker's own. `executors` are asked before
        our own which jobs they take."""
        self._name = config.name
        self._telemetry = telemetry
        self._queue = store.queue
        self.signals = signals or Signals()
        self._telling: set[asyncio.Task[None]] = set()
        self.membership = Membership(clock, config.lease)
        self.reports = RunReports(
            store.runs, clock, self.signals, capture=config.capture_logs, log_limit=config.log_limit
        )
        result_bytes = (results or ResultsConfig()).max_bytes
        self.threads = HandlerThreads(
            config.threads,
            pool,
            lambda claim, left: self.active_runs.leaked(claim, "thread", left),
        )
        handlers = Handlers(
            self.threads,
            self.reports,
            lambda claim, run: RunEffects(claim, run, store, clock, result_bytes),
            result_bytes=result_bytes,
            begin=lambda claim: store.queue.begin(claim, at=clock.stamp()),
            periods=partial(period_of, store),
        )
        self.children = ChildExecutor(handlers, clock, self.signals, children, size=config.children)
        self.executors: tuple[Executor, ...] = (
            *executors,
            self.children,
            ThreadExecutor(handlers, clock, traced=tracer is not None),
            CoroutineExecutor(handlers, clock),
        )
        """The first that takes a job runs it."""
        self.result_writer = ResultWriter(store.queue, clock, telemetry, self.signals)
        self.active_runs = ActiveRuns(
            config.concurrency,
            registry,
            self.executors,
            self.children,
            self.result_writer,
            self.reports,
            clock=clock,
            entropy=entropy,
            telemetry=telemetry,
            signals=self.signals,
            tracer=tracer,
        )
        self.claimer = Claimer(
            store.queue,
            self.active_runs,
            self.membership,
            clock,
            self.signals,
            queues=QueueOrder(config.queue_names, config.queue_weights, entropy).order,
            tasks=lambda: registry.offered(shell=config.shell),
            poll=config.poll,
        )

    @property
    def worn_out(self) -> bool:
        """Whether no execution slot, or no thread, is left to work with."""
        return self.active_runs.size <= 0 or self.threads.left <= 0

    async def end_handlers(self) -> None:
        """End what still runs, and take no further work."""
        for executor in self.executors:
            await executor.close()
        self.close()

    def close(self) -> None:
        """Take no further work. Threads still in a handler are left to the process's end."""
        self.threads.close()
        self.reports.shut()

    def holding(self) -> Sequence[tuple[int, int]]:
        return self.active_runs.holding()

    def blocked(self) -> bool:
        """Whether a handler holds up the event loop beyond its timeout. Safe from any thread."""
        claims = self.active_runs.blocked()
        for claim in claims:
            self._telemetry.emit(LoopBlocked(job_id=claim.job_id, task=claim.task, claim=claim))
        return bool(claims)

    def joined(self) -> None:
        self.signals.lease_held.send()

    def lost(self, claims: tuple[tuple[int, int], ...]) -> None:
        # Those that ended meanwhile are not lost: they are settled or about to be.
        self._tell_lost(self.active_runs.drop(claims))

    def ended(self, *, expired: bool) -> None:
        dropped = self.active_runs.drop_all() if expired else ()
        running = len(dropped) if expired else self.active_runs.release_all()
        self._telemetry.emit(LeaseEnded(name=self._name, running=running, expired=expired))
        self._tell_lost(dropped)

    def _tell_lost(self, claims: tuple[Claim, ...]) -> None:
        """Their handlers have been stopped; now there is time to ask which worker has the jobs."""
        if claims:
            task = asyncio.ensure_future(self._tell_whereabouts(claims))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell_whereabouts(self, claims: tuple[Claim, ...]) -> None:
        ids = tuple(claim.job_id for claim in claims)
        try:
            where = tuple(await self._queue.whereabouts(ids))
        except StoreError:
            where = ()  # the event goes without it
        self._telemetry.emit(ClaimsLost(job_ids=ids, claims=claims, whereabouts=where))


class Bridge:
    """Carries the heartbeat's words from its thread to the worker's event loop."""

    def __init__(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        self._worker = worker
        self._loop = loop

    def holding(self) -> Sequence[tuple[int, int]]:
        if self._worker.blocked():
            self._worker.signals.loop_blocked.send()
        return self._worker.holding()

    def joined(self) -> None:
        self._loop.call_soon_threadsafe(self._worker.joined)

    def lost(self, claims: tuple[tuple[int, int], ...]) -> None:
        self._loop.call_soon_threadsafe(self._worker.lost, claims)

    def ended(self, *, expired: bool) -> None:
        self._loop.call_soon_threadsafe(lambda: self._worker.ended(expired=expired))


class NoClaims:
    """For processes that hold no claims: schedulers."""

    def holding(self) -> Sequence[tuple[int, int]]:
        return ()

    def joined(self) -> None:
        """Nothing waits for it."""

    def lost(self, claims: tuple[tuple[int, int], ...]) -> None:
        """Nothing is held."""

    def ended(self, *, expired: bool) -> None:
        """What a scheduler does is safe without a lease; the lease only shows that it lives."""
