"""Workflows: going on with them, and what operators do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.model.workflow import (
    Definition,
    Resolved,
    Step,
    StepState,
    Stopping,
    Workflow,
    WorkflowAct,
    WorkflowState,
)
from mainspring.store.ports.stamp import Stamp


class WorkflowStore(Protocol):
    """A workflow is started by the settlement of its own job (STARTED), which stays in the queue until
    the workflow has ended. However a job of a step ends, the ending is noted in the same transaction."""

    async def resolve(self, *, limit: int, at: Stamp) -> Resolved:
        """Deal with up to `limit` endings of steps: count them, release what waited for them, skip what
        will not run, end workflows that have nothing left, and settle their own jobs. One transaction, in
        which nobody else has these workflows in hand; endings are gone with it, or still there."""

    async def pause_workflow(self, workflow_id: int, *, author: str, note: str | None, at: Stamp) -> bool:
        """Release no further step; those whose jobs are in the queue run. False when it has ended, is
        being stopped, or is paused already."""

    async def resume_workflow(self, workflow_id: int, *, author: str, note: str | None, at: Stamp) -> bool:
        """Go on; False when it is not paused."""

    async def stop_workflow(
        self, workflow_id: int, stopping: Stopping, *, author: str, note: str | None, at: Stamp
    ) -> bool:
        """End it as cancelled: jobs of its steps are taken away, running ones from their workers; what runs
        always and what undoes still runs, unless it is killed. False when it has ended."""

    async def retry_workflow(
        self, workflow_id: int, *, steps: Sequence[str] | None, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """Run failed steps again, these or all, and what came after them; answer their names: none, and
        nothing changed, when no such step failed. Raises UsageError when it has been undone."""

    async def fork_workflow(
        self, workflow_id: int, step: str, *, author: str, note: str | None, at: Stamp
    ) -> int:
        """Start a new workflow of the same definition and parameters that has the results of the steps
        before this one, and runs the rest again; answer its id. Raises NotFound."""

    async def workflow(self, workflow_id: int) -> Workflow | None:
        """One as it stands."""

    async def workflows(
        self, *, name: str | None, state: WorkflowState | None, before: int | None, limit: int
    ) -> list[Workflow]:
        """Newest first, those before this id."""

    async def definition(self, definition_id: int) -> Definition:
        """The graph that a workflow follows."""

    async def steps_of(
        self, workflow_id: int, *, place: int | None = None, first: int = 0, most: int
    ) -> list[Step]:
        """Its steps in the order of the definition, of one node or of all, each map followed by its items:
        `most` of them from the `first` on."""

    async def step_counts(self, workflow_id: int) -> dict[int, dict[StepState, int]]:
        """How the items of each map stand, by place."""

    async def lost_items(self, workflow_id: int, *, most: int) -> list[Step]:
        """Items of its maps that failed or were cancelled, the first so many of each, in order."""

    async def acts(self, workflow_id: int) -> list[WorkflowAct]:
        """What was done to it, oldest first."""

    async def workflow_step(self, step_id: int) -> Step | None:
        """One step or item: that of the job with this id, whether it has been made or not."""
