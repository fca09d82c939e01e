"""One line of the table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

PLAIN = "plain jobs"


@dataclass(frozen=True)
class Taken:
    """One measurement: seconds from the start call until the last step's end as the system recorded it, and
    until a client held the final results."""

    ended: float
    seen: float
    others: float | None = None
    """The share of the machine that others took meanwhile."""


@dataclass(frozen=True)
class Figure:
    """One workload on one system: so many steps by so many worker processes, measured a few times."""

    system: str
    workload: str
    processes: int
    size: int
    """How wide, or how many chains."""
    steps: int
    taken: tuple[Taken, ...]
    failure: str = ""
    """Why there is no more of it."""

    @property
    def seconds(self) -> float:
        return statistics.median(each.ended for each in self.taken)

    @property
    def per_second(self) -> float:
        return self.steps / self.seconds

    @property
    def micros(self) -> float:
        """Of one step."""
        return self.seconds / self.steps * 1e6

    @property
    def spread(self) -> tuple[float, float]:
        """Steps a second in the slowest and in the fastest repeat."""
        return self.steps / max(t.ended for t in self.taken), self.steps / min(t.ended for t in self.taken)

    @property
    def others(self) -> float | None:
        """The most that others took in any repeat."""
        return max((each.others for each in self.taken if each.others is not None), default=None)

    def json(self, plain: Figure | None) -> dict[str, object]:
        told: dict[str, object] = {
            "system": self.system,
            "workload": self.workload,
            "worker processes": self.processes,
            "size": self.size,
            "steps": self.steps,
        }
        if self.taken:
            told |= {
                "steps/s": round(self.per_second, 1),
                "µs a step": round(self.micros, 1),
                "seconds until the last end": [round(each.ended, 3) for each in self.taken],
                "seconds until seen": [round(each.seen, 3) for each in self.taken],
            }
            if self.others is not None:
                told["% of the machine taken by others"] = round(100 * self.others)
            if plain is not None:
                told["× plain"] = round(self.micros / plain.micros, 2)
        if self.failure:
            told["failure"] = self.failure
        return told


def plain_of(figure: Figure, figures: Iterable[Figure], ours: str) -> Figure | None:
    """As many plain jobs of ours with as many workers: on the same database, or for others on `ours`."""
    fitting = {
        each.system: each
        for each in figures
        if each.workload == PLAIN
        and each.taken
        and (each.processes, each.steps) == (figure.processes, figure.steps)
    }
    return fitting.get(figure.system) or fitting.get(ours)


def table(figures: list[Figure], ours: str) -> str:
    """What people read."""
    head = f"{'system':<24}{'workload':<34}{'size':>8}{'procs':>7}{'steps/s':>10}{'(range)':>18}"
    lines = [head + f"{'µs a step':>12}{'× plain':>10}{'others':>8}"]
    for each in figures:
        line = f"{each.system:<24}{each.workload:<34}{each.size:>8,}{each.processes:>7}"
        if each.taken:
            low, high = each.spread
            span = f"{low:,.0f}–{high:,.0f}" if len(each.taken) > 1 else ""
            line += f"{each.per_second:>10,.0f}{span:>18}{each.micros:>12,.0f}"
            plain = plain_of(each, figures, ours)
            line += f"{each.micros / plain.micros:>10,.2f}" if plain is not None else f"{'–':>10}"
            line += f"{each.others:>8.0%}" if each.others is not None else ""
        lines.append(f"{line}  {each.failure}".rstrip())
    return "\n".join(lines)
