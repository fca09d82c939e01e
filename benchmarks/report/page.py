"""From results to the page: pure, so that a test can make it again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.figure import Figure
from benchmarks.goals import SQLITE, judged
from benchmarks.report import growth
from benchmarks.report.ahead import ahead
from benchmarks.report.bars import Row, bars
from benchmarks.report.sections import SECTIONS, Section
from benchmarks.report.words import HEAD, METHOD, NOTHING, OURS, RUNS
from benchmarks.result import Result, joined
from benchmarks.table import number

Grown = Mapping[str, Any]
"""What `make bench-growth` wrote."""


def page(
    peers: Sequence[Result], ours: Result | None, rest: Sequence[Result] = (), grown: Grown | None = None
) -> str:
    """All of it, as Markdown."""
    parts = [HEAD, "## Beside others\n"]
    parts += _beside(peers) if peers else [NOTHING]
    parts.append("## Ours\n")
    parts += [NOTHING] if ours is None else [_facts(ours), OURS, _goals(ours), _all(ours)]
    for result in rest:
        parts += [f"## {result.what.capitalize()}\n", _facts(result), _goals(result), _all(result)]
    parts += growth.parts(grown) if grown else []
    return "\n".join(part for part in parts if part)


def pictures(runs: Sequence[Result], grown: Grown | None = None) -> dict[str, str]:
    """By the name of their file: of the sections that have one, and of every curve."""
    found = growth.pictures(grown) if grown else {}
    if not runs:
        return found
    peers = joined(runs)
    for section in SECTIONS:
        columns = [section.columns[index] for index in section.drawn]
        measured = [key for key in peers.systems if any(peers.figure(key, each.measure) for each in columns)]
        if section.picture and measured:
            rows = [
                Row(
                    peers.name(key),
                    tuple(peers.value(key, each.measure) for each in columns),
                    peers.ours(key),
                )
                for key in measured
            ]
            legend = [column.head for column in columns]
            if section.picture == "lateness":
                legend = ["1,000 schedules, p99 ms", "10,000 schedules, p99 ms"]
            found[f"bench-{section.picture}.svg"] = bars(section.title, legend, rows)
    return found


def _beside(runs: Sequence[Result]) -> list[str]:
    notes: dict[str, int] = {}
    result = joined(runs)
    parts = [_facts(runs[0])] if len(runs) == 1 else [RUNS, *(f"- {_facts(each)}" for each in runs)]
    drawn = pictures(runs)
    for section in SECTIONS:
        body = _section(result, section, notes)
        if not body:
            continue
        parts.append(f"### {section.title}\n")
        if f"bench-{section.picture}.svg" in drawn:
            parts.append(f"![{section.title}](images/bench-{section.picture}.svg)\n")
        parts.append(body)
    if notes:
        parts.append("\n".join(f"{mark}. {text}" for text, mark in notes.items()) + "\n")
    parts += [ahead(runs), METHOD, _terms(result)]
    return parts


def _section(result: Result, section: Section, notes: dict[str, int]) -> str:
    columns = [
        each for each in section.columns if any(result.figure(key, each.measure) for key in result.systems)
    ]
    keys = [key for key in result.systems if any(result.figure(key, each.measure) for each in columns)]
    if not columns:
        return ""
    lines = [f"| | {' | '.join(each.head for each in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for key in keys:
        cells = [_cell(result.figure(key, each.measure), notes) for each in columns]
        name = f"**{result.name(key)}**" if result.ours(key) else result.name(key)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    failed = [
        f"{result.name(each.system)}: {note}."
        for each in result.figures
        for note in each.notes
        if not each.repeats and not note.startswith("has none") and _belongs(each, section)
    ]
    return "\n".join(lines) + "\n" + "".join(f"\n{line}\n" for line in failed)


def _belongs(figure: Figure, section: Section) -> bool:
    """Whether a workload without a figure would have stood in this section."""
    measures = [column.measure for column in section.columns]
    if figure.measure in measures:
        return True
    words = {
        "pickup": "Pickup by an idle worker, ms",
        "sustained": "Insert and run at a fixed rate",
        "kill -9 of a worker": "kill -9 of a worker with jobs in hand",
    }
    scheduled = "schedules" in figure.measure and section.title.startswith("Schedules")
    return words.get(figure.measure) == section.title or scheduled


def _cell(figure: Figure | None, notes: dict[str, int]) -> str:
    if figure is None or figure.value is None:
        return "–"
    text = number(figure.value)
    if len(figure.repeats) > 1:
        low, high = figure.spread
        text += f" ({number(low)}–{number(high)})" if low != high else ""
    marks = [notes.setdefault(note, len(notes) + 1) for note in figure.notes if _worth_telling(figure, note)]
    return text + "".join(f"<sup>{mark}</sup>" for mark in marks)


def _worth_telling(figure: Figure, note: str) -> bool:
    """One note of a workload stands with all its figures; beside counts that say the same it is too much."""
    return not re.search(r": (missed|doubled|held|not run again)$|wait at ", figure.measure) and note != ""


def _terms(result: Result) -> str:
    """What each one keeps, and how it was set."""
    lines = ["### Who, how durable, and with what settings\n", "| | version | what it keeps | settings |"]
    lines.append("|---|---|---|---|")
    for key, told in result.systems.items():
        if "missing" in told:
            lines.append(f"| {result.name(key)} | | not measured: {_plain(told['missing'])} | |")
            continue
        settings = told.get("settings", "")
        if isinstance(settings, dict):
            settings = "; ".join(f"{name} {value}" for name, value in settings.items())
        durability = _plain(told.get("durability", ""))
        lines.append(
            f"| {result.name(key)} | {told.get('version', '')} | {durability} | {_plain(settings)} |"
        )
    return "\n".join(lines) + "\n"


def _goals(result: Result) -> str:
    rows = [
        f"| {each['measure']}{', SQLite' if each['system'] == SQLITE else ''} | {each['goal']} "
        f"| {number(each['value'])} | {'yes' if each['met'] else '**no**'} |"
        for each in judged(result.figures)
    ]
    if not rows:
        return ""
    return "\n".join(["| goal | | measured | met |", "|---|---|---|---|", *rows, ""])


def _all(result: Result) -> str:
    """Every measure, systems across."""
    keys = [key for key in result.systems if any(each.system == key for each in result.figures)]
    measures = dict.fromkeys(each.measure for each in result.figures if each.repeats)
    lines = [f"| | {' | '.join(result.name(key) for key in keys)} |", "|---" * (len(keys) + 1) + "|"]
    notes: dict[str, int] = {}
    for measure in measures:
        cells = [_cell(result.figure(key, measure), notes) for key in keys]
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    told = "\n" + "\n".join(f"{mark}. {text}" for text, mark in notes.items()) + "\n" if notes else ""
    return "\n".join(lines) + "\n" + told


def _facts(result: Result) -> str:
    others = [each for figure in result.figures for each in figure.others]
    taken = f" Others took up to {max(others):.0%} of the machine during a measurement." if others else ""
    paces = [each for figure in result.figures for each in figure.paces]
    if paces:
        spread = f"{min(paces):.0f} to {max(paces):.0f} ms"
        taken += (
            f" A fixed loop, before and after each, took {spread}: so much did the machine's speed change."
        )
    told = [f"{name} {value}" for name, value in result.about.items() if not isinstance(value, list)]
    return f"{', '.join(told)}.{taken}\n"


def _plain(text: object) -> str:
    return str(text).replace("|", "/").replace("\n", " ")
