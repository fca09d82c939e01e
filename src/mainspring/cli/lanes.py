"""A graph in a terminal: one line for each node, and the lines between them in lanes to its left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mainspring.cli.signs import Signs

MOST_LANES = 10
"""A graph that is wider than that is not drawn: nobody could follow it."""


class Drawn(NamedTuple):
    """One line: the node's, or one between nodes, which is nobody's."""

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
