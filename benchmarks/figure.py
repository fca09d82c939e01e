"""A figure: what was measured on which system, every repeat of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Measured = Mapping[str, float]
"""By the measure's name, which ends with its unit."""


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Of figures in order: the smallest that so many percent of them do not exceed."""
    if not ordered:
        raise ValueError("nothing was measured")
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]


@dataclass
class Figure:
    """One measure of one system."""

    system: str
    workload: str
    measure: str
    repeats: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """The share of the machine that went to others in each repeat, where it is known."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know of it: that it was cut short, that jobs were lost."""
    paces: list[float] = field(default_factory=list)
    """How long a fixed loop took around each repeat, in milliseconds: how fast the machine was."""

    @property
    def value(self) -> float | None:
        return statistics.median(self.repeats) if self.repeats else None

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.repeats), max(self.repeats)

    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"system": self.system, "workload": self.workload, "measure": self.measure}
        if self.value is not None:
            told |= {"median": _short(self.value), "repeats": [_short(each) for each in self.repeats]}
        if self.others:
            told["others"] = [round(each, 3) for each in self.others]
        if self.paces:
            told["paces"] = [round(each, 1) for each in self.paces]
        if self.notes:
            told["notes"] = self.notes
        return told

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Figure:
        """From what `json` gave."""
        return cls(
            system=told["system"],
            workload=told["workload"],
            measure=told["measure"],
            repeats=list(told.get("repeats", [])),
            others=list(told.get("others", [])),
            notes=list(told.get("notes", [])),
            paces=list(told.get("paces", [])),
        )


class Book:
    """Figures as they come in, repeats of the same together."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str], Figure] = {}

    @property
    def figures(self) -> list[Figure]:
        return list(self._figures.values())

    def add(
        self,
        system: str,
        workload: str,
        measured: Measured,
        *,
        others: float | None = None,
        pace: float | None = None,
        note: str = "",
    ) -> None:
        for measure, value in measured.items():
            figure = self._figure(system, workload, measure)
            figure.repeats.append(value)
            if others is not None:
                figure.others.append(others)
            if pace is not None:
                figure.paces.append(pace)
            _note(figure, note)

    def failed(self, system: str, workload: str, why: str) -> None:
        """There is no figure, and this is why."""
        _note(self._figure(system, workload, workload), why)

    def join(self, figure: Figure) -> None:
        """The repeats of another book."""
        mine = self._figure(figure.system, figure.workload, figure.measure)
        mine.repeats += figure.repeats
        mine.others += figure.others
        mine.paces += figure.paces
        for note in figure.notes:
            _note(mine, note)

    def value(self, system: str, measure: str) -> float | None:
        found = self._figures.get((system, measure))
        return None if found is None else found.value

    def _figure(self, system: str, workload: str, measure: str) -> Figure:
        return self._figures.setdefault((system, measure), Figure(system, workload, measure))


def _note(figure: Figure, note: str) -> None:
    if note and note not in figure.notes:
        figure.notes.append(note)


def _short(value: float) -> float:
    """Five digits are more than any of these figures is good for."""
    return float(f"{value:.5g}")
