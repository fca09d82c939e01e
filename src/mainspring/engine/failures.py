"""Whatever a handler raised, as a value that any store can keep."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import TypeGuard, TypeVar

from mainspring.model.job import Failure

E = TypeVar("E", bound=BaseException)

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 16_000
_NOT_TO_BE_HAD = "could not be had"
_FRAMES = vars(BaseException)["__traceback__"]
_NAME = vars(type)["__name__"]
"""Python's own, whatever a class or its metaclass puts in their place."""


def failure_of(error: BaseException, *, frames_to_hide: int = 0) -> Failure:
    """Type, message and traceback, cut to size. Our own first frames say nothing to a user.

    All three run user code: `__str__`, `__repr__`, properties, a metaclass. It may raise anything,
    `SystemExit` too, and none of that may get any further: it would end whoever asks, and the process."""
    return Failure(
        type=_had(lambda: _clean(_type_name(error), 200), "type"),
        message=_had(lambda: _clean(str(error), MESSAGE_LIMIT), "message"),
        traceback=_had(lambda: _clean(_trace(error, frames_to_hide), TRACEBACK_LIMIT), "traceback"),
    )


def is_a(error: BaseException, kind: type[E]) -> TypeGuard[E]:
    """As `isinstance`, which asks the exception itself for its class where its type is another: user code."""
    return issubclass(type(error), kind)


class Reported(Exception):
    """A failure of which this process has only the report: that of a child process, a timeout in a thread, a
    crash. The class that is raised in its place has the name of the original one."""


class ReportedTraceback(Exception):
    """The cause of a reported failure: its traceback, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def reported(failure: Failure) -> BaseException:
    """An exception that says what the report says, for those who read exceptions."""
    error = _kind(failure.type)(failure.message)
    if failure.traceback:
        error.__cause__ = ReportedTraceback(failure.traceback)
    return error


@lru_cache(maxsize=256)
def _kind(name: str) -> type[Reported]:
    module, _, short = name.rpartition(".")
    return type(short, (Reported,), {"__module__": module or "builtins"})


def shown_in_log(error: BaseException, failure: Failure, *, frames_to_hide: int = 0) -> BaseException | None:
    """The exception itself, without our own first frames; None for one that could not be written out, for
    then it cannot be logged either."""
    if _NOT_TO_BE_HAD in failure.message or _NOT_TO_BE_HAD in failure.traceback:
        return None
    # Not by the exception's own attributes, which may be user code.
    frames = _without(_FRAMES.__get__(error), frames_to_hide)
    return BaseException.with_traceback(error, frames)


def timeout_failure(seconds: float) -> Failure:
    """For a handler that did not end in its time."""
    return Failure(
        type="TimeoutError", message=f"the handler did not end within its timeout of {seconds:g} s"
    )


def expired_failure() -> Failure:
    """For a handler that was at work when its job's deadline passed."""
    return Failure(type="Expired", message="the handler had not ended when the job's deadline passed")


def _had(ask: Callable[[], str], what: str) -> str:
    """What it answers, or that it could not be had."""
    try:
        return ask()
    except BaseException as second:  # noqa: BLE001 - user code; whatever it raises is not ours to pass on
        return f"(its {what} {_NOT_TO_BE_HAD}: {_NAME.__get__(type(second))})"


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _trace(error: BaseException, frames_to_hide: int) -> str:
    frames = _without(_FRAMES.__get__(error), frames_to_hide)
    return "".join(traceback.format_exception(type(error), error, frames))


def _without(frames: TracebackType | None, hidden: int) -> TracebackType | None:
    for _ in range(hidden):
        frames = frames.tb_next if frames is not None and frames.tb_next is not None else frames
    return frames


def _clean(text: str, limit: int) -> str:
    """No NUL and no lone surrogate, which no database takes; the end is what matters when cut."""
    text = "".join((text,))  # not a subclass, whose methods may be anything
    text = text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return text if len(text) <= limit else f"…{text[-limit:]}"
