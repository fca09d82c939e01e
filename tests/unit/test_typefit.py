"""Which results may be given to which parameters: only what certainly does not fit is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, TypeVar, Union

import pytest

from mainspring import Context, Mainspring
from mainspring.tasks.fit import Misfit, fits, inside, parameters, result_of

if TYPE_CHECKING:
    from nowhere import Unknown

T = TypeVar("T")


class Row(TypedDict):
    id: int


class Order:
    pass


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (int, int),
        (int, float),
        (float, int),
        (bool, int),
        (bool, float),
        (list[int], list[float]),
        (list, list[int]),
        (list[int], list),
        (list[str], Sequence[str]),
        (list[str], Iterable[str]),
        (str, Sequence[str]),
        (dict[str, int], Iterable[str]),
        (Sequence[int], list[str]),
        (dict[str, int], Mapping[str, int]),
        (Mapping[str, int], dict[str, float]),
        (int, Any),
        (Any, int),
        (int, object),
        (object, int),
        (str, date),
        (Order, int),
        (dict[str, int], Row),
        (Row, dict[str, int]),
        (Row, list[int]),
        (int, T),
        (list[T], list[int]),
        (int | None, int),
        (int, Optional[int]),  # noqa: UP045
        (Union[int, str], str),  # noqa: UP007
        (list[int | None], list[int]),
        (type(None), int | None),
        (str, Literal["a", "b"]),
        (Literal["a"], str),
        (Literal["a", "b"], Literal["b", "c"]),
        (Literal[1], float),
        ([int, str, Any], list),
        ([int, Any], list[float]),
        ([[int]], list[list[int]]),
        ([int], Sequence[int]),
        ([int], Order),
        ([int], str | list[int]),
        ({"a": int}, dict[str, int]),
        ({"a": int}, Mapping[str, int]),
        ({"a": int}, Row),
        ([], list[int]),
        (tuple[int, str], list[int]),
    ],
)
def test_it_may_fit(given: Any, wanted: Any) -> None:
    assert fits(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (str, int),
        (int, str),
        (int, bool),
        (str, bool),
        (str, float),
        (type(None), str),
        (int, type(None)),
        (list[str], list[int]),
        (list[list[str]], list[list[int]]),
        (list[int], dict[str, int]),
        (dict[str, int], list[int]),
        (dict[str, int], dict[str, str]),
        (Mapping[str, int], dict[str, str]),
        (dict[str, int], str),
        (list, str),
        (int, list),
        (int, Sequence[int]),
        (type(None), Iterable[int]),
        (list[str], Sequence[int]),
        (int, Mapping[str, int]),
        (list[int], Mapping[str, int]),
        (int | None, str | list[int]),
        (int, Literal["a"]),
        (Literal["a"], int),
        (Literal["a"], Literal["b"]),
        (list[Literal["a"]], list[int]),
        ([int, str], list[int]),
        ([int], int),
        ([int], dict[str, int]),
        ({"a": int}, list[int]),
        ({"a": str}, dict[str, int]),
        ({"a": [str]}, dict[str, list[int]]),
    ],
)
def test_it_certainly_does_not_fit(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)


@pytest.mark.parametrize(
    ("hint", "key", "part"),
    [
        (dict[str, int], "a", int),
        (Mapping[str, int], "a", int),
        (list[str], 0, str),
        (dict, "a", Any),
        (list, 0, Any),
        (Any, 0, Any),
        (Row, "id", Any),
        (Order, "x", Any),
        (dict[str, list[int]] | None, "a", list[int]),
        (dict[str, int] | list[str], "a", int),
        (dict[str, int] | Any, "a", Any),
    ],
)
def test_what_is_inside(hint: Any, key: str | int, part: Any) -> None:
    assert inside(hint, key) == part


@pytest.mark.parametrize(
    ("hint", "key"),
    [(int, "a"), (str, 0), (type(None), "a"), (list[int], "a"), (dict[str, int], 0), (int | str, 0)],
)
def test_what_is_certainly_not_inside(hint: Any, key: str | int) -> None:
    with pytest.raises(Misfit):
        inside(hint, key)


def test_what_tasks_result_in() -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def plain() -> int: ...  # type: ignore[empty-body]

    @app.task
    async def awaited() -> list[str]: ...  # type: ignore[empty-body]

    @app.task
    def bare(): ...  # type: ignore[no-untyped-def]

    @app.task
    def unknown() -> Unknown: ...

    @app.task
    def nothing() -> None: ...

    @app.task
    def settles(ctx: Context) -> None: ...

    found = [result_of(each) for each in (plain, awaited, bare, unknown, nothing)]
    assert found == [int, list[str], Any, Any, type(None)]
    # It may give its result to ctx.transaction(result=…).
    assert result_of(settles) is Any
    assert result_of(app.http("hook")) is Any


def test_each_argument_has_the_annotation_of_its_parameter() -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def many(ctx: Context, a: int, b, /, c: str = "", *rest: float, d: Unknown, **more: bool) -> None: ...  # type: ignore[no-untyped-def]

    found = list(parameters(many, [1, 2, "c", 1.0, 2.0], {"d": 5, "x": True}))

    assert found == [
        ("a", int, 1),
        ("b", Any, 2),
        ("c", str, "c"),
        ("rest", float, 1.0),
        ("rest", float, 2.0),
        ("d", Any, 5),
        ("x", bool, True),
    ]
