"""A workflow on a terminal: its graph, its timeline, and one of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import click

from mainspring.admin.workflows.views import Attempt, NodeView, StepView, WorkflowRow, WorkflowView
from mainspring.cli.bars import Scale, ran
from mainspring.cli.graph_text import draw_graph, draw_undos
from mainspring.cli.output import block, fields, line, printable, table, when, width
from mainspring.cli.signs import signs
from mainspring.cli.step_notes import note, took
from mainspring.model.workflow import Cause, Kind, Stopping, WorkflowState

_WIDEST_BAR, _NARROWEST_BAR = 60, 24


def show_workflow(view: WorkflowView) -> None:
    """All of it."""
    _header(view)
    click.echo()
    _graph(view)
    if view.timeline:
        click.echo()
        _timeline(view)
    if view.acts:
        click.echo()
        rows = [(when(each.at), each.act, each.author, each.note) for each in view.acts]
        table(["AT", "ACT", "BY", "NOTE"], rows, none="")


def show_step(view: StepView) -> None:
    """One step or item: its runs, its errors, what it was given and what it made."""
    node, given = view.node, view.inputs or {}
    name = node.name if view.item is None else f"{node.name}[{view.item}]"
    fields(
        [
            ("step", f"{name} of workflow {view.workflow_id}"),
            ("kind", node.kind),
            ("task", node.task),
            ("state", view.state),
            ("note", (note(node, paused=False) if view.item is None else view.error) or None),
            ("after", ", ".join(node.parents) or None),
            ("job", None if node.kind is Kind.MAP and view.item is None else view.job_id),
            ("args", given.get("args") or None),
            ("kwargs", given.get("kwargs") or None),
            ("payload", given.get("payload")),
            ("output", view.output),
            ("released at", when(view.released_at)),
            ("finished at", when(view.finished_at)),
        ]
    )
    if view.attempts:
        click.echo()
        titles = ["RUN", "VERDICT", "STARTED AT", "FINISHED AT", "TOOK", "WORKER", "ERROR"]
        table(titles, map(_attempt, view.attempts), none="")
    for each in view.failures:
        click.echo(f"\n{printable(each.type)}: {printable(each.message)}")
        block(each.traceback)
    if view.items:
        click.echo()
        titles = ["ITEM", "JOB", "STATE", "RUNS", "TOOK", "WORKER", "OUTPUT OR ERROR"]
        rows = [
            (
                each.item,
                each.job_id,
                each.state,
                each.attempts or None,
                _took(each.started_at, each.finished_at),
                each.worker,
                each.error or each.output,
            )
            for each in view.items
        ]
        table(titles, rows, none="")


def state_in_words(row: WorkflowRow) -> str:
    """Its state, and what is being done to it."""
    if row.state is not WorkflowState.RUNNING:
        return row.state
    match row.stopping:
        case Stopping.CANCELLED | Stopping.KILLED:
            return "running, being cancelled"
        case Stopping.EXPIRED:
            return "running, past its deadline"
        case None:
            return "running" if row.paused_at is None else "running, paused"


def _header(view: WorkflowView) -> None:
    row = view
    end = row.ended_at or view.as_of
    counts = ", ".join(f"{count} {state}" for state, count in view.counts.items())
    fields(
        [
            ("workflow", f"{row.id}  {row.name}, version {row.version}"),
            ("state", state_in_words(row)),
            ("paused at", when(row.paused_at)),
            ("params", view.params or None),
            ("started at", when(row.started_at)),
            ("ended at", when(row.ended_at)),
            ("took" if row.ended_at else "runs for", took(end - row.started_at)),
            ("steps", counts),
            ("step of", None if row.parent_id is None else f"workflow {row.parent_id}"),
            ("forked from", None if row.forked_from is None else f"workflow {row.forked_from}"),
        ]
    )


def _graph(view: WorkflowView) -> None:
    shapes = signs()
    steps = [each for each in view.nodes if each.kind is not Kind.UNDO]
    undos = [each for each in view.nodes if each.kind is Kind.UNDO]
    paused = view.paused_at is not None
    facts = {each.name: _facts(each, view.as_of, paused=paused) for each in view.nodes}
    marks = {each.name: shapes.state(each.state) for each in view.nodes}
    titles = ["STATE", "RUNS", "TOOK", "WORKER", "NOTE"]
    draw_graph(steps, marks, facts, titles, shapes)
    if undos and all(_is_needless(each, view) for each in undos):
        steps_are = (
            "step that would undo another is" if len(undos) == 1 else "steps that would undo others are"
        )
        line(f"{len(undos)} {steps_are} not needed{'' if view.ended_at else ' so far'}")
    else:
        draw_undos(undos, marks, facts, titles)


def _is_needless(undo: NodeView, view: WorkflowView) -> bool:
    """Whether nothing is to be taken back, as far as can be told."""
    bad = view.failed or view.stopping is not None
    return undo.cause is Cause.CONDITION or (undo.state == "waiting" and not bad)


def _facts(node: NodeView, now: datetime, *, paused: bool) -> tuple[object, ...]:
    since = None if node.started_at is None else took((node.finished_at or now) - node.started_at)
    return node.state, node.attempts or None, since, node.worker, note(node, paused=paused) or ""


def _timeline(view: WorkflowView) -> None:
    shapes = signs()
    start = view.started_at
    end = max(start, view.ended_at or view.as_of)
    form = "%H:%M:%S" if end - start < timedelta(days=1) else "%m-%d %H:%M"
    first, last = f"{start:{form}}", f"{end:{form}}"
    names = [each.name if each.item is None else f"{each.name}[{each.item}]" for each in view.timeline]
    label = max(len(each) for each in [*names, "TIMELINE"])
    room = max(_NARROWEST_BAR, min(_WIDEST_BAR, width(most=120) - label - 20))
    scale = Scale(start, end, room)
    line(f"{'TIMELINE'.ljust(label)}  {first}{last.rjust(room - len(first))}  TOOK")
    for name, bar in zip(names, view.timeline, strict=True):
        runs = f", {len(bar.attempts)} runs" if len(bar.attempts) > 1 else ""
        said = f"{took(ran(bar.attempts, view.as_of))}{runs}" if bar.attempts else bar.state
        line(f"{printable(name).ljust(label)}  {scale.bar(bar, view.as_of, shapes).ljust(room)}  {said}")
    hidden = sum(each.items.total for each in view.nodes if each.items) - sum(
        each.item is not None for each in view.timeline
    )
    more = f"; {hidden} more items" if hidden else ""
    line(f"{' ' * label}  {shapes.waited} waited  {shapes.ran} ran  {shapes.failed} ran in vain{more}")


def _attempt(attempt: Attempt) -> Sequence[object]:
    return (
        attempt.number,
        attempt.verdict,
        when(attempt.started_at),
        when(attempt.finished_at),
        _took(attempt.started_at, attempt.finished_at),
        attempt.worker,
        attempt.error,
    )


def _took(start: datetime | None, end: datetime | None) -> str | None:
    return None if start is None or end is None else took(end - start)
