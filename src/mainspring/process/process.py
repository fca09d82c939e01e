"""One process: its loops started, kept going, and brought to a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from mainspring.entropy import Entropy
from mainspring.process.heartbeat import HeartbeatThread
from mainspring.process.loop import Cycle, Loop
from mainspring.scheduler.housekeeping import Reaper
from mainspring.scheduler.limit_admission import LimitAdmission
from mainspring.scheduler.workflow_resolver import WorkflowResolver
from mainspring.signals import Signals
from mainspring.store.store import Store, Waker
from mainspring.telemetry.events import (
    HandlersLeft,
    HintsMissing,
    ProcessStopped,
    ProcessStopping,
    ProcessWornOut,
    Telemetry,
)
from mainspring.telemetry.progress import LoopProgress
from mainspring.waiting import NOW, until
from mainspring.worker.worker import Worker

CANCEL_WITHIN = timedelta(seconds=5)
"""How long handlers get to end once they have been cancelled."""
WRITE_WITHIN = timedelta(seconds=10)
"""How long the last settlements get to be written."""
PASS_WITHIN = timedelta(seconds=5)
ABORT_WITHIN = timedelta(seconds=2)


class Process:
    """Runs until `stop` is called, or, in a burst, until nothing is left to do."""

    def __init__(
        self,
        heartbeats: HeartbeatThread,
        *,
        worker: Worker | None,
        limit_admission: LimitAdmission | None = None,
        resolver: WorkflowResolver | None = None,
        reaper: Reaper | None = None,
        loops: Sequence[Loop],
        grace: timedelta,
        entropy: Entropy,
        telemetry: Telemetry,
        progress: LoopProgress | None = None,
        mend: Callable[[Exception], Awaitable[object]] | None = None,
        signals: Signals | None = None,
    ) -> None:
        self._heartbeats = heartbeats
        self._worker = worker
        self.signals = signals or (Signals() if worker is None else worker.signals)
        self._waker: Waker | None = None
        self._grace = grace
        self._entropy = entropy
        self._telemetry = telemetry
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()
        self._quiet = asyncio.Event()
        self._burst = False
        self.supervised = False
        """Whether another process takes our place when we end: then the first handler that would not
        end is reason enough."""
        self.worn_out = False
        """Whether we stopped because handlers would not end."""
        self._progress = progress
        self._mend = mend
        self._others = [self._cycle(loop) for loop in loops]
        self._reaper = reaper
        if reaper is not None:
            self._others.append(self._cycle(reaper))
        self._settling: list[Cycle] = []
        self._limit_admission = limit_admission
        self._admitting: Cycle | None = None
        self._resolver = resolver
        if worker is not None:
            self._wire(worker)

    def listen(self, hints: Store) -> None:
        """Have hints wake the claimer, rather than polling alone."""
        self._waker = hints.waker(self._hinted)
        if self._waker.deaf is not None:
            self._telemetry.emit(HintsMissing(reason=self._waker.deaf))
        self._others.append(self._cycle(self._waker))

    def stop(self) -> None:
        """Drain; a second call aborts. Call it on the process's event loop."""
        if self._stopping.is_set():
            self._aborting.set()
            self._quiet.set()
        self._stopping.set()

    @property
    def running(self) -> int:
        """How many jobs are running. Safe from any thread."""
        return 0 if self._worker is None else self._worker.active_runs.running

    def left(self) -> tuple[tuple[int, str], ...]:
        """Jobs whose handlers have not ended, with their tasks. Safe from any thread."""
        claims = [] if self._worker is None else self._worker.active_runs.left()
        return tuple((claim.job_id, claim.task) for claim in claims)

    def leave(self, within: timedelta) -> bool:
        """End the leases from another thread, because nothing moves on the event loop: the caller ends the
        process next. Answer whether the store knows."""
        return self._heartbeats.leave(within)

    @property
    def aborted(self) -> bool:
        """Whether a second stop cut the drain short."""
        return self._aborting.is_set()

    async def run(self, *, burst: bool = False) -> None:
        """Start everything, wait for the end, and see to it that nothing is lost on the way out."""
        self._burst = burst
        if burst and self._worker is not None:
            self.signals.let_in.connect(self._let_in)
        others = [asyncio.create_task(cycle.run()) for cycle in self._others]
        settling = [asyncio.create_task(cycle.run()) for cycle in self._settling]
        self._heartbeats.start()
        try:
            await self._stopping.wait()
        except asyncio.CancelledError:
            # The caller has no time to wait; but a heartbeat that goes on would hold our claims.
            self.stop()
            self.stop()
            raise
        finally:
            await self._shut_down(others, settling)

    async def _shut_down(self, others: list[asyncio.Task[None]], settling: list[asyncio.Task[None]]) -> None:
        self.signals.ending.send()
        # A claim may be under way: it must be answered before it can be said that none is left, and what
        # it brings is given back.
        if self._worker is not None:
            self._worker.claimer.stop()
        await _end(self._others, others)
        clean = await self._drain()
        await _end(self._settling, settling)
        if self._waker is not None:
            await self._waker.close()
        await self._heartbeats.stop(clean=clean)

    def _cycle(self, loop: Loop) -> Cycle:
        return Cycle(loop, self._telemetry, self._entropy, progress=self._progress, mend=self._mend)

    def _wire(self, worker: Worker) -> None:
        """Make the loops of the worker, and say which signal wakes which of them."""
        signals = self.signals
        claiming, writing = self._cycle(worker.claimer), self._cycle(worker.result_writer)
        reporting = self._cycle(worker.reports)
        self._claiming, self._settling = claiming, [writing, reporting]
        self._others.append(claiming)
        signals.lease_held.connect(claiming.wake)
        signals.child_free.connect(claiming.wake)
        signals.result_waits.connect(writing.wake)
        signals.progress_waits.connect(reporting.wake)
        signals.results_written.connect(self._moved)
        signals.run_ended.connect(self._moved)
        signals.handler_lost.connect(self._leaked)
        signals.idle.connect(self._idle)
        if self._reaper is not None:
            self._reaper.signals.none_expected.connect(self._settled)
        if self._limit_admission is not None:
            self._admitting = self._cycle(self._limit_admission)
            self._others.append(self._admitting)
            signals.limit_freed.connect(self._admitting.wake)
        if self._resolver is not None:
            resolving = self._cycle(self._resolver)
            self._others.append(resolving)
            signals.step_ended.connect(resolving.wake)

    async def _let_in(self) -> bool:
        """Whether a job has just passed its limits, or a step was released."""
        passed = self._limit_admission is not None and await self._limit_admission.relieve()
        released = self._resolver is not None and await self._resolver.relieve()
        return passed or released

    def _hinted(self) -> None:
        """Jobs may have come in."""
        self._claiming.wake()
        if (
            self._admitting is not None
            and self._limit_admission is not None
            and self._limit_admission.listens
        ):
            self._admitting.wake()

    def _moved(self) -> None:
        """An execution slot was freed, or settlements were written."""
        worker = self._worker
        if worker is None:
            return
        if worker.claimer.wants_more or self._burst:
            self._claiming.wake()
        if worker.active_runs.quiet:
            self._quiet.set()

    def _leaked(self) -> None:
        """A handler would not end. Alone we go on with what is left, as long as anything is."""
        worker = self._worker
        if worker is None or self._stopping.is_set() or not (self.supervised or worker.worn_out):
            return
        self.worn_out = True
        self._telemetry.emit(ProcessWornOut(supervised=self.supervised))
        self._stopping.set()

    def _idle(self) -> None:
        # What a dead worker left is work, too, and no other process may be there to give it back.
        if self._burst and not (self._reaper is not None and self._reaper.expects):
            self._stopping.set()

    def _settled(self) -> None:
        if self._burst:
            self._claiming.wake()

    async def _drain(self) -> bool:
        """Let runs end, then end them; answer whether no claim of ours is left in the store."""
        worker = self._worker
        if worker is None:
            return True
        worker.active_runs.draining = worker.result_writer.counting = True
        self._telemetry.emit(ProcessStopping(running=worker.active_runs.running, grace=self._grace))
        # A second stop may have come before we got here.
        await self._until_quiet(worker, NOW if self.aborted else self._grace)
        if worker.active_runs.release_all():
            await self._until_quiet(worker, ABORT_WITHIN if self.aborted else CANCEL_WITHIN)
            worker.active_runs.abandon()
        await self._until_quiet(worker, ABORT_WITHIN if self.aborted else WRITE_WITHIN)
        await worker.end_handlers()
        if left := self.left():
            self._telemetry.emit(HandlersLeft(jobs=left))
        stopped = ProcessStopped(
            released=worker.result_writer.given_back, unwritten=worker.result_writer.pending
        )
        self._telemetry.emit(stopped)
        return worker.active_runs.quiet and not worker.claimer.in_doubt

    async def _until_quiet(self, worker: Worker, at_most: timedelta) -> None:
        self._quiet.clear()
        if not worker.active_runs.quiet:
            await until(self._quiet, at_most)


async def _end(cycles: Sequence[Cycle], tasks: Sequence[asyncio.Task[None]]) -> None:
    """Let the pass under way end, but do not wait for a store that no longer answers."""
    for cycle in cycles:
        cycle.stop()
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=PASS_WITHIN.total_seconds())
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
