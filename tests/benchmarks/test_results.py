"""Figures, goals, files and the page that is made of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.beside.close import close
from benchmarks.beside.run import ONE_BY_ONE, Run, Size
from benchmarks.beside.session import Failed, Unsupported
from benchmarks.figure import Book, Figure, Measured
from benchmarks.goals import GOALS, POSTGRESQL, at_least, at_most, judged
from benchmarks.known import SYSTEMS, System, chosen
from benchmarks.report.__main__ import DOCS, made
from benchmarks.report.page import page
from benchmarks.report.sections import SECTIONS
from benchmarks.result import Result

DRAIN = "drain 20,000 with 1 worker process, jobs/s"
OURS = next(each for each in SYSTEMS if each.key == POSTGRESQL)
PEER = next(each for each in SYSTEMS if each.key == "pgqueuer-postgresql")


def result(*figures: Figure) -> Result:
    systems = {
        POSTGRESQL: {"label": "Mainspring", "server": "PostgreSQL", "ours": True, "language": "Python"},
        PEER.key: {"label": "PgQueuer", "server": "PostgreSQL", "ours": False, "language": "Python"}
        | {"durability": "a|b"},
        "rq-redis": {"label": "rq", "missing": "no network", "language": "Python"},
    }
    return Result(what="peers", about={"commit": "abc"}, systems=systems, figures=figures)


def test_repeats_of_a_measure_are_one_figure() -> None:
    book = Book()
    for rate, note in ((100.0, ""), (300.0, "cut short"), (110.0, "cut short")):
        book.add("us", "drain", {DRAIN: rate}, others=0.25, pace=20.0, note=note)

    [figure] = book.figures

    assert (figure.value, figure.spread) == (110.0, (100.0, 300.0))
    assert (figure.others, figure.notes, figure.paces) == ([0.25] * 3, ["cut short"], [20.0] * 3)
    assert Figure.of(figure.json()) == figure


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [
        (at_least("x", 10), 10, True),
        (at_least("x", 10), 9.99, False),
        (at_most("x", 10), 10, True),
        (at_most("x", 10), 10.01, False),
    ],
)
def test_a_goal_has_a_direction(goal: object, value: float, met: bool) -> None:
    [verdict] = judged([Figure(POSTGRESQL, "x", "x", [value])], [goal])  # type: ignore[list-item]

    assert verdict["met"] is met


def test_goals_are_judged_by_the_system_they_are_for_and_by_figures_there_are() -> None:
    figures = [Figure(PEER.key, "drain", DRAIN, [1e6]), Figure(POSTGRESQL, "drain", DRAIN, [])]

    assert list(judged(figures)) == []
    assert len({(goal.system, goal.measure) for goal in GOALS}) == len(GOALS)


def test_a_result_is_the_same_after_it_was_written_and_read(tmp_path: Path) -> None:
    written = result(Figure(POSTGRESQL, "drain", DRAIN, [40_000.0], [0.1], ["a note"]))

    assert Result.read(written.write(tmp_path / "x.json")) == Result(
        what="peers", about=written.about, systems=written.systems, figures=list(written.figures)
    )


def test_a_workload_that_fails_is_told_and_ends_nothing() -> None:
    run = Run(Size(), {OURS.key: {"bulk": True}, PEER.key: {}})

    def raises(error: Exception) -> tuple[Measured, str]:
        raise error

    run.measure(PEER, "a", lambda: raises(Failed("it ended")))
    run.measure(PEER, "b", lambda: raises(Unsupported("no such call")))
    run.measure(PEER, "c", lambda: ({"c, jobs/s": 5.0}, ""))

    assert [(each.measure, each.value, each.notes) for each in run.book.figures] == [
        ("a", None, ["failed: it ended"]),
        ("b", None, ["has none: no such call"]),
        ("c, jobs/s", 5.0, []),
    ]


def test_who_stores_slowly_gets_as_many_jobs_as_there_is_time_for() -> None:
    run = Run(Size(), {OURS.key: {"bulk": True}, PEER.key: {"bulk": False}})
    for system in (OURS, PEER):
        run.book.add(system.key, "enqueue", {ONE_BY_ONE.format(2000): 333.0})

    assert run.affordable(OURS, 20_000) == 20_000
    assert run.affordable(PEER, 20_000) == 1900
    assert run.affordable(PEER, 1000) == 1000


def test_who_is_close_to_ours_is_measured_again_and_others_are_not() -> None:
    def told(rate: float | None) -> Run:
        run = Run(Size(), {})
        run.book.add(OURS.key, "drain", {DRAIN: 40_000.0})
        if rate is not None:
            run.book.add(PEER.key, "drain", {DRAIN: rate})
        return run

    for rate in (20_000.0, 80_000.0):
        assert close(told(rate), "drain", [OURS, PEER]) == [OURS, PEER]
    for far in (19_000.0, 81_000.0, None):
        assert close(told(far), "drain", [OURS, PEER]) == [OURS]
    assert close(told(40_000.0), "handlers", [OURS, PEER]) == []
    assert close(Run(Size(), {}), "drain", [OURS, PEER]) == []


def test_ours_come_along_with_whoever_is_named() -> None:
    assert [each.key for each in chosen(["saq-redis"])] == [POSTGRESQL, "mainspring-sqlite", "saq-redis"]
    assert chosen([]) == list(SYSTEMS)
    with pytest.raises(ValueError, match="nobody is called sidekiq"):
        chosen(["sidekiq"])


def test_the_page_tells_values_ratios_notes_failures_and_who_is_missing() -> None:
    pickup = "pickup p50, ms"
    run = result(
        Figure(POSTGRESQL, "drain", DRAIN, [40_000.0, 38_000.0, 41_000.0]),
        Figure(PEER.key, "drain", DRAIN, [8000.0], [0.5], ["8,000 of 20,000 in the time there was"]),
        Figure(POSTGRESQL, "pickup", pickup, [4.0], paces=[18.4]),
        Figure(PEER.key, "pickup", pickup, [2.0], paces=[31.0]),
        Figure(PEER.key, "sustained", "sustained", notes=["failed: it ended"]),
    )
    text = page([run], None)

    assert "| **Mainspring, PostgreSQL** | 40,000 (38,000–41,000) |" in text
    assert "| PgQueuer, PostgreSQL | 8,000<sup>1</sup> |" in text
    assert "1. 8,000 of 20,000 in the time there was" in text
    assert f"| {DRAIN} | 40,000 | 5× PgQueuer | – | – |" in text
    assert f"| {pickup} | 4 | **0.5×** PgQueuer | – | – |" in text
    assert "| rq | | not measured: no network | |" in text
    assert "a/b" in text
    assert "Others took up to 50% of the machine" in text
    assert "A fixed loop, before and after each, took 18 to 31 ms" in text


def test_pictures_are_drawings_with_every_value_in_print(tmp_path: Path) -> None:
    result(Figure(POSTGRESQL, "drain", DRAIN, [40_000.0]), Figure(PEER.key, "drain", DRAIN, [8123.0])).write(
        tmp_path / "2026-01-01-peers.json"
    )

    files = made(tmp_path)
    texts = [
        each.text for each in ElementTree.fromstring(files["images/bench-drain.svg"]).iter() if each.text
    ]

    assert {"40,000", "8,123", "PgQueuer, PostgreSQL"} <= set(texts)
    assert "](images/bench-drain.svg)" in files["benchmarks.md"]


def test_the_newest_result_of_a_kind_is_the_one_shown(tmp_path: Path) -> None:
    for day, rate in (("2026-01-02", 40_000.0), ("2026-01-01", 30_000.0)):
        found = result(Figure(POSTGRESQL, "drain", DRAIN, [rate]))
        replace(found, what="ours").write(tmp_path / f"{day}.json")

    text = made(tmp_path)["benchmarks.md"]

    assert "40,000" in text
    assert "30,000" not in text


def test_the_last_two_runs_beside_others_are_told_together_and_ratios_of_each(tmp_path: Path) -> None:
    runs = (("peers", 1.0, 1.0), ("peers-2", 40_000.0, 10_000.0), ("peers-3", 30_000.0, 40_000.0))
    for name, mine, other in runs:
        figures = Figure(POSTGRESQL, "drain", DRAIN, [mine]), Figure(PEER.key, "drain", DRAIN, [other])
        about = {"commit": f"of {name}"}
        replace(result(*figures), about=about).write(tmp_path / f"2026-01-01-{name}.json")

    text = made(tmp_path)["benchmarks.md"]

    assert "- commit of peers-2.\n- commit of peers-3.\n" in text.replace("\n\n", "\n")
    assert "commit of peers." not in text
    assert "| **Mainspring, PostgreSQL** | 35,000 (30,000–40,000) |" in text
    assert f"| {DRAIN} | 35,000 | 4×, **0.75×** PgQueuer | – | – |" in text


@pytest.mark.parametrize("count", [3, 30])
def test_a_curve_is_drawn_whole_and_told_in_a_few_lines(tmp_path: Path, count: int) -> None:
    points = [{"jobs": 10.0 * n, "claim": 2.0 + n, "rate": 500.0} for n in range(count)]
    curve: dict[str, object] = {
        "part": "soak",
        "name": "Claims",
        "x": "jobs",
        "units": {"claim": "ms", "rate": "jobs/s"},
    }
    curve |= {"cost": "claim", "bend": 1.5, "points": points, "about": {"commit": "abc"}}
    curve["others' share of the cores"] = 0.1
    (tmp_path / "2026-01-01-growth.json").write_text(json.dumps({"about": {}, "curves": [curve]}))

    files = made(tmp_path)
    text, drawing = files["benchmarks.md"], ElementTree.fromstring(files["images/growth-1-soak.svg"])
    [line] = [each for each in drawing.iter() if each.tag.endswith("polyline")]

    assert len(line.get("points", "").split()) == count
    assert text.count("| 500 |") == min(count, 8)
    assert f"| {10 * (count - 1)} | {count + 1} | 500 |" in text
    assert "Claim: the last is 1.50 × the first." in text
    assert "](images/growth-1-soak.svg)" in text
    assert "30,000" not in made(tmp_path)["benchmarks.md"]


def test_the_page_in_the_repository_is_what_the_results_make() -> None:
    for name, text in made().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name}: run `make bench-report`"


def test_every_side_by_side_measure_of_the_page_is_measured_by_that_name(tmp_path: Path) -> None:
    """The names are made in one place and read in another."""
    size = Size()
    made_names = {
        *(f"drain {size.drain:,} with {kind} handlers, jobs/s" for kind in ("async", "sync", "isolated")),
        *(f"lateness to the handler of {count:,} schedules p99, ms" for count in size.schedules),
        *(f"wait at {rate:,} jobs/s p99, ms" for rate in size.rates),
        f"two schedulers, {size.doubles:,} schedules: doubled",
        ONE_BY_ONE.format(size.one_by_one),
    }

    assert made_names <= {column.measure for section in SECTIONS for column in section.columns}


def test_a_system_is_a_peer_on_one_kind_of_server() -> None:
    assert len({each.key for each in SYSTEMS}) == len(SYSTEMS)
    assert all(isinstance(each, System) and each.server in each.peer.servers for each in SYSTEMS)
