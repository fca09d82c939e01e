"""A handler's parameters: checked before a job is stored, and filled when it runs."""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from inspect import Parameter
from typing import NoReturn

from mainspring.errors import InvalidArgument
from mainspring.tasks.context import Context

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
# For a module that imports the class for type checkers only, so that its name leads nowhere.
_CONTEXT_BY_NAME = re.compile(r"""['"]?(?:\w+\.)*Context(?:\s*\|\s*None)?['"]?""")


class TextKind(Enum):
    """Whether a parameter takes text, for callers that have only text."""

    TEXT = auto()
    TEXT_OR_NONE = auto()
    OTHER = auto()


class Signature:
    """What a call of a task may look like, without the context, which the worker adds.

    For every number of positional arguments, the keywords that must, may and must not come with
    them are worked out once, so that a check is a few set comparisons.
    """

    __slots__ = (
        "_barred", "_bindable", "_context", "_least", "_most", "_needed", "_open", "_place", "_taken",
        "_task", "_text", "is_async", "parameters",
    )  # fmt: skip

    def __init__(self, task: str, function: Callable[..., object]) -> None:
        every = list(inspect.signature(function).parameters.values())
        context = _context_of(task, function, every)
        parameters = [each for each in every if each is not context]
        positional = [each for each in parameters if each.kind in _BY_POSITION]
        kinds = {each.kind for each in parameters}
        self._task = task
        self.parameters = tuple(parameters)
        self._bindable = inspect.Signature(parameters)
        self._text = {each.name: _text_kind(function, each) for each in parameters}
        self.is_async = is_async(function)
        self._context = context
        self._place = every.index(context) if context and context.kind in _BY_POSITION else None
        self._least = sum(
            each.kind is Parameter.POSITIONAL_ONLY and _is_required(each) for each in positional
        )
        self._most = sys.maxsize if Parameter.VAR_POSITIONAL in kinds else len(positional)
        self._open = Parameter.VAR_KEYWORD in kinds
        cuts = range(len(positional) + 1)
        self._needed = [_names(parameters, positional[:cut], _is_required) for cut in cuts]
        self._taken = [_names(parameters, positional[:cut]) for cut in cuts]
        self._barred = [_names([*positional[:cut], *([context] if context else [])]) for cut in cuts]

    @classmethod
    def of(cls, function: Callable[..., object], task: str = "") -> Signature:
        """Read a function; `task` is what errors call it."""
        if (
            not callable(function)
            or inspect.isgeneratorfunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            raise InvalidArgument("task", function, "a function or coroutine function that does not yield")
        return cls(task or getattr(function, "__name__", "task"), function)

    @property
    def wants_context(self) -> bool:
        """Whether the handler has a parameter for the context; `call` may be given None otherwise."""
        return self._context is not None

    @property
    def context_is_first(self) -> bool:
        """Whether a direct call begins with the context."""
        return self._place == 0

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters a caller may give, in order."""
        return tuple(each.name for each in self.parameters)

    def bound(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Each parameter's value in a call that passed `check`, defaults too: however it was written, the
        same call is the same."""
        bound = self._bindable.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def text_kind(self, name: str) -> TextKind:
        """What the annotation of that parameter says about text."""
        return self._text.get(name, TextKind.OTHER)

    def check(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """Raise InvalidArgument unless the handler can be called with these."""
        count = len(args)
        if not self._least <= count <= self._most:
            self._explain(args, kwargs)
        if count >= len(self._needed):
            count = -1
        needed = self._needed[count]
        if not kwargs:
            if needed:
                self._explain(args, kwargs)
            return
        keys = kwargs.keys()
        known = keys.isdisjoint(self._barred[count]) if self._open else keys <= self._taken[count]
        if not known or not needed <= keys:
            self._explain(args, kwargs)

    def call(
        self,
        function: Callable[..., object],
        context: Context | None,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Call the handler, with the context where it wants one; InvalidArgument unless it takes these."""
        wanted, place = self._context, self._place
        try:
            if wanted is None:
                return function(*args, **kwargs)
            if place is not None and len(args) >= place:
                return function(*args[:place], context, *args[place:], **kwargs)
            return function(*args, **kwargs, **{wanted.name: context})
        except TypeError:
            self.check(args, kwargs)  # were they put in for other code, or without being checked?
            raise

    def _explain(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NoReturn:
        count = min(len(args), len(self._needed) - 1)
        if len(args) > self._most:
            raise InvalidArgument(self._task, len(args), f"at most {self._most} positional arguments")
        if len(args) < self._least:
            raise InvalidArgument(self._task, len(args), f"at least {self._least} positional arguments")
        for name, value in kwargs.items():
            if name in self._barred[count]:
                raise InvalidArgument(f"{self._task}.{name}", value, "no second value for it")
            if not self._open and name not in self._taken[count]:
                names = ", ".join(sorted(self._taken[0])) or "none by keyword"
                raise InvalidArgument(self._task, name, f"only parameters it has ({names})")
        missing = min(self._needed[count] - kwargs.keys())
        raise InvalidArgument(f"{self._task}.{missing}", _NOTHING, "a value, for it has no default")


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def _names(
    parameters: Sequence[Parameter],
    given: Sequence[Parameter] = (),
    wanted: Callable[[Parameter], bool] = lambda _: True,
) -> frozenset[str]:
    """Those that can be given by keyword and are not given yet."""
    return frozenset(
        each.name for each in parameters if each.kind in _BY_KEYWORD and each not in given and wanted(each)
    )


def _context_of(
    task: str, function: Callable[..., object], parameters: Sequence[Parameter]
) -> Parameter | None:
    found = [each for each in parameters if _is_context(function, each)]
    if len(found) > 1 or any(
        each.kind is Parameter.POSITIONAL_ONLY and not _is_required(each) for each in found
    ):
        names = ", ".join(each.name for each in found)
        raise InvalidArgument(task, names, "one Context parameter, not positional-only with a default")
    return found[0] if found else None


def _is_context(function: Callable[..., object], parameter: Parameter) -> bool:
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return False
    hint = hint_of(function, parameter)
    if hint is None:
        text = parameter.annotation
        return isinstance(text, str) and _CONTEXT_BY_NAME.fullmatch(text) is not None
    return hint is Context or Context in typing.get_args(hint)


def _text_kind(function: Callable[..., object], parameter: Parameter) -> TextKind:
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return TextKind.OTHER
    hint = hint_of(function, parameter)
    if hint is str:
        return TextKind.TEXT
    # Not any generic of the two: tuple[str, None] has the same arguments.
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if is_union and set(typing.get_args(hint)) == {str, types.NoneType}:
        return TextKind.TEXT_OR_NONE
    return TextKind.OTHER


def hint_of(function: Callable[..., object], parameter: Parameter) -> object:
    """The type that the annotation names; None if a name in it cannot be resolved."""
    return meaning_of(function, parameter.annotation)


def meaning_of(function: Callable[..., object], annotation: object) -> object:
    """The same for any annotation of the function."""
    # One annotation at a time, so that one that cannot be resolved does not hide the others.
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return typing.cast("object", typing.get_type_hints(holder, globalns=scope)["it"])
    except (NameError, AttributeError, TypeError, SyntaxError):
        return None


def is_async(function: Callable[..., object]) -> bool:
    """Whether a call returns an awaitable."""
    call = getattr(function, "__call__", None)  # noqa: B004  an object may be called through a coroutine method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
