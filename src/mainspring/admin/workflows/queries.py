"""Views of one workflow and of its steps. Reads are bounded: of maps, one page of items at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import msgspec

from mainspring.admin.views import FailureView, call_view
from mainspring.admin.workflows.graph import drawn, edges, named
from mainspring.admin.workflows.steps import StepFacts, counted
from mainspring.admin.workflows.views import (
    Bar,
    ItemView,
    StepView,
    WorkflowOrderView,
    WorkflowView,
)
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.workflow import Definition, NodeKind, StepRecord, StepState, WorkflowRecord
from mainspring.store.database import Stamp
from mainspring.store.store import Store

ITEMS, LOST, RUNS, BARS = 5, 5, 50, 200
"""Of each map: items in the timeline, and lost ones that are told. Of each job: runs. In the timeline: lines
from which on no items are added."""
PAGE = 50


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
        acts=tuple(
            WorkflowOrderView(at=each.at, act=each.act, author=each.author, note=each.note)
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
    """One step, or one item of it, with its runs, inputs and output; of a map, a page of items."""
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


async def found(store: Store, workflow_id: int) -> WorkflowRecord:
    """One workflow as the store has it; NotFound where there is none."""
    workflow = await store.workflows.get(workflow_id)
    if workflow is None:
        raise NotFound("workflow", workflow_id)
    return workflow


def _by_place(steps: Sequence[StepRecord]) -> dict[int, list[StepRecord]]:
    found: dict[int, list[StepRecord]] = defaultdict(list)
    for each in steps:
        found[each.place].append(each)
    return dict(found)


def _timeline(facts: StepFacts, steps: Sequence[StepRecord]) -> tuple[Bar, ...]:
    """What has been released: of a map, its items stand for it."""
    kinds = [node.kind for node in facts.definition.nodes]
    nodes = [each for each in steps if each.item is None and kinds[each.place] is not NodeKind.MAP]
    items = [each for each in steps if each.item is not None]
    shown = [*nodes, *items[: max(0, BARS - len(nodes))]]
    bars = [bar for bar in map(facts.bar, shown) if bar.released_at is not None]
    places = {step.id: place for place, step in enumerate(steps)}

    def order(bar: Bar) -> tuple[bool, datetime | None, int]:
        return bar.started_at is None, bar.started_at or bar.released_at, places[bar.job_id]

    return tuple(sorted(bars, key=order))


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


def _decoded(result: bytes | None) -> object:
    return None if result is None else msgspec.json.decode(result)
