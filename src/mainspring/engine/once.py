"""`ctx.once()`: a step that runs of one job do once, as far as the record goes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, TypeVar

from mainspring.clock import Clock
from mainspring.errors import ClaimLost
from mainspring.model.job import Claim
from mainspring.store.effects import Effects

T = TypeVar("T")


class Run(Protocol):
    """What a step needs of the run it is in."""

    claim: Claim
    open: object | None
    """The connection of the transaction that is open, if one is."""

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run this on the worker's event loop, and wait for it."""


class Once:
    """Looks the step up when entered; records it when left without an error. With a connection both are
    part of that connection's transaction, and without one each is its own."""

    def __init__(self, run: Run, effects: Effects, clock: Clock, name: str, tx: object | None) -> None:
        self._run = run
        self._effects = effects
        self._clock = clock
        self._name = name
        self._tx = tx
        self._first = False

    async def __aenter__(self) -> bool:
        self._tx = self._tx if self._tx is not None else self._run.open
        job_id = self._run.claim.job_id
        if self._tx is None:
            done = await self._effects.step(job_id, self._name)
        else:
            done = await self._effects.borrower.step(job_id, self._name).arun(self._tx)
        self._first = not done
        return self._first

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or not self._first:
            return
        claim, at = self._run.claim, self._clock.stamp()
        if self._tx is None:
            self._require(await self._effects.record_step(claim, self._name, at=at))
        else:
            self._require(await self._effects.borrower.record_step(claim, self._name, at=at).arun(self._tx))

    def __enter__(self) -> bool:
        self._tx = self._tx if self._tx is not None else self._run.open
        job_id = self._run.claim.job_id
        if self._tx is None:
            done = self._run.call(lambda: self._effects.step(job_id, self._name))
        else:
            done = self._effects.borrower.step(job_id, self._name).run(self._tx)
        self._first = not done
        return self._first

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or not self._first:
            return
        claim, at = self._run.claim, self._clock.stamp()
        if self._tx is None:
            self._require(self._run.call(lambda: self._effects.record_step(claim, self._name, at=at)))
        else:
            self._require(self._effects.borrower.record_step(claim, self._name, at=at).run(self._tx))

    def _require(self, recorded: bool) -> None:
        if not recorded:
            claim = self._run.claim
            raise ClaimLost(claim.job_id, claim.fence, f"step {self._name} could not be recorded")
