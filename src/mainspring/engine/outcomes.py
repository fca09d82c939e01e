"""Whatever a handler raised, as an outcome: what it says of itself, and which rule speaks of it."""

from __future__ import annotations

from datetime import timedelta

from mainspring.engine.failures import failure_of, is_a, shown_in_log
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
    except BaseException:  # noqa: BLE001 - it must not end whoever asks
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
    except BaseException:  # noqa: BLE001 - it may be anything that somebody called headers
        return None
    return value.strip() if isinstance(value, str) else None


def _asked(holder: object, name: str) -> object:
    """An attribute, which may be a property of user code, or absent."""
    try:
        return getattr(holder, name, None)
    except BaseException:  # noqa: BLE001 - a property may raise anything; then it says nothing
        return None
