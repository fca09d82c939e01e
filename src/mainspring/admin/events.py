"""Events: what jobs wait for."""

from __future__ import annotations

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.admin.views import View
from mainspring.declare.events import new_event
from mainspring.errors import NotFound
from mainspring.model.event import EVERYBODY, Event
from mainspring.model.value import Value


class Sent(Value, frozen=True, kw_only=True):
    """What became of an event; not `first` when it had been sent before, which counts."""

    event: Event
    first: bool


class Events(Noun):
    """Events of one store."""

    @order("events.send", result=lambda sent: {"first": sent.first})
    async def asend(self, name: str, payload: object = None, *, job_id: int | None = None) -> Sent:
        """To one job, which must be on record, or to every job that waits or will wait."""
        event, store = new_event(name, payload, job_id), await self._store()
        if job_id is not None and await store.jobs.get(job_id, at=self._stamp) is None:
            raise NotFound("job", job_id)
        return await carried_out(
            store.events.send(event, at=self._stamp), lambda first: Sent(event=event, first=first)
        )

    send = blocking(asend)


def sent_view(sent: Sent) -> View:
    """For JSON."""
    whose = None if sent.event.job_id == EVERYBODY else sent.event.job_id
    return {"name": sent.event.name, "job_id": whose, "sent": sent.first}
