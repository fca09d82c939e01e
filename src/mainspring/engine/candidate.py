"""Asks for a lease of user code until it is granted or the wait is over."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.engine.answer import drop
from mainspring.engine.keeper import END_WITHIN, SURE, Keeper
from mainspring.entropy import Entropy
from mainspring.errors import AnswerLost, LeaseHeld, StoreUnavailable
from mainspring.model.process import Held, Lease
from mainspring.store.leases import Leases
from mainspring.telemetry import StoreTrouble, Telemetry
from mainspring.waiting import NOW

ASK_EVERY = timedelta(milliseconds=500)
ASK_AFTER = timedelta(milliseconds=10)


class Candidate:
    """Asks for one lease, under one random id, until it is granted or the wait is over."""

    def __init__(
        self,
        leases: Leases,
        name: str,
        *,
        ttl: timedelta,
        wait: timedelta | None,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._leases = leases
        self._name = name
        self._ttl = ttl
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._id = entropy.worker_id()
        self._until = None if wait is None else clock.monotonic() + wait.total_seconds()
        self._was_answered = False

    async def ask(self) -> Keeper | timedelta:
        """One pass: the lease, or how long to wait before the next."""
        sent_at = self._clock.monotonic()
        try:
            answered = await self._answer()
        except (StoreUnavailable, AnswerLost) as error:
            # A store that never answered is the caller's to know about; one that did is waited for. A
            # lost answer may have been a grant: asked again under the same id, it is given again.
            is_known = self._was_answered or isinstance(error, AnswerLost)
            if not is_known or self._patience() <= NOW:
                raise
            rest = min(self._rest(), self._patience())
            self._telemetry.emit(StoreTrouble.of(f"lease {self._name}", error, rest))
            return rest
        self._was_answered = True
        if isinstance(answered, Lease):
            return self._keeper(answered, sent_at)
        if self._patience() <= NOW:
            raise LeaseHeld(self._name, answered.holder, answered.until)
        return min(max(ASK_AFTER, min(self._rest(), answered.remaining)), self._patience())

    async def _answer(self) -> Lease | Held:
        label = f"{socket.gethostname()}:{os.getpid()}"
        asking = asyncio.ensure_future(
            self._leases.acquire(
                self._name, holder_id=self._id, holder=label, ttl=self._ttl, at=self._clock.stamp()
            )
        )
        try:
            await asyncio.wait({asking}, timeout=self._ttl.total_seconds() * SURE)
        except asyncio.CancelledError:
            await self._give_back(asking)
            raise
        if not asking.done():
            drop(asking)
            raise StoreUnavailable("no answer to a request for a lease")
        return asking.result()

    async def _give_back(self, asking: asyncio.Future[Lease | Held]) -> None:
        # We are cancelled, but the store may just be granting it: others need not wait for its end.
        await asyncio.wait({asking}, timeout=END_WITHIN.total_seconds())
        if not asking.done():
            drop(asking)
        elif asking.exception() is None and isinstance(lease := asking.result(), Lease):
            await self._keeper(lease, self._clock.monotonic()).close()

    def _keeper(self, lease: Lease, sent_at: float) -> Keeper:
        return Keeper(
            self._leases,
            lease,
            self._ttl,
            sent_at=sent_at,
            clock=self._clock,
            entropy=self._entropy,
            telemetry=self._telemetry,
        )

    def _patience(self) -> timedelta:
        if self._until is None:
            return timedelta.max
        return timedelta(seconds=self._until - self._clock.monotonic())

    def _rest(self) -> timedelta:
        return ASK_EVERY * (0.5 + 0.5 * self._entropy.fraction())
