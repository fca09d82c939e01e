"""The task whose job starts a workflow and is the workflow from then on, and the parameters of a workflow."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import msgspec

from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.model.job import NewJob
from mainspring.model.schedule import Period
from mainspring.model.value import Value
from mainspring.model.workflow import Definition, NewWorkflow
from mainspring.tasks import payload
from mainspring.tasks.context import Begin, Context
from mainspring.tasks.enqueue import JobHandle, Sender
from mainspring.tasks.limits import Limit, QueueRules
from mainspring.tasks.retry import Retry
from mainspring.tasks.signature import Signature
from mainspring.tasks.task import AsyncContextTask
from mainspring.tasks.unique import Unique
from mainspring.triggers.zones import zone

MOST_PARAMS = 100
_LONGEST_NAME, _LONGEST_FORM = 100, 100
DAY = "%Y-%m-%d"
START, END = "start", "end"
SLOT, ZONE, OF = "$slot", "tz", "of"
"""The keys of the value that a schedule stores for a parameter it fills: `{"$slot": "%Y-%m-%d", "tz":
"Europe/Berlin"}`. A dict with the first of them is reserved for that."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_SAMPLE = datetime(2026, 11, 15, 7, 30, tzinfo=UTC)
PREFIX = "workflow:"
STARTS = Retry(attempts=5, base="1s", cap="30s")
"""A start that failed changed nothing, and a second attempt starts nothing twice."""


class Required:
    """The default of a parameter that must be given."""

    def __repr__(self) -> str:
        return "nothing"


REQUIRED: Final = Required()


class Parameter(Value, frozen=True, kw_only=True):
    """One parameter: its default, and the form of a slot that fills it."""

    name: str
    default: object = REQUIRED
    slot: str | None = None
    of: str = END
    """Which end of the slot's period it is."""

    @property
    def form(self) -> str | None:
        """How a schedule that gives it no value writes its slot; None when it leaves it alone."""
        return self.slot or (DAY if self.default is REQUIRED else None)


def valid_parameter(
    name: str, default: object, slot: str | None, of: str = "end", *, field: str
) -> Parameter:
    """Check one as it is declared; `field` is the workflow's name."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidWorkflow(
            f"{field}.param", name, f"a name of 1 to {_LONGEST_NAME} ASCII letters, digits and _"
        )
    if keyword.iskeyword(name):
        raise InvalidWorkflow(f"{field}.param", name, "no word of Python's own")
    field = f"{field}.{name}"
    if slot is not None:
        _check_form(slot, f"{field}.slot")
    if of not in (START, END):
        raise InvalidWorkflow(f"{field}.of", of, f'"{START}" or "{END}"')
    if default is REQUIRED:
        return Parameter(name=name, slot=slot, of=of)
    try:
        _, kept = payload.decode(payload.encode((), {name: default}, field=field))
    except InvalidArgument as wrong:
        raise InvalidWorkflow(wrong.field, wrong.got, wrong.expected) from None
    return Parameter(name=name, default=kept[name], slot=slot, of=of)


def signature_of(parameters: Iterable[Parameter]) -> inspect.Signature:
    """What the handler of a workflow takes: the context, and each parameter by its name."""
    listed = [inspect.Parameter("_context", inspect.Parameter.POSITIONAL_ONLY, annotation=Context)]
    for each in parameters:
        default = inspect.Parameter.empty if each.default is REQUIRED else each.default
        listed.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return inspect.Signature(listed)


def marked(parameters: Iterable[Parameter], given: Mapping[str, object], tz: str) -> dict[str, object]:
    """What a schedule stores: the values that it got, and a mark for those that each slot fills."""
    slots = {
        each.name: {SLOT: each.form, ZONE: tz} | ({} if each.of == END else {OF: each.of})
        for each in parameters
        if each.name not in given and each.form is not None
    }
    return {**slots, **given}


def _is_mark(value: object) -> bool:
    """Whether it stands for the slot."""
    return isinstance(value, dict) and SLOT in value


def filled(
    parameters: Iterable[Parameter], given: Mapping[str, object], period: Period | None, *, field: str
) -> dict[str, object]:
    """What a run starts with: defaults for what was not given, and the slot where that is meant."""
    values = {each.name: each.default for each in parameters if each.default is not REQUIRED} | dict(given)
    return {
        name: _written(value, period, f"{field}.{name}") if _is_mark(value) else value
        for name, value in values.items()
    }


class _Mark(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    form: str = msgspec.field(name=SLOT)
    tz: str
    of: str = END


def _written(value: object, period: Period | None, field: str) -> str:
    try:
        mark = msgspec.convert(value, _Mark)
    except msgspec.ValidationError:
        expected = 'such as {"$slot": "%Y-%m-%d", "tz": "UTC"}: a dict with that key stands for the slot'
        raise InvalidArgument(field, value, expected) from None
    if period is None:
        raise InvalidArgument(field, value, "a value: no schedule made this job, so there is no slot")
    # Where nothing was before it, a period is empty.
    slot = (period.start or period.end) if mark.of == START else period.end
    return slot.astimezone(zone(mark.tz)).strftime(mark.form)


def _check_form(slot: str, field: str) -> None:
    expected = f'a form of at most {_LONGEST_FORM} characters, such as "%Y-%m-%dT%H:%M"'
    if not isinstance(slot, str) or len(slot) > _LONGEST_FORM or not slot.isprintable() or "%" not in slot:
        raise InvalidWorkflow(field, slot, expected)
    try:
        said = _SAMPLE.strftime(slot)
    except ValueError:
        said = slot
    if said == slot:
        raise InvalidWorkflow(field, slot, expected)


class WorkflowPlan(Protocol):
    """The workflow behind the task."""

    @property
    def name(self) -> str: ...
    @property
    def signature(self) -> Signature:
        """Its parameters, each by keyword."""

    @property
    def definition(self) -> Definition:
        """Its graph."""

    def close(self) -> None:
        """Take no further steps; refuse to be started if that is not possible."""

    def marked(self, given: Mapping[str, object], tz: str) -> dict[str, object]:
        """What a schedule in this zone stores."""

    def begun(self, given: Mapping[str, object], period: Period | None) -> NewWorkflow:
        """What a run with these parameters starts."""


class WorkflowTask(AsyncContextTask[..., Any]):
    """Enqueued, scheduled, delayed and limited like any other task."""

    runs_user_code = False

    def __init__(
        self,
        plan: WorkflowPlan,
        *,
        sender: Sender,
        queue: str,
        priority: int,
        deadline: timedelta | None,
        limits: Sequence[Limit],
        unique: Unique | None,
        queues: Mapping[str, QueueRules],
    ) -> None:
        super().__init__(
            _handler(plan),
            sender=sender,
            name=f"{PREFIX}{plan.name}",
            retry=STARTS,
            queue=queue,
            priority=priority,
            queues=queues,
            expires=deadline,
        )
        self._plan = plan
        # They may name parameters, which are yet to be declared: `close` checks them.
        self.limits, self.unique = tuple(limits), unique

    @property
    def definition(self) -> Definition:
        """The graph that a start of it follows."""
        return self._plan.definition

    def ready(self) -> None:
        """Check that the workflow is complete: from now on it does not change."""
        self._plan.close()
        self.signature = self._plan.signature

    def check(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        self.ready()
        super().check(args, kwargs)

    def marked(self, given: Mapping[str, object], tz: str) -> dict[str, object]:
        """What a schedule in this zone stores: its values, and a mark for those that each slot fills."""
        self.ready()
        return self._plan.marked(given, tz)

    def start(self, /, **params: object) -> JobHandle[Any]:
        """Start it with these parameters; when it returns, the job is stored. Blocks."""
        return self.enqueue(**params)

    async def astart(self, /, **params: object) -> JobHandle[Any]:
        """The same on an event loop."""
        return await self.aenqueue(**params)

    def _job(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NewJob:
        for name, value in kwargs.items():
            if _is_mark(value):
                raise InvalidArgument(
                    f"{self.name}.{name}", value, 'no dict with a key "$slot": schedules write those'
                )
        return super()._job(args, kwargs)


def _handler(plan: WorkflowPlan) -> Callable[..., Coroutine[Any, Any, Any]]:
    # The context by position alone, so that a parameter may have any name.
    async def begin(_context: Context, /, **params: object) -> None:
        period = _context.period
        if period is None and _context.slot is not None:
            period = Period(end=_context.slot)
        raise Begin(plan.begun(params, period))

    return begin
