"""The table that a run prints: measures down, systems across."""

from __future__ import annotations

from benchmarks.figure import Figure
from benchmarks.goals import judged
from benchmarks.result import Result


def number(value: float) -> str:
    """As many digits as it is good for."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(result: Result) -> str:
    """Every measure with a value, then what is to be said, then the goals."""
    systems = [key for key in result.systems if any(each.system == key for each in result.figures)]
    cells = {(each.system, each.measure): each for each in result.figures}
    measures = list(dict.fromkeys(each.measure for each in result.figures if each.repeats))
    wide = max((len(name) for name in measures), default=0) + 2
    lines = [" " * wide + "".join(f"{key[:18]:>20}" for key in systems)]
    lines += [
        f"{name:<{wide}}" + "".join(f"{_cell(cells.get((key, name))):>20}" for key in systems)
        for name in measures
    ]
    lines += [
        f"{each.system}, {each.measure}: {note}" for each in _first_of_note(result) for note in each.notes
    ]
    lines += [
        f"{'met   ' if each['met'] else 'NOT MET'} {each['system']}: {each['measure']} {each['goal']}:"
        f" {number(each['value'])}"
        for each in judged(result.figures)
    ]
    return "\n".join(lines)


def _cell(figure: Figure | None) -> str:
    return number(figure.value) if figure is not None and figure.value is not None else "–"


def _first_of_note(result: Result) -> list[Figure]:
    """A workload's note stands with all its figures; it is told with the first."""
    first: dict[tuple[str, str], Figure] = {}
    for each in result.figures:
        if each.notes:
            first.setdefault((each.system, each.workload), each)
    return list(first.values())
