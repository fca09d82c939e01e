"""What a handler in a child process may do once and no more, on a store of the child's own."""

from __future__ import annotations

import asyncio

from mainspring.clock import SystemClock
from mainspring.config import MEMORY
from mainspring.errors import UsageError
from mainspring.model.job import Claim
from mainspring.model.run import Outcome
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from mainspring.sync import Portal
from mainspring.worker.effects import Once, RunEffects, RunTransaction, Settling
from mainspring.worker.steps import RunSteps


class ChildEffects:
    """One run's. Nothing is opened before the handler asks, and what was opened is closed with the run:
    on the handler's own event loop, or for a plain function on one beside it."""

    def __init__(self, claim: Claim, run: Settling, url: str | None, result_bytes: int) -> None:
        self._claim, self._run, self._url, self._result_bytes = claim, run, url, result_bytes
        self._store: Store | None = None
        self._effects: RunEffects | None = None
        self._portal = Portal(goodbye=self._close)

    @property
    def durable(self) -> RunSteps:
        return self._made().durable

    def transaction(self, result: object) -> RunTransaction:
        return self._made().transaction(result)

    def complete(self, tx: object, result: object) -> None:
        self._made().complete(tx, result)

    async def acomplete(self, tx: object, result: object) -> None:
        await self._made().acomplete(tx, result)

    def once(self, name: str, tx: object | None) -> Once:
        return self._made().once(name, tx)

    async def aend(self, outcome: Outcome) -> Outcome:
        """How the run really ended; what was opened for it is let go of."""
        if self._effects is None:
            return outcome
        try:
            return await self._effects.outcome(outcome)
        finally:
            await self._close()

    def end(self, outcome: Outcome) -> Outcome:
        """The same for a plain function."""
        if self._effects is None:
            return outcome
        effects = self._effects
        try:
            return self._portal.call(lambda: effects.outcome(outcome), instead="aend")
        finally:
            self._portal.close()

    def _made(self) -> RunEffects:
        if self._effects is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self._effects = self._portal.call(self._amake, instead="async with")
            else:
                self._effects = self._make()
        return self._effects

    async def _amake(self) -> RunEffects:
        return self._make()

    def _make(self) -> RunEffects:
        if self._url is None or self._url == MEMORY:
            raise UsageError("a child process has no database to settle its job in: it is in memory")
        clock = SystemClock()
        self._store = open_store(self._url, clock=clock)
        return RunEffects(self._claim, self._run, self._store, clock, self._result_bytes)

    async def _close(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            await store.close()
