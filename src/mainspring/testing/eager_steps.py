"""Steps in eager mode: nothing is stored, time passes at once, and events are what the test says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NoReturn, cast

from mainspring.clock import Clock
from mainspring.declare.endings import Suspended
from mainspring.declare.events import new_event
from mainspring.declare.payload import LARGEST_RESULT
from mainspring.errors import UsageError
from mainspring.model.checkpoint import Kind, Recorded
from mainspring.model.event import EVERYBODY, Event
from mainspring.model.job import Claim
from mainspring.store.database import Stamp
from mainspring.store.effects import Effects
from mainspring.store.events import Events
from mainspring.worker.steps import RunSteps, StepRun


class EagerEvents:
    """What was sent while the mode lasts."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._sent: dict[tuple[int, str], bytes] = {}
        for name, payload in given.items():
            self.send(new_event(name, payload, None))

    def send(self, event: Event) -> bool:
        """Keep it; False if there is one already."""
        place = event.job_id, event.name
        return self._sent.setdefault(place, event.payload) is event.payload

    def find(self, job_id: int, name: str) -> bytes | None:
        """The job's own, or else everybody's."""
        return self._sent.get((job_id, name), self._sent.get((EVERYBODY, name)))


class EagerSteps(RunSteps):
    """A sleep is over as soon as it begins, and so is a wait with a timeout whose event was not sent."""

    def __init__(self, run: StepRun, clock: Clock, events: EagerEvents) -> None:
        effects, sent = cast("Effects", _Forgetful(clock)), cast("Events", _Sent(events))
        super().__init__(run, effects, sent, clock, result_bytes=LARGEST_RESULT)

    async def _left(self, kind: Kind, name: str, length: timedelta) -> timedelta:
        return timedelta()

    def _suspend(self, suspended: Suspended) -> NoReturn:
        raise UsageError(
            f"ctx.wait_event({suspended.awaits!r}): eager mode cannot wait; give eager(app, events={{…}}), "
            "send it before, or use a Harness"
        )


class _Forgetful:
    """As much of `store.effects` as steps ask for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def steps(self, job_id: int, *, at: Stamp) -> Recorded:
        return Recorded(now=self._clock.now())

    async def record_step(self, claim: Claim, name: str, *, value: bytes | None, at: Stamp) -> bool:
        return True


class _Sent:
    """As much of `store.events`."""

    def __init__(self, events: EagerEvents) -> None:
        self._events = events

    async def get(self, job_id: int, name: str) -> bytes | None:
        return self._events.find(job_id, name)
