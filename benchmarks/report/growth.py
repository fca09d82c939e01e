"""What `make bench-growth` wrote, as a part of the page: each curve with its picture and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.lines import chart, short
from benchmarks.report.words import BENDS, GROWTH
from benchmarks.table import number

MOST_ROWS = 8
"""Of a table; the picture and the file have every point."""
BENT = 1.25
"""A cost that has grown by less is level, on a machine such as this."""

OTHERS = "others' share of the cores"

Curve = Mapping[str, Any]


def parts(grown: Mapping[str, Any]) -> list[str]:
    """The section, as Markdown."""
    found = ["## Growth\n", GROWTH]
    for index, curve in enumerate(grown["curves"]):
        found += [f"### {curve['name']}\n", f"![{curve['name']}](images/{_file(index, curve)})\n"]
        found += [_table(curve), _verdict(curve)]
    return found


def pictures(grown: Mapping[str, Any]) -> dict[str, str]:
    """By the name of their file: in each, the cost and whatever is measured like it."""
    return {_file(index, curve): _picture(curve) for index, curve in enumerate(grown["curves"])}


def _file(index: int, curve: Curve) -> str:
    return f"growth-{index + 1}-{curve['part']}.svg"


def _picture(curve: Curve) -> str:
    points, unit = curve["points"], curve["units"][curve["cost"]]
    steady = len(points) > MOST_ROWS  # time goes on; sizes are steps
    across = [point[curve["x"]] if steady else float(step) for step, point in enumerate(points)]
    lines = {
        name: [
            (x, point[name]) for x, point in zip(across, points, strict=True) if point.get(name) is not None
        ]
        for name, each in curve["units"].items()
        if each == unit
    }
    shown = _thinned(range(len(points)))
    marks = {across[place]: short(round(points[place][curve["x"]])) for place in shown}
    return chart(f"{curve['name']}, {unit}", curve["x"], lines, marks=marks, logarithmic=False)


def _table(curve: Curve) -> str:
    names = list(curve["units"])
    heads = [f"{name}, {curve['units'][name]}" for name in names]
    lines = [f"| {curve['x']} | {' | '.join(heads)} |", "|---" * (len(names) + 1) + "|"]
    for point in _thinned(curve["points"]):
        cells = ["–" if point.get(name) is None else number(point[name]) for name in names]
        lines.append(f"| {number(point[curve['x']])} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _verdict(curve: Curve) -> str:
    bend = curve["bend"]
    if bend is None:
        return ""
    told = f"{curve['cost'].capitalize()}: the last is {bend:.2f} × the first. "
    taken = "" if curve[OTHERS] is None else f"; others took {curve[OTHERS]:.0%} of the cores"
    about = f"Commit {curve['about']['commit']}{taken}.\n"
    why = BENDS.get(curve["part"], "**It bends up, and we do not know why.**") if bend > BENT else ""
    return told + f"{why} {about}".lstrip()


def _thinned(points: Sequence[Any]) -> list[Any]:
    """The first, the last, and some between."""
    if len(points) <= MOST_ROWS:
        return list(points)
    step = (len(points) - 1) / (MOST_ROWS - 1)
    return [points[round(step * index)] for index in range(MOST_ROWS)]
