"""What a job has to do with workflows: it may be a step of one, and a workflow itself."""

from __future__ import annotations

from mainspring.model.value import Value
from mainspring.model.workflow import StepRecord, WorkflowRecord
from mainspring.store.store import Store


class StepOf(Value, frozen=True, kw_only=True):
    """The step, or the item of a map, that a job is."""

    workflow: WorkflowRecord
    name: str
    """Of the step."""
    step: StepRecord

    def __str__(self) -> str:
        item = "" if self.step.item is None else f"[{self.step.item}]"
        return f"step {self.name}{item} of workflow {self.workflow.id} ({self.workflow.name})"


async def step_of(store: Store, job_id: int) -> StepOf | None:
    """The step that a job is, or is to be."""
    step = await store.workflows.step(job_id)
    workflow = None if step is None else await store.workflows.get(step.workflow_id)
    if step is None or workflow is None:
        return None
    definition = await store.workflows.definition(workflow.definition_id)
    return StepOf(workflow=workflow, name=definition.nodes[step.place].name, step=step)


def retry_words(workflow_id: int | str) -> str:
    """How what died in a workflow is run again."""
    return f"mainspring workflows retry {workflow_id}"
