"""Values and annotations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Literal, Optional

import pytest

from mainspring import Context, Mainspring
from mainspring.tasks.fit import Fit


def fit_of(function: Callable[..., Any]) -> Fit:
    return Fit(Mainspring("sqlite://:memory:").task(function))


def typed(
    ctx: Context,
    text: str,
    number: int,
    ratio: float,
    flag: bool,
    maybe: Optional[str],  # noqa: UP045  both spellings
    either: int | str | None,
    rows: list[int],
    bare: list,  # type: ignore[type-arg]
    table: dict[str, list[str]],
    mode: Literal["a", "b"],
    day: date,
    days: list[date],
    thing: Callable[[], None],
    lost: Missing,  # type: ignore[name-defined]  # noqa: F821
    free,  # type: ignore[no-untyped-def]
) -> None: ...


@pytest.mark.parametrize(
    ("name", "fits", "does_not"),
    [
        ("text", ["", "x"], [1, None, ["x"]]),
        ("number", [1, -(2**63)], ["1", 1.5, None, True]),
        ("ratio", [1, 1.5], ["1.5", None]),
        ("flag", [True], [1, "true", None]),
        ("maybe", [None, "x"], [1]),
        ("either", [None, "x", 1], [[], {}]),
        ("rows", [[], [1]], [["1"], {}, None, "1"]),
        ("bare", [[], ["x"]], [{}, "x"]),
        ("table", [{}, {"a": ["b"]}], [{"a": "b"}, {"a": [1]}, []]),
        ("mode", ["a", "b"], ["c", 1, None]),
        ("day", ["2026-01-01", 1, None], []),
        ("days", [["soon"], [1]], ["soon"]),
        ("thing", [1, None], []),
        ("lost", [1, None], []),
        ("free", [1, None], []),
    ],
)
def test_a_value_fits_or_does_not(name: str, fits: list[Any], does_not: list[Any]) -> None:
    fit = fit_of(typed)

    assert [value for value in fits if fit.misfit((), {name: value})] == []
    assert [value for value in does_not if not fit.misfit((), {name: value})] == []


def test_arguments_by_position_are_those_that_callers_pass() -> None:
    fit = fit_of(typed)

    assert fit.misfit(("x", 1), {}) is None
    assert fit.misfit((1, 1), {}) == "text: expected str, got int"
    assert fit.misfit(("x", "y"), {}) == "number: expected int, got str"


def test_where_in_a_list_it_is_does_not_make_another_problem() -> None:
    fit = fit_of(typed)

    problems = {fit.misfit((), {"rows": [*range(length), "x"]}) for length in range(5)}

    assert problems == {"rows: expected int, got str"}


def test_open_parameters_take_anything() -> None:
    def open_(*args: int, **kwargs: int) -> None: ...

    assert fit_of(open_).misfit(("x",), {"y": "z"}) is None
