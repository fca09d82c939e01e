"""What is said about a step besides its state."""

from __future__ import annotations

from datetime import timedelta

from mainspring.admin.words import length
from mainspring.admin.workflows.graph import DrawnNode
from mainspring.admin.workflows.views import NodeView
from mainspring.model.workflow import Cause, NodeKind, When

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
