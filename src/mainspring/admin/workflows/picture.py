"""The graph of a workflow as a page draws it: nodes with a word for their state and a line below."""

from __future__ import annotations

from mainspring.admin.workflows.views import NodeView, WorkflowView
from mainspring.model.value import Value
from mainspring.model.workflow import NodeKind, When

DRAWN = 400
"""More nodes than these nobody can look at: they are listed, and not drawn."""
_SHOWN = 30


class Drawn(Value, frozen=True, kw_only=True):
    """One node of the picture."""

    name: str
    title: str
    """The name, cut where it is too long."""
    line: str
    """What is written below it."""
    state: str
    kind: str
    done: float | None
    """Of a map: the part of its items that have ended."""
    lost: float | None
    label: str
    """All of it, for who cannot see the picture."""


class Line(Value, frozen=True, kw_only=True):
    """That one comes after the other; `when` is not `success`, and the line is dashed, where it says so."""

    source: str
    target: str
    when: str


class Picture(Value, frozen=True, kw_only=True):
    """What is drawn."""

    nodes: tuple[Drawn, ...]
    lines: tuple[Line, ...]


def picture(view: WorkflowView) -> Picture | None:
    """The picture of a workflow as it stands; None when it is too large to be drawn."""
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
