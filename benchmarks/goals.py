"""What we want of ourselves: two cores, PostgreSQL 15 with fsync, every settlement durable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from benchmarks.figure import Figure

POSTGRESQL, SQLITE = "mainspring-postgresql", "mainspring-sqlite"


class Direction(Enum):
    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True)
class Goal:
    """A number, and on which side of it we want to be."""

    measure: str
    direction: Direction
    limit: float
    system: str = POSTGRESQL

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.direction is Direction.AT_LEAST else value <= self.limit

    def __str__(self) -> str:
        return f"{self.direction.value} {self.limit:,g}"


def at_least(measure: str, limit: float, system: str = POSTGRESQL) -> Goal:
    return Goal(measure, Direction.AT_LEAST, limit, system)


def at_most(measure: str, limit: float, system: str = POSTGRESQL) -> Goal:
    return Goal(measure, Direction.AT_MOST, limit, system)


GOALS = (
    at_least("drain 20,000 with 1 worker process, jobs/s", 35_000),
    at_least("drain 20,000 with 2 worker processes, jobs/s", 40_000),
    at_least("drain 200,000 with 1 worker process, jobs/s", 35_000),
    at_least("drain 200,000 with 2 worker processes, jobs/s", 40_000),
    at_least("drain 1,000,000 with 1 worker process, jobs/s", 30_000),
    at_least("drain 20,000 with sync handlers, jobs/s", 15_000),
    at_least("highest rate held, jobs/s", 15_000),
    at_least("enqueue 20,000 in bulk, jobs/s", 100_000),
    at_least("enqueue one by one, share of a bare insert's rate", 0.85),
    at_most("pickup p50, ms", 3),
    at_most("pickup p99, ms", 15),
    at_most("WAL per job in all, bytes", 900),
    at_most("burst of 100,000, 1 scheduler process, s", 1.5),
    at_most("burst of 100,000, 2 scheduler processes, s", 1),
    at_most("lateness of 1,000 schedules p99, ms", 50),
    at_most("lateness of 10,000 schedules p99, ms", 250),
    at_most("start delay beside a flood, fair, p99, ms", 1000),
    at_least("drain 20,000 with 1 worker process, synchronous=NORMAL, jobs/s", 40_000, SQLITE),
)


def judged(figures: Iterable[Figure], goals: Iterable[Goal] = GOALS) -> Iterator[dict[str, Any]]:
    """Each goal that these figures can tell about, and whether it is met."""
    values = {(each.system, each.measure): each.value for each in figures}
    for goal in goals:
        value = values.get((goal.system, goal.measure))
        if value is not None:
            yield {
                "system": goal.system,
                "measure": goal.measure,
                "goal": str(goal),
                "value": value,
                "met": goal.met_by(value),
            }
