"""The graph of a workflow for the page: nodes with a state and a line of text."""

from __future__ import annotations

from mainspring.admin.workflows.views import NodeView, WorkflowView
from mainspring.model.value import Value
from mainspring.model.workflow import NodeKind, When

DRAWN = 400
"""The most nodes that are drawn. A larger graph is only listed."""
_SHOWN = 30


class Drawn(Value, frozen=True, kw_only=True):
    """One node of the picture."""

    name: str
    title: str
    """The name, cut if it is too long."""
    line: str
    """The text below the title."""
    state: str
    kind: str
    done: float | None
    """The part of a map's items that have ended."""
    lost: float | None
    label: str
    """The whole node as text, for screen readers."""


class Line(Value, frozen=True, kw_only=True):
    """An edge between two nodes. It is dashed if `when` is not `success`."""

    source: str
    target: str
    when: str


class Picture(Value, frozen=True, kw_only=True):
    """The drawing: nodes and lines."""

    nodes: tuple[Drawn, ...]
    lines: tuple[Line, ...]


def picture(view: WorkflowView) -> Picture | None:
    """The picture of a workflow; None if it is too large to be drawn."""
    if len(view.nodes) > DRAWN:
        return None
    when = {node.name: node.when for node in view.nodes}
    return Picture(
        nodes=tuple(_drawn(node) for node in view.nodes),
        lines=tuple(
            Line(source=edge.source, target=edge.target, when=when[edge.target].value) for edge in view.edges
        ),
    )


def _drawn(node: NodeView) -> Drawn:
    line = _line(node)
    done, lost = _shares(node)
    return Drawn(
        name=node.name,
        title=node.name if len(node.name) <= _SHOWN else f"{node.name[: _SHOWN - 1]}…",
        line=line if len(line) <= _SHOWN + 6 else f"{line[: _SHOWN + 5]}…",
        state=node.state,
        kind=node.kind.value,
        done=done,
        lost=lost,
        label=f"{node.name}: {node.state}, {line}",
    )


def _line(node: NodeView) -> str:
    if node.items is not None and node.items.total:
        counts = node.items.counts
        lost = counts.get("failed", 0) + counts.get("cancelled", 0)
        said = f"{counts.get('succeeded', 0):,} of {node.items.total:,} items"
        return f"{said}, {lost:,} lost" if lost else said
    if node.state == "skipped" and node.cause is not None:
        return f"skipped: {node.cause.value}"
    if node.state == "waiting" and node.waits:
        return f"waits for {node.waits} step{'' if node.waits == 1 else 's'}"
    if node.kept:
        return "result kept from the fork"
    if node.attempts > 1:
        return f"attempt {node.attempts} of {node.max_attempts}"
    if node.kind is NodeKind.UNDO:
        return f"undoes {node.undoes}"
    return "on failure" if node.when is When.FAILURE else node.task


def _shares(node: NodeView) -> tuple[float | None, float | None]:
    if node.items is None or not node.items.total:
        return None, None
    counts, total = node.items.counts, node.items.total
    lost = counts.get("failed", 0) + counts.get("cancelled", 0)
    ended = lost + counts.get("succeeded", 0) + counts.get("skipped", 0)
    return round(ended / total, 3), round(lost / total, 3)
