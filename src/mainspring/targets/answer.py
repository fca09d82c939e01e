"""The response of an HTTP server, and what it means for the job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from mainspring.errors import TargetRefused, TargetUnavailable, shown
from mainspring.model.value import Value
from mainspring.targets.task import as_text

LONGEST_WAIT = timedelta(hours=1)
"""The longest wait that a server may ask for."""
_TRY_AGAIN = frozenset((408, 425, 429))
_KEPT = frozenset(("content-type", "content-length", "date", "location", "retry-after", "x-request-id"))
_LONGEST_HEADER = 200


class HttpAnswer(Value, frozen=True, kw_only=True):
    """The status, the headers worth keeping, and the beginning of the body."""

    status: int
    headers: dict[str, str]
    body: str
    truncated: bool

    def result(self) -> dict[str, object]:
        """As it is kept with the job."""
        return {
            "status": self.status,
            "headers": self.headers,
            "body": self.body,
            "truncated": self.truncated,
        }


def read_answer(
    status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes, *, truncated: bool
) -> HttpAnswer:
    """Cut to what is kept."""
    named = {name.decode("ascii", "replace").lower(): as_text(value) for name, value in headers}
    return HttpAnswer(
        status=status,
        headers={name: value[:_LONGEST_HEADER] for name, value in named.items() if name in _KEPT},
        body=as_text(body),
        truncated=truncated,
    )


def check_answer(given: HttpAnswer, where: str, *, now: datetime) -> HttpAnswer:
    """The answer if it is a success. An answer that may differ next time is an error that is tried again; all
    others are final: the same call would get the same answer, and a redirect leads to an address that was not
    checked."""
    status = given.status
    if 200 <= status < 300:
        return given
    message = f"{where} answered {status}"
    if location := given.headers.get("location"):
        message += f", to {shown(location)}; redirects are not followed"
    if given.body:
        message += f": {shown(given.body)}"
    if status in _TRY_AGAIN or status >= 500:
        raise TargetUnavailable(message, retry_after=retry_after(given.headers.get("retry-after"), now))
    raise TargetRefused(message)


def retry_after(text: str | None, now: datetime) -> timedelta | None:
    """How long a server wants us to wait, in seconds or until a date; at most LONGEST_WAIT."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return LONGEST_WAIT if len(text) > 9 else min(timedelta(seconds=int(text)), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None  # a courtesy that we cannot read
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta()), LONGEST_WAIT)
