"""Keeps one lease of user code: renews it in time, and tells when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.engine.answer import answer
from mainspring.entropy import Entropy
from mainspring.errors import LeaseLost, StoreError
from mainspring.model.process import Lease
from mainspring.store.leases import Leases
from mainspring.telemetry import StoreRecovered, StoreTrouble, Telemetry
from mainspring.waiting import NOW, until

SURE = 0.8
"""The part of a lease that is counted on. In the rest the body is stopped, while the lease is still ours."""
END_WITHIN = timedelta(seconds=2)


class Holding:
    """A lease in hand, as user code sees it. It may be read from any thread."""

    def __init__(self, lease: Lease, ttl: timedelta, clock: Clock, *, sent_at: float) -> None:
        self.name = lease.name
        self.token = lease.token
        """Rises with every new holder of this name: hand it to whatever you write to, and have older
        ones refused there."""
        self._clock = clock
        self._sure = ttl.total_seconds() * SURE
        self._renewed_at = sent_at
        self._reason = ""

    @property
    def lost(self) -> bool:
        """Whether somebody else may have the lease by now. Once true, it stays so."""
        return bool(self._reason) or self.left <= NOW

    @property
    def left(self) -> timedelta:
        """How long the lease surely lasts without another renewal, by this process's steady clock."""
        return timedelta(seconds=self._renewed_at + self._sure - self._clock.monotonic())

    def loss(self) -> LeaseLost:
        """What to raise about it."""
        return LeaseLost(self.name, self.token, self._reason or "it could not be renewed in time")

    def _renewed(self, sent_at: float) -> None:
        # It lasts at least from when the call was sent, for the store stamped it later.
        self._renewed_at = sent_at

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason


class Keeper:
    """Renews one lease at a third of its time until it is stopped or the lease is lost."""

    def __init__(
        self,
        leases: Leases,
        lease: Lease,
        ttl: timedelta,
        *,
        sent_at: float,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self.holding = Holding(lease, ttl, clock, sent_at=sent_at)
        self.trouble: BaseException | None = None
        """What the last renewal met, if it failed."""
        self._leases = leases
        self._lease = lease
        self._ttl = ttl
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, on_lost: Callable[[], object]) -> None:
        """Begin to renew, on this event loop; `on_lost` is called there, once, unless we are stopped."""
        self._task = asyncio.create_task(self._run(on_lost))

    def stop(self) -> None:
        """Renew no more and tell nobody. Call it on the keeper's own event loop."""
        self._stopping.set()

    async def tick(self) -> timedelta:
        """One renewal; answer how long to wait before the next."""
        left = self.holding.left
        if left <= NOW:
            return NOW
        sent_at = self._clock.monotonic()
        renewal = self._leases.renew(
            self._lease.name,
            holder_id=self._lease.holder_id,
            token=self._lease.token,
            ttl=self._ttl,
            at=self._clock.stamp(),
        )
        try:
            renewed = await answer(renewal, within=left, to="a renewal")
        except StoreError as error:
            # An error is no answer: the lease runs on, and is lost once it could have ended.
            self.trouble = error
            rest = max(NOW, min(self._rest() / 4, self.holding.left))
            self._tell(error, rest)
            return rest
        if not renewed:
            self.holding._end(await self._holder())
        elif not self.holding.lost:  # a late answer changes nothing: somebody may have read `lost`
            if self.trouble is not None:
                self._telemetry.emit(StoreRecovered(loop=f"lease {self._lease.name}"))
            self.trouble = None
            self.holding._renewed(sent_at)
        return self._rest()

    async def close(self) -> None:
        """Stop, and release the lease, so that another may have it at once. If the store does not
        answer, it runs out by itself."""
        self.stop()
        await self._end_task()
        release = self._leases.release(
            self._lease.name,
            holder_id=self._lease.holder_id,
            token=self._lease.token,
            at=self._clock.stamp(),
        )
        try:
            await answer(release, within=END_WITHIN, to="a release")
        except StoreError as error:
            self._tell(error, NOW)

    async def _run(self, on_lost: Callable[[], object]) -> None:
        rest = self._rest()
        try:
            while not self.holding.lost and not await until(self._stopping, rest):
                rest = await self.tick()
        finally:  # whatever ends the renewals ends the lease, a defect of ours too
            if not self._stopping.is_set():
                self.holding._end("it could not be renewed in time")
                on_lost()

    async def _end_task(self) -> None:
        task, self._task = self._task, None
        # Of another event loop only if that was closed under us: then nothing runs there any more.
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            return
        # A renewal under way may end: one that is cut off costs the session to the server.
        await asyncio.wait({task}, timeout=END_WITHIN.total_seconds())
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled() and (defect := task.exception()) is not None:
            self.trouble = defect

    async def _holder(self) -> str:
        """Why it is not ours any more: who has it now, if the store says so."""
        try:
            found = await answer(
                self._leases.all(at=self._clock.stamp()), within=END_WITHIN, to="a question for the holder"
            )
        except StoreError:
            return "it had ended, or another holder has it"
        mine = next((each for each in found if each.name == self._lease.name), None)
        if mine is None or not mine.held or mine.token == self._lease.token:
            return "it had ended; nobody has it now"
        return f"{mine.holder} has it now, since {mine.acquired_at.isoformat(timespec='seconds')}"

    def _rest(self) -> timedelta:
        return self._ttl / 3 * (0.9 + 0.1 * self._entropy.fraction())

    def _tell(self, error: StoreError, rest: timedelta) -> None:
        self._telemetry.emit(StoreTrouble.of(f"lease {self._lease.name}", error, rest))
