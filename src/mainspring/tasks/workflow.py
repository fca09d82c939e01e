"""Workflows as users write them: steps in plain Python, checked as they are declared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, overload

from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.model.job import DEFAULT_QUEUE, NewJob
from mainspring.model.schedule import Period
from mainspring.model.value import choice
from mainspring.model.workflow import Definition, Input, NewWorkflow, NodeKind, When, WhenOption
from mainspring.tasks.checks import LONGEST, valid_name, valid_priority
from mainspring.tasks.enqueue import JobHandle, Sender
from mainspring.tasks.fit import list_of, result_of
from mainspring.tasks.graph import (
    MAP_OPTIONS,
    STEP_OPTIONS,
    UNDO_OPTIONS,
    Sketch,
    StepArguments,
    StepDraft,
    compiled,
    valid_task,
)
from mainspring.tasks.limits import Limit, valid_limits
from mainspring.tasks.registry import Registry
from mainspring.tasks.signature import Signature
from mainspring.tasks.steps import Inputs, ParamRef, Ref, Step
from mainspring.tasks.task import Task
from mainspring.tasks.unique import Unique, valid_unique
from mainspring.tasks.workflow_task import (
    END,
    MOST_PARAMS,
    PREFIX,
    REQUIRED,
    Parameter,
    WorkflowTask,
    filled,
    marked,
    signature_of,
    valid_parameter,
)

R = TypeVar("R")
_SHORTEST = timedelta(milliseconds=1)


class Workflow:
    """A graph of steps, each a job of a task: `app.workflow("nightly-load", deadline="2h")`.

    A step that is passed to another step stands for its result, and the other step waits for it. The workflow
    itself is a job, too: of its own task, which `start` enqueues and schedules fire. Once it has been
    started, scheduled or made a step of another workflow, it takes no further steps.
    """

    def __init__(
        self,
        name: str,
        *,
        registry: Registry,
        sender: Sender,
        deadline: Duration | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        limits: Sequence[Limit] = (),
        unique: Unique | None = None,
    ) -> None:
        if len(valid_name(name, "workflow.name")) > LONGEST - len(PREFIX):
            raise InvalidArgument("workflow.name", name, f"at most {LONGEST - len(PREFIX)} characters")
        self.name = name
        self.deadline = None if deadline is None else duration(deadline, "workflow.deadline", least=_SHORTEST)
        self._registry = registry
        self._parameters: dict[str, Parameter] = {}
        self._sketch = Sketch(self, self.deadline)
        self._returns: Input | None = None
        self._definition: Definition | None = None
        self._closed = False
        self.task = WorkflowTask(
            self,
            sender=sender,
            queue=valid_name(queue, "workflow.queue"),
            priority=valid_priority(priority, "workflow.priority"),
            deadline=self.deadline,
            limits=_valid_limits(limits),
            unique=_valid_unique(unique),
            queues=registry.queues,
        )
        self.using = self.task.using
        """Other options for one start, as of any task: `flow.using(priority=5).start(…)`."""
        self._describe()
        registry.add_task(self.task)

    def param(
        self, name: str, *, default: object = REQUIRED, slot: str | None = None, of: str = END
    ) -> ParamRef:
        """A parameter of the workflow; a second call with the same name returns the same parameter.

        A schedule that gives no value for one without a default fills in the date of its slot, in its own
        zone; `slot` is the format for `strftime`: `flow.param("at", slot="%Y-%m-%dT%H:%M")`.
        With `of="start"` it is where the slot's period begins: at the slot before, or before the first missed
        one that was combined into this.
        """
        known = self._parameters.get(name) if isinstance(name, str) else None
        if known is not None and default is REQUIRED and slot is None and of == END:
            return ParamRef(self, name)
        self._refuse_if_closed(name)
        declared = valid_parameter(name, default, slot, of, field=self.name)
        if known is not None and known != declared:
            raise InvalidWorkflow(
                f"{self.name}.{name}", default, "what it was declared with before, or nothing"
            )
        if len(self._parameters) == MOST_PARAMS:
            raise InvalidWorkflow(f"{self.name}.param", name, f"at most {MOST_PARAMS} parameters")
        self._parameters[name] = declared
        self._describe()
        return ParamRef(self, name)

    @overload
    def step(
        self,
        task: Task[..., R],
        /,
        *args: object,
        when: WhenOption = "success",
        only_if: str | None = None,
        after: Step[Any] | Sequence[Step[Any]] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Step[R]: ...
    @overload
    def step(
        self,
        task: Workflow,
        /,
        *args: object,
        when: WhenOption = "success",
        only_if: str | None = None,
        after: Step[Any] | Sequence[Step[Any]] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Step[Any]: ...
    def step(
        self,
        task: Task[..., Any] | Workflow,
        /,
        *args: object,
        when: WhenOption = "success",
        only_if: str | None = None,
        after: Step[Any] | Sequence[Step[Any]] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Step[Any]:
        """A job of this task, or of another workflow, with these arguments: constants, steps, parameters, and
        lists or dicts of them. A parameter of the task that is called like an option is given by position.

        It runs once every step that it reads, or is `after`, has succeeded; with `when="failure"`, once one
        of them has failed, with "always" however they ended: a missing result is None. With `only_if`, such
        as `"fetch['rows'] > 0 and day != '2026-12-25'"`, it is skipped unless that holds; names are those
        of steps, with _ for -, and of parameters. A task's own `unique` does not apply: each step is a job
        of its own.
        """
        return self._declared(task, args, kwargs, when=when, only_if=only_if, after=after, name=name)

    def map(
        self,
        task: Task[..., R],
        /,
        *args: object,
        over: object,
        when: WhenOption = "success",
        only_if: str | None = None,
        after: Step[Any] | Sequence[Step[Any]] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Step[list[R]]:
        """A job for each item of a list that another step makes: the item comes first, and the further
        arguments are the same for all. Its result is the list of theirs; it fails when one of them does."""
        if over is None:
            raise InvalidWorkflow(f"{self.name}.map", over, "a list, or what a step or a parameter gives")
        return self._declared(
            task, args, kwargs, over=over, when=when, only_if=only_if, after=after, name=name
        )

    def undo(
        self,
        step: Step[Any],
        task: Task[..., Any] | Workflow,
        /,
        *args: object,
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        """A task that undoes a step: it runs if that step succeeded and the workflow fails or is cancelled,
        after all running steps have ended; of two steps, the later one is undone first."""
        of = self._sketch.place(step, f"{self.name}.undo")
        if any(each.of == of for each in self._sketch.undos):
            raise InvalidWorkflow(f"{self.name}.{step.name}", step, "one undo: this step has one")
        field, named, declared = self._opening(task, name, f"undo-{step.name}")
        call = StepArguments(self, field, declared, UNDO_OPTIONS)
        placed, keyed = call.arguments(args, kwargs)
        self._sketch.add_undo(
            StepDraft(
                field=field,
                name=named,
                task=declared,
                kind=NodeKind.UNDO,
                args=placed,
                kwargs=keyed,
                reads=call.reads,
                of=of,
            )
        )

    def returns(self, value: object) -> None:
        """The result of the whole workflow: a step, a part of one, or a list or dict of them."""
        self._refuse_if_closed("returns")
        if self._returns is not None:
            raise InvalidWorkflow(f"{self.name}.returns", value, "one answer: it has one")
        self._returns = Inputs(self, f"{self.name}.returns").one(value)

    def start(self, /, **params: object) -> JobHandle[Any]:
        """Start it with these parameters; when it returns, the job is stored. Blocks."""
        return self.task.start(**params)

    async def astart(self, /, **params: object) -> JobHandle[Any]:
        """The same on an event loop."""
        return await self.task.astart(**params)

    def job(self, /, **params: object) -> NewJob:
        """A job that starts it and is not enqueued yet: for batches."""
        return self.task.job(**params)

    @property
    def definition(self) -> Definition:
        """The graph as it is stored. After this, the workflow takes no further steps."""
        self.close()
        # Not when it is closed: rules of queues may be declared until it is started.
        self._definition = self._definition or self._compiled()
        return self._definition

    def close(self) -> None:
        """Take no further steps, and check that the workflow can be started."""
        if self._closed:
            return
        if not self._sketch.drafts:
            raise InvalidWorkflow(self.name, "no steps", "at least one step")
        for draft, parents in zip(self._sketch.drafts, self._sketch.ordering.parents, strict=True):
            if draft.when is When.FAILURE and not parents:
                raise InvalidWorkflow(f"{draft.field}.when", "failure", "a step before it, which may fail")
        try:
            valid_unique(self.task.unique, self.signature)
            valid_limits(self.task.limits, self.signature)
        except InvalidArgument as wrong:
            raise InvalidWorkflow(f"{self.name}.{wrong.field}", wrong.got, wrong.expected) from None
        self._compiled()
        self._closed = True

    def marked(self, given: Mapping[str, object], tz: str) -> dict[str, object]:
        """What a schedule in this zone stores."""
        return marked(self._parameters.values(), given, tz)

    def begun(self, given: Mapping[str, object], period: Period | None) -> NewWorkflow:
        """What a run with these parameters starts."""
        self.close()
        self.signature.check((), given)  # the job may be older than the code
        params = filled(self._parameters.values(), given, period, field=self.task.name)
        return NewWorkflow(definition=self.definition, params=params)

    def order(self, step: Step[Any], earlier: tuple[Step[Any], ...]) -> None:
        """Let a step wait for others; `step.after(…)` does that."""
        self._refuse_if_closed(step.name)
        self._sketch.link(step, earlier)

    def _declared(
        self,
        task: Task[..., Any] | Workflow,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        over: object = None,
        when: WhenOption,
        only_if: str | None,
        after: Step[Any] | Sequence[Step[Any]],
        name: str | None,
    ) -> Step[Any]:
        field, named, declared = self._opening(task, name)
        is_map, hint = over is not None, result_of(declared)
        call = StepArguments(self, field, declared, MAP_OPTIONS if is_map else STEP_OPTIONS)
        placed, keyed = call.items(over, args, kwargs) if is_map else call.arguments(args, kwargs)
        draft = StepDraft(
            field=field,
            name=named,
            task=declared,
            kind=NodeKind.MAP if is_map else NodeKind.STEP,
            args=placed,
            kwargs=keyed,
            over=call.over,
            when=choice(When, when, f"{field}.when", InvalidWorkflow),
            only_if=None if only_if is None else call.only_if(only_if, self._meanings()),
            reads=call.reads,
        )
        return self._sketch.add(draft, self._sketch.places(after, field), list_of(hint) if is_map else hint)

    def _opening(
        self, task: Task[..., Any] | Workflow, name: str | None, default: str | None = None
    ) -> tuple[str, str, Task[..., Any]]:
        """What every declaration begins with: the field of its errors, its name, and its task."""
        self._refuse_if_closed(name)
        self._sketch.room()
        plain = task.task if isinstance(task, Workflow) else task
        if isinstance(plain, Task) and plain.function is self.task.function:
            raise InvalidWorkflow(f"{self.name}.step", task, "a workflow other than itself")
        if name is None:
            declared = valid_task(plain, self._registry, f"{self.name}.step")
            named = self._sketch.free_name(default or re.split(r"[.:/]", declared.name)[-1])
        else:
            named = self._sketch.valid_name(name)
            declared = valid_task(plain, self._registry, f"{self.name}.{named}")
        return f"{self.name}.{named}", named, declared

    def _compiled(self) -> Definition:
        drawn = self._sketch
        return compiled(self.name, drawn.drafts, drawn.undos, drawn.ordering, self._returns)

    def _meanings(self) -> dict[str, list[Ref]]:
        """What names in a condition may mean."""
        known: dict[str, list[Ref]] = {name: [ParamRef(self, name)] for name in self._parameters}
        for step in self._sketch.steps:
            known.setdefault(step.name.replace("-", "_"), []).append(step)
        return known

    def _refuse_if_closed(self, what: object) -> None:
        if self._closed:
            expected = "nothing more: it has been started, scheduled or made a step of another workflow"
            raise InvalidWorkflow(self.name, what, expected)

    def _describe(self) -> None:
        function: Any = self.task.function
        function.__signature__ = signature_of(self._parameters.values())
        self.signature = self.task.signature = Signature.of(function, self.task.name)

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"


class WorkflowFactory:
    """`app.workflow`: declares workflows in one app."""

    def __init__(self, registry: Registry, sender: Sender) -> None:
        self._registry, self._sender = registry, sender

    def __call__(
        self,
        name: str,
        *,
        deadline: Duration | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        limits: Sequence[Limit] = (),
        unique: Unique | None = None,
    ) -> Workflow:
        """Declare a workflow of that name. It must have ended by its `deadline`; the other options are those
        of the job that starts it."""
        return Workflow(
            name,
            registry=self._registry,
            sender=self._sender,
            deadline=deadline,
            queue=queue,
            priority=priority,
            limits=limits,
            unique=unique,
        )


def _valid_limits(limits: Sequence[Limit]) -> Sequence[Limit]:
    if not isinstance(limits, list | tuple) or not all(isinstance(each, Limit) for each in limits):
        raise InvalidArgument("workflow.limits", limits, 'a list such as [Limit("loads", concurrency=5)]')
    return limits


def _valid_unique(unique: Unique | None) -> Unique | None:
    if unique is not None and not isinstance(unique, Unique):
        raise InvalidArgument("workflow.unique", unique, 'a Unique, such as Unique(by=["day"])')
    return unique
