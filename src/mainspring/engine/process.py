"""One process: its loops started, kept going, and brought to a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from mainspring.engine.gatekeeper import Gatekeeper
from mainspring.engine.loop import Cycle, Loop
from mainspring.engine.progress import Progress
from mainspring.engine.pulse import Pulse
from mainspring.engine.reaper import Reaper
from mainspring.engine.resolver import Resolver
from mainspring.engine.worker import Worker
from mainspring.entropy import Entropy
from mainspring.store.store import Store, Waker
from mainspring.telemetry import (
    HandlersLeft,
    HintsMissing,
    ProcessStopped,
    ProcessStopping,
    ProcessWornOut,
    Telemetry,
)
from mainspring.waiting import NOW, until

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
        pulse: Pulse,
        *,
        worker: Worker | None,
        gatekeeper: Gatekeeper | None = None,
        resolver: Resolver | None = None,
        reaper: Reaper | None = None,
        loops: Sequence[Loop],
        grace: timedelta,
        entropy: Entropy,
        telemetry: Telemetry,
        progress: Progress | None = None,
        mend: Callable[[Exception], Awaitable[object]] | None = None,
    ) -> None:
        self._pulse = pulse
        self._worker = worker
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
        self.on_blocked: Callable[[], None] = lambda: None
        """Called on the heart's thread while a handler holds up the event loop beyond its timeout."""
        self.on_end: Callable[[], None] = lambda: None
        """Called when we begin to end, for whatever reason."""
        self._progress = progress
        self._mend = mend
        self._others = [self._cycle(loop) for loop in loops]
        self._reaper = reaper
        if reaper is not None:
            self._others.append(self._cycle(reaper))
        self._settling: list[Cycle] = []
        self._gatekeeper = gatekeeper
        self._gating: Cycle | None = None
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
        """Jobs in hand. Safe from any thread."""
        return 0 if self._worker is None else self._worker.crew.running

    def left(self) -> tuple[tuple[int, str], ...]:
        """Jobs whose handlers have not ended, with their tasks. Safe from any thread."""
        claims = [] if self._worker is None else self._worker.crew.left()
        return tuple((claim.job_id, claim.task) for claim in claims)

    def leave(self, within: timedelta) -> bool:
        """End the leases from another thread, because nothing moves on the event loop: whoever asks ends the
        process next. Answer whether the store knows."""
        return self._pulse.leave(within)

    @property
    def aborted(self) -> bool:
        """Whether a second stop cut the drain short."""
        return self._aborting.is_set()

    async def run(self, *, burst: bool = False) -> None:
        """Start everything, wait for the end, and see to it that nothing is lost on the way out."""
        self._burst = burst
        if burst and self._worker is not None:
            self._worker.claimer.relieve = self._relieve
        others = [asyncio.create_task(cycle.run()) for cycle in self._others]
        settling = [asyncio.create_task(cycle.run()) for cycle in self._settling]
        self._pulse.start()
        try:
            await self._stopping.wait()
        except asyncio.CancelledError:
            # Whoever runs us has no time to wait; but a heart left beating would hold our claims.
            self.stop()
            self.stop()
            raise
        finally:
            await self._shut_down(others, settling)

    async def _shut_down(self, others: list[asyncio.Task[None]], settling: list[asyncio.Task[None]]) -> None:
        self.on_end()
        # A claim may be under way: it must be answered before it can be said that none is left, and what
        # it brings is given back.
        if self._worker is not None:
            self._worker.claimer.stop()
        await _end(self._others, others)
        clean = await self._drain()
        await _end(self._settling, settling)
        if self._waker is not None:
            await self._waker.close()
        await self._pulse.stop(clean=clean)

    def _cycle(self, loop: Loop) -> Cycle:
        return Cycle(loop, self._telemetry, self._entropy, progress=self._progress, mend=self._mend)

    def _wire(self, worker: Worker) -> None:
        self._claiming = self._cycle(worker.claimer)
        settling = self._cycle(worker.settler)
        noting = self._cycle(worker.journal)
        self._settling = [settling, noting]
        worker.journal.on_arrival = noting.wake
        self._others.append(self._claiming)
        worker.settler.on_arrival = settling.wake
        worker.settler.on_written = self._moved
        worker.crew.on_freed = self._moved
        worker.crew.on_leak = self._leaked
        worker.on_joined = worker.executor.on_seat = self._claiming.wake
        worker.claimer.on_idle = self._idle
        if self._reaper is not None:
            self._reaper.on_settled = self._settled

        if self._gatekeeper is not None:
            self._gating = self._cycle(self._gatekeeper)
            self._others.append(self._gating)
            worker.settler.on_limited = worker.claimer.on_limited = self._gating.wake

        if self._resolver is not None:
            resolving = self._cycle(self._resolver)
            self._others.append(resolving)
            worker.settler.on_step = resolving.wake

    async def _relieve(self) -> bool:
        """Whether a job has just passed its limits, or a step was released."""
        passed = self._gatekeeper is not None and await self._gatekeeper.relieve()
        released = self._resolver is not None and await self._resolver.relieve()
        return passed or released

    def _hinted(self) -> None:
        """Jobs may have come in."""
        self._claiming.wake()
        if self._gating is not None and self._gatekeeper is not None and self._gatekeeper.listens:
            self._gating.wake()

    def _moved(self) -> None:
        """A hand was freed or a settlement written."""
        worker = self._worker
        if worker is None:
            return
        if worker.claimer.wants_more or self._burst:
            self._claiming.wake()
        if worker.crew.quiet:
            self._quiet.set()

    def _leaked(self) -> None:
        """A handler would not end. Alone we go on with what is left, as long as anything is."""
        worker = self._worker
        if worker is None or self._stopping.is_set() or not (self.supervised or worker.crew.worn_out):
            return
        self.worn_out = True
        self._telemetry.emit(ProcessWornOut(supervised=self.supervised))
        self._stopping.set()

    def _idle(self) -> None:
        # What a dead worker left is work, too, and nobody else may be there to give it back.
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
        worker.crew.draining = worker.settler.counting = True
        self._telemetry.emit(ProcessStopping(running=worker.crew.running, grace=self._grace))
        # A second stop may have come before we got here.
        await self._until_quiet(worker, NOW if self.aborted else self._grace)
        if worker.crew.release_all():
            await self._until_quiet(worker, ABORT_WITHIN if self.aborted else CANCEL_WITHIN)
            worker.crew.abandon()
        await self._until_quiet(worker, ABORT_WITHIN if self.aborted else WRITE_WITHIN)
        await worker.executor.end_children()
        worker.executor.close()
        if left := self.left():
            self._telemetry.emit(HandlersLeft(jobs=left))
        stopped = ProcessStopped(released=worker.settler.given_back, unwritten=worker.settler.pending)
        self._telemetry.emit(stopped)
        return worker.crew.quiet and not worker.claimer.in_doubt

    async def _until_quiet(self, worker: Worker, at_most: timedelta) -> None:
        self._quiet.clear()
        if not worker.crew.quiet:
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
