"""One run of one handler: async on the loop, sync in a thread, inside its timeout; or in a child."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from mainspring.declare.context import Context, Log, StopSignal
from mainspring.declare.effects import Effects
from mainspring.declare.payload import decode, encode_result
from mainspring.declare.task import Task
from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.lifecycle.burial import NEVER_BEGAN
from mainspring.model.failure import Failure
from mainspring.model.job import Claim
from mainspring.model.outcome import Expired, Failed, Outcome, Stopped, Succeeded
from mainspring.model.schedule import Period
from mainspring.telemetry.run_fields import running
from mainspring.waiting import until
from mainspring.worker.effects import RunEffects, Settling
from mainspring.worker.outcomes import (
    expired_failure,
    failed,
    is_a,
    outcome_of,
    shown_in_log,
    timeout_failure,
)
from mainspring.worker.run_reports import RunReports
from mainspring.worker.threads import (
    LINGER,
    FunctionPool,
    OnBegin,
    OnEnd,
    ThreadCall,
    ThreadPool,
    as_a_future_can_carry,
)

if TYPE_CHECKING:
    from mainspring.worker.children.pool import Pool

AnyTask = Task[..., Any]
_NOTHING = Succeeded()


class Stop(StopSignal, Settling, Protocol):
    """What the handler is shown of its own end, and who is told when that is due."""

    task: asyncio.Task[Any] | None
    """That it runs in."""
    late: bool
    """Whether it should have been over by now: then its task has been cancelled for that."""

    def limit(self, seconds: float) -> None:
        """The run should be over so many seconds from now."""


MakeEffects = Callable[[Claim, Stop], RunEffects]
PeriodOf = Callable[[int, datetime], Awaitable[Period]]
"""Of the slot of a schedule, known by its id."""


class Executor:
    """QueueOrder a claim into an outcome. Whatever user code does becomes a value here; what passes
    through is a cancellation that we asked for ourselves."""

    def __init__(
        self,
        threads: int,
        reports: RunReports,
        effects: MakeEffects,
        *,
        result_bytes: int,
        begin: Callable[[Claim], Awaitable[bool]],
        places: FunctionPool | None = None,
        children: Callable[[RunReports], Pool] | None = None,
        most_children: int = 1,
        periods: PeriodOf | None = None,
    ) -> None:
        """Plain functions run at `places`, or else in as many threads of our own. `begin` puts on record that
        a suspect's run begins."""
        self._periods = periods
        self._reports = reports
        self._effects = effects
        self._result_bytes = result_bytes
        self._threads = places or ThreadPool(threads)
        self._begin = begin
        self._make_children = children
        self._most_children = most_children
        self._children: Pool | None = None
        self.threads_left = threads
        """ThreadPool that are not lost to handlers which were told to end and go on."""
        self.on_leak: Callable[[Claim], None] = lambda claim: None
        self.on_slot: Callable[[], None] = lambda: None
        """Called when a child is free that was kept for a suspect."""

    @property
    def free_children(self) -> int:
        """How many more runs would find a child at once."""
        if self._children is None:
            return 1 if self._make_children is None else self._most_children
        return self._children.slots.free

    def keep_child(self) -> None:
        """Let the next child that becomes free be a suspect's, though others wait."""
        if self._children is not None:
            self._children.slots.keep()

    def let_child_go(self) -> None:
        """There is no suspect for it."""
        if self._children is not None:
            self._children.slots.let_go()

    def isolates(self, task: AnyTask, claim: Claim) -> bool:
        """Whether the job runs in a child process: because its task wants one, or because its worker
        died the last time and it may be the reason."""
        if task.isolation is not None:
            return True
        if not claim.suspect or not task.runs_user_code:
            return False
        return self._make_children is not None and self._pool().reaches(task)

    def run(self, task: AnyTask, claim: Claim, stop: Stop) -> Coroutine[Any, Any, Outcome]:
        """ThreadCall the handler and answer how it ended; not beyond the job's deadline, if it has one."""
        # Not a coroutine itself: a handler that asks for nothing should not pay for what others may ask.
        if task.signature.wants_context:
            run = self._run_with_context(task, claim, stop)
        else:
            run = self._run(task, claim, stop, None)
        return run if claim.expires_in is None else _bounded(claim.expires_in, run)

    async def _run_with_context(self, task: AnyTask, claim: Claim, stop: Stop) -> Outcome:
        effects, report = self._effects(claim, stop), self._reports.open(claim)
        try:
            period = None if claim.slot_at is None else await self._period(claim, claim.slot_at)
        except _NotBegun:
            return Stopped(started=False)
        context = context_of(
            claim, stop, log=report.log, on_progress=report.progress, effects=effects, period=period
        )
        try:
            return await effects.outcome(await self._run(task, claim, stop, context))
        except asyncio.CancelledError:
            if effects.settled is not None:
                return effects.settled
            raise

    async def _period(self, claim: Claim, slot: datetime) -> Period:
        """Most jobs bring the slot before their own. The store is asked of those that stand for missed slots
        too, were made by a backfill, or are replayed."""
        if claim.previous_at is not None:
            return Period(end=slot, start=claim.previous_at, previous=claim.previous_at)
        if self._periods is None or claim.schedule_id is None:
            return Period(end=slot)
        try:
            return await self._periods(claim.schedule_id, slot)
        except (StoreUnavailable, AnswerLost, asyncio.CancelledError):
            raise _NotBegun from None  # given back at no cost of an attempt

    async def _run(self, task: AnyTask, claim: Claim, stop: Stop, context: Context | None) -> Outcome:
        try:
            args, kwargs = decode(claim.payload)
            if self._reports.captures_all:
                self._reports.enter(claim)  # from here on, whatever is logged is the run's
            if task.signature.is_async:
                if task.timeout is not None:
                    stop.limit(task.timeout.total_seconds())
                returned = await cast("Any", task.signature.call(task.function, context, args, kwargs))
            else:
                call = partial(task.signature.call, task.function, context, args, kwargs)
                returned = await self._in_thread(call, task, claim, stop)
            return _succeeded(returned, self._result_bytes)
        except _NotBegun:
            return Stopped(started=False)
        except BaseException as error:
            if not _is_its_own(error, stop):
                raise
            if stop.late and (is_a(error, TimeoutError) or is_a(error, asyncio.CancelledError)):
                return _timed_out(task, error)
            return outcome_of(error, task.retry, frames_to_hide=1)

    def is_plain(self, task: AnyTask, claim: Claim) -> bool:
        """Whether the handler is a function that asks for nothing: `begin` calls it without a task."""
        return not (
            task.signature.is_async
            or task.signature.wants_context
            or task.isolation is not None
            or claim.suspect
            or claim.expires_in is not None
            or self._reports.captures_all
        )

    def begin(
        self,
        task: AnyTask,
        claim: Claim,
        now: Callable[[], float],
        *,
        on_begin: OnBegin,
        on_end: OnEnd,
    ) -> ThreadCall:
        """ThreadCall a plain handler; `on_end` hears its outcome, and how many seconds it took."""
        work = partial(copy_context().run, self._timed, task, claim, now)
        return self._threads.start(work, on_end, on_begin)

    def _timed(self, task: AnyTask, claim: Claim, now: Callable[[], float]) -> tuple[Outcome, float]:
        began = now()
        return self._plain(task, claim), now() - began

    def _plain(self, task: AnyTask, claim: Claim) -> Outcome:
        """The whole run, on a thread."""
        running.set(claim)
        try:
            args, kwargs = decode(claim.payload)
            return _succeeded(task.signature.call(task.function, None, args, kwargs), self._result_bytes)
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            return outcome_of(error, task.retry, frames_to_hide=2)

    def outlive(self, call: ThreadCall, claim: Claim, on_leak: Callable[[], None]) -> None:
        """A function that has begun cannot be stopped. It may look at ctx.cancelled, and its job should not
        begin elsewhere while it is about to end here: so it gets a moment."""

        def look() -> None:
            # It may be told to end twice, for its timeout and by us; it is given up once.
            if not call.over and call.on_over is None:
                self._leak(call, claim)
                on_leak()

        asyncio.get_running_loop().call_later(LINGER.total_seconds(), look)

    def timed_out(self, task: AnyTask) -> Outcome:
        """How a run ends that did not end in its time."""
        return _timed_out(task, TimeoutError())

    async def end_children(self) -> None:
        """End every child process and all that is below it."""
        if self._children is not None:
            await self._children.close()

    def close(self) -> None:
        """Take no further work. ThreadPool still in a handler are left to the process's end."""
        self._threads.close()
        self._reports.shut()

    async def run_apart(self, task: AnyTask, claim: Claim, stop: Stop) -> Outcome:
        """The same for a task that wants a child, and for a suspect, whose begin is put on record first."""
        if self.isolates(task, claim):
            return await self._run_in_child(task, claim, stop)
        # No child would find it, or it cannot take its worker with it.
        if claim.suspect:
            self.let_child_go()
        if claim.suspect and not await self._may_begin(claim):
            return Stopped(started=False)
        return await self.run(task, claim, stop)

    async def _may_begin(self, claim: Claim) -> bool:
        """Whether it is on record that this run begins. If that cannot be had, it does not."""
        try:
            return await self._begin(claim)
        except (StoreError, asyncio.CancelledError):
            return False

    async def _run_in_child(self, task: AnyTask, claim: Claim, run: Settling) -> Outcome:
        """In a child process; a cancellation ends it, with all that is below it."""
        if self._make_children is None:
            return Failed(failure=Failure(type="ChildNotReady", message="this worker has no child processes"))
        period = None
        if task.signature.wants_context:
            try:
                period = None if claim.slot_at is None else await self._period(claim, claim.slot_at)
            except _NotBegun:
                return Stopped(started=False)
            self._reports.open(claim)  # what the child is told by its handler is kept there
        begin = partial(self._may_begin, claim)
        running = self._pool().run(
            task, claim, run, begin=begin, result_bytes=self._result_bytes, period=period
        )
        return await (running if claim.expires_in is None else _bounded(claim.expires_in, running))

    def _pool(self) -> Pool:
        if self._children is None:
            assert self._make_children is not None  # noqa: S101 - both callers have looked
            self._children = self._make_children(self._reports)
            self._children.slots.on_kept = lambda: self.on_slot()
        return self._children

    async def _in_thread(self, work: Callable[[], object], task: AnyTask, claim: Claim, stop: Stop) -> object:
        future = asyncio.get_running_loop().create_future()

        def ended(value: object, error: BaseException | None) -> None:
            if future.done():
                return  # whoever waited was cancelled
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        # The clock of its timeout starts when it begins: waiting for a thread is not the handler's doing.
        limit = None if task.timeout is None else partial(stop.limit, task.timeout.total_seconds())
        within = copy_context().run
        call = self._threads.start(partial(within, as_a_future_can_carry, work), ended, limit)
        try:
            return await future
        except asyncio.CancelledError:
            if call.take():
                raise _NotBegun from None
            if not call.over:
                over = asyncio.Event()
                call.on_over = over.set
                if not await until(over, LINGER):
                    self._leak(call, claim)
            raise

    def _leak(self, call: ThreadCall, claim: Claim) -> None:
        """The thread is lost to us, until its handler does end."""

        def found_again() -> None:
            self.threads_left += 1

        self.threads_left -= 1
        call.on_over = found_again
        self.on_leak(claim)


class _NotBegun(Exception):
    """The run was ended while it waited for a thread, or for what it needs to know first."""


def _succeeded(returned: object, result_bytes: int) -> Succeeded:
    return _NOTHING if returned is None else Succeeded(result=encode_result(returned, result_bytes))


def _is_its_own(error: BaseException, stop: Stop) -> bool:
    """Whether it comes from the handler or its timeout, and not from us, who end it for another reason."""
    if is_a(error, asyncio.CancelledError) and stop.task is not None:
        # One cancellation is the timeout's; it is taken back, and what is left is ours.
        return not (stop.task.uncancel() if stop.late else stop.task.cancelling())
    if is_a(error, GeneratorExit):
        return _current_task() is stop.task  # else the coroutine is being thrown away, not run
    return True


def _timed_out(task: AnyTask, error: BaseException) -> Outcome:
    seconds = 0.0 if task.timeout is None else task.timeout.total_seconds()
    failure = timeout_failure(seconds)
    late = error if is_a(error, TimeoutError) else TimeoutError()
    # Where it stood when its time was over, if it was on the event loop.
    shown = TimeoutError(failure.message).with_traceback(error.__traceback__)
    return failed(failure, late, task.retry, shown=shown_in_log(shown, failure, frames_to_hide=1))


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


async def _bounded(left: timedelta, running: Coroutine[Any, Any, Outcome]) -> Outcome:
    """How a run ended whose job has this long until its deadline."""
    try:
        async with asyncio.timeout(left.total_seconds()) as deadline:
            outcome = await running
    except TimeoutError:  # ours: whatever the handler raised is a value by now
        return Expired(failure=expired_failure())
    if deadline.expired() and isinstance(outcome, Stopped):
        return Expired(failure=NEVER_BEGAN, started=False)
    return outcome


def context_of(
    claim: Claim,
    stop: StopSignal,
    *,
    log: Log,
    on_progress: Callable[[float, str], None],
    effects: Effects,
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
