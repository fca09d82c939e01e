"""The graph of a workflow: its steps as they are declared, checked, and compiled to the stored definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from inspect import Parameter
from itertools import count
from typing import Any

import msgspec

from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.model.workflow import (
    DEEPEST,
    MOST_STEPS,
    WIDEST,
    Condition,
    Constant,
    Definition,
    Input,
    Limiting,
    Node,
    NodeKind,
    When,
)
from mainspring.rules.condition import ConditionError, condition_names
from mainspring.tasks.checks import LONGEST
from mainspring.tasks.fit import fits, hint_text, list_of, parameters
from mainspring.tasks.limits import Limit
from mainspring.tasks.registry import Registry
from mainspring.tasks.steps import Flow, Inputs, Ref, Step, shape
from mainspring.tasks.task import Task
from mainspring.tasks.workflow_task import WorkflowTask

STEP_OPTIONS = ("when", "only_if", "after", "name")
MAP_OPTIONS = ("over", *STEP_OPTIONS)
UNDO_OPTIONS = ("name",)
_ITEM = object()
_STEP_NAME = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*", re.ASCII)
_ROOM = 5
"""Characters for the number of a step whose name is taken."""
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_OPEN = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
LARGEST_DEFINITION = 4 * 1024 * 1024
_encode = msgspec.json.Encoder().encode
BARRIER = "(barrier)"
"""No step can have this name."""


class Sketch:
    """Steps and their undo steps, in the order of declaration. A refused step changes nothing."""

    def __init__(self, flow: Flow, deadline: timedelta | None) -> None:
        self._flow, self._deadline = flow, deadline
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.steps: list[Step[Any]] = []
        self.drafts: list[StepDraft] = []
        self.undos: list[StepDraft] = []
        self.ordering = Ordering()

    def add(self, draft: StepDraft, after: frozenset[int], hint: Any) -> Step[Any]:
        """One step more, whose result is of this type."""
        ordering = self.ordering.added(draft.reads | after, draft.span)
        self._check(ordering.depths[-1], ordering.ends[-1], draft.field)
        step: Step[Any] = Step(self._flow, draft.name, len(self.drafts), hint=hint)
        self.ordering = ordering
        self._names.add(draft.name)
        self.drafts.append(draft)
        self.steps.append(step)
        return step

    def add_undo(self, draft: StepDraft) -> None:
        """The undo of a step."""
        self._names.add(draft.name)
        self.undos.append(draft)

    def link(self, step: Step[Any], earlier: Sequence[Step[Any]]) -> None:
        """Let a step wait for others."""
        field = f"{self._flow.name}.{step.name}"
        try:
            ordering = self.ordering.linked(step.place, self.places(earlier, field))
        except _Circle as circle:
            way = " > ".join(self.steps[each].name for each in circle.places)
            raise InvalidWorkflow(f"{field}.after", way, "no circle: a step cannot wait for itself") from None
        self._check(max(ordering.depths), max(ordering.ends), field)
        self.ordering = ordering

    def room(self) -> None:
        """Refuse one step too many."""
        if len(self.drafts) + len(self.undos) == MOST_STEPS:
            expected = f"at most {MOST_STEPS} steps, and what undoes them"
            raise InvalidWorkflow(self._flow.name, f"{MOST_STEPS + 1} steps", expected)

    def free_name(self, base: str) -> str:
        """The name itself, or with the first number that is free."""
        base = base[: LONGEST - _ROOM].rstrip("-")
        # From where the last search ended: a thousand steps may be of one task.
        for number in count(self._numbers.get(base, 1)):
            name = base if number == 1 else f"{base}-{number}"
            if name not in self._names:
                break
        self._numbers[base] = number
        return name

    def valid_name(self, name: str) -> str:
        """A name that the caller chose."""
        if not isinstance(name, str) or len(name) > LONGEST or not _STEP_NAME.fullmatch(name):
            expected = f"1 to {LONGEST} ASCII letters, digits and _, in words joined by -"
            raise InvalidWorkflow(f"{self._flow.name}.name", name, expected)
        if name in self._names:
            raise InvalidWorkflow(f"{self._flow.name}.name", name, "a name no other step has")
        return name

    def places(self, steps: Step[Any] | Sequence[Step[Any]], field: str) -> frozenset[int]:
        """Those of the steps that one is to come after."""
        listed = [steps] if isinstance(steps, Ref) else steps
        if not isinstance(listed, list | tuple):
            raise InvalidWorkflow(f"{field}.after", steps, "a list of steps")
        return frozenset(self.place(each, f"{field}.after") for each in listed)

    def place(self, step: Step[Any], field: str) -> int:
        """That of one of our own steps."""
        if not isinstance(step, Step):
            raise InvalidWorkflow(field, step, "a step of this workflow")
        if step.flow is not self._flow:
            raise InvalidWorkflow(field, step, f"a step of this workflow, not of {step.flow.name}")
        return step.place

    def _check(self, deepest: int, longest: timedelta, field: str) -> None:
        if deepest > DEEPEST:
            raise InvalidWorkflow(
                field, f"{deepest} in a row", f"at most {DEEPEST} steps one after the other"
            )
        if self._deadline is not None and longest > self._deadline:
            expected = f"a deadline of at least {format_duration(longest)}, the sum of the steps' timeouts"
            raise InvalidWorkflow(field, format_duration(self._deadline), expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDraft:
    """A step whose arguments were checked."""

    field: str
    """Workflow and step, as errors name them."""
    name: str
    task: Task[..., Any]
    args: tuple[Input, ...]
    kwargs: dict[str, Input]
    reads: frozenset[int]
    kind: NodeKind = NodeKind.STEP
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


class StepArguments:
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
        """Those of a step: they bind, and fit the annotations as far as these are known."""
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
            wanted = sorted(condition_names(text))
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
            got = f"{hint_text(value.hint)} of {value.label}" if isinstance(value, Ref) else value
            raise InvalidWorkflow(
                f"{self._field}.{name}", got, f"{hint_text(hint)}, as {self._task.name} wants it"
            )


class _Circle(Exception):
    """Steps that would wait for themselves, by their places, in order."""

    def __init__(self, places: tuple[int, ...]) -> None:
        super().__init__(places)
        self.places = places


@dataclass(frozen=True, slots=True)
class Ordering:
    """Steps by their places, each with those it waits for, and how long it may take."""

    parents: tuple[frozenset[int], ...] = ()
    spans: tuple[timedelta, ...] = ()
    depths: tuple[int, ...] = ()
    """Of each, the steps on the longest way to it, itself too."""
    ends: tuple[timedelta, ...] = ()
    """Of each, how long it may be until it has ended."""

    def added(self, parents: frozenset[int], span: timedelta) -> Ordering:
        """With one step more, after these."""
        depth = 1 + max((self.depths[each] for each in parents), default=0)
        end = span + max((self.ends[each] for each in parents), default=timedelta())
        return Ordering(
            (*self.parents, parents), (*self.spans, span), (*self.depths, depth), (*self.ends, end)
        )

    def linked(self, place: int, earlier: frozenset[int]) -> Ordering:
        """With a step that also waits for these; Circle when one of them waits for it."""
        for each in sorted(earlier):
            if way := self._way(each, place):
                raise _Circle((*way, place))
        parents = list(self.parents)
        parents[place] |= earlier
        depths, ends = [0] * len(parents), [timedelta()] * len(parents)
        for each in topological(parents):
            depths[each] = 1 + max((depths[parent] for parent in parents[each]), default=0)
            ends[each] = self.spans[each] + max(
                (ends[parent] for parent in parents[each]), default=timedelta()
            )
        return Ordering(tuple(parents), self.spans, tuple(depths), tuple(ends))

    def _way(self, start: int, goal: int) -> tuple[int, ...]:
        """From a step up through those it waits for, as far as the goal; empty when that is not above."""
        came_from: dict[int, int | None] = {start: None}
        found = [start]
        for here in found:  # grows on the way, the nearest first
            for parent in sorted(self.parents[here] - came_from.keys()):
                came_from[parent] = here
                found.append(parent)
        way: list[int] = []
        at: int | None = goal if goal in came_from else None
        while at is not None:
            way.append(at)
            at = came_from[at]
        return tuple(way)


def _children_of(parents: Sequence[Collection[int]]) -> list[list[int]]:
    """The same graph read downwards."""
    children: list[list[int]] = [[] for _ in parents]
    for place, above in enumerate(parents):
        for parent in above:
            children[parent].append(place)
    return children


def topological(parents: Sequence[Collection[int]]) -> list[int]:
    """Every place after those it waits for; without recursion, for a chain may be long."""
    children, waits = _children_of(parents), [len(above) for above in parents]
    order = [place for place, count in enumerate(waits) if not count]
    for place in order:  # grows on the way
        for child in children[place]:
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    return order


def _limitings(draft: StepDraft) -> tuple[Limiting, ...]:
    """The task's limits and its queue's, for what the step is called with."""
    return tuple(_limiting(each, draft) for each in draft.task.limits_in(draft.task.queue))


def _limiting(limit: Limit, draft: StepDraft) -> Limiting:
    parameters = draft.task.signature.parameters
    parameter = next((each for each in parameters if each.name == limit.by), None)
    if limit.by is None or parameter is None:
        # A queue may be shared by a parameter that this task does not have.
        return Limiting(limit_key=limit.limit_key({}))
    if parameter.kind in _OPEN:
        raise InvalidWorkflow(draft.field, limit.by, f"a single parameter for limit {limit.name} to go by")
    placed = [each.name for each in parameters if each.kind in _BY_POSITION]
    place = placed.index(limit.by) if limit.by in placed else None
    count = len(draft.args) + (draft.kind is NodeKind.MAP)
    if limit.by in draft.kwargs or (place is not None and place < count):
        return Limiting(limit_key=limit.limit_key({}), by=limit.by, place=place)
    # The step does not give it, so its default is the key of every job.
    try:
        return Limiting(limit_key=limit.limit_key({limit.by: parameter.default}))
    except TypeError:
        raise InvalidWorkflow(
            draft.field, limit.by, f"a default that is JSON, for limit {limit.name} goes by it"
        ) from None


def compiled(
    name: str,
    drafts: Sequence[StepDraft],
    undos: Sequence[StepDraft],
    ordering: Ordering,
    returns: Input | None,
) -> Definition:
    """The definition of a checked graph: nodes in the order of declaration, then what is undone. Places of
    steps are those of their drafts."""
    nodes = [_node(draft, ordering.parents[place]) for place, draft in enumerate(drafts)]
    if undos:
        barrier = len(nodes)
        nodes.append(Node(name=BARRIER, kind=NodeKind.BARRIER, parents=_last(ordering)))
        places = {draft.of: barrier + 1 + index for index, draft in enumerate(undos)}
        later = _next_undone(ordering, frozenset(place for place in places if place is not None))
        nodes += [
            _node(draft, draft.reads | {barrier, of} | {places[each] for each in later[of]})
            for draft, of in ((draft, draft.of) for draft in undos)
            if of is not None
        ]
    definition = Definition(name=name, nodes=tuple(nodes), returns=returns)
    if (size := len(_encode(definition))) > LARGEST_DEFINITION:
        expected = (
            f"a definition of at most {LARGEST_DEFINITION} bytes: "
            "fewer constants, or fewer steps that read many"
        )
        raise InvalidWorkflow(name, f"{size} bytes", expected)
    return definition


def _node(draft: StepDraft, parents: Iterable[int]) -> Node:
    task = draft.task
    return Node(
        name=draft.name,
        kind=draft.kind,
        task=task.name,
        args=draft.args,
        kwargs=draft.kwargs,
        over=draft.over,
        parents=tuple(sorted(parents)),
        when=draft.when,
        only_if=draft.only_if,
        of=draft.of,
        queue=task.queue,
        priority=task.priority,
        max_attempts=task.attempts,
        delay=task.delay,
        expires=task.expires,
        limits=_limitings(draft),
    )


def _last(ordering: Ordering) -> tuple[int, ...]:
    """Steps that nothing waits for."""
    return tuple(place for place, below in enumerate(_children_of(ordering.parents)) if not below)


def _next_undone(ordering: Ordering, undone: frozenset[int]) -> list[list[int]]:
    """Of each step, the nearest ones below it that can be undone: they are, before it is."""
    children, found = _children_of(ordering.parents), [0] * len(ordering.parents)
    # As sets of bits, for there may be as many as steps.
    for place in reversed(topological(ordering.parents)):
        for child in children[place]:
            found[place] |= 1 << child if child in undone else found[child]
    return [[each for each in sorted(undone) if mask >> each & 1] for mask in found]
