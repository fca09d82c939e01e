"""Who comes after whom among the steps of a workflow: never round in a circle."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta


class Circle(Exception):
    """Steps that would wait for themselves, by their places, in order."""

    def __init__(self, places: tuple[int, ...]) -> None:
        super().__init__(places)
        self.places = places


@dataclass(frozen=True, slots=True)
class Ordering:
    """Steps by their places, each with those it waits for, and how long it may take."""

    parents: tuple[frozenset[int], ...] = ()
    spans: tuple[timedelta, ...] = ()
    depths: tuple[int, ...] = ()
    """Of each, the steps on the longest way to it, itself too."""
    ends: tuple[timedelta, ...] = ()
    """Of each, how long it may be until it has ended."""

    def added(self, parents: frozenset[int], span: timedelta) -> Ordering:
        """With one step more, after these."""
        depth = 1 + max((self.depths[each] for each in parents), default=0)
        end = span + max((self.ends[each] for each in parents), default=timedelta())
        return Ordering(
            (*self.parents, parents), (*self.spans, span), (*self.depths, depth), (*self.ends, end)
        )

    def linked(self, place: int, earlier: frozenset[int]) -> Ordering:
        """With a step that also waits for these; Circle when one of them waits for it."""
        for each in sorted(earlier):
            if way := self._way(each, place):
                raise Circle((*way, place))
        parents = list(self.parents)
        parents[place] |= earlier
        depths, ends = [0] * len(parents), [timedelta()] * len(parents)
        for each in topological(parents):
            depths[each] = 1 + max((depths[parent] for parent in parents[each]), default=0)
            ends[each] = self.spans[each] + max(
                (ends[parent] for parent in parents[each]), default=timedelta()
            )
        return Ordering(tuple(parents), self.spans, tuple(depths), tuple(ends))

    def _way(self, start: int, goal: int) -> tuple[int, ...]:
        """From a step up through those it waits for, as far as the goal; empty when that is not above."""
        came_from: dict[int, int | None] = {start: None}
        found = [start]
        for here in found:  # grows on the way, the nearest first
            for parent in sorted(self.parents[here] - came_from.keys()):
                came_from[parent] = here
                found.append(parent)
        way: list[int] = []
        at: int | None = goal if goal in came_from else None
        while at is not None:
            way.append(at)
            at = came_from[at]
        return tuple(way)


def children_of(parents: Sequence[Collection[int]]) -> list[list[int]]:
    """The same graph read downwards."""
    children: list[list[int]] = [[] for _ in parents]
    for place, above in enumerate(parents):
        for parent in above:
            children[parent].append(place)
    return children


def topological(parents: Sequence[Collection[int]]) -> list[int]:
    """Every place after those it waits for; without recursion, for a chain may be long."""
    children, waits = children_of(parents), [len(above) for above in parents]
    order = [place for place, count in enumerate(waits) if not count]
    for place in order:  # grows on the way
        for child in children[place]:
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    return order
