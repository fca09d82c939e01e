"""The harness: a user's own app on a database in memory, with the engine's real loops ticked by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

import msgspec

from mainspring.app import Mainspring
from mainspring.clock import Clock
from mainspring.config import MEMORY
from mainspring.duration import Duration, duration
from mainspring.entropy import SeededEntropy
from mainspring.errors import InvalidArgument, UsageError
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.job import Job, JobFilter, JobState
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from mainspring.tasks.task import Task
from mainspring.testing.bench import Bench
from mainspring.testing.clock import START, ManualClock
from mainspring.testing.enqueued import Enqueued, Wanted, complaint, enqueued
from mainspring.testing.floor import Floor, Ran, Watch
from mainspring.testing.switch import TESTING_ID, switched, valid_id

T = TypeVar("T")


__tracebackhide__ = True  # pytest shows the test and the handler, not what is in between


RUNS = 1000
"""Runs after which a test is taken to go on for ever."""


Errors = Literal["raise", "collect"]


RAISE: Final = "raise"


COLLECT: Final = "collect"


class StillBusy(AssertionError):
    """There was work left after as many runs as were allowed."""

    def __init__(self, limit: int, ran: Sequence[Ran]) -> None:
        last = ", ".join(f"{each.task} (job {each.job_id})" for each in ran[-3:])
        super().__init__(f"still busy after {limit} runs, the last of {last}; limit=… allows more")


class Harness:
    """`with Harness(app) as mainspring:` the app is on a database in memory, empty at first, and on
    `mainspring.clock`, which stands still until the test moves it.

    With `errors="raise"` what a handler raises is raised in the test, once its run is on record; with
    `"collect"` it is kept for `failures()`. The same calls work in tests that are coroutines; those
    that run jobs are awaited there: `arun_until_idle`, `arun_one`, `arun_for`.

    The database has the same id in every test, so that `ctx.token` is the same in every run of a test. A
    test that calls a service which remembers tokens wants one of its own: `database_id=str(uuid4())`.
    """

    def __init__(
        self,
        app: Mainspring,
        *,
        start: datetime = START,
        errors: Errors = RAISE,
        database_id: str = TESTING_ID,
    ) -> None:
        self._database_id = valid_id(database_id)
        self.app = app
        self.clock = ManualClock(start)
        self._errors = _valid_errors(errors)
        self._watch = Watch(app._registry, app._telemetry)
        self._store = open_store(MEMORY, clock=self.clock)
        self._floor: tuple[asyncio.AbstractEventLoop, Floor] | None = None
        self._written: tuple[str, ...] = ()
        self._bench = Bench()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # For what a test asks, from whichever thread or event loop: it must not wait for its own.
            self._aside = stack.enter_context(ThreadPoolExecutor(1, "mainspring-testing"))
            stack.callback(self._close_loop)
            stack.callback(self._ask, self._store.close)
            self._ask(self._prepare)
            stack.enter_context(switched(self.app, self._store, clock=self.clock, entropy=SeededEntropy()))
            stack.callback(self._leave_floor)
            self._ask(self._write_schedules)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run_until_idle(
        self, *, advance: bool = False, limit: int = RUNS, errors: Errors | None = None
    ) -> list[Ran]:
        """Fire what is due and run what is due, and what that makes due, until nothing is. With `advance`
        the clock is moved on to each job that waits, such as one to be tried again, until none does."""
        return self._drive(lambda: self._run(limit, errors, advance=advance), instead="arun_until_idle")

    async def arun_until_idle(
        self, *, advance: bool = False, limit: int = RUNS, errors: Errors | None = None
    ) -> list[Ran]:
        """The same on an event loop."""
        return await self._run(limit, errors, advance=advance)

    def run_for(self, length: Duration, *, limit: int = RUNS, errors: Errors | None = None) -> list[Ran]:
        """Let time pass, and stop at every slot and every job on the way, as if a scheduler and a worker were
        running all the time. `clock.advance()` alone is the opposite: none runs, and slots are missed."""
        end = self._end(length)
        return self._drive(lambda: self._run(limit, errors, end=end), instead="arun_for")

    async def arun_for(
        self, length: Duration, *, limit: int = RUNS, errors: Errors | None = None
    ) -> list[Ran]:
        """The same on an event loop."""
        return await self._run(limit, errors, end=self._end(length))

    def run_one(self, *, errors: Errors | None = None) -> Ran | None:
        """Fire what is due, then run the best job that is due; None when there is none."""
        return self._drive(lambda: self._run_one(errors), instead="arun_one")

    async def arun_one(self, *, errors: Errors | None = None) -> Ran | None:
        """The same on an event loop."""
        return await self._run_one(errors)

    def enqueued(self, task: Task[..., Any] | str | None = None) -> list[Enqueued]:
        """Jobs that wait, of this task or of all, in the order they were put in."""
        name = None if task is None else self._name(task)
        jobs = self._ask(lambda: every_job(self._store, self.clock, task=name))
        return [enqueued(job) for job in jobs]

    def assert_enqueued(
        self,
        task: Task[..., Any] | str,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        count: int | None = None,
        queue: str | None = None,
        run_at: datetime | None = None,
    ) -> list[Enqueued]:
        """Fail unless `count` jobs like this wait, or at least one; answer them. What is not given may be
        anything; arguments are compared as they were passed, by position or by name."""
        wanted = Wanted(task=self._name(task), args=args, kwargs=kwargs, queue=queue, run_at=run_at)
        jobs = self.enqueued()
        found = [job for job in jobs if job.task == wanted.task and not wanted.differences(job)]
        if not found if count is None else len(found) != count:
            ended = sum(ran.task == wanted.task for ran in self._watch.ran)
            raise AssertionError(complaint(wanted, count, jobs, ended))
        return found

    def ran(self) -> list[Ran]:
        """Every run so far, in order."""
        return list(self._watch.ran)

    def failures(self) -> list[Ran]:
        """Every run that failed so far, with what its handler raised."""
        return [ran for ran in self._watch.ran if ran.failure is not None]

    def dead(self) -> list[DeadJob]:
        """Jobs that failed for the last time, in the order they were put in."""
        return self._ask(lambda: every_dead(self._store))

    async def _run(
        self, limit: int, errors: Errors | None, *, advance: bool = False, end: datetime | None = None
    ) -> list[Ran]:
        raising = _valid_errors(errors or self._errors) == RAISE
        await self._write_schedules()
        ran: list[Ran] = []
        moment: datetime | None = self.clock.now()
        while moment is not None:
            self.clock.move_to(moment)
            await self._settle_down(ran, limit, raising)
            moment = await next_moment(self._store, self.clock, end=end) if advance or end else None
        if end is not None and end > self.clock.now():  # a handler may have moved it, too
            self.clock.move_to(end)
        return ran

    async def _settle_down(self, ran: list[Ran], limit: int, raising: bool) -> None:
        """Until nothing is due at this moment. Slots first, and again whenever jobs have ended: others
        may have waited for them."""
        before, more = -1, True
        while more or before != len(ran):
            before = len(ran)
            more = await (await self._on_floor()).fire()
            while (one := await self._work()) is not None:
                ran.append(one)
                _raise(one, raising)
                if len(ran) > limit:
                    raise StillBusy(limit, ran)

    async def _run_one(self, errors: Errors | None) -> Ran | None:
        raising = _valid_errors(errors or self._errors) == RAISE
        await self._write_schedules()
        await (await self._on_floor()).fire()
        one = await self._work()
        if one is not None:
            _raise(one, raising)
        return one

    async def _work(self) -> Ran | None:
        floor = await self._on_floor()
        one = await floor.work()
        if one is not None:
            return one
        # It may be a new queue.
        anew = await self._on_floor(look=True)
        return None if anew is floor else await anew.work()

    async def _on_floor(self, *, look: bool = False) -> Floor:
        """The engine's parts, on this event loop and for every queue there is."""
        loop = asyncio.get_running_loop()
        if self._floor is not None and self._floor[0] is loop and not look:
            return self._floor[1]
        known = {task.queue for task in self.app._registry.tasks.values()}
        known |= {each.queue for each in await self._store.queues.depth(at=self.clock.stamp())}
        queues = tuple(sorted(known)) or ("default",)
        if self._floor is not None and self._floor[0] is loop and self._floor[1].queues == queues:
            return self._floor[1]
        self._leave_floor()
        pool = self._bench if loop is self._loop else None
        floor = Floor(self.app, self._store, self._watch, queues=queues, pool=pool)
        self._floor = (loop, floor)
        return floor

    def _leave_floor(self) -> None:
        if self._floor is not None:
            self._floor[1].close()
            self._floor = None

    async def _prepare(self) -> None:
        await self._store.migrate()
        await self._store.change_identity(self._database_id, force=True, at=self.clock.stamp())

    async def _write_schedules(self) -> None:
        names = tuple(self.app._registry.schedules)
        if names != self._written:
            await self.app._write_schedules()
            self._written = names

    def _drive(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T:
        if _in_event_loop():
            raise UsageError(f"this call would block the running event loop; use `await {instead}()` instead")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._bench.drive(self._loop, work())

    def _close_loop(self) -> None:
        if self._loop is not None:
            # Another thread's may run while this one does.
            self._aside.submit(_end, self._loop).result()

    def _ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._aside.submit(lambda: asyncio.run(work())).result()

    def _name(self, task: Task[..., Any] | str) -> str:
        return self.app._registry.get(task).name if isinstance(task, str) else task.name

    def _end(self, length: Duration) -> datetime:
        return self.clock.now() + duration(length, "length", least=timedelta())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _end(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop):
        """Ends what handlers have left on it, and closes it."""


def _valid_errors(errors: Errors) -> Errors:
    if errors not in (RAISE, COLLECT):
        raise InvalidArgument("errors", errors, f'"{RAISE}" or "{COLLECT}"')
    return errors


def _raise(ran: Ran, raising: bool) -> None:
    # What is no Exception is not about the job: Ctrl-C, or a test that says it has failed.
    collected = isinstance(ran.error, Exception | SystemExit | asyncio.CancelledError)
    if ran.error is not None and (raising or not collected):
        raise ran.error


PAGE = 1000


_FOR_EVER = 9996
"""From this year on jobs are due that wait for an event, or for others of their schedule."""


async def every_job(
    store: Store, clock: Clock, *, task: str | None = None, state: JobState | None = None
) -> list[Job]:
    """Every live job, oldest first."""
    which, found = JobFilter(task=task, state=state, limit=PAGE), list[Job]()
    while page := await store.jobs.find(which, at=clock.stamp()):
        found += page
        which = msgspec.structs.replace(which, before=page[-1].id)
    return found[::-1]


async def every_dead(store: Store) -> list[DeadJob]:
    """Every dead letter, oldest first."""
    which, found = DeadFilter(limit=PAGE), list[DeadJob]()
    while page := await store.dead_letters.find(which):
        found += page
        which = msgspec.structs.replace(which, before=page[-1].id)
    return found[::-1]


async def next_moment(store: Store, clock: Clock, *, end: datetime | None) -> datetime | None:
    """When the next thing falls due: a slot or a job, until `end`; without one, only while a job waits, for
    schedules alone would go on for ever."""
    now = clock.now()
    jobs = await every_job(store, clock, state=JobState.DELAYED)
    moments = [job.run_at for job in jobs if now < job.run_at and job.run_at.year < _FOR_EVER]
    if end is None and not moments:
        return None
    wait = await store.slots.next_due(at=clock.stamp())
    if wait:
        moments.append(now + wait)
    soonest = min(moments, default=None)
    return soonest if soonest is not None and (end is None or soonest <= end) else None
