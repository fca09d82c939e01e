"""The task of a workflow: a job of it starts the workflow, and is the workflow from then on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from mainspring.declare.context import Context
from mainspring.declare.endings import Begin
from mainspring.declare.handle import JobHandle
from mainspring.declare.limits import Limit, QueueRules
from mainspring.declare.parameters import is_mark
from mainspring.declare.retry import Retry
from mainspring.declare.sender import Sender
from mainspring.declare.signature import Signature
from mainspring.declare.task import AsyncContextTask
from mainspring.declare.unique import Unique
from mainspring.errors import InvalidArgument
from mainspring.model.job import NewJob
from mainspring.model.schedule import Period
from mainspring.model.workflow import Definition, NewWorkflow

PREFIX = "workflow:"
STARTS = Retry(attempts=5, base="1s", cap="30s")
"""A start that failed did nothing, and one that is tried again after all starts nothing twice."""


class Plan(Protocol):
    """The workflow behind the task."""

    @property
    def name(self) -> str: ...
    @property
    def signature(self) -> Signature:
        """Its parameters, each by keyword."""

    @property
    def definition(self) -> Definition:
        """Its graph."""

    def close(self) -> None:
        """Take no further steps; refuse to be started if that is not possible."""

    def marked(self, given: Mapping[str, object], tz: str) -> dict[str, object]:
        """What a schedule in this zone stores."""

    def begun(self, given: Mapping[str, object], period: Period | None) -> NewWorkflow:
        """What a run with these parameters starts."""


class WorkflowTask(AsyncContextTask[..., Any]):
    """Enqueued, scheduled, delayed and limited like any other task."""

    runs_user_code = False

    def __init__(
        self,
        plan: Plan,
        *,
        sender: Sender,
        queue: str,
        priority: int,
        deadline: timedelta | None,
        limits: Sequence[Limit],
        unique: Unique | None,
        queues: Mapping[str, QueueRules],
    ) -> None:
        super().__init__(
            _handler(plan),
            sender=sender,
            name=f"{PREFIX}{plan.name}",
            retry=STARTS,
            queue=queue,
            priority=priority,
            queues=queues,
            expires=deadline,
        )
        self._plan = plan
        # They may name parameters, which are yet to be declared: `close` checks them.
        self.limits, self.unique = tuple(limits), unique

    @property
    def definition(self) -> Definition:
        """The graph that a start of it follows."""
        return self._plan.definition

    def ready(self) -> None:
        """Be sure that the workflow is complete: from now on it does not change."""
        self._plan.close()
        self.signature = self._plan.signature

    def check(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        self.ready()
        super().check(args, kwargs)

    def marked(self, given: Mapping[str, object], tz: str) -> dict[str, object]:
        """What a schedule in this zone stores: its values, and a word for those that each slot fills."""
        self.ready()
        return self._plan.marked(given, tz)

    def start(self, /, **params: object) -> JobHandle[Any]:
        """Start it with these parameters; when it returns, the job is stored. Blocks."""
        return self.enqueue(**params)

    async def astart(self, /, **params: object) -> JobHandle[Any]:
        """The same on an event loop."""
        return await self.aenqueue(**params)

    def _job(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NewJob:
        for name, value in kwargs.items():
            if is_mark(value):
                raise InvalidArgument(
                    f"{self.name}.{name}", value, 'no dict with a key "$slot": schedules write those'
                )
        return super()._job(args, kwargs)


def _handler(plan: Plan) -> Callable[..., Coroutine[Any, Any, Any]]:
    # The context by position alone, so that a parameter may have any name.
    async def begin(_context: Context, /, **params: object) -> None:
        period = _context.period
        if period is None and _context.slot is not None:
            period = Period(end=_context.slot)
        raise Begin(plan.begun(params, period))

    return begin
