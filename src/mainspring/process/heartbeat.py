"""Heartbeats: they keep the lease of a process, and learn which claims it has lost. They run on a thread of
their own with a store of their own, so that neither a busy handler nor an exhausted pool can starve them.
What they report to the worker goes through `LeaseListener`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol, TypeVar

import msgspec

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.model.process import Beat, NewProcess
from mainspring.process.loop import Cycle
from mainspring.store.store import Store
from mainspring.telemetry.events import (
    LeaseOutlasted,
    LeaseRenewed,
    ProcessStarted,
    RenewalFailed,
    StoreTrouble,
    Telemetry,
)
from mainspring.telemetry.progress import LoopProgress
from mainspring.waiting import NOW, answer, until
from mainspring.worker.membership import Membership

T = TypeVar("T")


class LeaseListener(Protocol):
    """What hears of the fate of the lease. Called on the heartbeat's thread."""

    def holding(self) -> Sequence[tuple[int, int]]:
        """The (job, fence) pairs of the active runs."""

    def joined(self) -> None:
        """There is a lease; claims may be taken."""

    def lost(self, claims: tuple[tuple[int, int], ...]) -> None:
        """These (job, fence) pairs are no longer ours. Another claim on the same job may be."""

    def ended(self, *, expired: bool) -> None:
        """The lease is gone (`expired`), or will be before it can be renewed."""


class Heartbeat:
    """One process's lease."""

    name = "heartbeat"

    def __init__(
        self,
        store: Callable[[], Store],
        process: NewProcess,
        membership: Membership,
        listener: LeaseListener,
        *,
        lease: timedelta,
        every: timedelta,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._process = process
        self._membership = membership
        self._listener = listener
        self._lease = lease
        self._every = every
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._leaving = False
        self._turn = asyncio.Lock()
        self._unended: int | None = None
        """The lease that the store has not yet said it ended."""

    @property
    def retry_within(self) -> timedelta:
        """The longest pause after trouble: the end of the lease must not come in the midst of one."""
        return self._every / 4

    async def tick(self) -> timedelta:
        if self._leaving:
            pass  # a process that leaves must not join again
        elif self._membership.id is None:
            await self._join()
        else:
            await self._beat(self._membership.id)
        return self._every * (0.9 + 0.1 * self._entropy.fraction())

    async def leave(self, *, clean: bool) -> None:
        """End the lease for good, so that what is left under it is given back at once. A second call waits
        for the first, and tries again where the first had no answer."""
        self._leaving = True
        async with self._turn:
            if self._membership.id is not None:
                self._unended, self._membership.id = self._membership.id, None
            if self._unended is not None:
                await self._store().processes.leave(self._unended, clean=clean, at=self._clock.stamp())
                self._unended = None

    async def _join(self) -> None:
        async with self._turn:  # a process that leaves ends the lease that it is just being given, too
            if not self._leaving:
                await self._join_now()

    async def _join_now(self) -> None:
        process = msgspec.structs.replace(self._process, id=self._entropy.worker_id())
        sent_at = self._clock.monotonic()
        join = self._store().processes.join(process, lease=self._lease, at=self._clock.stamp())
        await answer(join, within=self._lease, to="a join")
        self._membership.renewed(process.id, sent_at)
        self._telemetry.emit(ProcessStarted(role=process.role, name=process.name, process_id=process.id))
        self._listener.joined()

    async def _beat(self, process_id: int) -> None:
        claims = self._listener.holding()
        try:
            sent_at, beat = await self._renew(process_id, claims)
        except Exception as error:
            answers = await self._answers_others()
            if not answers or self._membership.left() <= 0 or not self._ends_soon:
                self._missed(error)
                raise
            # The store takes calls, and before the next regular try the handlers would have to be stopped.
            try:
                sent_at, beat = await self._renew(process_id, claims)
            except Exception as again:
                self._missed(again)
                raise
        if self._leaving:
            return
        if not beat.alive:
            self._membership.lost()
            self._listener.ended(expired=True)
            await self._join()
            return
        self._telemetry.emit(LeaseRenewed(role=self._process.role))
        resumed = self._membership.suspended
        self._membership.renewed(process_id, sent_at)
        if beat.lost:
            lost = set(beat.lost)
            self._listener.lost(tuple(claim for claim in claims if claim[0] in lost))
        if resumed:
            self._listener.joined()

    async def _renew(self, process_id: int, claims: Sequence[tuple[int, int]]) -> tuple[float, Beat]:
        """Ask the store to renew the lease; answer when it was asked and what it said."""
        sent_at, left = self._clock.monotonic(), self._membership.left()
        asked = self._store().processes.beat(
            process_id, lease=self._lease, claims=claims, told=self._clock.now(), at=self._clock.stamp()
        )
        every = self._every.total_seconds()
        # Time must be left to learn whether the store itself is down: a whole heartbeat, or half of one where
        # no more is left, because on a busy machine that question takes its time too.
        within = left - min(every, left / 2) if left > every else left if left > 0 else every
        return sent_at, await answer(asked, within=timedelta(seconds=within), to="a heartbeat")

    async def _answers_others(self) -> bool:
        """Whether the store is known to take calls, although it did not take ours. While it takes no calls at
        all, no process can take over what we hold; and once it does again, every process has the time of a
        lease to renew before a reaper judges it: then the lease counts from now."""
        asked_at = self._clock.monotonic()
        lease, left = self._lease.total_seconds(), self._membership.left()
        within = max(min(self._every.total_seconds(), left), lease / 20)
        try:
            is_down = await answer(
                self._store().health.is_down(),
                within=timedelta(seconds=within),
                to="whether the store is down",
            )
        except Exception:  # noqa: BLE001 - no answer is no knowledge; what went wrong with the beat is reported
            return False
        if is_down and self._membership.outlasts(asked_at):
            self._telemetry.emit(LeaseOutlasted(role=self._process.role, name=self._process.name))
        return not is_down

    @property
    def _ends_soon(self) -> bool:
        return self._membership.left() <= self._every.total_seconds() / 2

    def _missed(self, error: Exception) -> None:
        # A lease we cannot renew is going to end: stop before it does, while it is still ours.
        if not self._membership.suspended and self._ends_soon:
            self._membership.suspended = True
            self._listener.ended(expired=False)
        self._telemetry.emit(RenewalFailed(role=self._process.role, reason=str(error)))


STOP_WITHIN = timedelta(seconds=10)


class HeartbeatThread:
    """Beats for one or more processes until it is stopped, then ends their leases."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        heartbeats: Callable[[Callable[[], Store]], Sequence[Heartbeat]],
        entropy: Entropy,
        telemetry: Telemetry,
        *,
        owns_store: bool = True,
        progress: LoopProgress | None = None,
    ) -> None:
        self._open_store = open_store
        self._owns_store = owns_store
        self._progress = progress
        self._make_heartbeats = heartbeats
        self._entropy = entropy
        self._telemetry = telemetry
        self._thread = threading.Thread(target=self._run, name="mainspring-heartbeat", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cycles: list[Cycle] = []
        self._ready = threading.Event()
        self._owner: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._clean = False
        self._heartbeats: Sequence[Heartbeat] = ()
        self._left = False

    def start(self) -> None:
        """Begin to beat. Call it on the event loop that will also stop it."""
        self._owner = asyncio.get_running_loop()
        self._thread.start()
        self._ready.wait()

    async def stop(self, *, clean: bool) -> None:
        """End the leases; `clean` promises that no claim is left under them. If the store does not
        answer, they run out by themselves."""
        self._clean = clean
        with suppress(RuntimeError):  # its event loop has ended already
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._stop_cycles)
        # Not by a helper thread: user code may have taken all of the default executor's.
        if await until(self._ended, STOP_WITHIN):
            self._thread.join()

    def leave(self, within: timedelta) -> bool:
        """End the leases at once, with claims left under them, from any thread; answer whether the store has
        answered. For a process that is ended where it stands: nothing of ours may go on after this."""
        if self._loop is None:
            return False
        leaving = self._leave()
        try:
            asyncio.run_coroutine_threadsafe(leaving, self._loop).result(within.total_seconds())
        except RuntimeError:  # its event loop has ended, and with it the leases, or it was no use
            leaving.close()
            return self._left
        except Exception:  # noqa: BLE001 - whatever it is, they run out by themselves
            return False
        return True

    async def _leave(self) -> None:
        for heartbeat in self._heartbeats:
            await heartbeat.leave(clean=self._clean)
        self._left = True

    def _stop_cycles(self) -> None:
        for cycle in self._cycles:
            cycle.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        finally:
            self._ready.set()  # whatever went wrong, the caller must not wait for ever
            with suppress(RuntimeError):  # the owner did not wait for us
                if self._owner is not None:
                    self._owner.call_soon_threadsafe(self._ended.set)

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        store = self._open_store()
        heartbeats = self._heartbeats = self._make_heartbeats(lambda: store)
        self._cycles = [
            Cycle(
                heartbeat,
                self._telemetry,
                self._entropy,
                longest=heartbeat.retry_within,
                progress=self._progress,
            )
            for heartbeat in heartbeats
        ]
        self._ready.set()
        try:
            await asyncio.gather(*(cycle.run() for cycle in self._cycles))
            await self._leave()
        except StoreError as error:
            self._telemetry.emit(StoreTrouble.of("heartbeat", error, NOW))
        finally:
            if self._owns_store:
                await store.close()
