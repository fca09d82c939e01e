"""What operators order of workflows. Each order takes effect at once, whether a worker is up or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum

from mainspring.clock import Clock
from mainspring.errors import NotFound, UsageError
from mainspring.model.value import Value
from mainspring.model.workflow import Stopping, Workflow, WorkflowState
from mainspring.ops.workflows.graph import drawn, named
from mainspring.store.ports import Store
from mainspring.waiting import pause

PASSES, BATCH = 200, 1000
BUSY = timedelta(milliseconds=10)
"""Another process has the same workflow in hand."""


class WorkflowEffect(StrEnum):
    """What an order did to a workflow."""

    CANCELLED = "cancelled"
    PAUSED = "paused"
    RESUMED = "resumed"
    RETRIED = "retried"
    FORKED = "forked"
    NONE = "none"


class WorkflowDone(Value, frozen=True, kw_only=True):
    """A workflow's answer to an order."""

    workflow_id: int
    name: str
    effect: WorkflowEffect
    state: WorkflowState
    """As it stands then."""
    why: str = ""
    """What stood against it."""
    already: bool = False
    """It was so before: nothing had to be done."""
    steps: tuple[str, ...] = ()
    """Those that are run again."""
    new_id: int | None = None
    """The workflow that was forked."""


class WorkflowCommands:
    """Orders of one person to one store."""

    def __init__(self, store: Store, clock: Clock, *, author: str, note: str | None = None) -> None:
        self._store, self._clock = store, clock
        self._author, self._note = author, note

    async def cancel(self, workflow_id: int, *, now: bool = False) -> WorkflowDone:
        """Take its steps away, running ones from their workers. What runs always and what undoes still
        runs, unless it must end `now`."""
        workflow = await self._found(workflow_id)
        stopping = Stopping.KILLED if now else Stopping.CANCELLED
        if workflow.stopping is Stopping.CANCELLED and workflow.state is WorkflowState.RUNNING and not now:
            return _none(workflow, "is being cancelled already", already=True)
        done = await self._store.workflows.stop(
            workflow_id, stopping, author=self._author, note=self._note, at=self._clock.stamp()
        )
        if not done:
            workflow = await self._found(workflow_id)
            return _none(workflow, _ended(workflow) or "is being ended already", already=not _ended(workflow))
        return await self._done(workflow_id, WorkflowEffect.CANCELLED)

    async def pause(self, workflow_id: int) -> WorkflowDone:
        """Release no further step."""
        await self._found(workflow_id)
        if await self._store.workflows.pause(
            workflow_id, author=self._author, note=self._note, at=self._clock.stamp()
        ):
            return await self._done(workflow_id, WorkflowEffect.PAUSED)
        workflow = await self._found(workflow_id)
        if workflow.paused_at is not None:
            return _none(workflow, "is paused already", already=True)
        return _none(workflow, _ended(workflow) or "is being stopped")

    async def resume(self, workflow_id: int) -> WorkflowDone:
        """Go on."""
        await self._found(workflow_id)
        if await self._store.workflows.resume(
            workflow_id, author=self._author, note=self._note, at=self._clock.stamp()
        ):
            return await self._done(workflow_id, WorkflowEffect.RESUMED)
        workflow = await self._found(workflow_id)
        ended = _ended(workflow)
        return _none(workflow, ended or "is not paused", already=not ended)

    async def retry(self, workflow_id: int, steps: Sequence[str] = ()) -> WorkflowDone:
        """Run failed steps again, these or all, and what came after them."""
        workflow = await self._found(workflow_id)
        chosen = await self._known(workflow, steps)
        try:
            done = await self._store.workflows.retry(
                workflow_id, steps=chosen, author=self._author, note=self._note, at=self._clock.stamp()
            )
        except UsageError as refused:
            return _none(workflow, f"cannot be retried: {refused}")
        if not done:
            which = f"step {', '.join(steps)}" if steps else "step"
            return _none(workflow, f"has no failed {which}")
        return await self._done(workflow_id, WorkflowEffect.RETRIED, steps=tuple(done))

    async def fork(self, workflow_id: int, step: str) -> WorkflowDone:
        """Start a new workflow that has the results of the steps before this one, and runs the rest."""
        workflow = await self._found(workflow_id)
        await self._known(workflow, [step])
        new_id = await self._store.workflows.fork(
            workflow_id, step, author=self._author, note=self._note, at=self._clock.stamp()
        )
        return await self._done(workflow_id, WorkflowEffect.FORKED, new_id=new_id)

    async def _done(
        self,
        workflow_id: int,
        effect: WorkflowEffect,
        *,
        steps: tuple[str, ...] = (),
        new_id: int | None = None,
    ) -> WorkflowDone:
        await self._go_on()
        workflow = await self._found(workflow_id)
        return WorkflowDone(
            workflow_id=workflow_id,
            name=workflow.name,
            effect=effect,
            state=workflow.state,
            steps=steps,
            new_id=new_id,
        )

    async def _go_on(self) -> None:
        """Deal with what the order left to be dealt with. A bounded number of passes: where more is to be
        done than that, workers do it."""
        for _ in range(PASSES):
            done = await self._store.workflows.resolve(limit=BATCH, at=self._clock.stamp())
            if done.busy:
                await pause(BUSY)
            elif not done.taken:
                return

    async def _found(self, workflow_id: int) -> Workflow:
        workflow = await self._store.workflows.get(workflow_id)
        if workflow is None:
            raise NotFound("workflow", workflow_id)
        return workflow

    async def _known(self, workflow: Workflow, steps: Sequence[str]) -> list[str] | None:
        if not steps:
            return None
        there = drawn(await self._store.workflows.definition(workflow.definition_id))
        return [named(there, name, workflow.id).name for name in steps]


def _none(workflow: Workflow, why: str, *, already: bool = False) -> WorkflowDone:
    return WorkflowDone(
        workflow_id=workflow.id,
        name=workflow.name,
        effect=WorkflowEffect.NONE,
        state=workflow.state,
        why=why,
        already=already,
    )


def _ended(workflow: Workflow) -> str:
    match workflow.state:
        case WorkflowState.RUNNING:
            return ""
        case WorkflowState.SUCCEEDED:
            return "has succeeded"
        case WorkflowState.FAILED:
            return "has failed"
        case WorkflowState.CANCELLED:
            return "was cancelled"
