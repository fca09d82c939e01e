"""How the steps of a workflow stand: told from what was read, without reading anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from mainspring.admin.views import member_id
from mainspring.admin.words import error
from mainspring.admin.workflows.graph import DrawnNode
from mainspring.admin.workflows.views import ENDING, RUNNING, Attempt, Bar, ItemsView, LostItem, NodeView
from mainspring.model.job import Failure, JobState, Standing
from mainspring.model.run import Run, Verdict
from mainspring.model.value import Value
from mainspring.model.workflow import LIVE_STEPS, Definition, NodeKind, StepRecord, StepState, WorkflowRecord
from mainspring.tasks.workflow_task import PREFIX

_NO_ATTEMPT = (Verdict.EDITED, Verdict.STARTED)


class StepFacts(Value, frozen=True, kw_only=True):
    """What is on record about the jobs of a workflow's steps, and about who ran them."""

    workflow: WorkflowRecord
    definition: Definition
    standings: Mapping[int, Standing]
    runs: Mapping[int, Sequence[Run]]
    workers: Mapping[int, str]
    """Names of processes that are still known."""
    counts: Mapping[int, Mapping[StepState, int]]
    items: Mapping[int, Sequence[StepRecord]]
    """Of maps, by place: those that were read."""
    lost: Mapping[int, Sequence[StepRecord]]
    """And of those that were lost, the first."""

    def state(self, step: StepRecord) -> str:
        """The step's, or where its job stands."""
        if step.state is not StepState.LIVE:
            return step.state
        if self._is_map(step):
            return RUNNING
        standing = self.standings.get(step.id)
        return ENDING if standing is None else standing.state

    def attempts(self, step: StepRecord) -> tuple[Attempt, ...]:
        """Its runs, and the one under way."""
        made = [each for each in self.runs.get(step.id, ()) if each.started_at is not None]
        told = [
            Attempt(
                number=number,
                verdict=run.verdict,
                started_at=run.started_at,
                finished_at=run.finished_at,
                worker=self.worker(run.worker_id),
                error=None if run.failure is None else error(run.failure),
            )
            for number, run in enumerate((each for each in made if each.verdict not in _NO_ATTEMPT), 1)
            if run.started_at is not None
        ]
        standing = self.standings.get(step.id)
        if standing is None or standing.state is not JobState.RUNNING:
            return tuple(told)
        begun = [each.finished_at for each in made if each.verdict is Verdict.STARTED]
        since = standing.claimed_at or (begun[-1] if begun else standing.enqueued_at)
        worker = self.worker(standing.worker_id)
        return *told, Attempt(
            number=len(told) + 1, verdict=RUNNING, started_at=since, finished_at=None, worker=worker
        )

    def worker(self, worker_id: int | None) -> str | None:
        """By its name, where that is known."""
        return None if worker_id is None else self.workers.get(worker_id) or member_id(worker_id)

    def failure(self, step: StepRecord) -> Failure | None:
        """Why it failed, or why its job is tried again."""
        if step.error is not None or step.state not in (StepState.LIVE, StepState.FAILED, StepState.SKIPPED):
            return step.error
        runs = [each for each in self.runs.get(step.id, ()) if each.verdict is not Verdict.EDITED]
        return runs[-1].failure if runs else None

    def error(self, step: StepRecord) -> str | None:
        """The same, on one line."""
        found = self.failure(step)
        return None if found is None else error(found)

    def released_at(self, step: StepRecord) -> datetime | None:
        """When its job was put into the queue; of a map, when the first of its items was."""
        if self._is_map(step):
            return min(filter(None, map(self.released_at, self.items.get(step.place, ()))), default=None)
        standing = self.standings.get(step.id)
        if standing is not None:
            return standing.enqueued_at
        runs = self.runs.get(step.id, ())
        return runs[-1].enqueued_at if runs else None

    def node(self, drawn: DrawnNode, step: StepRecord) -> NodeView:
        """One step as it stands."""
        attempts = self.attempts(step)
        lost = self.lost.get(step.place, ())
        node = self.definition.nodes[step.place]
        return NodeView(
            name=drawn.name,
            kind=drawn.kind,
            task=drawn.task,
            when=drawn.when,
            condition=drawn.condition,
            parents=drawn.parents,
            layer=drawn.layer,
            undoes=drawn.undoes,
            state=self.state(step),
            cause=step.cause,
            waits=step.waits if step.state is StepState.WAITING else 0,
            job_id=step.id,
            inner=drawn.task.startswith(PREFIX),
            kept=self._is_kept(step),
            attempts=len(attempts),
            max_attempts=node.max_attempts,
            worker=attempts[-1].worker if attempts else None,
            released_at=self.released_at(step),
            started_at=self._started_at(step),
            finished_at=self._finished_at(step, attempts),
            error=self.error(step) or (self.error(lost[0]) if lost else None),
            items=self._items(step) if drawn.kind is NodeKind.MAP else None,
        )

    def bar(self, step: StepRecord) -> Bar:
        """One line of the timeline."""
        attempts = self.attempts(step)
        return Bar(
            name=self.definition.nodes[step.place].name,
            item=step.item,
            job_id=step.id,
            state=self.state(step),
            released_at=self.released_at(step),
            started_at=self._started_at(step),
            finished_at=self._finished_at(step, attempts),
            attempts=attempts,
        )

    def _is_map(self, step: StepRecord) -> bool:
        return step.item is None and self.definition.nodes[step.place].kind is NodeKind.MAP

    def _started_at(self, step: StepRecord) -> datetime | None:
        shown = self.items.get(step.place, ()) if self._is_map(step) else [step]
        return min((each.started_at for one in shown for each in self.attempts(one)), default=None)

    def _finished_at(self, step: StepRecord, attempts: Sequence[Attempt]) -> datetime | None:
        """When its last run ended, if that ended it; the workflow heard of it a moment later."""
        ended = step.state not in LIVE_STEPS
        return attempts[-1].finished_at if ended and attempts else step.ended_at

    def _items(self, step: StepRecord) -> ItemsView:
        counts = self.counts.get(step.place, {})
        return ItemsView(
            total=sum(counts.values()),
            counts={state.value: count for state, count in counts.items()},
            lost=tuple(
                LostItem(item=each.item or 0, job_id=each.id, state=each.state, error=self.error(each))
                for each in self.lost.get(step.place, ())
            ),
        )

    def _is_kept(self, step: StepRecord) -> bool:
        forked = self.workflow.forked_from is not None
        return forked and step.ended_at is not None and step.ended_at < self.workflow.started_at


def counted(nodes: Sequence[NodeView]) -> dict[str, int]:
    """Steps by state, in the order in which states follow one another."""
    found = Counter(each.state for each in nodes)
    order = [*LIVE_STEPS, *JobState, ENDING, *StepState]
    return {str(state): found[state] for state in dict.fromkeys(map(str, order)) if found[state]}
