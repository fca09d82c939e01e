"""Reads one workflow and its steps. Reads are bounded: one page of items of a map at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from mainspring.admin.views import FailureView, call_view, process_id
from mainspring.admin.words import error
from mainspring.admin.workflows.graph import DrawnNode, drawn, edges, named
from mainspring.admin.workflows.views import (
    ENDING,
    RUNNING,
    Attempt,
    Bar,
    ItemsView,
    ItemView,
    LostItem,
    NodeView,
    StepView,
    WorkflowOrderView,
    WorkflowView,
)
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.job import Failure, JobState, Standing
from mainspring.model.run import Run, Verdict
from mainspring.model.value import Value
from mainspring.model.workflow import (
    LIVE_STEPS,
    Definition,
    NodeKind,
    StepRecord,
    StepState,
    WorkflowRecord,
)
from mainspring.store.database import Stamp
from mainspring.store.store import Store
from mainspring.tasks.workflow_task import PREFIX

ITEMS, LOST, RUNS, BARS = 5, 5, 50, 200
"""The most items of each map in the timeline, lost items of each map, runs of each job, and lines of the
timeline with items."""
PAGE = 50
_NO_ATTEMPT = (Verdict.EDITED, Verdict.STARTED)


async def view_of(store: Store, workflow_id: int, *, items: int = ITEMS, at: Stamp) -> WorkflowView:
    """One workflow with every step, and up to so many items of each map in its timeline."""
    workflow = await found(store, workflow_id)
    definition = await store.workflows.definition(workflow.definition_id)
    steps = await store.workflows.steps_of(workflow_id, most=max(items, 0))
    lost = await store.workflows.lost_items(workflow_id, most=LOST)
    facts = await _facts(store, workflow, definition, steps, lost, at)
    nodes = drawn(definition)
    whole = {step.place: step for step in steps if step.item is None}
    views = tuple(facts.node(each, whole[each.place]) for each in nodes)
    return WorkflowView.of(
        workflow,
        as_of=await store.now(at=at),
        params=msgspec.json.decode(workflow.params, type=dict[str, object]),
        counts=counted(views),
        nodes=views,
        edges=edges(nodes),
        timeline=_timeline(facts, steps),
        orders=tuple(
            WorkflowOrderView(at=each.at, action=each.action, author=each.author, note=each.note)
            for each in await store.workflows.orders(workflow_id)
        ),
    )


async def step_of(
    store: Store,
    workflow_id: int,
    name: str,
    *,
    item: int | None = None,
    first: int = 0,
    most: int = PAGE,
    at: Stamp,
) -> StepView:
    """One step, or one item of it, with its runs, inputs and output; for a map, a page of items."""
    workflow = await found(store, workflow_id)
    definition = await store.workflows.definition(workflow.definition_id)
    node = named(drawn(definition), name, workflow_id)
    first, most = (first, most) if item is None else (item, 1)
    steps = await store.workflows.steps_of(workflow_id, place=node.place, first=first, most=most)
    lost = [
        each for each in await store.workflows.lost_items(workflow_id, most=LOST) if each.place == node.place
    ]
    facts = await _facts(store, workflow, definition, steps, lost, at)
    whole, items = steps[0], steps[1:]
    if item is not None and not items:
        total = sum(facts.counts.get(node.place, {}).values())
        raise InvalidArgument("item", item, f"an item of {name}: {total} are there, counted from 0")
    shown = whole if item is None else items[0]
    runs = await store.runs.of(shown.id)
    job = await store.jobs.get(shown.id, at=at)
    reported = [each.failure for each in runs if each.failure is not None]
    failures = reported or ([] if shown.error is None else [shown.error])
    bar = facts.bar(shown)
    return StepView(
        workflow_id=workflow_id,
        node=facts.node(node, whole),
        item=item,
        job_id=shown.id,
        state=bar.state,
        error=facts.error(shown),
        released_at=bar.released_at,
        finished_at=bar.finished_at,
        inputs=None if job is None else call_view(job.payload),
        output=_decoded(shown.result),
        attempts=facts.attempts(shown),
        failures=tuple(FailureView.of(each) for each in failures),
        items=tuple(_item(facts, each) for each in items) if item is None else (),
        first=first,
    )


async def found(store: Store, workflow_id: int) -> WorkflowRecord:
    """The stored workflow, or NotFound."""
    workflow = await store.workflows.get(workflow_id)
    if workflow is None:
        raise NotFound("workflow", workflow_id)
    return workflow


class StepFacts(Value, frozen=True, kw_only=True):
    """The facts about the jobs of a workflow's steps, and about their workers."""

    workflow: WorkflowRecord
    definition: Definition
    standings: Mapping[int, Standing]
    runs: Mapping[int, Sequence[Run]]
    workers: Mapping[int, str]
    """The names of the stored processes."""
    counts: Mapping[int, Mapping[StepState, int]]
    items: Mapping[int, Sequence[StepRecord]]
    """The read items of maps, by place."""
    lost: Mapping[int, Sequence[StepRecord]]
    """The first lost items of maps, by place."""

    def state(self, step: StepRecord) -> str:
        """The state of a step, or the state of its job."""
        if step.state is not StepState.LIVE:
            return step.state
        if self._is_map(step):
            return RUNNING
        standing = self.standings.get(step.id)
        return ENDING if standing is None else standing.state

    def attempts(self, step: StepRecord) -> tuple[Attempt, ...]:
        """Its runs, and the current one."""
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
        """The name of a worker, or its id."""
        return None if worker_id is None else self.workers.get(worker_id) or process_id(worker_id)

    def failure(self, step: StepRecord) -> Failure | None:
        """The error of a failed step, or of a job that is retried."""
        if step.error is not None or step.state not in (StepState.LIVE, StepState.FAILED, StepState.SKIPPED):
            return step.error
        runs = [each for each in self.runs.get(step.id, ()) if each.verdict is not Verdict.EDITED]
        return runs[-1].failure if runs else None

    def error(self, step: StepRecord) -> str | None:
        """The same error on one line."""
        found = self.failure(step)
        return None if found is None else error(found)

    def released_at(self, step: StepRecord) -> datetime | None:
        """When its job was enqueued; for a map, when its first item was enqueued."""
        if self._is_map(step):
            return min(filter(None, map(self.released_at, self.items.get(step.place, ()))), default=None)
        standing = self.standings.get(step.id)
        if standing is not None:
            return standing.enqueued_at
        runs = self.runs.get(step.id, ())
        return runs[-1].enqueued_at if runs else None

    def node(self, drawn: DrawnNode, step: StepRecord) -> NodeView:
        """The current state of one step."""
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
        """When its last run ended, if that run ended the step. The workflow learns of the end later."""
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
    """The number of steps by state, in the order of the states."""
    found = Counter(each.state for each in nodes)
    order = [*LIVE_STEPS, *JobState, ENDING, *StepState]
    return {str(state): found[state] for state in dict.fromkeys(map(str, order)) if found[state]}


async def _facts(
    store: Store,
    workflow: WorkflowRecord,
    definition: Definition,
    steps: Sequence[StepRecord],
    lost: Sequence[StepRecord],
    at: Stamp,
) -> StepFacts:
    shown = [*steps, *lost]
    items = [each for each in steps if each.item is not None]
    maps = any(node.kind is NodeKind.MAP for node in definition.nodes)
    live = [each.id for each in shown if each.state is StepState.LIVE]
    return StepFacts(
        workflow=workflow,
        definition=definition,
        standings=await store.jobs.standings(live, at=at) if live else {},
        runs=await store.runs.of_many(
            [each.id for each in shown if each.state is not StepState.WAITING], most=RUNS
        ),
        workers={each.id: each.name for each in await store.processes.all(at=at)},
        counts=await store.workflows.step_counts(workflow.id) if maps else {},
        items=_by_place(items),
        lost=_by_place(lost),
    )


def _by_place(steps: Sequence[StepRecord]) -> dict[int, list[StepRecord]]:
    found: dict[int, list[StepRecord]] = defaultdict(list)
    for each in steps:
        found[each.place].append(each)
    return dict(found)


def _timeline(facts: StepFacts, steps: Sequence[StepRecord]) -> tuple[Bar, ...]:
    """The released steps. The items of a map replace the map."""
    kinds = [node.kind for node in facts.definition.nodes]
    nodes = [each for each in steps if each.item is None and kinds[each.place] is not NodeKind.MAP]
    items = [each for each in steps if each.item is not None]
    shown = [*nodes, *items[: max(0, BARS - len(nodes))]]
    bars = [bar for bar in map(facts.bar, shown) if bar.released_at is not None]
    places = {step.id: place for place, step in enumerate(steps)}

    def order(bar: Bar) -> tuple[bool, datetime | None, int]:
        return bar.started_at is None, bar.started_at or bar.released_at, places[bar.job_id]

    return tuple(sorted(bars, key=order))


def _decoded(result: bytes | None) -> object:
    return None if result is None else msgspec.json.decode(result)


def _item(facts: StepFacts, step: StepRecord) -> ItemView:
    attempts = facts.attempts(step)
    return ItemView(
        item=step.item or 0,
        job_id=step.id,
        state=facts.state(step),
        cause=step.cause,
        attempts=len(attempts),
        worker=attempts[-1].worker if attempts else None,
        started_at=attempts[0].started_at if attempts else None,
        finished_at=step.ended_at,
        error=facts.error(step),
        output=_decoded(step.result),
    )
