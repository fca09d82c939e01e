"""Waits for jobs to end: one look at the store for all that are waited for, however many they are.

A job is looked for often at first and then ever more seldom; those whose time has come are asked about
together. Nothing runs while no call waits.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec

from mainspring.clock import Clock
from mainspring.errors import (
    AnswerLost,
    JobCancelled,
    JobFailed,
    MainspringError,
    NotFound,
    ResultGone,
    StoreUnavailable,
    WaitTimeout,
)
from mainspring.model.job import LIVE_STATES, JobState
from mainspring.model.run import RESULT_GONE, JobEnd
from mainspring.store.store import Store
from mainspring.waiting import until

FIRST, LONGEST, GROWTH = 0.02, 1.0, 1.5
"""Seconds between two looks for the same job."""
TOGETHER = 0.01
"""Looks that are due this soon are made now."""
AT_ONCE = 5000
RESULTS_AT_ONCE = 50
"""Each may be large."""
TRIES = 20
"""Failed looks in a row before the waiting calls raise."""


class _Watch:
    """One job and those who wait for it."""

    __slots__ = ("due", "futures", "rest")

    def __init__(self, due: float) -> None:
        self.due = due
        self.rest = FIRST
        self.futures: set[asyncio.Future[JobEnd]] = set()


class Waiter:
    """All calls of one event loop that wait."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._watches: dict[int, _Watch] = {}
        self._arrived = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._time = 0.0
        """Of our own: what was waited. A clock that stands still must not keep us from looking."""
        self._failed = 0

    async def result(self, job_id: int, within: timedelta | None) -> object:
        """What the job's handler returned, once it has ended; or raise what became of it."""
        try:
            async with asyncio.timeout(None if within is None else within.total_seconds()) as limit:
                ending = await self._ending(job_id)
        except TimeoutError:
            if within is None or not limit.expired():
                raise
            raise WaitTimeout(job_id, within.total_seconds()) from None
        return _read(job_id, ending)

    async def close(self) -> None:
        """Have the calls that still wait raise: there are no more looks."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        self._fail(list(self._watches), StoreUnavailable("the store was closed while a job was waited for"))

    async def _ending(self, job_id: int) -> JobEnd:
        future: asyncio.Future[JobEnd] = asyncio.get_running_loop().create_future()
        watch = self._watches.get(job_id)
        if watch is None:
            watch = self._watches[job_id] = _Watch(self._time)
            self._arrived.set()
        watch.futures.add(future)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            return await future
        finally:
            watch.futures.discard(future)
            if not watch.futures and self._watches.get(job_id) is watch:
                del self._watches[job_id]
                self._arrived.set()  # it may have been the last: then there is nothing to stay for

    async def _look(self) -> None:
        try:
            while self._watches:
                self._arrived.clear()
                await self._pass()
                await self._rest()
        except Exception as error:  # noqa: BLE001 - the waiting calls raise it; nothing else awaits this task
            self._fail(list(self._watches), error)

    async def _rest(self) -> None:
        if not self._watches:
            return
        rest = max(min(watch.due for watch in self._watches.values()) - self._time, 0.0)
        began = self._clock.monotonic()
        if await until(self._arrived, timedelta(seconds=rest)):
            self._time += min(max(self._clock.monotonic() - began, 0.0), rest)
        else:
            self._time += rest

    async def _pass(self) -> None:
        due = [job_id for job_id, watch in self._watches.items() if watch.due <= self._time + TOGETHER]
        for job_id in due:
            watch = self._watches[job_id]
            watch.due, watch.rest = self._time + watch.rest, min(watch.rest * GROWTH, LONGEST)
        try:
            for start in range(0, len(due), AT_ONCE):
                await self._ask(due[start : start + AT_ONCE])
            self._failed = 0
        except (StoreUnavailable, AnswerLost):
            self._failed += 1
            if self._failed >= TRIES:
                self._failed = 0
                raise

    async def _ask(self, job_ids: list[int]) -> None:
        states = await self._store.jobs.states(job_ids, at=self._clock.stamp())
        for job_id in job_ids:
            if job_id not in states:
                self._fail([job_id], NotFound("job", job_id))
        final = [job_id for job_id, state in states.items() if state not in LIVE_STATES]
        for start in range(0, len(final), RESULTS_AT_ONCE):
            # One that was put back into its queue meanwhile has no ending, and is looked for again.
            found = await self._store.runs.endings(final[start : start + RESULTS_AT_ONCE])
            for job_id, ending in found.items():
                for future in self._gone(job_id):
                    future.set_result(ending)

    def _fail(self, job_ids: list[int], error: Exception) -> None:
        for job_id in job_ids:
            for future in self._gone(job_id):
                future.set_exception(error)

    def _gone(self, job_id: int) -> list[asyncio.Future[JobEnd]]:
        """The calls that wait for it; it is not looked for any more."""
        watch = self._watches.pop(job_id, None)
        return [] if watch is None else [each for each in watch.futures if not each.done()]


def _read(job_id: int, ending: JobEnd) -> object:
    if ending.state is JobState.CANCELLED:
        raise JobCancelled(job_id)
    if ending.state is JobState.DEAD:
        raise _failed(job_id, ending)
    if ending.result == RESULT_GONE:
        raise ResultGone(job_id)
    return None if ending.result is None else msgspec.json.decode(ending.result)


def _failed(job_id: int, ending: JobEnd) -> MainspringError:
    last = ending.failure
    if last is None:
        return JobFailed(job_id, reason=ending.reason or "failed")
    return JobFailed(
        job_id,
        reason=ending.reason or "failed",
        type=last.type,
        message=last.message,
        traceback=last.traceback,
    )
