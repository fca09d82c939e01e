"""A curve: points along one axis, and whether what is drawn bends up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

Point = dict[str, float | None]


@dataclass(frozen=True)
class Curve:
    """One thing measured at growing sizes. `cost` is the value of a point that should stay level: a time or
    an amount per job, never a rate, so that more is worse."""

    name: str
    x: str
    units: dict[str, str]
    cost: str
    points: list[Point] = field(default_factory=list)

    @property
    def bend(self) -> float | None:
        """The cost at the last point over that at the first; 1 is level. None for fewer than two."""
        costs = [cost for point in self.points if (cost := point.get(self.cost)) is not None]
        return costs[-1] / costs[0] if len(costs) > 1 and costs[0] else None

    def document(self) -> dict[str, object]:
        return {**asdict(self), "bend": None if self.bend is None else round(self.bend, 3)}

    def lines(self) -> list[str]:
        """As people read it."""
        names = list(self.units)
        head = f"{self.x:>16}" + "".join(f"{name:>16}" for name in names)
        units = f"{'':16}" + "".join(f"{self.units[name][:15]:>16}" for name in names)
        rows = [
            f"{point[self.x] or 0:>16,.0f}" + "".join(_cell(point.get(name)) for name in names)
            for point in self.points
        ]
        told = "one point" if self.bend is None else f"{self.cost}: last is {self.bend:.2f} × the first"
        return [self.name, head, units, *rows, f"  {told}", ""]


def _cell(value: float | None) -> str:
    return f"{'-':>16}" if value is None else f"{value:>16,.{3 if abs(value) < 100 else 0}f}"


def spread(milliseconds: Sequence[float]) -> Point:
    """The middle and the worst but one in a hundred."""
    ordered = sorted(milliseconds)
    if not ordered:
        return {"p50": None, "p99": None}
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)],
    }
