"""A workflow on a terminal: its graph, its timeline, one of its steps, and the signs they consist of."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import click

from mainspring.admin.words import length
from mainspring.admin.workflows.graph import DrawnNode
from mainspring.admin.workflows.views import Attempt, Bar, NodeView, StepView, WorkflowRow, WorkflowView
from mainspring.cli.output import block, fields, line, printable, table, when, width
from mainspring.model.workflow import Cause, NodeKind, Stopping, When, WorkflowState

_WIDEST_BAR, _NARROWEST_BAR = 60, 24


def show_workflow(view: WorkflowView) -> None:
    """All of it."""
    _header(view)
    click.echo()
    _graph(view)
    if view.timeline:
        click.echo()
        _timeline(view)
    if view.orders:
        click.echo()
        rows = [(when(each.at), each.action, each.author, each.note) for each in view.orders]
        table(["AT", "ACTION", "BY", "NOTE"], rows, none="")


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
            ("job", None if node.kind is NodeKind.MAP and view.item is None else view.job_id),
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
    steps = [each for each in view.nodes if each.kind is not NodeKind.UNDO]
    undos = [each for each in view.nodes if each.kind is NodeKind.UNDO]
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


_SECOND = timedelta(seconds=1)


_WHEN = {When.SUCCESS: None, When.FAILURE: "runs on failure", When.ALWAYS: "always runs"}


_SKIPPED = {
    Cause.ITSELF: "by its own handler",
    Cause.INPUT: "a step whose result it needs was skipped",
    Cause.FAILURE: "a step before it failed",
    Cause.STOPPED: "the workflow was stopped",
}


def note(node: NodeView, *, paused: bool) -> str:
    """What else is to be known of it, the most telling first."""
    said: list[str | None] = []
    if node.items is not None and node.items.total:
        counts = ", ".join(f"{count} {state}" for state, count in node.items.counts.items())
        said.append(f"{node.items.total} items: {counts}")
        said += [f"[{each.item}] {each.error}" for each in node.items.lost if each.error][:1]
    elif node.state == "skipped":
        said.append(_why_skipped(node))
    else:
        said.append(node.error)
    if node.state == "waiting":
        said += ["held by the pause" if paused and not node.waits else None, plan(node) or None]
    said += [f"workflow {node.job_id}" if node.inner and node.released_at else None]
    said += ["kept from the workflow it was forked from" if node.kept else None]
    return "; ".join(each for each in said if each)


def _why_skipped(node: NodeView) -> str:
    if node.cause is Cause.ITSELF and node.error is not None:
        return f"{_SKIPPED[node.cause]}: {node.error}"
    if node.cause is not None and node.cause is not Cause.CONDITION:
        return _SKIPPED[node.cause]
    if node.kind is NodeKind.UNDO:
        return "nothing to undo"
    if node.when is When.FAILURE:
        return "no step before it failed"
    return f"its condition did not hold: {node.condition}"


def plan(node: DrawnNode | NodeView) -> str:
    """When it runs, where that is not simply after its parents."""
    condition = None if node.condition is None else f"if {node.condition}"
    items = "for each item" if node.kind is NodeKind.MAP else None
    return ", ".join(each for each in (items, _WHEN[node.when], condition) if each)


def took(value: timedelta) -> str:
    """As exact as it matters: short ones to the millisecond or the tenth of a second."""
    if value < _SECOND:
        return f"{max(value, timedelta()) // timedelta(milliseconds=1)}ms"
    return f"{value.total_seconds():.1f}s" if value < 10 * _SECOND else length(value)


_DONE = ("succeeded", "running", "snoozed", "released")
"""Ends of a run that are no failure."""


class Scale:
    """A stretch of time on so many columns."""

    def __init__(self, start: datetime, end: datetime, columns: int) -> None:
        self._start, self._columns = start, columns
        self._length = max(end - start, timedelta(microseconds=1))

    def column(self, moment: datetime) -> int:
        """Where a moment is."""
        passed = (moment - self._start) / self._length
        return max(0, min(self._columns - 1, int(passed * self._columns)))

    def bar(self, bar: Bar, now: datetime, signs: Signs) -> str:
        """One line: where it waited, and each of its runs, which takes at least one column."""
        cells = [" "] * self._columns
        last = bar.attempts[-1] if bar.attempts else None
        if bar.released_at is not None:
            end = bar.finished_at or (
                now if last is None or last.finished_at is not None else last.started_at
            )
            self._fill(cells, bar.released_at, end, signs.waited)
        for attempt in bar.attempts:
            sign = signs.ran if attempt.verdict in _DONE else signs.failed
            self._fill(cells, attempt.started_at, attempt.finished_at or now, sign)
        if last is not None and last.finished_at is None:
            cells[self.column(now)] = signs.going
        return "".join(cells).rstrip()

    def _fill(self, cells: list[str], start: datetime, end: datetime, sign: str) -> None:
        # An end belongs to the column before it, so that what comes next begins in its own.
        first = self.column(start)
        last = max(first, self.column(end) - (end < self._start + self._length))
        for column in range(first, last + 1):
            cells[column] = sign


def ran(attempts: tuple[Attempt, ...], now: datetime) -> timedelta:
    """From the beginning of the first to the end of the last."""
    return (attempts[-1].finished_at or now) - attempts[0].started_at


Facts = Mapping[str, tuple[object, ...]]
"""Of each node, what stands in its columns."""


def show_graph(name: str, nodes: Sequence[DrawnNode], states: Mapping[str, str] | None = None) -> None:
    """A graph as it is declared; with states, those of its steps."""
    shapes = signs()
    titles = ["TASK", "WHEN"] if states is None else ["STATE", "TASK", "WHEN"]
    stands = states or {}
    marks = {each.name: shapes.state(stands.get(each.name, "waiting")) for each in nodes}
    facts: Facts = {
        each.name: (*([] if states is None else [states[each.name]]), each.task, plan(each)) for each in nodes
    }
    line(f"workflow {printable(name)}")
    draw_graph([each for each in nodes if each.kind is not NodeKind.UNDO], marks, facts, titles, shapes)
    draw_undos([each for each in nodes if each.kind is NodeKind.UNDO], marks, facts, titles)


def draw_graph(
    nodes: Sequence[DrawnNode] | Sequence[NodeView],
    marks: Mapping[str, str],
    facts: Facts,
    titles: Sequence[str],
    shapes: Signs,
) -> None:
    """Each node on its line, below those it comes after."""
    parents = {each.name: each.parents for each in nodes}
    drawn = draw(parents, marks, shapes)
    if drawn is None:  # too wide: names instead of lines
        rows = [
            (f"{marks[name]} {name}", *facts[name][:-1], _after(parents[name], facts[name][-1]))
            for name in in_order(parents)
        ]
        _aligned(["  STEP", *titles], rows)
        return
    lanes = max((len(each.lanes) for each in drawn), default=0)
    lines: list[tuple[object, ...]] = []
    for each in drawn:
        if each.name is None:
            lines.append((each.lanes,))
        else:
            lines.append((f"{each.lanes.ljust(lanes)}  {each.name}", *facts[each.name]))
    _aligned([f"{' ' * lanes}  STEP", *titles], lines)


def draw_undos(
    nodes: Sequence[DrawnNode] | Sequence[NodeView],
    marks: Mapping[str, str],
    facts: Facts,
    titles: Sequence[str],
) -> None:
    """Steps that undo others, which belong to no place in the graph but its end."""
    if nodes:
        click.echo()
        rows = [(f"{marks[each.name]} {each.name}", each.undoes, *facts[each.name]) for each in nodes]
        _aligned(["  UNDO", "OF", *titles], rows)


def _aligned(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table some of whose lines have only the first cell."""
    cells = [["" if value is None else printable(value) for value in row] for row in rows]
    full = [list(titles), *(row for row in cells if len(row) > 1)]
    widths = [max(len(row[column]) for row in full) for column in range(len(titles))]
    for row in [list(titles), *cells]:
        padded = [text.ljust(wide) for text, wide in zip(row, widths, strict=False)]
        line("  ".join(padded))


def _after(parents: Sequence[str], note: object) -> str:
    after = f"after {', '.join(parents[:5])}" + (f" and {len(parents) - 5} more" if len(parents) > 5 else "")
    return "; ".join(str(each) for each in (after if parents else "", note) if each)


MOST_LANES = 10
"""A wider graph is not drawn, because it could not be read."""


class Drawn(NamedTuple):
    """One line: the node's, or one between nodes."""

    lanes: str
    name: str | None


def in_order(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Every node after its parents; what follows a node comes soon after it."""
    children = _children(parents)
    left = {name: len(set(of)) for name, of in parents.items()}
    ready = [name for name, count in left.items() if not count]
    order = []
    while ready:
        name = ready.pop(0)
        order.append(name)
        freed = []
        for child in children[name]:
            left[child] -= 1
            if not left[child]:
                freed.append(child)
        ready = freed + ready
    return order


def draw(parents: Mapping[str, Sequence[str]], marks: Mapping[str, str], signs: Signs) -> list[Drawn] | None:
    """The graph from top to bottom, each node with its mark; None when it is too wide."""
    children = _children(parents)
    lanes: list[str | None] = []
    """The node to which each lane leads."""
    drawn: list[Drawn] = []
    for name in in_order(parents):
        own = [column for column, target in enumerate(lanes) if target == name] or [_free(lanes, 0)]
        if len(own) > 1:
            drawn.append(Drawn(_connected(lanes, own, signs, signs.join, signs.last_join), None))
        for column in own:
            lanes[column] = None
        drawn.append(Drawn(_passed(lanes, own[0], marks[name], signs), name))
        out = []
        for place, child in enumerate(children[name]):
            column = _free(lanes, own[0] + 1) if place else own[0]
            lanes[column] = child
            out.append(column)
        if len(out) > 1:
            drawn.append(Drawn(_connected(lanes, out, signs, signs.fork, signs.last_fork), None))
        if len(lanes) > MOST_LANES:
            return None
        while lanes and lanes[-1] is None:
            lanes.pop()
    return drawn


def _children(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, of in parents.items():
        for parent in dict.fromkeys(of):
            children[parent].append(name)
    return children


def _free(lanes: list[str | None], first: int) -> int:
    """A lane that leads nowhere, from this one on; made if there is none."""
    for column in range(first, len(lanes)):
        if lanes[column] is None:
            return column
    lanes += [None] * (max(first, len(lanes)) + 1 - len(lanes))
    return len(lanes) - 1


def _passed(lanes: Sequence[str | None], own: int, mark: str, signs: Signs) -> str:
    cells = [signs.down if target else " " for target in lanes]
    cells[own] = mark
    return " ".join(cells).rstrip()


def _connected(
    lanes: Sequence[str | None], columns: Sequence[int], signs: Signs, each: str, last: str
) -> str:
    """Lanes that part or meet: the first of these goes on, the others begin or end here."""
    first, end = min(columns), max(columns)
    text = ""
    for column, target in enumerate(lanes):
        if column == first:
            text += signs.branch
        elif column in columns:
            text += last if column == end else each
        elif target:
            text += signs.down
        else:
            text += signs.across if first < column < end else " "
        text += signs.across if first <= column < end else " "
    return text.rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """One set of them."""

    down: str
    across: str
    branch: str
    fork: str
    join: str
    last_fork: str
    last_join: str
    ran: str
    failed: str
    waited: str
    going: str
    states: dict[str, str]

    def state(self, name: str) -> str:
        """The sign of a state."""
        return self.states.get(name, self.states["waiting"])


LINES = Signs(
    down="│",
    across="─",
    branch="├",
    fork="┬",
    join="┴",
    last_fork="╮",
    last_join="╯",
    ran="█",
    failed="▒",
    waited="·",
    going="▶",
    states={
        "waiting": "○",
        "delayed": "◌",
        "ready": "◌",
        "running": "▶",
        "ending": "▶",
        "succeeded": "✓",
        "failed": "✗",
        "cancelled": "⊘",
        "skipped": "–",
    },
)


LETTERS = Signs(
    down="|",
    across="-",
    branch="+",
    fork="+",
    join="+",
    last_fork=".",
    last_join="'",
    ran="#",
    failed="x",
    waited=".",
    going=">",
    states={
        "waiting": "o",
        "delayed": "~",
        "ready": "~",
        "running": ">",
        "ending": ">",
        "succeeded": "*",
        "failed": "X",
        "cancelled": "/",
        "skipped": "-",
    },
)


def signs() -> Signs:
    """Those that stdout can write."""
    drawn = "".join(
        [*LINES.states.values(), LINES.down, LINES.branch, LINES.last_fork, LINES.ran, LINES.failed]
    )
    try:
        drawn.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return LETTERS
    return LINES
