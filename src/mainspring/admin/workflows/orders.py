"""Workflows: start, find, cancel, pause, resume, retry and fork them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from mainspring.admin.jobs import EnqueueRequest, put
from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.admin.workflows.graph import drawn, named
from mainspring.admin.workflows.queries import ITEMS, PAGE, found, step_of, view_of
from mainspring.admin.workflows.views import StepView, WorkflowRow, WorkflowView
from mainspring.errors import UsageError
from mainspring.model.job import RequestKey
from mainspring.model.value import Value
from mainspring.model.workflow import Definition, Stopping, WorkflowRecord, WorkflowState
from mainspring.store.store import Store
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.workflow_task import PREFIX
from mainspring.waiting import pause as wait

PASSES, BATCH = 200, 1000
BUSY = timedelta(milliseconds=10)
"""The wait while another process handles the same workflow."""


class WorkflowEffect(StrEnum):
    """The effect of an order on a workflow."""

    CANCELLED = "cancelled"
    PAUSED = "paused"
    RESUMED = "resumed"
    RETRIED = "retried"
    FORKED = "forked"
    NONE = "none"


class WorkflowDone(Value, frozen=True, kw_only=True):
    """The result of an order for one workflow."""

    workflow_id: int
    name: str
    effect: WorkflowEffect
    state: WorkflowState
    """The state after the order."""
    why: str = ""
    """The reason if nothing was done."""
    already: bool = False
    """True if the workflow was already in the requested state."""
    steps: tuple[str, ...] = ()
    """The steps that run again."""
    new_id: int | None = None
    """The id of the new workflow."""


def _of_answer(done: WorkflowDone) -> object:
    return _result(done.effect, steps=done.steps, new_id=done.new_id, why=done.why)


class Workflows(Noun):
    """Workflows of one store. Each order takes effect at once, whether a worker is up or not."""

    async def afind(
        self,
        *,
        name: str | None = None,
        state: WorkflowState | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> list[WorkflowRow]:
        """One page, newest first."""
        store = await self._store()
        rows = await store.workflows.find(name=name, state=state, before=before, limit=limit)
        return [WorkflowRow.of(each) for each in rows]

    async def adefinition(self, workflow_id: int) -> Definition:
        """The graph that a workflow follows."""
        store = await self._store()
        return await store.workflows.definition((await found(store, workflow_id)).definition_id)

    async def anewest(self, name: str) -> Definition | None:
        """The graph that the newest workflow of this name follows."""
        store = await self._store()
        rows = await store.workflows.find(name=name, state=None, before=None, limit=1)
        return await store.workflows.definition(rows[0].definition_id) if rows else None

    async def aget(self, workflow_id: int, *, items: int = ITEMS) -> WorkflowView:
        """One workflow with every step, and up to so many items of each map in its timeline."""
        return await view_of(await self._store(), workflow_id, items=items, at=self._stamp)

    async def astep(
        self, workflow_id: int, name: str, *, item: int | None = None, first: int = 0, most: int = PAGE
    ) -> StepView:
        """One step, or one item of it, with its runs, inputs and output; of a map, a page of items."""
        store = await self._store()
        return await step_of(store, workflow_id, name, item=item, first=first, most=most, at=self._stamp)

    @order(
        "workflows.start",
        about=lambda start, **_: start.task.removeprefix(PREFIX),
        result=lambda answer: {"job": answer[0].id},
        several=True,
    )
    async def astart(
        self, start: EnqueueRequest, *, request: RequestKey | None = None
    ) -> tuple[JobHandle[Any], bool]:
        """Start a workflow. It has the id of the answered job, and begins when a worker claims that job."""
        [handle], again = await put(await self._store(), self._context, [start], request)
        return handle, again

    @order("workflows.cancel", result=_of_answer)
    async def acancel(self, workflow_id: int, *, now: bool = False, note: str | None = None) -> WorkflowDone:
        """Cancel the steps of a workflow, also running ones. `always` steps and undo steps still run, except
        with `now`."""
        store = await self._store()
        workflow = await found(store, workflow_id)
        stopping = Stopping.KILLED if now else Stopping.CANCELLED
        if workflow.stopping is Stopping.CANCELLED and workflow.state is WorkflowState.RUNNING and not now:
            return _none(workflow, "is being cancelled already", already=True)
        stopped = store.workflows.stop(workflow_id, stopping, author=self._author, note=note, at=self._stamp)
        if await carried_out(stopped, said=_said(WorkflowEffect.CANCELLED)):
            return await self._done(workflow_id, WorkflowEffect.CANCELLED)
        workflow = await found(store, workflow_id)
        return _none(workflow, _ended(workflow) or "is being ended already", already=not _ended(workflow))

    @order("workflows.pause", result=_of_answer)
    async def apause(self, workflow_id: int, *, note: str | None = None) -> WorkflowDone:
        """Release no further step of a workflow."""
        store = await self._store()
        await found(store, workflow_id)
        paused = store.workflows.pause(workflow_id, author=self._author, note=note, at=self._stamp)
        if await carried_out(paused, said=_said(WorkflowEffect.PAUSED)):
            return await self._done(workflow_id, WorkflowEffect.PAUSED)
        workflow = await found(store, workflow_id)
        if workflow.paused_at is not None:
            return _none(workflow, "is paused already", already=True)
        return _none(workflow, _ended(workflow) or "is being stopped")

    @order("workflows.resume", result=_of_answer)
    async def aresume(self, workflow_id: int, *, note: str | None = None) -> WorkflowDone:
        """End the pause of a workflow."""
        store = await self._store()
        await found(store, workflow_id)
        resumed = store.workflows.resume(workflow_id, author=self._author, note=note, at=self._stamp)
        if await carried_out(resumed, said=_said(WorkflowEffect.RESUMED)):
            return await self._done(workflow_id, WorkflowEffect.RESUMED)
        workflow = await found(store, workflow_id)
        ended = _ended(workflow)
        return _none(workflow, ended or "is not paused", already=not ended)

    @order("workflows.retry", result=_of_answer)
    async def aretry(
        self, workflow_id: int, steps: Sequence[str] = (), *, note: str | None = None
    ) -> WorkflowDone:
        """Run failed steps again, these or all, and the steps after them."""
        store = await self._store()
        workflow = await found(store, workflow_id)
        chosen = await _known(store, workflow, steps)
        try:
            done = await carried_out(
                store.workflows.retry(
                    workflow_id, steps=chosen, author=self._author, note=note, at=self._stamp
                ),
                said=lambda names: _result(WorkflowEffect.RETRIED, steps=names),
            )
        except UsageError as refused:
            return _none(workflow, f"cannot be retried: {refused}")
        if not done:
            which = f"step {', '.join(steps)}" if steps else "step"
            return _none(workflow, f"has no failed {which}")
        return await self._done(workflow_id, WorkflowEffect.RETRIED, steps=tuple(done))

    @order("workflows.fork", result=_of_answer)
    async def afork(self, workflow_id: int, step: str, *, note: str | None = None) -> WorkflowDone:
        """Start a new workflow that has the results of the steps before this one, and runs the rest."""
        store = await self._store()
        workflow = await found(store, workflow_id)
        await _known(store, workflow, [step])
        new_id = await carried_out(
            store.workflows.fork(workflow_id, step, author=self._author, note=note, at=self._stamp),
            said=lambda new_id: _result(WorkflowEffect.FORKED, new_id=new_id),
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
        store = await self._store()
        await self._go_on(store)
        workflow = await found(store, workflow_id)
        return WorkflowDone(
            workflow_id=workflow_id,
            name=workflow.name,
            effect=effect,
            state=workflow.state,
            steps=steps,
            new_id=new_id,
        )

    async def _go_on(self, store: Store) -> None:
        """Process the ended steps of the order in a bounded number of passes. Workers process the others."""
        for _ in range(PASSES):
            done = await store.workflows.resolve(limit=BATCH, at=self._stamp)
            if done.busy:
                await wait(BUSY)
            elif not done.taken:
                return

    get = blocking(aget)
    find = blocking(afind)
    definition = blocking(adefinition)
    newest = blocking(anewest)
    step = blocking(astep)
    start = blocking(astart)
    cancel = blocking(acancel)
    pause = blocking(apause)
    resume = blocking(aresume)
    retry = blocking(aretry)
    fork = blocking(afork)


def _result(
    effect: WorkflowEffect, *, steps: Sequence[str] = (), new_id: int | None = None, why: str = ""
) -> object:
    """The result of an order, for the audit log."""
    return {"effect": effect.value, "steps": list(steps), "new_id": new_id, "why": why}


def _none(workflow: WorkflowRecord, why: str, *, already: bool = False) -> WorkflowDone:
    return WorkflowDone(
        workflow_id=workflow.id,
        name=workflow.name,
        effect=WorkflowEffect.NONE,
        state=workflow.state,
        why=why,
        already=already,
    )


def _said(effect: WorkflowEffect) -> Callable[[bool], object]:
    return lambda _: _result(effect)


def _ended(workflow: WorkflowRecord) -> str:
    match workflow.state:
        case WorkflowState.RUNNING:
            return ""
        case WorkflowState.SUCCEEDED:
            return "has succeeded"
        case WorkflowState.FAILED:
            return "has failed"
        case WorkflowState.CANCELLED:
            return "was cancelled"


async def _known(store: Store, workflow: WorkflowRecord, steps: Sequence[str]) -> list[str] | None:
    if not steps:
        return None
    there = drawn(await store.workflows.definition(workflow.definition_id))
    return [named(there, name, workflow.id).name for name in steps]
