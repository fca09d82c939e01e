"""Where handlers run: on the event loop, in threads, in child processes."""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mainspring.clock import Clock
from mainspring.model.job import Claim, Failure
from mainspring.model.run import Failed, Outcome, Stopped
from mainspring.signals import Signals
from mainspring.telemetry.run_fields import running
from mainspring.waiting import NOW, pause
from mainspring.worker.handlers import Handlers
from mainspring.worker.run import ActiveRun, AnyTask, Stop
from mainspring.worker.run_reports import RunReports
from mainspring.worker.threads import NeverBegan, ThreadCall

if TYPE_CHECKING:
    from mainspring.worker.children.pool import Pool

MakeChildren = Callable[[RunReports], "Pool"]


class _TaskExecutor:
    """Runs that are awaited, each in a task of the event loop; a stop is a cancellation."""

    def __init__(self, call: Callable[[ActiveRun], Coroutine[Any, Any, Outcome]], clock: Clock) -> None:
        self._call = call
        self._now = clock.monotonic
        self._pool = CoroutinePool[ActiveRun](self._run, clock.monotonic)

    def start(self, runs: Sequence[ActiveRun]) -> None:
        self._pool.give(runs)

    def stop(self, run: ActiveRun) -> None:
        if run.handle is not None:
            run.handle.cancel()
        else:
            run.life.end(run, Stopped(started=False), 0.0)

    async def _run(self, run: ActiveRun, task: asyncio.Task[None]) -> None:
        life = run.life
        outcome = life.begin(run)
        if outcome is None:
            run.handle = task
            running.set(run.claim)
            try:
                outcome = await self._call(run)
            except GeneratorExit:
                raise  # it is thrown away, not run
            except BaseException as error:  # noqa: BLE001 - no run may go on for ever, nor end the event loop
                outcome = run.cut_off(error)
            run.handle = None
        life.end(run, outcome, self._now() - run.began)


class CoroutineExecutor(_TaskExecutor):
    """Async handlers on the event loop; functions that ask for their context, each awaited in a thread."""

    def __init__(self, handlers: Handlers, clock: Clock) -> None:
        super().__init__(handlers.call, clock)

    def takes(self, task: AnyTask, claim: Claim) -> bool:
        return True

    def is_sure_to_end(self, run: ActiveRun) -> bool:
        return not run.task.signature.is_async  # a coroutine may swallow its cancellation

    async def close(self) -> None:
        """What still runs ends with the event loop."""


class ThreadExecutor:
    """Functions that ask for nothing: no task is needed for them, for all that one could do is wait."""

    def __init__(self, handlers: Handlers, clock: Clock, *, traced: bool) -> None:
        self._handlers = handlers
        self._threads = handlers.threads
        self._now = clock.monotonic
        self._is_apt = not traced and not handlers.reports.captures_all

    def takes(self, task: AnyTask, claim: Claim) -> bool:
        return not (
            task.signature.is_async
            or task.signature.wants_context
            or claim.orphan
            or claim.expires_in is not None
            or not self._is_apt
        )

    def start(self, runs: Sequence[ActiveRun]) -> None:
        for run in runs:
            if run.ended:
                continue  # it was stopped before its turn
            task = run.task
            run.began = self._now()
            told = run.life.tells_start or task.timeout is not None
            work = partial(copy_context().run, self._timed, task, run.claim)
            try:
                run.handle = self._threads.start(
                    work, partial(self._ended, run), partial(self._begun, run) if told else None
                )
            except RuntimeError as error:  # the system gives us no thread
                run.life.end(run, run.cut_off(error), 0.0)

    def stop(self, run: ActiveRun) -> None:
        call: ThreadCall | None = run.handle
        if call is None or call.take():
            run.life.end(run, Stopped(started=False), 0.0)
        else:
            self._threads.give_up_soon(call, run.claim, partial(self._given_up, run))

    def is_sure_to_end(self, run: ActiveRun) -> bool:
        return True

    async def close(self) -> None:
        self._threads.close()

    def _timed(self, task: AnyTask, claim: Claim) -> tuple[Outcome, float]:
        began = self._now()
        return self._handlers.call_plain(task, claim), self._now() - began

    def _begun(self, run: ActiveRun) -> None:
        if not run.ended and run.life.begin(run) is None and run.task.timeout is not None:
            run.handler_begins()

    def _ended(self, run: ActiveRun, ended: tuple[Outcome, float], error: BaseException | None) -> None:
        outcome, seconds = ended if error is None else (run.cut_off(error), self._now() - run.began)
        if run.stop is Stop.TIMEOUT:
            outcome = run.stopped()  # whatever it did after its time
        run.life.end(run, outcome, seconds)

    def _given_up(self, run: ActiveRun) -> None:
        self._ended(run, (Stopped(), self._now() - run.began), None)


class ChildExecutor(_TaskExecutor):
    """Handlers in child processes: those of tasks that want one, and those of jobs whose process died, which
    they may have caused."""

    def __init__(
        self, handlers: Handlers, clock: Clock, signals: Signals, make: MakeChildren | None, *, size: int
    ) -> None:
        """`make` starts nothing, and is called when the first run needs a child; None where there are no
        child processes."""
        super().__init__(self._run_in_child, clock)
        self._handlers = handlers
        self._signals = signals
        self._make = make
        self._size = size
        self._made: Pool | None = None

    @property
    def free(self) -> int:
        """How many more runs would find a child at once."""
        if self._made is None:
            return 1 if self._make is None else self._size
        return self._made.slots.free

    def keep_one(self) -> None:
        """Let the next child that becomes free be for a job whose process died, though others wait."""
        if self._made is not None:
            self._made.slots.keep()

    def let_go(self) -> None:
        """There is no such job for it."""
        if self._made is not None:
            self._made.slots.let_go()

    def takes(self, task: AnyTask, claim: Claim) -> bool:
        if task.isolation is not None:
            return True
        if not claim.orphan or not task.runs_user_code:
            return False
        return self._make is not None and self.pool.reaches(task)

    def is_sure_to_end(self, run: ActiveRun) -> bool:
        return True

    async def close(self) -> None:
        """End every child process and all that is below it."""
        if self._made is not None:
            await self._made.close()

    @property
    def pool(self) -> Pool:
        """The child processes, made when first asked for."""
        if self._made is None:
            assert self._make is not None  # noqa: S101 - all callers have looked
            self._made = self._make(self._handlers.reports)
            self._made.slots.kept_one_free.connect(self._signals.child_free.send)
        return self._made

    async def _run_in_child(self, run: ActiveRun) -> Outcome:
        task, claim = run.task, run.claim
        if self._make is None:
            return Failed(failure=Failure(type="ChildNotReady", message="this worker has no child processes"))
        period = None
        if task.signature.wants_context:
            try:
                period = await self._handlers.period_of(claim)
            except NeverBegan:
                return Stopped(started=False)
            self._handlers.reports.open(claim)  # what the handler reports is kept there
        return await self.pool.run(
            run,
            begin=partial(self._handlers.may_begin, claim),
            result_bytes=self._handlers.result_bytes,
            period=period,
        )


W = TypeVar("W")

SPREAD = 2
"""Tasks started by one that has to wait. With one each, a hundred runs would begin one after another."""
YIELD_AFTER = 0.005
"""Seconds after which a task lets others run, however short its runs are."""

Work = Callable[[W, "asyncio.Task[None]"], Coroutine[Any, Any, None]]


class CoroutinePool(Generic[W]):
    """As many tasks as are needed, and no more: the next one is started when one has to wait.

    Runs that never wait are done by one task without a turn of the event loop, each in a context of its own.
    A task that had to wait in a run does no other after it: users keep sessions and the like by task, and
    those must not be the next run's. Nor does a task that was cancelled: in Python 3.11 the cancellation may
    still be on its way.
    """

    def __init__(self, work: Work[W], now: Callable[[], float]) -> None:
        self._work = work
        self._now = now
        self._waiting: deque[W] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._coming = 0
        """Tasks that were started and have not begun."""

    def give(self, works: Iterable[W]) -> None:
        """Have these done, soon and in this order."""
        self._waiting.extend(works)
        self._call(1)

    def _call(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting) - self._coming)):
            self._coming += 1
            task = asyncio.get_running_loop().create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _spread(self) -> None:
        self._call(SPREAD)

    async def _serve(self) -> None:
        self._coming -= 1
        me = asyncio.current_task()
        assert me is not None  # noqa: S101 - it runs as a task
        began = self._now()
        while self._waiting:
            try:
                waited = await _apart(self._work(self._waiting.popleft(), me), self._spread)
            except BaseException:
                self._call(1)  # a defect of ours, or the loop's end: others go on
                raise
            if waited or me.cancelling():
                self._call(1)
                return
            if self._now() - began > YIELD_AFTER:
                await pause(NOW)
                began = self._now()


@types.coroutine
def _apart(work: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> Generator[Any, Any, bool]:
    """Awaits a coroutine in a context of its own; calls `on_wait` when it waits for the first time, and
    answers whether it did."""
    run, send = copy_context().run, work.send
    try:
        awaited = run(send, None)
    except StopIteration:
        return False
    on_wait()
    while True:
        try:
            answer = yield awaited
        except GeneratorExit:
            run(work.close)
            raise
        except BaseException as error:  # noqa: BLE001 - not swallowed: it is the coroutine's
            raised = error
        else:
            try:
                awaited = run(send, answer)
            except StopIteration:
                return True
            continue
        try:
            awaited = run(work.throw, raised)
        except StopIteration:
            return True
