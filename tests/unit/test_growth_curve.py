"""Whether a curve bends up is told by its cost alone."""

from __future__ import annotations

import pytest

from benchmarks.growth.curve import Curve, Point, spread


@pytest.mark.parametrize(
    ("costs", "bend"),
    [
        ([2.0, 9.0, 3.0], 1.5),
        ([4.0, 4.0], 1.0),
        ([None, 2.0, 1.0], 0.5),
        ([2.0], None),
        ([], None),
        ([0.0, 1.0], None),
    ],
)
def test_a_bend_is_the_last_cost_over_the_first(costs: list[float | None], bend: float | None) -> None:
    points: list[Point] = [{"jobs": float(n), "cost": cost, "rate": 1.0} for n, cost in enumerate(costs)]

    assert Curve("a", "jobs", {"cost": "ms", "rate": "jobs/s"}, "cost", points).bend == bend


def test_a_curve_is_told_in_lines_of_one_width() -> None:
    curve = Curve(
        "a", "jobs", {"cost": "ms"}, "cost", [{"jobs": 1e6, "cost": 2.0}, {"jobs": 1e7, "cost": None}]
    )

    _, head, units, *rows, _, _ = curve.lines()

    assert {len(line) for line in (head, units, *rows)} == {32}


def test_a_spread_of_nothing_is_nothing() -> None:
    assert spread([]) == {"p50": None, "p99": None}
    assert spread([float(n) for n in range(200)]) == {"p50": 100.0, "p99": 198.0}
