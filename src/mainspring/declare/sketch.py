"""The graph of a workflow while it is drawn: every name once, no circle, and within bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any

from mainspring.declare.drafts import Draft
from mainspring.declare.names import LONGEST
from mainspring.declare.ordering import Circle, Ordering
from mainspring.declare.steps import Flow, Ref, Step
from mainspring.duration import written
from mainspring.errors import InvalidWorkflow
from mainspring.model.workflow import DEEPEST, MOST_STEPS

_NAME = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*", re.ASCII)
_ROOM = 5
"""Characters for the number of a step whose name is taken."""


class Sketch:
    """Steps and what undoes them, in the order of declaration. What is refused changes nothing."""

    def __init__(self, flow: Flow, deadline: timedelta | None) -> None:
        self._flow, self._deadline = flow, deadline
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.steps: list[Step[Any]] = []
        self.drafts: list[Draft] = []
        self.undos: list[Draft] = []
        self.ordering = Ordering()

    def add(self, draft: Draft, after: frozenset[int], hint: Any) -> Step[Any]:
        """One step more, whose result is of this type."""
        ordering = self.ordering.added(draft.reads | after, draft.span)
        self._check(ordering.depths[-1], ordering.ends[-1], draft.field)
        step: Step[Any] = Step(self._flow, draft.name, len(self.drafts), hint=hint)
        self.ordering = ordering
        self._names.add(draft.name)
        self.drafts.append(draft)
        self.steps.append(step)
        return step

    def add_undo(self, draft: Draft) -> None:
        """What takes a step back."""
        self._names.add(draft.name)
        self.undos.append(draft)

    def link(self, step: Step[Any], earlier: Sequence[Step[Any]]) -> None:
        """Let a step wait for others."""
        field = f"{self._flow.name}.{step.name}"
        try:
            ordering = self.ordering.linked(step.place, self.places(earlier, field))
        except Circle as circle:
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
        """A name that somebody chose."""
        if not isinstance(name, str) or len(name) > LONGEST or not _NAME.fullmatch(name):
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
            expected = f"a deadline of at least {written(longest)}, the sum of the steps' timeouts"
            raise InvalidWorkflow(field, written(self._deadline), expected)
