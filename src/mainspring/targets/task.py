"""Tasks whose work is a target, and what all targets share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from inspect import Parameter
from typing import Any, Protocol

from mainspring.errors import InvalidArgument, InvalidConfig
from mainspring.tasks.context import Context
from mainspring.tasks.enqueue import Sender
from mainspring.tasks.retry import Retry
from mainspring.tasks.task import AsyncContextTask

Result = dict[str, object]
Running = Coroutine[Any, Any, Result]
MOST_KEPT = 8192
"""Bytes of one text. Escaped as JSON, two of them and the rest still fit into a result."""
# NUL is refused by stores; the other control characters would take six bytes each.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Target(Protocol):
    """What a job does in place of a Python function."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Arguments that every job must give, as text."""

    @property
    def takes_any(self) -> bool:
        """Whether a job may give further arguments, of any name."""

    @property
    def needs_shell(self) -> bool: ...

    def check(self, values: Mapping[str, object]) -> None:
        """Raise InvalidArgument unless a job can have these arguments."""

    async def run(self, context: Context, values: Mapping[str, object]) -> Result:
        """Do the work; return the result of the job."""


class TargetTask(AsyncContextTask[..., Result]):
    """Enqueued, scheduled, retried and settled like any other task."""

    def __init__(
        self,
        target: Target,
        *,
        name: str,
        sender: Sender,
        retry: Retry | None,
        queue: str,
        priority: int,
    ) -> None:
        super().__init__(
            _handler(target), sender=sender, name=name, retry=retry, queue=queue, priority=priority
        )
        self.target = target
        self.needs_shell = target.needs_shell

    def check(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        super().check(args, kwargs)
        self.target.check(kwargs)


def slot_words(context: Context) -> dict[str, str]:
    """The period of the job, as fields for the receiver; empty for a job that no schedule made."""
    slot, period = context.slot, context.period
    if slot is None:
        return {}
    found: dict[str, datetime | None] = {"slot": slot}
    if period is not None:
        found |= {
            "previous_slot": period.previous,
            "period_start": period.start,
            "missed_since": period.since,
        }
    words = {name: at.isoformat() for name, at in found.items() if at is not None}
    return words | ({"missed": str(period.missed)} if period is not None and period.missed else {})


def _handler(target: Target) -> Callable[..., Running]:
    async def run(_context: Context, /, **values: object) -> Result:
        return await target.run(_context, values)

    # Positional only, so that an argument may have any name.
    parameters = [Parameter("_context", Parameter.POSITIONAL_ONLY, annotation=Context)]
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY, annotation=str) for name in target.parameters]
    if target.takes_any:
        parameters.append(Parameter("_values", Parameter.VAR_KEYWORD))
    described: Any = run
    described.__signature__ = inspect.Signature(parameters)
    return run


def valid_keep(keep: int, field: str) -> int:
    """How many bytes are kept."""
    if type(keep) is not int or not 0 <= keep <= MOST_KEPT:
        raise InvalidArgument(field, keep, f"a whole number of bytes from 0 to {MOST_KEPT}")
    return keep


def as_text(data: bytes) -> str:
    """Text that any store can keep, whatever the bytes were."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", data.decode("utf-8", "replace"))


@contextmanager
def needs(extra: str, package: str) -> Iterator[None]:
    """Around an import: if this package is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != package:
            raise
        raise InvalidConfig(
            "target", f"no {package}", f"the extra: pip install 'mainspring[{extra}]'"
        ) from None
