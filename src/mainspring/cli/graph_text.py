"""A graph on a terminal, with what is to be said of each node in columns beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click

from mainspring.admin.workflows.graph import DrawnNode
from mainspring.admin.workflows.views import NodeView
from mainspring.cli.lanes import draw, in_order
from mainspring.cli.output import line, printable
from mainspring.cli.signs import Signs, signs
from mainspring.cli.step_notes import plan
from mainspring.model.workflow import NodeKind

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
