"""Whatever a handler raised, as an outcome: what it says of itself, which retry rule is about it, and a
failure that any store can keep."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TypeGuard, TypeVar

from mainspring.model.job import Failure
from mainspring.model.run import Discarded, Failed, Outcome, Snoozed, Started
from mainspring.tasks.context import Begin, Discard, Snooze, Suspended
from mainspring.tasks.retry import Retry

_LONGEST = 10_000_000_000
"""Seconds beyond which a number is no time to wait, and a timedelta might overflow."""


def outcome_of(error: BaseException, retry: Retry, *, frames_to_hide: int = 0) -> Outcome:
    """How a run ended that raised this. An exception says much of itself by user code, which may raise
    anything: then the run has failed, and what was raised first is on record."""
    try:
        return _outcome_of(error, retry, frames_to_hide)
    except BaseException:  # noqa: BLE001 - it must not end the caller
        return Failed(failure=failure_of(error, frames_to_hide=frames_to_hide))


def _outcome_of(error: BaseException, retry: Retry, frames_to_hide: int) -> Outcome:
    if is_a(error, Snooze):
        return Snoozed(delay=error.delay)
    if is_a(error, Begin):
        return Started(workflow=error.workflow)
    if (suspended := suspension(error)) is not None:
        return Snoozed(delay=suspended.delay, awaits=suspended.awaits)
    failure = failure_of(error, frames_to_hide=frames_to_hide)
    if is_a(error, Discard):
        return Discarded(failure=Failure(type="Discard", message=failure.message))
    return failed(failure, error, retry, shown=shown_in_log(error, failure, frames_to_hide=frames_to_hide))


def suspension(error: BaseException) -> Suspended | None:
    """What suspends the run: the error itself, or all that is in a group of a `TaskGroup`'s making."""
    if is_a(error, Suspended):
        return error
    if not is_a(error, BaseExceptionGroup):
        return None
    _, rest = error.split(Suspended)
    return suspension(error.exceptions[0]) if rest is None else None


def failed(
    failure: Failure, error: BaseException, retry: Retry, *, shown: BaseException | None = None
) -> Failed:
    """A failure under the rules for this exception; another may be `shown` in the log."""
    rule = _rule(retry, error)
    return Failed(
        failure=failure,
        permanent=retry.gives_up(rule) or _asked(error, "permanent") is True,
        retry_after=_retry_after(error),
        rule=rule,
        error=shown,
    )


def _rule(retry: Retry, error: BaseException) -> int | None:
    try:
        return retry.match(error)
    except BaseException:  # noqa: BLE001 - a class may say by itself what its instances are
        return None


def _retry_after(error: BaseException) -> timedelta | None:
    try:
        return _told_to_wait(error)
    except BaseException:  # noqa: BLE001 - a number or a text of a class of the user's may raise anything
        return None


def _told_to_wait(error: BaseException) -> timedelta | None:
    """From the exception itself, or from the HTTP response it carries, as httpx and requests have it."""
    own = _length(_asked(error, "retry_after"))
    if own is not None:
        return own
    headers = _asked(_asked(error, "response"), "headers")
    text = None if headers is None else _header(headers, "Retry-After")
    if text is None:
        return None
    return (
        _length(int(text)) if text.isascii() and text.isdigit() and len(text) < 12 else _until(text, headers)
    )


def _until(text: str, headers: object) -> timedelta | None:
    """A date is counted from the date of the server's answer, so that our clock does not matter."""
    from email.utils import parsedate_to_datetime  # not before it is needed: it is slow to import

    sent = _header(headers, "Date")
    try:
        return None if sent is None else _length(parsedate_to_datetime(text) - parsedate_to_datetime(sent))
    except (ValueError, TypeError, OverflowError):
        return None


def _length(value: object) -> timedelta | None:
    if isinstance(value, timedelta):
        return value if value >= timedelta() else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST:
        return None
    return timedelta(seconds=value)


def _header(headers: object, name: str) -> str | None:
    try:
        value = headers.get(name)  # type: ignore[attr-defined]
    except BaseException:  # noqa: BLE001 - it may be any object that has this name
        return None
    return value.strip() if isinstance(value, str) else None


def _asked(holder: object, name: str) -> object:
    """An attribute, which may be a property of user code, or absent."""
    try:
        return getattr(holder, name, None)
    except BaseException:  # noqa: BLE001 - a property may raise anything; then it says nothing
        return None


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
