"""The children of one worker: started when they are needed, kept warm, and replaced once they are not
as good as new."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

import msgspec

from mainspring.model.job import Claim
from mainspring.model.run import (
    Crashed,
    Discarded,
    Failed,
    Outcome,
    Settled,
    Snoozed,
    Stopped,
    Succeeded,
)
from mainspring.model.schedule import Period
from mainspring.signals import Signal
from mainspring.tasks.payload import LARGEST_RESULT
from mainspring.tasks.task import Isolation, Task
from mainspring.worker.children.child import Answers, Child, ChildLost, Launch, function_name
from mainspring.worker.children.child_channel import HandlerEnded, StartRun, Tell
from mainspring.worker.effects import Settling
from mainspring.worker.outcomes import timeout_failure
from mainspring.worker.run_reports import RunReports

RELEASE_WITHIN = timedelta(seconds=2)
"""The longest grace when we end a run ourselves: a worker that stops does not wait for one task."""
_ALONE = Isolation()


class ChildSlots:
    """So many runs at a time, in the order they came. The next slot that becomes free can be kept for a job
    whose process died (an orphaned job): such a job is claimed only when a slot is free, and jobs that were
    claimed and wait might take every slot for ever."""

    def __init__(self, size: int) -> None:
        self.free = size
        self._keeping = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.kept_one_free = Signal()
        """The slot is free that is kept."""

    def keep(self) -> None:
        """Keep the next slot that becomes free for a job whose process died."""
        self._keeping = True

    def let_go(self) -> None:
        """There is no such job: a waiting run may have the free slot."""
        self._keeping = False
        self._hand_on()

    async def take(self, *, orphan: bool) -> None:
        """Wait for a slot."""
        if self.free and (orphan or not self._keeping):
            self.free -= 1
            if orphan:
                self.let_go()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if orphan:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # it had come already
            else:
                with suppress(ValueError):  # who gave back a slot has passed over it already
                    self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Give a slot back."""
        self.free += 1
        if self._keeping:
            self.kept_one_free.send()
        else:
            self._hand_on()

    def _hand_on(self) -> None:
        while self.free and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self.free -= 1
                turn.set_result(None)


class ChildRun(Settling, Protocol):
    """What a child needs of the run that it does."""

    @property
    def task(self) -> Task[..., Any]: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def handle(self) -> asyncio.Task[Any] | None:
        """The asyncio task that waits for the child."""

    @property
    def late(self) -> bool:
        """Whether its timeout has passed: then the task has been cancelled for that."""

    def handler_begins(self) -> None:
        """The timeout starts to run."""

    def handler_ended(self) -> None:
        """The timeout does not count any more."""


class Pool:
    """At most `size` children at a time, each with one job."""

    def __init__(
        self, size: int, launch: Launch, reports: RunReports, answers: Answers | None = None
    ) -> None:
        self._launch = launch
        self._reports = reports
        self._runs: dict[tuple[int, int], ChildRun] = {}
        self._answers: Answers = answers or {}
        self.slots = ChildSlots(size)
        self._idle: list[Child] = []
        self._children: set[Child] = set()
        self._ending: set[asyncio.Task[Any]] = set()

    def reaches(self, task: Task[..., Any]) -> bool:
        """Whether a child would find the task's function."""
        return self._launch.reaches(task)

    async def run(
        self,
        run: ChildRun,
        *,
        begin: Callable[[], Awaitable[bool]],
        result_bytes: int = LARGEST_RESULT,
        period: Period | None = None,
    ) -> Outcome:
        """Run the job in a child and answer how it ended. A cancellation ends the child and goes on its way,
        unless it was for the timeout, or the handler ended well meanwhile. `begin` puts on record that a job
        whose process died begins: by then its child is there, and is told to call the handler next."""
        claim = run.claim
        try:
            await self.slots.take(orphan=claim.orphan)
        except asyncio.CancelledError:
            return Stopped(started=False)
        try:
            try:
                child = await self._child()
            except asyncio.CancelledError:
                return Stopped(started=False)
            except ChildLost as lost:
                return Failed(failure=lost.failure)
            if claim.orphan and not await begin():
                self._idle.append(child)
                return Stopped(started=False)
            self._runs[claim.job_id, claim.fence] = run
            return await self._run(child, run, result_bytes, period)
        finally:
            self._runs.pop((claim.job_id, claim.fence), None)
            self.slots.leave()

    async def close(self) -> None:
        """End every child."""
        for child in self._children:
            child.doom()
        await asyncio.gather(*(child.kill() for child in self._children), return_exceptions=True)
        await asyncio.gather(*self._ending, return_exceptions=True)
        self._idle.clear()
        self._children.clear()

    async def _child(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if not child.gone.is_set():
                return child
            self._children.discard(child)
        child = await Child.start(self._launch, self._answers, self._told)
        self._children.add(child)
        return child

    async def _run(self, child: Child, run: ChildRun, result_bytes: int, period: Period | None) -> Outcome:
        task = run.task
        isolation = task.isolation or _ALONE
        order = StartRun(
            claim=run.claim,
            function=None if self._launch.hello.target is not None else function_name(task),
            memory=isolation.memory,
            processes=isolation.processes,
            result_bytes=result_bytes,
            period=period,
        )
        run.handler_begins()
        try:
            ended = await child.run(order)
        except asyncio.CancelledError:
            if run.late and run.handle is not None:
                run.handle.uncancel()  # the cancellation was for the timeout, and ends here
                await self._end(child, isolation.grace)
                return Failed(
                    failure=timeout_failure(0.0 if task.timeout is None else task.timeout.total_seconds())
                )
            late = await self._end(child, min(isolation.grace, RELEASE_WITHIN))
            if late is not None and late.failure is None and late.snoozed is None:
                return _outcome(late)
            raise
        except ChildLost as lost:
            self._children.discard(child)
            return Crashed(failure=lost.failure)
        run.handler_ended()
        if ended.clean and child.runs < isolation.runs:
            self._idle.append(child)
        else:
            await self._end(child, timedelta())
        return _outcome(ended)

    def _told(self, claim: Claim, tell: Tell) -> None:
        report, run = self._reports.known(claim), self._runs.get((claim.job_id, claim.fence))
        if report is None or run is None:
            return
        match tell.name:
            case "settling":
                run.settling = bool(tell.body)
            case "log":
                report.add(tell.body.decode())
            case "progress":
                fraction, note = msgspec.json.decode(tell.body, type=tuple[float, str])
                report.progress(fraction, note)
            case _:
                pass  # of a child that knows more than we do

    async def _end(self, child: Child, grace: timedelta) -> HandlerEnded | None:
        """To its very end, even if we are cancelled on the way; then the child has no grace left."""
        ending = asyncio.ensure_future(child.end(grace))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            child.doom()
            await asyncio.wait({ending})
            raise
        finally:
            self._children.discard(child)


def _outcome(ended: HandlerEnded) -> Outcome:
    if ended.snoozed is not None:
        return Snoozed(delay=ended.snoozed, awaits=ended.awaits)
    if ended.settled:
        return Settled(result=ended.result)
    if ended.failure is None:
        return Succeeded(result=ended.result)
    if ended.discarded:
        return Discarded(failure=ended.failure)
    return Failed(
        failure=ended.failure, permanent=ended.permanent, retry_after=ended.retry_after, rule=ended.rule
    )
