"""What operators send to jobs that wait."""

from __future__ import annotations

from mainspring.clock import Clock
from mainspring.declare.events import new_event
from mainspring.errors import NotFound
from mainspring.model.event import EVERYBODY, Event
from mainspring.model.value import Value
from mainspring.ops.views import View
from mainspring.store.ports import Store


class Sent(Value, frozen=True, kw_only=True):
    """What became of an event; not `first` when it had been sent before, which counts."""

    event: Event
    first: bool


class Events:
    """Events of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def send(self, name: str, payload: object = None, *, job_id: int | None = None) -> Sent:
        """To one job, which must be on record, or to everybody who waits or will wait."""
        event = new_event(name, payload, job_id)
        if job_id is not None and await self._store.jobs.get(job_id, at=self._clock.stamp()) is None:
            raise NotFound("job", job_id)
        return Sent(event=event, first=await self._store.events.send(event, at=self._clock.stamp()))


def sent_view(sent: Sent) -> View:
    """For JSON."""
    whose = None if sent.event.job_id == EVERYBODY else sent.event.job_id
    return {"name": sent.event.name, "job_id": whose, "sent": sent.first}
