"""Limits: which waiting jobs may pass now. The waiting lines take turns; in each, the highest priority is
first."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from mainspring.model.limit import LimitKey

LONGEST_KEY = 200
_UNLIMITED = 1_000
_encode = msgspec.json.Encoder(order="deterministic").encode


def key_of_value(value: object) -> str:
    """The limit key for one value of a parameter."""
    text = value if isinstance(value, str) else _encode(value).decode()
    if len(text) <= LONGEST_KEY and text.isprintable():
        return text
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True, kw_only=True)
class LimitKeyState:
    """A limit key during one pass."""

    limit_key: LimitKey
    used: int
    """Jobs that have passed and have not ended."""
    unclaimed: int
    """Those of them that no worker has claimed yet."""
    tokens: float = 0.0
    refilled_at: datetime | None = None
    """None means that the bucket is full, because no job has passed yet."""

    def refill(self, now: datetime) -> None:
        """Add the tokens of the time since the last refill. Jobs that have passed and not begun still count:
        with them there is never more than one burst, however long they wait for a worker."""
        limit_key = self.limit_key
        if limit_key.rate is None or limit_key.period is None:
            return
        if self.refilled_at is None:
            self.tokens = float(limit_key.burst)
        else:
            since = max(now - self.refilled_at, timedelta())
            self.tokens += since / limit_key.period * limit_key.rate
        self.tokens = min(self.tokens, float(max(limit_key.burst - self.unclaimed, 0)))
        self.refilled_at = now

    @property
    def room(self) -> int:
        """How many more jobs may pass now."""
        limit_key, room = self.limit_key, _UNLIMITED
        if limit_key.concurrency is not None:
            room = min(room, limit_key.concurrency - self.used)
        if limit_key.window is not None:
            room = min(room, limit_key.window - self.unclaimed)
        if limit_key.rate is not None:
            room = min(room, math.floor(self.tokens + 1e-9))
        return max(room, 0)

    def take(self) -> None:
        """Count one more job that passes."""
        self.used += 1
        self.unclaimed += 1
        if self.limit_key.rate is not None:
            self.tokens -= 1

    def next_token(self, now: datetime) -> datetime | None:
        """When the rate lets the next job pass; None if the rate is not the obstacle."""
        limit_key = self.limit_key
        if limit_key.rate is None or limit_key.period is None or self.tokens >= 1:
            return None
        return now + limit_key.period / limit_key.rate * (1 - self.tokens)


@dataclass(slots=True, kw_only=True)
class WaitingLine:
    """Jobs that wait for the same limit keys, best first; only as many as could pass were looked at."""

    id: int
    limit_keys: tuple[LimitKeyState, ...]
    jobs: Sequence[int] = ()
    priority: int = 0
    """Of the first of them."""

    @property
    def room(self) -> int:
        """How many jobs may pass now, if no other line takes a place."""
        return min((limit_key.room for limit_key in self.limit_keys), default=_UNLIMITED)


def admit(lines: Sequence[WaitingLine], most: int) -> list[tuple[int, tuple[LimitKeyState, ...]]]:
    """The jobs that pass, each with its limit keys. Lines with a better first job come first; lines alike
    take turns, so that a long one does not starve a short one."""
    passed: list[tuple[int, tuple[LimitKeyState, ...]]] = []
    turns = [(line, iter(line.jobs)) for line in sorted(lines, key=lambda line: -line.priority)]
    while turns and len(passed) < most:
        staying = []
        for line, jobs in turns:
            if len(passed) == most or line.room == 0 or (job := next(jobs, None)) is None:
                continue
            for limit_key in line.limit_keys:
                limit_key.take()
            passed.append((job, line.limit_keys))
            staying.append((line, jobs))
        turns = staying
    return passed
