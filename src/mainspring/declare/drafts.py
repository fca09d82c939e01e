"""Steps as they are declared: the call checked against its task, and not yet made into a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from inspect import Parameter
from typing import Any

from mainspring.declare.inputs import Inputs, shape
from mainspring.declare.registry import Registry
from mainspring.declare.steps import Flow, Ref
from mainspring.declare.task import Task
from mainspring.declare.typefit import fits, list_of, parameters, written
from mainspring.declare.workflow_task import WorkflowTask
from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.lifecycle.condition import ConditionError, names
from mainspring.model.workflow import WIDEST, Condition, Constant, Input, Kind, When

STEP_OPTIONS = ("when", "only_if", "after", "name")
MAP_OPTIONS = ("over", *STEP_OPTIONS)
UNDO_OPTIONS = ("name",)
_ITEM = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A step that can be called with what it is given."""

    field: str
    """Workflow and step, as errors name them."""
    name: str
    task: Task[..., Any]
    args: tuple[Input, ...]
    kwargs: dict[str, Input]
    reads: frozenset[int]
    kind: Kind = Kind.STEP
    over: Input | None = None
    when: When = When.SUCCESS
    only_if: Condition | None = None
    of: int | None = None

    @property
    def span(self) -> timedelta:
        """How long it may take, as far as its task says."""
        task = self.task
        longest = task.expires if isinstance(task, WorkflowTask) else task.timeout
        return task.delay + (longest or timedelta())


def valid_task(task: object, registry: Registry, field: str) -> Task[..., Any]:
    """A task that a step can be made of: each of its jobs is the step's own."""
    if not isinstance(task, Task):
        raise InvalidWorkflow(field, task, "a task, declared with @app.task, or a workflow")
    declared = registry.tasks.get(task.name)
    if declared is None or declared.function is not task.function:
        raise InvalidWorkflow(field, task, "a task of the same app")
    for name, value in task.single.items():
        why = (
            "a duration" if name == "expires" else "none: a step is released when those before it have ended"
        )
        raise InvalidWorkflow(f"{field}.{name}", value, why)
    if task.unique is not declared.unique:
        raise InvalidWorkflow(f"{field}.unique", task.unique, "none: each step is a job of its own")
    if isinstance(task, WorkflowTask):
        task.ready()
    return task


class Call:
    """What one step is called with."""

    def __init__(self, flow: Flow, field: str, task: Task[..., Any], options: Sequence[str]) -> None:
        self._field, self._task, self._options = field, task, options
        self._inputs = Inputs(flow, field)
        self.over: Input | None = None

    @property
    def reads(self) -> frozenset[int]:
        """Places of the steps whose results it needs."""
        return frozenset(self._inputs.reads)

    def arguments(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[Input, ...], dict[str, Input]]:
        """Those of a step: they bind, and fit the annotations as far as anybody can tell."""
        self._bind(args, kwargs)
        placed, named = self._inputs.call(args, kwargs)
        if all(isinstance(each, Constant) for each in (*placed, *named.values())):
            self._wrapped(lambda: self._task.check(args, kwargs))
        for name, hint, value in parameters(self._task, args, kwargs):
            self._fit(name, hint, value)
        return placed, named

    def items(
        self, over: object, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[Input, ...], dict[str, Input]]:
        """Those of a map: each item of `over` comes first, then what is the same for all."""
        if not isinstance(over, Ref | list | tuple):
            raise InvalidWorkflow(f"{self._field}.over", over, "a list, or what a step or a parameter gives")
        if not isinstance(over, Ref) and len(over) > WIDEST:
            raise InvalidWorkflow(f"{self._field}.over", f"{len(over)} items", f"at most {WIDEST} items")
        self._bind((_ITEM, *args), kwargs)
        self.over = self._inputs.one(over if isinstance(over, Ref) else list(over))
        inputs = self._inputs.call(args, kwargs)
        (_, first, _), *rest = parameters(self._task, (_ITEM, *args), kwargs)
        for name, hint, value in (("over", list_of(first), over), *rest):
            self._fit(name, hint, value)
        return inputs

    def only_if(self, text: str, known: Mapping[str, Sequence[Ref]]) -> Condition:
        """Its condition; `known` are the steps and parameters that a name may mean."""
        field = f"{self._field}.only_if"
        try:
            wanted = sorted(names(text))
        except ConditionError as error:
            raise InvalidWorkflow(field, text, error.expected) from None
        meaning: dict[str, Input] = {}
        for name in wanted:
            found = known.get(name, ())
            if not found:
                listed = ", ".join(sorted(known)[:20]) or "none yet"
                raise InvalidWorkflow(
                    field, name, f"names of steps, with _ for -, and of parameters ({listed})"
                )
            if len(found) > 1:
                labels = " and ".join(each.label for each in found)
                raise InvalidWorkflow(field, name, f"a name of one thing, not of {labels}")
            meaning[name] = self._inputs.own(found[0])
        return Condition(text=text, names=meaning)

    def _bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        for each in self._task.signature.parameters:
            if each.kind is Parameter.KEYWORD_ONLY and each.name in self._options:
                expected = (
                    f"a task without a keyword-only {each.name}=, which is an option of the step itself"
                )
                raise InvalidWorkflow(self._field, self._task, expected)
        self._wrapped(lambda: self._task.signature.check(args, kwargs))

    def _wrapped(self, check: Callable[[], None]) -> None:
        try:
            check()
        except InvalidArgument as wrong:
            name = wrong.field.removeprefix(self._task.name).removeprefix(".")
            hint = ""
            if name in self._options:
                hint = f"; by position, for {name}= is an option of the step itself"
            field = f"{self._field}.{name}" if name else self._field
            raise InvalidWorkflow(field, wrong.got, f"{wrong.expected}{hint}") from None

    def _fit(self, name: str, hint: Any, value: object) -> None:
        if not fits(shape(value), hint):
            got = f"{written(value.hint)} of {value.label}" if isinstance(value, Ref) else value
            raise InvalidWorkflow(
                f"{self._field}.{name}", got, f"{written(hint)}, as {self._task.name} wants it"
            )
