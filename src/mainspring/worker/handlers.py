"""Calls handlers in this process, and turns whatever user code does into an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any, Protocol, cast

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.job import Claim
from mainspring.model.run import Outcome, Stopped, Succeeded
from mainspring.model.schedule import Period
from mainspring.tasks.context import Context, ContextEffects, Log, StopSignal
from mainspring.tasks.payload import decode, encode_result
from mainspring.telemetry.run_fields import running
from mainspring.worker.effects import RunEffects, Settling
from mainspring.worker.outcomes import is_a, outcome_of
from mainspring.worker.run import AnyTask, timed_out
from mainspring.worker.run_reports import RunReports
from mainspring.worker.threads import HandlerThreads, NeverBegan

_NOTHING = Succeeded()


class HandlerRun(StopSignal, Settling, Protocol):
    """What the call of a handler needs of its run."""

    @property
    def task(self) -> AnyTask: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def handle(self) -> asyncio.Task[Any] | None:
        """The asyncio task that it runs in."""

    @property
    def late(self) -> bool:
        """Whether its timeout has passed: then its task has been cancelled for that."""

    def handler_begins(self) -> None:
        """The timeout starts to run."""


MakeEffects = Callable[[Claim, HandlerRun], RunEffects]
PeriodOf = Callable[[int, datetime], Awaitable[Period]]
"""Of the slot of a schedule, known by its id."""


class Handlers:
    """Turns a run into an outcome. Whatever user code does becomes a value here; what passes through is a
    cancellation that we asked for ourselves."""

    def __init__(
        self,
        threads: HandlerThreads,
        reports: RunReports,
        effects: MakeEffects,
        *,
        result_bytes: int,
        begin: Callable[[Claim], Awaitable[bool]],
        periods: PeriodOf | None = None,
    ) -> None:
        """`begin` puts on record that a job whose process died begins to run."""
        self.threads = threads
        self.reports = reports
        self.result_bytes = result_bytes
        self._effects = effects
        self._begin = begin
        self._periods = periods

    def call(self, run: HandlerRun) -> Coroutine[Any, Any, Outcome]:
        """Call the handler and answer how it ended: a coroutine on the event loop, a function in a thread."""
        # Not a coroutine itself: a handler that asks for nothing should not pay for what others may ask.
        if run.claim.orphan:
            return self._call_on_record(run)
        return self._call_with_context(run) if run.task.signature.wants_context else self._call(run, None)

    def call_plain(self, task: AnyTask, claim: Claim) -> Outcome:
        """The same for a function that asks for nothing, on the thread that this is called on."""
        running.set(claim)
        try:
            args, kwargs = decode(claim.payload)
            return _succeeded(task.signature.call(task.function, None, args, kwargs), self.result_bytes)
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            return outcome_of(error, task.retry, frames_to_hide=2)

    async def may_begin(self, claim: Claim) -> bool:
        """Put on record that a job whose process died begins to run. If that cannot be had, it does not."""
        try:
            return await self._begin(claim)
        except (StoreError, asyncio.CancelledError):
            return False

    async def period_of(self, claim: Claim) -> Period | None:
        """What the job of a slot stands for; NeverBegan where the store does not say. Most jobs bring the
        slot before their own. The store is asked for jobs that stand for missed slots too, were made by a
        backfill, or are replayed."""
        slot = claim.slot_at
        if slot is None:
            return None
        if claim.previous_at is not None:
            return Period(end=slot, start=claim.previous_at, previous=claim.previous_at)
        if self._periods is None or claim.schedule_id is None:
            return Period(end=slot)
        try:
            return await self._periods(claim.schedule_id, slot)
        except (StoreUnavailable, AnswerLost, asyncio.CancelledError):
            raise NeverBegan from None  # given back at no cost of an attempt

    async def _call_on_record(self, run: HandlerRun) -> Outcome:
        if not await self.may_begin(run.claim):
            return Stopped(started=False)
        if run.task.signature.wants_context:
            return await self._call_with_context(run)
        return await self._call(run, None)

    async def _call_with_context(self, run: HandlerRun) -> Outcome:
        claim = run.claim
        effects, report = self._effects(claim, run), self.reports.open(claim)
        try:
            period = None if claim.slot_at is None else await self.period_of(claim)
        except NeverBegan:
            return Stopped(started=False)
        context = context_of(
            claim, run, log=report.log, on_progress=report.progress, effects=effects, period=period
        )
        try:
            return await effects.outcome(await self._call(run, context))
        except asyncio.CancelledError:
            if effects.settled is not None:
                return effects.settled
            raise

    async def _call(self, run: HandlerRun, context: Context | None) -> Outcome:
        task, claim = run.task, run.claim
        try:
            args, kwargs = decode(claim.payload)
            if self.reports.captures_all:
                self.reports.enter(claim)  # from here on, whatever is logged is the run's
            if task.signature.is_async:
                if task.timeout is not None:
                    run.handler_begins()
                returned = await cast("Any", task.signature.call(task.function, context, args, kwargs))
            else:
                work = partial(task.signature.call, task.function, context, args, kwargs)
                # Its timeout starts when it begins: waiting for a thread is not the handler's doing.
                on_begin = None if task.timeout is None else run.handler_begins
                returned = await self.threads.result(work, claim, on_begin)
            return _succeeded(returned, self.result_bytes)
        except NeverBegan:
            return Stopped(started=False)
        except BaseException as error:
            if not _is_its_own(error, run):
                raise
            if run.late and (is_a(error, TimeoutError) or is_a(error, asyncio.CancelledError)):
                return timed_out(task, error)
            return outcome_of(error, task.retry, frames_to_hide=1)


def _succeeded(returned: object, result_bytes: int) -> Succeeded:
    return _NOTHING if returned is None else Succeeded(result=encode_result(returned, result_bytes))


def _is_its_own(error: BaseException, run: HandlerRun) -> bool:
    """Whether it comes from the handler or its timeout, and not from us, who end it for another reason."""
    if is_a(error, asyncio.CancelledError) and run.handle is not None:
        # One cancellation is the timeout's; it is taken back, and what is left is ours.
        return not (run.handle.uncancel() if run.late else run.handle.cancelling())
    if is_a(error, GeneratorExit):
        return _current_task() is run.handle  # else the coroutine is being thrown away, not run
    return True


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def context_of(
    claim: Claim,
    stop: StopSignal,
    *,
    log: Log,
    on_progress: Callable[[float, str], None],
    effects: ContextEffects,
    period: Period | None,
) -> Context:
    """What a handler may ask about its run, wherever it runs."""
    return Context(
        job_id=claim.job_id,
        task=claim.task,
        queue=claim.queue,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts,
        fence=claim.fence,
        log=log,
        stop=stop,
        schedule_id=claim.schedule_id,
        slot=claim.slot_at,
        period=period,
        on_progress=on_progress,
        effects=effects,
        trace=claim.trace,
        enqueued_at=claim.enqueued_at,
        database_id=claim.database_id,
    )
