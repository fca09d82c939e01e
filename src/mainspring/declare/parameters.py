"""Parameters of a workflow: declared, and filled from the slot of the schedule that started it."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from mainspring.declare import payload
from mainspring.declare.context import Context
from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.model.schedule import Period
from mainspring.model.value import Value
from mainspring.trigger.zones import zone

MOST_PARAMS = 100
LONGEST_NAME, LONGEST_FORM = 100, 100
DAY = "%Y-%m-%d"
START, END = "start", "end"
SLOT, ZONE, OF = "$slot", "tz", "of"
"""The keys of the value that a schedule stores for a parameter it fills: `{"$slot": "%Y-%m-%d", "tz":
"Europe/Berlin"}`. A dict with the first of them is reserved for that."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_SAMPLE = datetime(2026, 11, 15, 7, 30, tzinfo=UTC)


class Required:
    """Stands for the default of a parameter that has none."""

    def __repr__(self) -> str:
        return "nothing"


REQUIRED: Final = Required()


class Parameter(Value, frozen=True, kw_only=True):
    """One parameter: what it is when nobody gives it, and how a slot is written for it."""

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
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidWorkflow(
            f"{field}.param", name, f"a name of 1 to {LONGEST_NAME} ASCII letters, digits and _"
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
    """What a schedule stores: the values it was given, and a word for those that each slot fills."""
    slots = {
        each.name: {SLOT: each.form, ZONE: tz} | ({} if each.of == END else {OF: each.of})
        for each in parameters
        if each.name not in given and each.form is not None
    }
    return {**slots, **given}


def is_mark(value: object) -> bool:
    """Whether it stands for the slot."""
    return isinstance(value, dict) and SLOT in value


def filled(
    parameters: Iterable[Parameter], given: Mapping[str, object], period: Period | None, *, field: str
) -> dict[str, object]:
    """What a run starts with: defaults for what was not given, and the slot where that is meant."""
    values = {each.name: each.default for each in parameters if each.default is not REQUIRED} | dict(given)
    return {
        name: _written(value, period, f"{field}.{name}") if is_mark(value) else value
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
    expected = f'a form of at most {LONGEST_FORM} characters, such as "%Y-%m-%dT%H:%M"'
    if not isinstance(slot, str) or len(slot) > LONGEST_FORM or not slot.isprintable() or "%" not in slot:
        raise InvalidWorkflow(field, slot, expected)
    try:
        said = _SAMPLE.strftime(slot)
    except ValueError:
        said = slot
    if said == slot:
        raise InvalidWorkflow(field, slot, expected)
