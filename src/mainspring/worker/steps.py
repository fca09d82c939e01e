"""`ctx.step()`, `ctx.sleep()`, `ctx.wait_event()`: what one run does, recorded for those that come after.

A record is found by its name alone: nothing is played back, and the handler may change between two runs.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NoReturn, Protocol, TypeVar

from mainspring.clock import Clock
from mainspring.errors import (
    AnswerLost,
    ClaimLost,
    EventTimeout,
    InvalidArgument,
    StoreUnavailable,
    UsageError,
)
from mainspring.model.checkpoint import Checkpoint, CheckpointKind
from mainspring.model.job import Claim
from mainspring.model.run import FOREVER
from mainspring.store.effects import Effects
from mainspring.store.events import Events
from mainspring.tasks.context import RAISE, Context, Suspended
from mainspring.tasks.payload import decode_value, encode_value
from mainspring.tasks.signature import is_async
from mainspring.tasks.task import Task
from mainspring.waiting import pause, whole
from mainspring.worker.threads import run_in_thread

T = TypeVar("T")

RECORD_WITHIN = timedelta(seconds=30)
"""How long a store that is away may keep a step that was done from being recorded."""
LOOK_EVERY = timedelta(milliseconds=250)
_NO_TIME = timedelta()


class StepRun(Protocol):
    """What steps need of the run they are in."""

    claim: Claim
    open: object | None
    """The connection of the transaction that is open, if one is."""

    def require_unsettled(self) -> None:
        """Raise unless the job is still to be settled."""

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str = ...) -> T:
        """Run this on the worker's event loop, and wait for it."""


class RunSteps:
    """One run's. All of it happens on one event loop; a plain handler's calls are brought there."""

    def __init__(
        self, run: StepRun, effects: Effects, events: Events, clock: Clock, *, result_bytes: int
    ) -> None:
        self._run, self._effects, self._events, self._clock = run, effects, events, clock
        self._result_bytes = result_bytes
        self._reading = asyncio.Lock()
        self._records: dict[str, Checkpoint] | None = None
        self._read_at: tuple[datetime, float] | None = None
        """The store's now when it was read, and ours."""
        self._taken: set[str] = set()
        self._under_way: list[str] = []
        self._sleeps = 0
        self.suspended: Suspended | None = None
        """Raised to end this run, and raised again at every call: a handler that swallows it gets no
        further."""

    async def step(
        self,
        context: object,
        name: str,
        function: Callable[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> object:
        call, awaited = _callee(context, function, args, kwargs)
        found = await self._enter(name)
        if found is not None:
            return _value(found)
        try:
            returned = await run_in_thread(call) if not awaited else call()
            return await self._done(name, await returned if inspect.isawaitable(returned) else returned)
        except BaseException:
            self._leave(name)
            raise

    def step_here(
        self,
        context: object,
        name: str,
        function: Callable[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> object:
        call, _ = _callee(context, function, args, kwargs)
        bring = partial(self._run.call, instead="`await ctx.astep(…)`")
        found = bring(lambda: self._enter(name))
        if found is not None:
            return _value(found)
        try:
            returned = call()
            if inspect.isawaitable(returned):
                returned = bring(partial(_awaited, returned))
            return bring(lambda: self._done(name, returned))
        except BaseException:
            self._leave(name)
            raise

    async def sleep(self, length: timedelta, name: str | None) -> None:
        if name is None:
            self._sleeps += 1
            name = "sleep" if self._sleeps == 1 else f"sleep-{self._sleeps}"
        with self._waiting(CheckpointKind.SLEEP, name):
            left = await self._left(CheckpointKind.SLEEP, name, length)
            if left > _NO_TIME:
                self._suspend(Suspended(left))

    async def wait_event(self, name: str, limit: timedelta | None, default: object) -> object:
        with self._waiting(CheckpointKind.EVENT, name):
            ended = await self._found(CheckpointKind.EVENT.key(name))
            if ended is None:
                ended = await self._look(name, limit)
        if ended.value is not None:
            return decode_value(ended.value)
        if default is RAISE:
            raise EventTimeout(name, self._run.claim.job_id)
        return default

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T:
        return self._run.call(work, instead=instead)

    async def _look(self, name: str, limit: timedelta | None) -> Checkpoint:
        """The end of the wait, if it has come; otherwise this run ends here."""
        payload = await self._events.get(self._run.claim.job_id, name)
        if payload is not None:
            return await self._record(CheckpointKind.EVENT.key(name), payload)
        begun = await self._found(CheckpointKind.WAIT.key(name))
        left = FOREVER
        if limit is not None or begun is not None:
            left = await self._left(CheckpointKind.WAIT, name, limit or FOREVER)
        if left > _NO_TIME:
            self._suspend(Suspended(left, awaits=name))
        return await self._record(CheckpointKind.EVENT.key(name), None)

    async def _left(self, kind: CheckpointKind, name: str, length: timedelta) -> timedelta:
        """How much is left of a time whose beginning is on record, or is put there now."""
        found = await self._found(kind.key(name))
        if found is None:
            await self._record(kind.key(name), encode_value(length.total_seconds(), kind, 100))
            return length
        seconds = decode_value(found.value or b"0")
        assert isinstance(seconds, int | float)  # noqa: S101 - we wrote it
        return found.done_at + timedelta(seconds=seconds) - self._now()

    async def _enter(self, name: str) -> Checkpoint | None:
        """The record of the step; without one it is under way."""
        self._take(CheckpointKind.STEP, name)
        try:
            found = await self._found(CheckpointKind.STEP.key(name))
            self._require_unsuspended()
        except BaseException:
            self._taken.discard(CheckpointKind.STEP.key(name))
            raise
        if found is None:
            self._under_way.append(name)
        return found

    async def _done(self, name: str, returned: object) -> object:
        """Put on record what the step answered; answer what a later run will be given."""
        text = None
        if returned is not None:
            text = encode_value(returned, f"step {name}", self._result_bytes, " (results.max_bytes)")
        recorded = await self._record(CheckpointKind.STEP.key(name), text)
        self._under_way.remove(name)
        return _value(recorded)

    def _leave(self, name: str) -> None:
        """It failed, and may be tried again, in this run too. Safe from any thread."""
        if name in self._under_way:
            self._under_way.remove(name)
        self._taken.discard(CheckpointKind.STEP.key(name))

    @contextmanager
    def _waiting(self, kind: CheckpointKind, name: str) -> Iterator[None]:
        self._require_alone(kind)
        self._take(kind, name)
        try:
            yield
        except Exception:
            self._taken.discard(kind.key(name))
            raise

    def _take(self, kind: CheckpointKind, name: str) -> None:
        self._require_unsuspended()
        self._run.require_unsettled()
        if self._run.open is not None:
            raise UsageError(
                f"{_CALLS[kind]}: not inside ctx.transaction(), for its record is a transaction of its own; "
                "ctx.once() has one that joins"
            )
        if kind.key(name) in self._taken:
            raise InvalidArgument(
                "name", name, f"a name of its own for each {_NOUNS[kind]}: this run has had one of that name"
            )
        self._taken.add(kind.key(name))

    def _suspend(self, suspended: Suspended) -> NoReturn:
        self._require_alone(CheckpointKind.SLEEP if suspended.awaits is None else CheckpointKind.EVENT)
        self.suspended = suspended
        raise suspended

    def _require_unsuspended(self) -> None:
        if self.suspended is not None:
            raise self.suspended

    def _require_alone(self, kind: CheckpointKind) -> None:
        if self._under_way:
            raise UsageError(
                f"{_CALLS[kind]}: not while step {self._under_way[0]} is under way, for it ends the run"
            )

    async def _found(self, key: str) -> Checkpoint | None:
        async with self._reading:
            if self._records is None:
                recorded = await self._effects.steps(self._run.claim.job_id, at=self._clock.stamp())
                self._read_at = recorded.now, self._clock.monotonic()
                self._records = {each.name: each for each in recorded.checkpoints}
        return self._records.get(key)

    def _now(self) -> datetime:
        """The store's, never ahead of it."""
        assert self._read_at is not None  # noqa: S101 - set with the records, which were read
        now, ours = self._read_at
        return now + timedelta(seconds=self._clock.monotonic() - ours)

    async def _record(self, key: str, value: bytes | None) -> Checkpoint:
        """Durable on return. What was done should not be done again because the store was away for a
        moment, so it is asked for a while."""
        claim, in_doubt = self._run.claim, False
        give_up = self._clock.monotonic() + RECORD_WITHIN.total_seconds()
        while True:
            try:
                if await whole(self._effects.record_step(claim, key, value=value, at=self._clock.stamp())):
                    return Checkpoint(name=key, value=value, done_at=self._now())
                if in_doubt and (found := await self._again(key)) is not None:
                    return found
                raise ClaimLost(claim.job_id, claim.fence, f"{key} could not be recorded")
            except (StoreUnavailable, AnswerLost) as error:
                in_doubt = in_doubt or isinstance(error, AnswerLost)
                if self._clock.monotonic() >= give_up:
                    raise
                await pause(LOOK_EVERY)

    async def _again(self, key: str) -> Checkpoint | None:
        """What is on record by now: a write whose answer was lost may have come through."""
        recorded = await self._effects.steps(self._run.claim.job_id, at=self._clock.stamp())
        return next((each for each in recorded.checkpoints if each.name == key), None)


def _callee(
    context: object, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[[], object], bool]:
    """The call, and whether it is to be awaited."""
    if isinstance(function, Task):
        function.check(args, kwargs)
        handed = context if isinstance(context, Context) else None
        call = partial(function.signature.call, function.function, handed, list(args), dict(kwargs))
        return call, function.signature.is_async
    return partial(function, *args, **kwargs), is_async(function)


async def _awaited(returned: Any) -> object:
    value: object = await returned
    return value


def _value(checkpoint: Checkpoint) -> object:
    return None if checkpoint.value is None else decode_value(checkpoint.value)


_CALLS = {
    CheckpointKind.STEP: "ctx.step()",
    CheckpointKind.SLEEP: "ctx.sleep()",
    CheckpointKind.EVENT: "ctx.wait_event()",
}
_NOUNS = {CheckpointKind.STEP: "step", CheckpointKind.SLEEP: "sleep", CheckpointKind.EVENT: "event"}
