"""Graphs and bars in a terminal: pure drawing."""

from __future__ import annotations

from datetime import timedelta

from mainspring.admin.workflows.views import Attempt, Bar
from mainspring.cli.workflow_text import LETTERS, LINES, MOST_LANES, Scale, draw, in_order
from mainspring.testing.clock import START

SECOND = timedelta(seconds=1)
NOW = START + 10 * SECOND


def picture(graph: dict[str, str]) -> str:
    """Each node with its parents, one letter each."""
    drawn = draw({name: tuple(of) for name, of in graph.items()}, {name: name for name in graph}, LINES)
    assert drawn is not None
    return "\n".join(each.lanes for each in drawn)


def test_a_chain_is_one_lane() -> None:
    assert picture({"a": "", "b": "a", "c": "b"}) == "a\nb\nc"


def test_a_diamond_parts_and_meets() -> None:
    assert picture({"a": "", "b": "a", "c": "a", "d": "a", "e": "bcd"}) == "\n".join(
        ["a", "├─┬─╮", "b │ │", "│ c │", "│ │ d", "├─┴─╯", "e"]
    )


def test_beginnings_have_lanes_of_their_own() -> None:
    assert picture({"a": "", "b": "", "c": "ab", "d": ""}) == "a\n│ b\n├─╯\nc\nd"


def test_a_lane_passes_behind_others() -> None:
    assert picture({"a": "", "b": "a", "c": "a", "d": "b", "e": "b", "f": "cde"}) == "\n".join(
        ["a", "├─╮", "b │", "├─│─╮", "d │ │", "│ │ e", "│ c │", "├─┴─╯", "f"]
    )


def test_every_node_comes_after_its_parents_and_once() -> None:
    graph = {"e": "cd", "d": "ab", "c": "b", "b": "a", "a": ""}
    order = in_order({name: tuple(of) for name, of in graph.items()})
    assert sorted(order) == sorted(graph)
    assert all(order.index(parent) < order.index(name) for name, of in graph.items() for parent in of)


def test_a_graph_that_is_too_wide_is_not_drawn() -> None:
    wide = {"a": (), **{f"b{each}": ("a",) for each in range(MOST_LANES + 1)}}
    assert draw(wide, dict.fromkeys(wide, "o"), LINES) is None
    del wide["b0"]
    assert draw(wide, dict.fromkeys(wide, "o"), LINES) is not None


def test_letters_stand_for_lines_where_there_are_none() -> None:
    for sign in [*LETTERS.states.values(), LETTERS.branch, LETTERS.ran, LETTERS.waited]:
        assert sign.isascii()
    assert LETTERS.states.keys() == LINES.states.keys()


def bar(*attempts: Attempt, released: int = 0, finished: int | None = None) -> Bar:
    return Bar(
        name="a",
        item=None,
        job_id=1,
        state="running",
        released_at=START + released * SECOND,
        started_at=attempts[0].started_at if attempts else None,
        finished_at=None if finished is None else START + finished * SECOND,
        attempts=attempts,
    )


def attempt(start: int, end: int | None, verdict: str = "succeeded") -> Attempt:
    finished = None if end is None else START + end * SECOND
    return Attempt(
        number=1, verdict=verdict, started_at=START + start * SECOND, finished_at=finished, worker=None
    )


def test_a_bar_shows_where_a_step_waited_and_ran() -> None:
    scale = Scale(START, NOW, 10)
    tried = bar(attempt(1, 3, "failed"), attempt(5, 8), released=0, finished=8)
    assert scale.bar(tried, NOW, LINES) == "·▒▒··███"
    assert scale.bar(bar(attempt(4, None, "running"), released=2), NOW, LINES) == "  ··█████▶"
    assert scale.bar(bar(released=6), NOW, LETTERS) == "      ...."


def test_a_bar_is_never_empty_and_never_too_long() -> None:
    short = bar(attempt(5, 5), released=5, finished=5)
    assert Scale(START, START + 3600 * SECOND, 10).bar(short, NOW, LINES) == "█"
    assert Scale(START, START, 10).bar(short, NOW, LINES) == " " * 9 + "█"
    late = bar(attempt(90, 95), released=80, finished=95)
    assert Scale(START, NOW, 10).bar(late, NOW, LINES) == " " * 9 + "█"
