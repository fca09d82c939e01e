"""Calls are judged as Python would judge them, and the context is put where it is wanted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.tasks import context as module
from mainspring.tasks.context import Context
from mainspring.tasks.signature import Signature

if TYPE_CHECKING:
    from nowhere import Context as Missing
    from nowhere import Unknown


class Stop:
    def is_set(self) -> bool:
        return False


CONTEXT = Context(
    job_id=1, task="t", queue="q", attempt=1, max_attempts=1, fence=1, log=None, stop=Stop()  # type: ignore[arg-type]
)  # fmt: skip

NAMES = ["a", "b", "c", "d"]


Handler = Callable[..., dict[str, object]]


def written(parts: list[str]) -> Handler:
    scope: dict[str, object] = {"Context": Context}
    exec(f"def f({', '.join(parts)}):\n    return dict(locals())", scope)
    return scope["f"]  # type: ignore[return-value]


@st.composite
def handlers(draw: st.DrawFn) -> tuple[Handler, Handler]:
    """A function with parameters of any kind and a context anywhere, and the same without the context."""
    only_by_position, either = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    count = only_by_position + either
    defaults_from = draw(st.integers(0, count))
    parts = [f"{name}=0" if at >= defaults_from else name for at, name in enumerate(NAMES[:count])]
    if only_by_position:
        parts.insert(only_by_position, "/")
    place = draw(st.integers(0, len(parts)))
    star, only = draw(st.sampled_from(["", "*rest"])), draw(st.sampled_from(["", "e", "e=0"]))
    tail = [star or "*", only] if only else [star] if star else []
    more = draw(st.sampled_from([[], ["**more"]]))
    if tail and draw(st.booleans()):
        return written([*parts, *tail, CTX, *more]), written([*parts, *tail, *more])
    after_default = any("=" in part for part in parts[:place])
    with_context = [*parts[:place], f"{CTX} = None" if after_default else CTX, *parts[place:]]
    return written([*with_context, *tail, *more]), written([*parts, *tail, *more])


CTX = "ctx: Context"
ARGS = st.lists(st.integers(1, 9), max_size=5)
KWARGS = st.dictionaries(st.sampled_from([*NAMES, "e", "ctx", "other"]), st.integers(1, 9), max_size=4)


@given(handlers(), ARGS, KWARGS)
def test_a_call_is_judged_and_made_as_python_would(
    pair: tuple[Handler, Handler], args: list[int], kwargs: dict[str, int]
) -> None:
    function, twin = pair
    try:
        signature = Signature.of(function)
    except InvalidArgument:
        assert str(inspect.signature(function)).count("/")
        return
    by_position = inspect.signature(function).parameters["ctx"].kind is inspect.Parameter.POSITIONAL_ONLY
    try:
        expected = twin(*args, **kwargs) if by_position or "ctx" not in kwargs else None
    except TypeError:
        expected = None

    try:
        signature.check(args, kwargs)
        found = signature.call(function, CONTEXT, args, kwargs)
    except InvalidArgument as refusal:
        assert refusal.field.startswith("f")
        found = None

    assert found == (None if expected is None else {**expected, "ctx": CONTEXT})


@given(handlers(), ARGS, KWARGS)
def test_a_handler_without_a_context_is_judged_the_same(
    pair: tuple[Handler, Handler], args: list[int], kwargs: dict[str, int]
) -> None:
    twin = pair[1]
    signature = Signature.of(twin)
    try:
        expected = twin(*args, **kwargs)
    except TypeError:
        with pytest.raises(InvalidArgument):
            signature.check(args, kwargs)
        return

    signature.check(args, kwargs)

    assert signature.call(twin, CONTEXT, args, kwargs) == expected


def first(ctx: Context, a: int) -> None: ...
def last(a: int, ctx: Context) -> None: ...
def keyword(a: int, *, ctx: Context) -> None: ...
def optional(a: int, ctx: Context | None = None) -> None: ...
def old_optional(a: int, ctx: Optional[Context] = None) -> None: ...  # noqa: UP045
def qualified(a: int, ctx: module.Context) -> None: ...
def quoted(a: int, ctx: "Context") -> None: ...  # noqa: UP037
def beside_an_unknown(ctx: Context, a: Unknown) -> None: ...


def typing_only() -> Callable[..., object]:
    scope: dict[str, object] = {}
    exec("from __future__ import annotations\ndef f(a: int, ctx: ms.Context): ...", scope)
    return scope["f"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    "function",
    [first, last, keyword, optional, old_optional, qualified, quoted, beside_an_unknown, typing_only()],
    ids=lambda each: each.__name__,
)
def test_the_context_is_found_by_its_annotation_anywhere(function: Callable[..., object]) -> None:
    signature = Signature.of(function)

    signature.check((5,), {})
    signature.check((), {"a": 5})
    with pytest.raises(InvalidArgument):
        signature.check((5, 6), {})
    with pytest.raises(InvalidArgument):
        signature.check((5,), {"ctx": 6})


def other_context(a: int, ctx: Missing) -> None: ...
def no_context(a: int, ctx: int) -> None: ...


@pytest.mark.parametrize("function", [other_context, no_context])
def test_a_parameter_merely_called_ctx_is_an_argument(function: Callable[..., object]) -> None:
    Signature.of(function).check((1, 2), {})


def test_two_contexts_are_refused() -> None:
    def twice(one: Context, two: Context) -> None: ...

    with pytest.raises(InvalidArgument, match="one Context"):
        Signature.of(twice)


def bill(ctx: Context, tenant: str, month: str, *, dry: bool = False) -> None: ...


@pytest.mark.parametrize(
    ("args", "kwargs", "field", "message"),
    [
        (["acme"], {}, "bill.month", "no default, got nothing"),
        ([], {"month": "1"}, "bill.tenant", "no default"),
        (["acme", "1", "2"], {}, "bill", "at most 2 positional arguments, got 3"),
        (["acme"], {"mouth": "1"}, "bill", "dry, month.*got 'mouth'"),
        (["acme", "1"], {"month": "2"}, "bill.month", "second value"),
        (["acme", "1"], {"ctx": "2"}, "bill.ctx", "second value"),
    ],
)
def test_a_refusal_names_the_task_and_the_parameter(
    args: list[str], kwargs: dict[str, str], field: str, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message) as refusal:
        Signature.of(bill).check(args, kwargs)

    assert refusal.value.field == field


def test_colour_is_seen_through_partials_and_callable_objects() -> None:
    async def tick(a: int) -> None: ...

    class Handler:
        async def __call__(self, a: int) -> None: ...

    assert Signature.of(tick).is_async
    assert Signature.of(functools.partial(tick, 1)).is_async
    assert Signature.of(Handler()).is_async
    assert not Signature.of(bill).is_async


def yields() -> Iterator[int]:
    yield 1


async def yields_async() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("thing", [yields, yields_async, 5, None, "bill"])
def test_what_cannot_be_run_as_a_task_is_refused(thing: object) -> None:
    with pytest.raises(InvalidArgument, match="task"):
        Signature.of(thing)  # type: ignore[arg-type]
