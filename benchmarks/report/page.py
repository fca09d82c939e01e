"""From results to the page: pure, so that a test can make it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.figure import Figure
from benchmarks.goals import POSTGRESQL, SQLITE, judged
from benchmarks.report.bars import Row, bars
from benchmarks.report.words import HEAD, METHOD, NOTHING
from benchmarks.result import Result
from benchmarks.table import number


@dataclass(frozen=True)
class Column:
    """A measure, under a short name."""

    head: str
    measure: str
    more: bool = False
    """More of it is better; else less is."""


@dataclass(frozen=True)
class Section:
    title: str
    columns: tuple[Column, ...]
    picture: str = ""
    """The name of its file, if it has one."""
    drawn: tuple[int, ...] = ()
    """Which columns are in it."""


def more(head: str, measure: str) -> Column:
    return Column(head, measure, more=True)


def less(head: str, measure: str) -> Column:
    return Column(head, measure)


SECTIONS = (
    Section(
        "Storing jobs, per second",
        (
            more("one by one", "enqueue 2,000 one by one, jobs/s"),
            more("in bulk", "enqueue 20,000 in bulk, jobs/s"),
        ),
        "enqueue",
        (0, 1),
    ),
    Section(
        "Draining no-ops, per second",
        (
            more("20,000, 1 process", "drain 20,000 with 1 worker process, jobs/s"),
            more("2 processes", "drain 20,000 with 2 worker processes, jobs/s"),
            more("200,000, 1 process", "drain 200,000 with 1 worker process, jobs/s"),
            more("2 processes", "drain 200,000 with 2 worker processes, jobs/s"),
            more("1,000,000, 1 process", "drain 1,000,000 with 1 worker process, jobs/s"),
        ),
        "drain",
        (0, 1),
    ),
    Section(
        "Kinds of handlers, drain of 20,000, per second",
        tuple(
            more(kind, f"drain 20,000 with {kind} handlers, jobs/s") for kind in ("async", "sync", "isolated")
        ),
    ),
    Section(
        "Pickup by an idle worker, ms",
        (less("p50", "pickup p50, ms"), less("p99", "pickup p99, ms")),
        "pickup",
        (0, 1),
    ),
    Section(
        "Insert and run at a fixed rate",
        (
            more("highest rate held, jobs/s", "highest rate held, jobs/s"),
            *(
                less(f"wait at {rate}/s {which}, ms", f"wait at {rate} jobs/s {which}, ms")
                for rate in ("250", "1,000", "4,000", "15,000", "25,000")
                for which in ("p50", "p99")
            ),
        ),
    ),
    Section(
        "Schedules due on the same minute",
        (
            less("1,000: late p50, ms", "lateness to the handler of 1,000 schedules p50, ms"),
            less("p99", "lateness to the handler of 1,000 schedules p99, ms"),
            less("missed", "1,000 schedules: missed"),
            less("10,000: late p50, ms", "lateness to the handler of 10,000 schedules p50, ms"),
            less("p99", "lateness to the handler of 10,000 schedules p99, ms"),
            less("missed", "10,000 schedules: missed"),
            less("two schedulers: doubled, of 200", "two schedulers, 100 schedules: doubled"),
        ),
        "lateness",
        (1, 4),
    ),
    Section(
        "kill -9 of a worker with jobs in hand",
        (
            less("held", "kill -9 of a worker: held"),
            less("all had run again after, s", "kill -9 of a worker: all had run again after, s"),
            less("not run again", "kill -9 of a worker: not run again"),
        ),
    ),
    Section(
        "What it takes",
        (
            less("idle worker, MB", "idle worker, MB"),
            less("after 20,000 jobs, MB", "worker after 20,000 jobs, MB"),
            less("idle worker, % of a core", "idle worker, % of a core"),
            less("its server", "server of an idle worker, % of a core"),
            less("worker CPU, µs a job", "drain 20,000 with 1 worker process, jobs/s: worker CPU µs a job"),
            less("server CPU", "drain 20,000 with 1 worker process, jobs/s: server CPU µs a job"),
            less("WAL, bytes a job", "WAL per job of 20,000, bytes"),
            less("commits a job", "commits per job of 20,000"),
            less("dead rows a job", "dead rows per job of 20,000"),
        ),
    ),
)

COMPARED = tuple(
    column
    for section in SECTIONS[:6]
    for column in section.columns
    if column.head not in ("missed", "two schedulers: doubled, of 200")
)


def page(peers: Result | None, ours: Result | None, rest: Sequence[Result] = ()) -> str:
    """All of it, as Markdown."""
    parts = [HEAD, "## Beside others\n"]
    parts += [NOTHING] if peers is None else _beside(peers)
    parts.append("## Ours\n")
    parts += [NOTHING] if ours is None else [_facts(ours), _goals(ours), _all(ours)]
    for result in rest:
        parts += [f"## {result.what.capitalize()}\n", _facts(result), _goals(result), _all(result)]
    return "\n".join(part for part in parts if part)


def pictures(peers: Result | None) -> dict[str, str]:
    """By the name of their file: the sections that have one."""
    if peers is None:
        return {}
    found = {}
    for section in SECTIONS:
        columns = [section.columns[index] for index in section.drawn]
        measured = [key for key in peers.systems if any(_of(peers, key, each.measure) for each in columns)]
        if section.picture and measured:
            rows = [
                Row(
                    _name(peers, key),
                    tuple(_value(peers, key, each.measure) for each in columns),
                    _mine(peers, key),
                )
                for key in measured
            ]
            legend = [column.head for column in columns]
            if section.picture == "lateness":
                legend = ["1,000 schedules, p99 ms", "10,000 schedules, p99 ms"]
            found[f"bench-{section.picture}.svg"] = bars(section.title, legend, rows)
    return found


def _beside(result: Result) -> list[str]:
    notes: dict[str, int] = {}
    parts = [_facts(result)]
    drawn = pictures(result)
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
    parts += [_ahead(result), METHOD, _terms(result)]
    return parts


def _section(result: Result, section: Section, notes: dict[str, int]) -> str:
    columns = [
        each for each in section.columns if any(_of(result, key, each.measure) for key in result.systems)
    ]
    keys = [key for key in result.systems if any(_of(result, key, each.measure) for each in columns)]
    if not columns:
        return ""
    lines = [f"| | {' | '.join(each.head for each in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for key in keys:
        cells = [_cell(_of(result, key, each.measure), notes) for each in columns]
        name = f"**{_name(result, key)}**" if _mine(result, key) else _name(result, key)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    failed = [
        f"{_name(result, each.system)}: {note}."
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


def _ahead(result: Result) -> str:
    """Ours on PostgreSQL by the best of the others, measure by measure, in the same run."""
    lines = []
    for column in COMPARED:
        mine = _value(result, POSTGRESQL, column.measure)
        if not mine:
            continue
        cells = [
            _ratio(result, column, mine, [key for key in result.systems if _speaks(result, key, language)])
            for language in ("Python", "Node")
        ]
        if any(cell != "–" for cell in cells):
            lines.append(f"| {column.measure} | {number(mine)} | {' | '.join(cells)} |")
    if not lines:
        return ""
    head = "| measure | ours, PostgreSQL | by the best in Python | by the best in Node |\n|---|---|---|---|"
    return "\n".join(
        [
            "### Ahead, and where not\n",
            "How many times better ours on PostgreSQL is; below 1, the other one is ahead. Systems on Valkey "
            "are compared, too, though they keep less (see below).\n",
            head,
            *lines,
            "",
        ]
    )


def _ratio(result: Result, column: Column, mine: float, keys: Iterable[str]) -> str:
    values = {key: value for key in keys if (value := _value(result, key, column.measure))}
    if not values:
        return "–"
    best = (max if column.more else min)(values, key=lambda key: values[key])
    ratio = mine / values[best] if column.more else values[best] / mine
    text = f"{ratio:.2g}×" if ratio < 10 else f"{ratio:,.0f}×"
    return f"{text if ratio >= 1 else f'**{text}**'} {_name(result, best)}"


def _terms(result: Result) -> str:
    """What each one keeps, and how it was set."""
    lines = ["### Who, how durable, and with what settings\n", "| | version | what it keeps | settings |"]
    lines.append("|---|---|---|---|")
    for key, told in result.systems.items():
        if "missing" in told:
            lines.append(f"| {_name(result, key)} | | not measured: {_plain(told['missing'])} | |")
            continue
        settings = told.get("settings", "")
        if isinstance(settings, dict):
            settings = "; ".join(f"{name} {value}" for name, value in settings.items())
        durability = _plain(told.get("durability", ""))
        lines.append(
            f"| {_name(result, key)} | {told.get('version', '')} | {durability} | {_plain(settings)} |"
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
    lines = [f"| | {' | '.join(_name(result, key) for key in keys)} |", "|---" * (len(keys) + 1) + "|"]
    notes: dict[str, int] = {}
    for measure in measures:
        cells = [_cell(_of(result, key, measure), notes) for key in keys]
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    told = "\n" + "\n".join(f"{mark}. {text}" for text, mark in notes.items()) + "\n" if notes else ""
    return "\n".join(lines) + "\n" + told


def _facts(result: Result) -> str:
    others = [each for figure in result.figures for each in figure.others]
    taken = f" Others took up to {max(others):.0%} of the machine during a measurement." if others else ""
    told = [f"{name} {value}" for name, value in result.about.items() if not isinstance(value, list)]
    return f"{', '.join(told)}.{taken}\n"


def _of(result: Result, key: str, measure: str) -> Figure | None:
    found = (each for each in result.figures if (each.system, each.measure) == (key, measure))
    return next((each for each in found if each.repeats), None)


def _value(result: Result, key: str, measure: str) -> float | None:
    found = _of(result, key, measure)
    return None if found is None else found.value


def _name(result: Result, key: str) -> str:
    told = result.systems[key]
    return ", ".join(filter(None, [told.get("label", key), told.get("server", "")]))


def _mine(result: Result, key: str) -> bool:
    return bool(result.systems[key].get("ours"))


def _speaks(result: Result, key: str, language: str) -> bool:
    return not _mine(result, key) and result.systems[key].get("language") == language


def _plain(text: object) -> str:
    return str(text).replace("|", "/").replace("\n", " ")
