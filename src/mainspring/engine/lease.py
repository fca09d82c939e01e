"""Leases for user code: `async with app.lease("sync-crm", ttl="15s") as lease:`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeVar

from mainspring.clock import Clock
from mainspring.duration import Duration, duration
from mainspring.engine.candidate import Candidate
from mainspring.engine.keeper import Holding, Keeper
from mainspring.entropy import Entropy
from mainspring.errors import UsageError
from mainspring.store.store import Store
from mainspring.tasks.checks import valid_name
from mainspring.telemetry import Telemetry
from mainspring.waiting import pause

T = TypeVar("T")

SHORTEST = timedelta(seconds=1)


class Caller(Protocol):
    """Runs coroutines for blocking callers."""

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T:
        """Run it to its end and answer its result; `instead` is for those who should not have blocked."""


class Home(Protocol):
    """What a lease needs of its app."""

    clock: Clock
    entropy: Entropy
    telemetry: Telemetry

    async def store(self) -> Store:
        """This event loop's store."""


def leasing(home: Home, name: str, *, ttl: Duration, wait: Duration | None, portal: Caller) -> Leasing:
    """Read the arguments of `app.lease`; nothing is asked for before the context is entered."""
    valid_name(name, "name")
    lasts = duration(ttl, "ttl", least=SHORTEST)
    patience = None if wait is None else duration(wait, "wait")

    async def candidate() -> Candidate:
        return Candidate(
            (await home.store()).leases,
            name,
            ttl=lasts,
            wait=patience,
            clock=home.clock,
            entropy=home.entropy,
            telemetry=home.telemetry,
        )

    return Leasing(candidate, portal)


class Leasing:
    """What `app.lease` answers: a context, blocking or not, in which the lease is held. It may be
    entered again once it was left; every time is a new holder with a higher token."""

    def __init__(self, candidate: Callable[[], Coroutine[Any, Any, Candidate]], portal: Caller) -> None:
        self._candidate = candidate
        self._portal = portal
        self._keeper: Keeper | None = None
        self._is_entered = False
        self._body: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._cancels_before = 0
        self._entered_in = 0

    async def __aenter__(self) -> Holding:
        self._enter()
        try:
            candidate = await self._candidate()
            while isinstance(asked := await candidate.ask(), timedelta):
                await pause(asked)
            self._body = asyncio.current_task()
            self._cancels_before = self._body.cancelling() if self._body else 0
            self._cancelled = False
            await asked.start(self._cancel_body)
        except BaseException:
            self._is_entered = False
            raise
        self._keeper = asked
        return asked.holding

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        keeper = self._leave()
        keeper.stop()  # before anything is awaited: from here on it must not cancel us
        lost = keeper.holding.lost
        body, cancelled = self._body, self._cancelled
        # As asyncio.timeout does it: if others have cancelled the task too, theirs goes on.
        others = bool(cancelled and body and body.uncancel() > self._cancels_before)
        await keeper.close()
        if lost and not others and _may_be_replaced(error, cancelled=cancelled):
            raise keeper.holding.loss() from keeper.trouble

    def __enter__(self) -> Holding:
        self._enter()
        try:
            candidate = self._call(self._candidate)
            # Pass by pass, so that a keyboard interrupt leaves nobody behind who goes on asking.
            while isinstance(asked := self._call(candidate.ask), timedelta):
                self._call(partial(pause, asked))
            keeper = asked
            try:
                self._call(lambda: keeper.start(lambda: None))
            except BaseException:
                self._call(keeper.close)
                raise
        except BaseException:
            self._is_entered = False
            raise
        self._keeper, self._entered_in = keeper, os.getpid()
        return keeper.holding

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        keeper = self._leave()
        if os.getpid() != self._entered_in:
            return  # we are in a child that was forked meanwhile: the lease is the parent's
        lost = keeper.holding.lost
        self._call(keeper.close)
        if lost and error is None:
            raise keeper.holding.loss() from keeper.trouble

    def _enter(self) -> None:
        if self._is_entered:
            raise UsageError("this lease is entered already; call app.lease() for each holder")
        self._is_entered = True

    def _leave(self) -> Keeper:
        keeper, self._keeper, self._is_entered = self._keeper, None, False
        if keeper is None:
            raise UsageError("this lease was not entered")
        return keeper

    def _cancel_body(self) -> None:
        self._cancelled = True
        if self._body is not None:
            self._body.cancel()

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._portal.call(work, instead="async with app.lease()")


def _may_be_replaced(error: BaseException | None, *, cancelled: bool) -> bool:
    """Whether the loss is the news: the body ended as if nothing were wrong, or by our cancelling it.
    Any other error is the body's own and goes on."""
    return error is None or (cancelled and isinstance(error, asyncio.CancelledError))
