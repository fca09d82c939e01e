"""What a run may do once and no more: transactions that settle its job (`ctx.transaction()`), steps that are
recorded in a transaction (`ctx.once()`), and durable steps (steps.py)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, TypeVar

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, ClaimLost, StoreUnavailable, UsageError
from mainspring.model.job import Claim, Failure
from mainspring.model.run import Failed, Outcome, Settled, Settlement, Succeeded, Verdict
from mainspring.store.borrowed.blocking import BlockingConnection
from mainspring.store.effects import Effects, Loan
from mainspring.store.store import Store
from mainspring.tasks.payload import LARGEST_RESULT, encode_result
from mainspring.telemetry.run_fields import reported
from mainspring.waiting import pause, whole
from mainspring.worker.steps import RunSteps

T = TypeVar("T")

LOOK_EVERY = timedelta(milliseconds=250)

_log = logging.getLogger("mainspring.job")


class Settling(Protocol):
    """The part of an active run that its effects change."""

    settling: bool


class RunEffects:
    """One run's. Made with the context; costs nothing unless a handler asks for something."""

    # Of the class, so that making one per run costs little.
    _completed: Settlement | None = None
    settled: Settled | None = None
    open: object | None = None
    """The connection of the transaction that is open, if one is: steps join it."""
    _steps: RunSteps | None = None

    def __init__(
        self,
        claim: Claim,
        run: Settling,
        store: Store,
        clock: Clock,
        result_bytes: int = LARGEST_RESULT,
    ) -> None:
        self.claim = claim
        self._result_bytes = result_bytes
        self._run = run
        self._store = store
        self._clock = clock
        self._began = clock.monotonic()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @property
    def durable(self) -> RunSteps:
        if self._steps is None:
            self._steps = RunSteps(
                self, self._store.effects, self._store.events, self._clock, result_bytes=self._result_bytes
            )
        return self._steps

    def transaction(self, result: object) -> RunTransaction:
        return RunTransaction(self, result)

    def once(self, name: str, tx: object | None) -> Once:
        return Once(self, self._store.effects, self._clock, name, tx)

    def complete(self, tx: object, result: object) -> None:
        settlement = self._promise(result)
        self._kept(self._store.effects.borrower.settle(settlement, at=self._clock.stamp()).run(tx))

    async def acomplete(self, tx: object, result: object) -> None:
        settlement = self._promise(result)
        self._kept(await self._store.effects.borrower.settle(settlement, at=self._clock.stamp()).arun(tx))

    async def lend(self) -> Loan:
        """Begin a transaction for the handler."""
        self.require_unsettled()
        if self.open is not None:
            raise UsageError("a transaction of this run is open already")
        return await self._store.effects.lend()

    async def commit(self, loan: Loan, result: object) -> None:
        """Commit it with the settlement; raise ClaimLost if the job is not ours any more."""
        try:
            settlement = self._settlement(result)
        except BaseException:
            await whole(loan.rollback())
            raise
        self._run.settling = True
        try:
            if not await self._committed(loan, settlement):
                raise ClaimLost(self.claim.job_id, self.claim.fence, "the transaction was rolled back")
        finally:
            self._run.settling = self.settled is not None

    async def outcome(self, outcome: Outcome) -> Outcome:
        """How the run really ended: what is on record cannot be taken back by what came after."""
        if self.settled is None and self._completed is not None:
            if await self._recorded(self._completed):
                self.settled = Settled(result=self._completed.result)
            else:
                self._run.settling = False
                if isinstance(outcome, Succeeded):
                    return Failed(failure=_NOT_COMMITTED)
        if self.settled is None:
            swallowed = self._steps is not None and self._steps.suspended is not None
            return Failed(failure=_SWALLOWED) if swallowed and isinstance(outcome, Succeeded) else outcome
        if isinstance(outcome, Failed):
            _log.error(
                "job %d (%s) raised %s after its transaction had settled it: %s",
                self.claim.job_id,
                self.claim.task,
                outcome.failure.type,
                outcome.failure.message,
                exc_info=outcome.error or reported(outcome.failure),
            )
        return self.settled

    def call(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        instead: str = "`async with` instead of `with`",
    ) -> T:
        """For a plain function in its thread: run this on the worker's event loop, and wait for it."""
        if _in_event_loop():
            raise UsageError(f"this would block the running event loop; use {instead}")
        if threading.get_ident() == self._thread and not self._loop.is_running():
            # A test harness stops the loop while a plain function runs on the loop's own thread.
            return self._loop.run_until_complete(work())
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    async def _committed(self, loan: Loan, settlement: Settlement) -> bool:
        async def commit() -> bool:
            done = await loan.commit(settlement, at=self._clock.stamp())
            if done:
                self.settled = Settled(result=settlement.result)
            return done

        try:
            # A cancellation must not leave it half done: that would be a commit whose answer is lost.
            return await whole(commit())
        except AnswerLost as lost:
            while True:
                try:
                    if await loan.committed(settlement, lost):
                        self.settled = Settled(result=settlement.result)
                        return True
                    break
                except (StoreUnavailable, AnswerLost):
                    await pause(LOOK_EVERY)
            raise StoreUnavailable("the transaction was not committed: its connection broke") from lost

    async def _recorded(self, settlement: Settlement) -> bool:
        while True:
            try:
                return bool(await self._store.queue.recorded([settlement]))
            except (StoreUnavailable, AnswerLost):
                await pause(LOOK_EVERY)

    def _promise(self, result: object) -> Settlement:
        self.require_unsettled()
        settlement = self._settlement(result)
        # From now on the store may say that the claim is gone, because the caller has committed.
        self._completed, self._run.settling = settlement, True
        return settlement

    def _kept(self, settled: bool) -> None:
        if not settled:
            self._completed, self._run.settling = None, False
            raise ClaimLost(self.claim.job_id, self.claim.fence, "it cannot be completed: roll back")

    def require_unsettled(self) -> None:
        """Raise unless the job is still to be settled."""
        if self.settled is not None or self._completed is not None:
            raise UsageError("this run has settled its job already")

    def _settlement(self, result: object) -> Settlement:
        return Settlement(
            job_id=self.claim.job_id,
            worker_id=self.claim.worker_id,
            fence=self.claim.fence,
            verdict=Verdict.SUCCEEDED,
            took=timedelta(seconds=self._clock.monotonic() - self._began),
            result=encode_result(result, self._result_bytes),
        )


_NOT_COMMITTED = Failure(
    type="UsageError", message="ctx.complete(): completed in a transaction that was not committed"
)
_SWALLOWED = Failure(
    type="UsageError",
    message="the handler caught what ctx.sleep() or ctx.wait_event() raises to end the run, and went on; "
    "let every BaseException pass that is no Exception",
)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class RunTransaction:
    """Entered once, with `async with` or, in a plain function, with `with`."""

    def __init__(self, run: RunEffects, result: object) -> None:
        self.result = result
        self._run = run
        self._loan: Loan | None = None

    async def __aenter__(self) -> Any:
        self._loan = await self._run.lend()
        self._run.open = self._loan.connection
        return self._loan.connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loan, self._loan, self._run.open = self._loan, None, None
        if loan is None:
            raise UsageError("this transaction was not entered")
        if error is not None:
            await whole(loan.rollback())
        else:
            await self._run.commit(loan, self.result)

    def __enter__(self) -> BlockingConnection:
        connection = self._run.call(self.__aenter__)
        face = BlockingConnection(connection, self._run.call)
        self._run.open = face
        return face

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.call(lambda: self.__aexit__(kind, error, trace))


class Once:
    """Looks the step up when entered; records it when left without an error. With a connection both are
    part of that connection's transaction, and without one each is its own."""

    def __init__(self, run: RunEffects, effects: Effects, clock: Clock, name: str, tx: object | None) -> None:
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
