"""Workflows as the oracle sees them: cells for their steps, work for their jobs, and what inputs come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mainspring.model.workflow import (
    Constant,
    Definition,
    Fields,
    Input,
    Items,
    Node,
    NodeKind,
    Param,
    StepResult,
)

WAITING, LIVE, SUCCEEDED, FAILED, CANCELLED, SKIPPED = (
    "waiting",
    "live",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
)
OPEN = (WAITING, LIVE)
BAD = (FAILED, CANCELLED)
CRASHES_ALLOWED = 3

Key = int
"""A workflow, by the order in which they began."""
JobKey = tuple[Key, int, int | None]
Event = tuple[Key, "JobKey | str", str, Any]


class Bad(Exception):
    """An input that cannot be made."""


@dataclass
class Cell:
    """A node, or one item of a map."""

    state: str = WAITING
    cause: str | None = None
    result: Any = None
    items: list[Cell] = field(default_factory=list)


@dataclass
class Work:
    """A job that is in the queue."""

    payload: Any
    attempts: int
    failures: int = 0
    crashes: int = 0


@dataclass
class Flow:
    """One workflow."""

    key: Key
    drawn: Definition
    params: dict[str, Any]
    cells: list[Cell]
    parent: JobKey | None = None
    has_job: bool = True
    state: str = "running"
    stopping: str | None = None
    paused: bool = False
    result: Any = None
    given_up: bool = False
    """It failed for what it was to return."""

    def value(self, given: Input) -> Any:
        """What an input comes to by now. Raises Bad."""
        match given:
            case Constant():
                return given.value
            case Param():
                return _inside(self.params.get(given.name), given.path)
            case StepResult():
                cell = self.cells[given.step]
                is_map = self.drawn.nodes[given.step].kind is NodeKind.MAP
                return _inside([each.result for each in cell.items] if is_map else cell.result, given.path)
            case Items():
                return [self.value(each) for each in given.items]
            case Fields():
                return {name: self.value(each) for name, each in given.fields.items()}

    def parents(self, place: int) -> dict[int, Cell]:
        return {each: self.cells[each] for each in self.drawn.nodes[place].parents}

    def after(self, places: Iterable[int]) -> set[int]:
        """These, and everything that comes after them."""
        found = set(places)
        while more := {
            place
            for place, node in enumerate(self.drawn.nodes)
            if place not in found and found & set(node.parents)
        }:
            found |= more
        return found

    def failed(self) -> set[int]:
        return {place for place, cell in enumerate(self.cells) if cell.state in BAD}

    def cut_off(self) -> set[int]:
        return {place for place, cell in enumerate(self.cells) if cell.cause in ("failure", "stopped")}

    def undone(self) -> set[int]:
        return {
            place
            for place, node in enumerate(self.drawn.nodes)
            if node.kind is NodeKind.UNDO and self.cells[place].state not in (WAITING, SKIPPED)
        }


def copy_of(cell: Cell) -> Cell:
    """One of its own, with the same in it."""
    return Cell(state=cell.state, cause=cell.cause, result=cell.result, items=list(map(copy_of, cell.items)))


def reads(node: Node) -> set[int]:
    """Steps whose results it needs."""
    given = [*node.args, *([] if node.over is None else [node.over])]
    given += [] if node.only_if is None else list(node.only_if.names.values())
    found = set()
    while given:
        match each := given.pop():
            case StepResult():
                found.add(each.step)
            case Items():
                given += each.items
            case Fields():
                given += each.fields.values()
    return found


def _inside(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise Bad from None
    return value
