"""Leases for user code: `async with app.lease("sync-crm", ttl="15s") as lease:`.

`LeaseAcquirer` asks until the lease is granted or the wait is over; `LeaseRenewer` renews it, and reports
when it is gone.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeVar

from mainspring.clock import Clock
from mainspring.duration import Duration, duration
from mainspring.entropy import Entropy
from mainspring.errors import AnswerLost, LeaseHeld, LeaseLost, StoreError, StoreUnavailable, UsageError
from mainspring.model.process import Held, Lease
from mainspring.store.leases import Leases
from mainspring.store.store import Store
from mainspring.tasks.checks import valid_name
from mainspring.telemetry.events import StoreRecovered, StoreTrouble, Telemetry
from mainspring.waiting import NOW, answer, drop, pause, until

T = TypeVar("T")

SHORTEST = timedelta(seconds=1)


class BlockingCaller(Protocol):
    """Runs coroutines for blocking callers."""

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T:
        """Run it to its end and answer its result; `instead` is for those who should not have blocked."""


class LeaseApp(Protocol):
    """What a lease needs of its app."""

    clock: Clock
    entropy: Entropy
    telemetry: Telemetry

    async def store(self) -> Store:
        """This event loop's store."""


def leasing(
    home: LeaseApp, name: str, *, ttl: Duration, wait: Duration | None, portal: BlockingCaller
) -> Leasing:
    """Read the arguments of `app.lease`; nothing is asked for before the context is entered."""
    valid_name(name, "name")
    lasts = duration(ttl, "ttl", least=SHORTEST)
    patience = None if wait is None else duration(wait, "wait")

    async def acquirer() -> LeaseAcquirer:
        return LeaseAcquirer(
            (await home.store()).leases,
            name,
            ttl=lasts,
            wait=patience,
            clock=home.clock,
            entropy=home.entropy,
            telemetry=home.telemetry,
        )

    return Leasing(acquirer, portal)


class Leasing:
    """What `app.lease` answers: a context, blocking or not, in which the lease is held. It may be
    entered again once it was left; every time is a new holder with a higher token."""

    def __init__(
        self, acquirer: Callable[[], Coroutine[Any, Any, LeaseAcquirer]], portal: BlockingCaller
    ) -> None:
        self._acquirer = acquirer
        self._portal = portal
        self._renewer: LeaseRenewer | None = None
        self._is_entered = False
        self._body: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._cancels_before = 0
        self._entered_in = 0

    async def __aenter__(self) -> Holding:
        self._enter()
        try:
            acquirer = await self._acquirer()
            while isinstance(asked := await acquirer.ask(), timedelta):
                await pause(asked)
            self._body = asyncio.current_task()
            self._cancels_before = self._body.cancelling() if self._body else 0
            self._cancelled = False
            await asked.start(self._cancel_body)
        except BaseException:
            self._is_entered = False
            raise
        self._renewer = asked
        return asked.holding

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        renewer = self._leave()
        renewer.stop()  # before anything is awaited: from here on it must not cancel us
        lost = renewer.holding.lost
        body, cancelled = self._body, self._cancelled
        # As asyncio.timeout does it: if others have cancelled the task too, theirs goes on.
        others = bool(cancelled and body and body.uncancel() > self._cancels_before)
        await renewer.close()
        if lost and not others and _may_be_replaced(error, cancelled=cancelled):
            raise renewer.holding.loss() from renewer.trouble

    def __enter__(self) -> Holding:
        self._enter()
        try:
            acquirer = self._call(self._acquirer)
            # Pass by pass, so that a keyboard interrupt leaves no task behind that goes on asking.
            while isinstance(asked := self._call(acquirer.ask), timedelta):
                self._call(partial(pause, asked))
            renewer = asked
            try:
                self._call(lambda: renewer.start(lambda: None))
            except BaseException:
                self._call(renewer.close)
                raise
        except BaseException:
            self._is_entered = False
            raise
        self._renewer, self._entered_in = renewer, os.getpid()
        return renewer.holding

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        renewer = self._leave()
        if os.getpid() != self._entered_in:
            return  # we are in a child that was forked meanwhile: the lease is the parent's
        lost = renewer.holding.lost
        self._call(renewer.close)
        if lost and error is None:
            raise renewer.holding.loss() from renewer.trouble

    def _enter(self) -> None:
        if self._is_entered:
            raise UsageError("this lease is entered already; call app.lease() for each holder")
        self._is_entered = True

    def _leave(self) -> LeaseRenewer:
        renewer, self._renewer, self._is_entered = self._renewer, None, False
        if renewer is None:
            raise UsageError("this lease was not entered")
        return renewer

    def _cancel_body(self) -> None:
        self._cancelled = True
        if self._body is not None:
            self._body.cancel()

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._portal.call(work, instead="async with app.lease")


def _may_be_replaced(error: BaseException | None, *, cancelled: bool) -> bool:
    """Whether the loss is the news: the body ended as if nothing were wrong, or by our cancelling it.
    Any other error is the body's own and goes on."""
    return error is None or (cancelled and isinstance(error, asyncio.CancelledError))


ASK_EVERY = timedelta(milliseconds=500)
ASK_AFTER = timedelta(milliseconds=10)


class LeaseAcquirer:
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

    async def ask(self) -> LeaseRenewer | timedelta:
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
            return self._renewer(answered, sent_at)
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
            await self._renewer(lease, self._clock.monotonic()).close()

    def _renewer(self, lease: Lease, sent_at: float) -> LeaseRenewer:
        return LeaseRenewer(
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


SURE = 0.8
"""The part of a lease that is counted on. In the rest the body is stopped, while the lease is still ours."""
END_WITHIN = timedelta(seconds=2)


class Holding:
    """A lease that is held, as user code sees it. It may be read from any thread."""

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
        """Whether another holder may have the lease by now. Once true, it stays so."""
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


class LeaseRenewer:
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
        """Renew no more, and do not report a loss. Call it on the renewer's own event loop."""
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
        elif not self.holding.lost:  # a late answer changes nothing: the body may have read `lost`
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
