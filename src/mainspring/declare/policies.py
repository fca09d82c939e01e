"""What becomes of a schedule's slots when something is in the way: checked where it is given."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from mainspring.declare.when import valid_max_fires
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Misfire, Overlap

MOST_AT_ONCE = 10_000
_NONE = timedelta()
_MILLISECOND = timedelta(milliseconds=1)
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of one schedule."""

    misfire: Misfire
    catch_up: timedelta
    overlap: Overlap
    overlap_limit: int
    offset: timedelta
    jitter: timedelta
    max_fires: int | None


def policies(
    name: str,
    *,
    misfire: str,
    catch_up: Duration,
    overlap: str | None,
    allow: int | None,
    window: Duration | None,
    jitter: Duration | None,
    max_fires: int | None,
) -> Policies:
    """Check them. `allow=n` is short for overlap="allow" with at most n live at once."""
    if allow is not None and overlap not in (None, Overlap.ALLOW):
        raise InvalidArgument("schedule.allow", allow, 'none, or with overlap="allow"')
    if overlap == Overlap.ALLOW and allow is None:
        raise InvalidArgument("schedule.allow", allow, "how many may be live at once")
    chosen = Overlap.ALLOW if allow is not None else _word(Overlap, overlap or Overlap.SKIP, "overlap")
    return Policies(
        misfire=_word(Misfire, misfire, "misfire"),
        catch_up=duration(catch_up, "schedule.catch_up", least=_NONE),
        overlap=chosen,
        overlap_limit=1 if allow is None else _count(allow),
        offset=_NONE if window is None else _place(name, duration(window, "schedule.window", least=_NONE)),
        jitter=_NONE if jitter is None else duration(jitter, "schedule.jitter", least=_NONE),
        max_fires=valid_max_fires(max_fires),
    )


def _place(name: str, window: timedelta) -> timedelta:
    """The schedule's own place in the window: the same for ever, and spread evenly over names."""
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"window").digest())
    steps = window // _MILLISECOND
    return (number % steps) * _MILLISECOND if steps else _NONE


def _word(words: type[_Word], given: str, field: str) -> _Word:
    try:
        return words(given)
    except ValueError:
        raise InvalidArgument(f"schedule.{field}", given, f"one of {', '.join(words)}") from None


def _count(allow: int) -> int:
    if isinstance(allow, bool) or not isinstance(allow, int) or not 1 <= allow <= MOST_AT_ONCE:
        raise InvalidArgument("schedule.allow", allow, f"a whole number from 1 to {MOST_AT_ONCE}")
    return allow
