"""What a workflow's steps are given before anybody knows it: results of other steps, and parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

from mainspring.declare.typefit import Misfit, inside
from mainspring.errors import InvalidWorkflow
from mainspring.model.workflow import Param, Result

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
        """What errors call it."""
        self.path = path
        self.hint = hint
        """Its type, as far as annotations tell."""

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
    """What a step makes, or a part of that."""

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
    def input(self) -> Result:
        """The same for the definition."""
        return Result(step=self.place, path=self.path)


class Step(ResultRef, Generic[R_co]):
    """A step of a workflow. Passed to another step it stands for its result, and the other waits for it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name in the workflow."""
        return self.label

    def after(self, *steps: Step[Any]) -> Self:
        """Wait for these, without their results: `load.after(lock)`."""
        self.flow.order(self, steps)
        return self
