"""Whatever a handler raised, as an outcome: what it says of itself, and which rule speaks of it."""

from __future__ import annotations

from datetime import timedelta

from mainspring.declare.endings import Begin, Discard, Snooze, Suspended
from mainspring.declare.retry import Retry
from mainspring.engine.failures import failure_of
from mainspring.model.failure import Failure
from mainspring.model.outcome import Discarded, Failed, Outcome, Snoozed, Started

_LONGEST = 10_000_000_000
"""Seconds beyond which a number is no time to wait, and a timedelta might overflow."""


def outcome_of(error: BaseException, retry: Retry, *, frames_to_hide: int = 0) -> Outcome:
    """How a run ended that raised this."""
    if isinstance(error, Snooze):
        return Snoozed(delay=error.delay)
    if isinstance(error, Begin):
        return Started(workflow=error.workflow)
    if (suspended := suspension(error)) is not None:
        return Snoozed(delay=suspended.delay, awaits=suspended.awaits)
    failure = failure_of(error, frames_to_hide=frames_to_hide)
    if isinstance(error, Discard):
        return Discarded(failure=Failure(type="Discard", message=failure.message))
    return failed(failure, error, retry)


def suspension(error: BaseException) -> Suspended | None:
    """What suspends the run: the error itself, or all that is in a group of a `TaskGroup`'s making."""
    if isinstance(error, Suspended):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    _, rest = error.split(Suspended)
    return suspension(error.exceptions[0]) if rest is None else None


def failed(failure: Failure, error: BaseException, retry: Retry) -> Failed:
    """A failure under the rules for this exception."""
    rule = retry.match(error)
    return Failed(
        failure=failure,
        permanent=retry.gives_up(rule) or _asked(error, "permanent") is True,
        retry_after=_retry_after(error),
        rule=rule,
    )


def _retry_after(error: BaseException) -> timedelta | None:
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
    """A date is counted from the server's own, so that nobody's clock matters."""
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
    except Exception:  # noqa: BLE001 - it may be anything that somebody called headers
        return None
    return value.strip() if isinstance(value, str) else None


def _asked(holder: object, name: str) -> object:
    """An attribute, which may be a property of user code, or absent."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything; then it says nothing
        return None
