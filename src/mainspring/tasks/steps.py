"""Steps of a workflow as users hold them, and the inputs that other steps take from them."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.model.workflow import Constant, Fields, Input, Items, Param, StepResult
from mainspring.tasks import payload
from mainspring.tasks.fit import Misfit, inside

R_co = TypeVar("R_co", covariant=True)
MOST_KEYS = 20
LONGEST_KEY = 200
_KEY = f"a key or a place inside it: text of at most {LONGEST_KEY} characters, or a whole number from 0"


class Flow(Protocol):
    """The workflow that steps belong to."""

    @property
    def name(self) -> str: ...
    def order(self, step: Step[Any], earlier: tuple[Step[Any], ...]) -> None:
        """Let a step wait for others."""


class Ref:
    """A value that is known when the workflow runs. `ref["rows"][0]` is a part of it."""

    __slots__ = ("flow", "hint", "label", "path")

    def __init__(self, flow: Flow, label: str, path: tuple[str | int, ...] = (), hint: Any = Any) -> None:
        self.flow = flow
        self.label = label
        """Its name in error messages."""
        self.path = path
        self.hint = hint
        """Its type, as far as annotations show it."""

    @abstractmethod
    def __getitem__(self, key: str | int) -> Ref:
        """A part of it."""

    def _at(self, key: str | int) -> tuple[tuple[str | int, ...], Any]:
        field = f"{self.flow.name}.{self.label}"
        is_key = isinstance(key, str) and len(key) <= LONGEST_KEY and key.isprintable()
        if not is_key and (type(key) is not int or key < 0):
            raise InvalidWorkflow(field, key, _KEY)
        if len(self.path) == MOST_KEYS:
            raise InvalidWorkflow(field, key, f"at most {MOST_KEYS} keys, one inside the other")
        try:
            return (*self.path, key), inside(self.hint, key)
        except Misfit as what:
            kind = "a dict" if isinstance(key, str) else "a list"
            raise InvalidWorkflow(f"{field}[{key!r}]", str(what), f"{kind}: nothing else has one") from None

    def __iter__(self) -> NoReturn:
        # Python would ask for [0], [1], … for ever.
        raise InvalidWorkflow(
            f"{self.flow.name}.{self.label}",
            self,
            "no loop: how many there are is known when it runs; use map",
        )

    def __bool__(self) -> NoReturn:
        raise InvalidWorkflow(
            f"{self.flow.name}.{self.label}", self, "no `if`: what it is is known when it runs; use only_if="
        )

    def __repr__(self) -> str:
        keys = "".join(f"[{key!r}]" for key in self.path)
        return f"<{self.label}{keys} of workflow {self.flow.name}>"


class ParamRef(Ref):
    """What the workflow is started with."""

    __slots__ = ("name",)

    def __init__(self, flow: Flow, name: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(flow, f"param {name}", path)
        self.name = name

    def __getitem__(self, key: str | int) -> ParamRef:
        return ParamRef(self.flow, self.name, self._at(key)[0])

    @property
    def input(self) -> Param:
        """The same for the definition."""
        return Param(name=self.name, path=self.path)


class ResultRef(Ref):
    """The result of a step, or a part of it."""

    __slots__ = ("place",)

    def __init__(
        self, flow: Flow, label: str, place: int, path: tuple[str | int, ...] = (), hint: Any = Any
    ) -> None:
        super().__init__(flow, label, path, hint)
        self.place = place
        """That of its step among the steps of the workflow."""

    def __getitem__(self, key: str | int) -> ResultRef:
        path, hint = self._at(key)
        return ResultRef(self.flow, self.label, self.place, path, hint)

    @property
    def input(self) -> StepResult:
        """The same for the definition."""
        return StepResult(step=self.place, path=self.path)


class Step(ResultRef, Generic[R_co]):
    """A step of a workflow. Passed to another step it stands for its result, and the other step waits for
    it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name in the workflow."""
        return self.label

    def after(self, *steps: Step[Any]) -> Self:
        """Wait for these, without their results: `load.after(lock)`."""
        self.flow.order(self, steps)
        return self


class Inputs:
    """Reads values that may have references in them; keeps in mind whose results were read."""

    def __init__(self, flow: Flow, field: str) -> None:
        self._flow, self._field = flow, field
        self._left = payload.LARGEST_PAYLOAD // 2 + 1  # each takes two bytes, at least
        self.reads: set[int] = set()

    def call(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[Input, ...], dict[str, Input]]:
        """The arguments of a step. What is constant in them must be JSON."""
        placed = [self._read(each, payload.DEEPEST) for each in args]
        named = {name: self._read(each, payload.DEEPEST) for name, each in kwargs.items()}
        try:
            payload.encode(
                [_bare(each) for each in placed],
                {name: _bare(each) for name, each in named.items()},
                field=self._field,
            )
        except InvalidArgument as wrong:
            raise InvalidWorkflow(wrong.field, wrong.got, wrong.expected) from None
        return tuple(map(_kept, placed)), {name: _kept(each) for name, each in named.items()}

    def one(self, value: object) -> Input:
        """A single value."""
        return self.call([value], {})[0][0]

    def own(self, ref: Ref) -> Input:
        """A reference to a step or a parameter of this workflow."""
        if ref.flow is not self._flow:
            expected = f"a step or a parameter of this workflow, not of {ref.flow.name}"
            raise InvalidWorkflow(self._field, ref, expected)
        if isinstance(ref, ResultRef):
            self.reads.add(ref.place)
            return ref.input
        if isinstance(ref, ParamRef):
            return ref.input
        raise InvalidWorkflow(self._field, ref, "the result of a step, or a parameter")

    def _read(self, value: object, levels: int) -> Input:
        # Counted on the way: a list may hold itself, or the same list a thousand times.
        self._left -= 1
        if self._left < 0:
            expected = f"at most {payload.LARGEST_PAYLOAD} bytes of JSON"
            raise InvalidWorkflow(self._field, "too many values", expected)
        if isinstance(value, Ref):
            return self.own(value)
        if levels and isinstance(value, list | tuple):
            items = tuple(self._read(each, levels - 1) for each in value)
            if not _are_constant(items):
                return Items(items=items)
        if levels and isinstance(value, dict):
            fields = {key: self._read(each, levels - 1) for key, each in value.items()}
            if not _are_constant(fields.values()):
                return Fields(fields=fields)
        return Constant(value=value)


def shape(value: object) -> Any:
    """What is known of a value's type: of a list or a dict, that of each item."""
    match value:
        case Ref():
            return value.hint
        case list() | tuple():
            return [shape(each) for each in value]
        case dict():
            return {key: shape(each) for key, each in value.items()}
        case _:
            return Any


def _are_constant(inputs: Any) -> bool:
    return all(isinstance(each, Constant) for each in inputs)


def _bare(given: Input) -> object:
    """The value with nothing where references are."""
    match given:
        case Constant():
            return given.value
        case Items():
            return [_bare(each) for each in given.items]
        case Fields():
            return {name: _bare(each) for name, each in given.fields.items()}
        case _:
            return None


def _kept(given: Input) -> Input:
    """The same for good: what the caller does to a list afterwards must not change the workflow."""
    match given:
        case Constant():
            return Constant(value=copy.deepcopy(given.value))
        case Items():
            return Items(items=tuple(map(_kept, given.items)))
        case Fields():
            return Fields(fields={name: _kept(each) for name, each in given.fields.items()})
        case _:
            return given
