"""Eager mode: `enqueue` runs the handler at once, in this process, and raises what it raises."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NoReturn, cast

from mainspring.app import Mainspring
from mainspring.clock import Clock
from mainspring.config import CAPTURE_NONE
from mainspring.errors import UsageError
from mainspring.model.checkpoint import EVERYBODY, CheckpointKind, Event, Recorded
from mainspring.model.job import Claim, NewJob
from mainspring.model.run import Failed, Started
from mainspring.model.schedule import Period
from mainspring.signals import Signals
from mainspring.store.database import Stamp
from mainspring.store.effects import Effects
from mainspring.store.events import Events
from mainspring.store.runs import Runs
from mainspring.store.store import Store
from mainspring.tasks.context import Suspended
from mainspring.tasks.enqueue import JobHandle, checked_batch, new_event
from mainspring.tasks.payload import LARGEST_RESULT
from mainspring.telemetry.events import Telemetry
from mainspring.testing.bench import Bench
from mainspring.testing.floor import Watch
from mainspring.testing.switch import TESTING_ID, valid_id
from mainspring.worker.effects import RunEffects
from mainspring.worker.handlers import HandlerRun, Handlers
from mainspring.worker.run import AnyTask
from mainspring.worker.run_reports import RunReports
from mainspring.worker.steps import RunSteps, StepRun
from mainspring.worker.threads import FunctionPool, HandlerThreads

__tracebackhide__ = True  # see harness.py


@contextmanager
def eager(
    app: Mainspring,
    *,
    events: Mapping[str, object] | None = None,
    database_id: str = TESTING_ID,
    period: Period | None = None,
) -> Iterator[None]:
    """While this lasts, nothing of the app is stored: `enqueue` and its kin call the handler with
    arguments that have been to JSON and back, and return when it has returned. Steps are called each time, a
    sleep takes no time, and a wait finds what is among the `events` or was sent before; if nothing was, its
    timeout is over at once.

    That tests handlers and what is passed to them. It tests no retry, delay, queue, priority,
    schedule or transaction, and not that the caller can go on before the job has run. `database_id` is part
    of `ctx.token`, as with a Harness. With a `period` the jobs are as if a schedule had made them for its
    slot.
    """
    mode = _Eager(app, EagerEvents(events or {}), valid_id(database_id), period)
    # In the way of the methods: an app that is not in this mode does not even ask.
    names = ("enqueue_many", "aenqueue_many", "send_event", "asend_event")
    vars(app).update({name: getattr(mode, name) for name in names})
    try:
        yield
    finally:
        for name in names:
            del vars(app)[name]


async def _never(claim: Claim) -> bool:
    """No job is an orphaned job here."""
    return True


class _NoEffects(RunEffects):
    """There is no job in any store whose end could be written with the handler's own rows."""

    def __init__(self, claim: Claim, run: HandlerRun, app: Mainspring, events: EagerEvents) -> None:
        super().__init__(claim, run, cast("Store", None), app._clock)
        self._steps = EagerSteps(self, app._clock, events)

    def transaction(self, result: object) -> NoReturn:
        raise UsageError("ctx.transaction(): not in eager mode, which stores nothing; use a Harness")

    def once(self, name: str, tx: object | None) -> NoReturn:
        raise UsageError("ctx.once(): not in eager mode, which stores nothing; use a Harness")

    def complete(self, tx: object, result: object) -> NoReturn:
        raise UsageError("ctx.complete(): not in eager mode, which stores nothing; use a Harness")

    async def acomplete(self, tx: object, result: object) -> NoReturn:
        self.complete(tx, result)


class _Run:
    """Nobody ends it but its own timeout."""

    settling = False

    def __init__(self, task: AnyTask, claim: Claim) -> None:
        self.task, self.claim = task, claim
        self.handle: asyncio.Task[Any] | None = asyncio.current_task()
        self.late = False
        self._timer: asyncio.TimerHandle | None = None

    def is_set(self) -> bool:
        return self.late

    def handler_begins(self) -> None:
        if self.task.timeout is not None:
            seconds = self.task.timeout.total_seconds()
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.late = True
        if self.handle is not None:
            self.handle.cancel()


class _Eager:
    """A sender that keeps nothing."""

    def __init__(self, app: Mainspring, events: EagerEvents, database_id: str, period: Period | None) -> None:
        self._app, self._events, self._database_id, self._of = app, events, database_id, period
        self._ids = itertools.count(1)

    def send_event(
        self, name: str, payload: object = None, *, job: JobHandle[Any] | int | None = None
    ) -> bool:
        return self._events.send(new_event(name, payload, job))

    async def asend_event(
        self, name: str, payload: object = None, *, job: JobHandle[Any] | int | None = None
    ) -> bool:
        return self._events.send(new_event(name, payload, job))

    def enqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> list[JobHandle[Any]]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                bench = Bench()
                return bench.drive(runner.get_loop(), self._run(checked_batch(jobs), bench))
        raise UsageError("this call would block the running event loop; use `await aenqueue()` instead")

    async def aenqueue_many(
        self, jobs: Sequence[NewJob], *, tx: object | None = None
    ) -> list[JobHandle[Any]]:
        return await self._run(checked_batch(jobs), None)

    async def _run(self, jobs: Sequence[NewJob], pool: FunctionPool | None) -> list[JobHandle[Any]]:
        return [await self._run_one(job, pool) for job in jobs]

    async def _run_one(self, job: NewJob, pool: FunctionPool | None) -> JobHandle[Any]:
        job_id = next(self._ids)
        watch, signals = Watch(self._app._registry, Telemetry()), Signals()
        # Nobody asks these reports to be written: what is reported here is kept nowhere.
        reports = RunReports(cast("Runs", None), self._app._clock, signals, capture=CAPTURE_NONE, log_limit=0)
        largest = self._app.settings.results.max_bytes
        threads = HandlerThreads(1, pool, lambda claim, left: None)
        handlers = Handlers(
            threads, reports, self._effects, result_bytes=largest, begin=_never, periods=self._period
        )
        run = _Run(watch.registry.get(job.task), self._claim(job, job_id))
        try:
            outcome = await handlers.call(run)
        finally:
            run.end()
            threads.close()
        if isinstance(outcome, Failed):
            raise watch.error_of(outcome.failure)
        if isinstance(outcome, Started):
            raise UsageError(f"{job.task}: no workflows in eager mode, which stores nothing; use a Harness")
        return JobHandle(id=job_id, task=job.task, queue=job.queue)

    async def _period(self, schedule_id: int, slot: datetime) -> Period:
        return self._of or Period(end=slot)

    def _effects(self, claim: Claim, run: HandlerRun) -> RunEffects:
        return _NoEffects(claim, run, self._app, self._events)

    def _claim(self, job: NewJob, job_id: int) -> Claim:
        now = self._app._clock.now()
        return Claim(
            job_id=job_id,
            worker_id=1,
            fence=1,
            task=job.task,
            queue=job.queue,
            payload=job.payload,
            failures=0,
            max_attempts=job.max_attempts,
            run_at=now,
            enqueued_at=now,
            schedule_id=None if self._of is None else 1,
            slot_at=None if self._of is None else self._of.end,
            database_id=self._database_id,
        )


class EagerEvents:
    """What was sent while the mode lasts."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._sent: dict[tuple[int, str], bytes] = {}
        for name, payload in given.items():
            self.send(new_event(name, payload, None))

    def send(self, event: Event) -> bool:
        """Keep it; False if there is one already."""
        place = event.job_id, event.name
        return self._sent.setdefault(place, event.payload) is event.payload

    def find(self, job_id: int, name: str) -> bytes | None:
        """The job's own event, or else the one for all jobs."""
        return self._sent.get((job_id, name), self._sent.get((EVERYBODY, name)))


class EagerSteps(RunSteps):
    """A sleep is over as soon as it begins, and so is a wait with a timeout whose event was not sent."""

    def __init__(self, run: StepRun, clock: Clock, events: EagerEvents) -> None:
        effects, sent = cast("Effects", _Forgetful(clock)), cast("Events", _Sent(events))
        super().__init__(run, effects, sent, clock, result_bytes=LARGEST_RESULT)

    async def _left(self, kind: CheckpointKind, name: str, length: timedelta) -> timedelta:
        return timedelta()

    def _suspend(self, suspended: Suspended) -> NoReturn:
        raise UsageError(
            f"ctx.wait_event({suspended.awaits!r}): eager mode cannot wait; give eager(app, events={{…}}), "
            "send it before, or use a Harness"
        )


class _Forgetful:
    """As much of `store.effects` as steps ask for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def steps(self, job_id: int, *, at: Stamp) -> Recorded:
        return Recorded(now=self._clock.now())

    async def record_step(self, claim: Claim, name: str, *, value: bytes | None, at: Stamp) -> bool:
        return True


class _Sent:
    """As much of `store.events`."""

    def __init__(self, events: EagerEvents) -> None:
        self._events = events

    async def get(self, job_id: int, name: str) -> bytes | None:
        return self._events.find(job_id, name)
