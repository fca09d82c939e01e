"""What becomes of a schedule's slots when something is in the way: checked where it is given."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Literal, TypeVar

from mainspring.declare.when import valid_max_fires
from mainspring.duration import Duration, duration, written
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Misfire, Overlap

MOST_AT_ONCE = 10_000
_NONE = timedelta()
_MILLISECOND, _SECOND = timedelta(milliseconds=1), timedelta(seconds=1)
MisfireOption = Literal["latest", "all", "skip"]
OverlapOption = Literal["skip", "queue_one", "queue_all", "allow", "replace"]
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of one schedule."""

    misfire: Misfire
    catch_up: timedelta | None
    overlap: Overlap
    overlap_limit: int
    offset: timedelta
    jitter: timedelta
    max_fires: int | None
    expect_start_within: timedelta | None = None
    expect_finish_by: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """What a user may say. `allow=n` is short for overlap="allow" with at most n live at once."""

    misfire: str = "latest"
    catch_up: Duration | None = None
    overlap: str | None = None
    allow: int | None = None
    window: Duration | None = None
    jitter: Duration | None = None
    max_fires: int | None = None
    expect_start_within: Duration | None = None
    expect_finish_by: Duration | None = None

    def policies(self, name: str) -> Policies:
        """Check them; the schedule's name gives it its place in the window."""
        found = Policies(
            misfire=_word(Misfire, self.misfire, "misfire"),
            catch_up=None
            if self.catch_up is None
            else duration(self.catch_up, "schedule.catch_up", least=_NONE),
            overlap=self._overlap(),
            overlap_limit=1 if self.allow is None else _count(self.allow),
            offset=_NONE if self.window is None else _place(name, self.window),
            jitter=_NONE if self.jitter is None else duration(self.jitter, "schedule.jitter", least=_NONE),
            max_fires=valid_max_fires(self.max_fires),
            expect_start_within=_expected(self.expect_start_within, "expect_start_within"),
            expect_finish_by=_expected(self.expect_finish_by, "expect_finish_by"),
        )
        check_expectations(found)
        return found

    def _overlap(self) -> Overlap:
        if self.allow is not None and self.overlap not in (None, Overlap.ALLOW):
            raise InvalidArgument("schedule.allow", self.allow, 'none, or with overlap="allow"')
        if self.overlap == Overlap.ALLOW and self.allow is None:
            raise InvalidArgument("schedule.allow", self.allow, "how many may be live at once")
        if self.overlap is None:
            return Overlap.SKIP if self.allow is None else Overlap.ALLOW
        return _word(Overlap, self.overlap, "overlap")


def _place(name: str, given: Duration) -> timedelta:
    """The schedule's own place in the window: the same for ever, and spread evenly over names."""
    window = duration(given, "schedule.window", least=_NONE)
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"window").digest())
    steps = window // _MILLISECOND
    return (number % steps) * _MILLISECOND if steps else _NONE


def _expected(given: Duration | None, field: str) -> timedelta | None:
    return None if given is None else duration(given, f"schedule.{field}", least=_SECOND)


def check_expectations(found: Policies) -> None:
    """Refuse what no slot could ever keep to."""
    start, finish = found.expect_start_within, found.expect_finish_by
    latest = found.offset + found.jitter
    for name, expected in (("expect_start_within", start), ("expect_finish_by", finish)):
        if expected is not None and expected <= latest:
            raise InvalidArgument(
                f"schedule.{name}",
                written(expected),
                f"more than its window and jitter, which may take {written(latest)}",
            )
    if start is not None and finish is not None and finish < start:
        raise InvalidArgument(
            "schedule.expect_finish_by",
            written(finish),
            f"at least expect_start_within, which is {written(start)}",
        )


def _word(words: type[_Word], given: str, field: str) -> _Word:
    try:
        return words(given)
    except ValueError:
        raise InvalidArgument(f"schedule.{field}", given, f"one of {', '.join(words)}") from None


def _count(allow: int) -> int:
    if isinstance(allow, bool) or not isinstance(allow, int) or not 1 <= allow <= MOST_AT_ONCE:
        raise InvalidArgument("schedule.allow", allow, f"a whole number from 1 to {MOST_AT_ONCE}")
    return allow
