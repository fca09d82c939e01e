"""Events: what jobs wait for."""

from __future__ import annotations

from typing import Self

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.errors import NotFound
from mainspring.model.checkpoint import EVERYBODY, Event
from mainspring.model.value import Value
from mainspring.tasks.enqueue import new_event


class Sent(Value, frozen=True, kw_only=True):
    """The result of sending an event. `first` is False if the event was already sent."""

    event: Event
    first: bool


class Events(Noun):
    """Events of one store."""

    @order("events.send", result=lambda sent: {"first": sent.first})
    async def asend(self, name: str, payload: object = None, *, job_id: int | None = None) -> Sent:
        """Send an event to one job, which must exist, or to every job that waits or will wait."""
        event, store = new_event(name, payload, job_id), await self._store()
        if job_id is not None and await store.jobs.get(job_id, at=self._stamp) is None:
            raise NotFound("job", job_id)
        return await carried_out(
            store.events.send(event, at=self._stamp), lambda first: Sent(event=event, first=first)
        )

    send = blocking(asend)


class SentView(Value, frozen=True, kw_only=True):
    """The result of sending an event, as programs read it."""

    name: str
    job_id: int | None
    sent: bool

    @classmethod
    def of(cls, sent: Sent) -> Self:
        """Of an event that was sent; `job_id` is None where it was sent to every job."""
        whose = None if sent.event.job_id == EVERYBODY else sent.event.job_id
        return cls(name=sent.event.name, job_id=whose, sent=sent.first)
