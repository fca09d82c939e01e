"""Lets jobs with limits through their limit keys."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.model.limit import Admission
from mainspring.store.limits import Limits

BUSY = timedelta(milliseconds=5)
"""Another process is at the limit keys: it may have looked before a place was free."""
WAITING = timedelta(milliseconds=200)
"""Jobs wait, and what frees a place may be the death of a worker, of which there is no signal."""
ASLEEP = timedelta(seconds=5)
"""This app declares no limit; jobs of another app that does may be waiting."""


class LimitAdmission:
    """One pass over the lines that wait. Every worker has one; the store lets one pass at a time."""

    name = "limit_admission"

    def __init__(
        self, limits: Limits, clock: Clock, entropy: Entropy, *, poll: timedelta, declared: bool
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._entropy = entropy
        self.listens = declared
        """Whether news of jobs is worth a look: where there are no limits, it must cost nothing."""
        self._poll = poll if declared else max(poll, ASLEEP)
        self._after = 0
        self._news = False

    async def tick(self) -> timedelta:
        done = await self._limits.admit(after=self._after, at=self._clock.stamp())
        if done.busy:
            return BUSY * (0.5 + self._entropy.fraction())
        self._after = done.after
        self._news = self._news or bool(done.admitted)
        if done.admitted or done.after:
            return timedelta()
        return self._rest(done) if done.waiting else self._poll

    async def relieve(self) -> bool:
        """One pass, before a burst ends because nothing is left to do. Whether a job has passed, now or since
        this was last asked."""
        done = await self._limits.admit(at=self._clock.stamp())
        news, self._news = self._news or done.busy or bool(done.admitted), False
        return news

    def _rest(self, done: Admission) -> timedelta:
        if done.again_at is None:
            return min(WAITING, self._poll)
        return min(max(_until(done.again_at, self._clock.now()), BUSY), WAITING, self._poll)


def _until(moment: datetime, now: datetime) -> timedelta:
    # The store's moment against our clock: wrong by the skew, and so bounded by those who call.
    return moment - now
