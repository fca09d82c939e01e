"""Listens to the engine at work: which runs ended how, and what their handlers raised."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from types import TracebackType
from typing import Any, cast

from mainspring.declare.registry import Registry
from mainspring.declare.task import Task
from mainspring.model.failure import Failure
from mainspring.model.value import Value
from mainspring.telemetry.events import Event, RunEnded, RunStarted, SettlementRefused, Telemetry

REFUSED = "refused"
"""The job was taken away, as by a cancel, while its handler ran."""


class RunFailed(Exception):
    """A run that failed without an exception of its handler: it took too long, or its result is no JSON."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.type}: {failure.message}")
        self.failure = failure


class Ran(Value, frozen=True, kw_only=True):
    """One run that has ended; `verdict` is succeeded, failed, dead, released or refused."""

    job_id: int
    task: str
    verdict: str
    attempt: int | None = None
    """Counted from 1; not known of a run that was refused."""
    failure: Failure | None = None
    error: BaseException | None = None
    """What the handler raised; set with `failure`."""


class Watch:
    """What the runs of one harness came to. One run at a time: what was raised last is its own."""

    def __init__(self, registry: Registry, telemetry: Telemetry) -> None:
        self.registry = _WatchedRegistry(registry, self)
        self.telemetry = telemetry.behind(self._hear)
        self.ran: list[Ran] = []
        self._raised: tuple[BaseException, TracebackType | None] | None = None

    def watched(self, task: Task[..., Any]) -> Task[..., Any]:
        """The same task; what its function raises is remembered on its way."""
        function = task.function

        def call(*args: object, **kwargs: object) -> object:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self._remember(error)
                raise

        async def acall(*args: object, **kwargs: object) -> object:
            try:
                return await cast("Any", function(*args, **kwargs))
            except BaseException as error:
                self._remember(error)
                raise

        other = copy.copy(task)
        other.function = cast("Callable[..., Any]", acall if task.signature.is_async else call)
        return other

    def error_of(self, failure: Failure) -> BaseException:
        """What was raised, with the traceback as it left the handler, not as it went through the engine."""
        raised, self._raised = self._raised, None
        if raised is None:
            return RunFailed(failure)
        return raised[0].with_traceback(raised[1])

    def _remember(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            return  # by the engine, which tells why
        own = error.__traceback__.tb_next if error.__traceback__ else None
        self._raised = (error, own or error.__traceback__)

    def _hear(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._raised = None
            case SettlementRefused():
                self.ran.append(Ran(job_id=event.job_id, task=event.task, verdict=REFUSED))
            case RunEnded():
                self.ran.append(
                    Ran(
                        job_id=event.job_id,
                        task=event.task,
                        attempt=event.attempt,
                        verdict=event.verdict.value,
                        failure=event.failure,
                        error=None if event.failure is None else self.error_of(event.failure),
                    )
                )
            case _:
                pass


class _WatchedRegistry(Registry):
    """A registry whose tasks are watched."""

    def __init__(self, real: Registry, watch: Watch) -> None:
        super().__init__()
        self._real, self._watch = real, watch
        self.tasks, self.schedules = real.tasks, real.schedules

    def get(self, name: str) -> Task[..., object]:
        return self._watch.watched(self._real.get(name))
