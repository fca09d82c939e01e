"""Queues, limits, processes, leases, events: what stands between a job and its run."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from mainspring.admin.events import Events, SentView
from mainspring.admin.queues import LimitView, Queues, QueueView
from mainspring.admin.views import ProcessView
from mainspring.errors import NotFound
from mainspring.model.access import AccessRole
from mainspring.model.process import LeaseInfo
from mainspring.model.value import Value
from mainspring.web.api.answers import answers, answers_items, items, json
from mainspring.web.api.values import AnId, Body, InPath, Limit, Line, Name, Params, Text, name_of
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.services import AnAdmin

queues = Routes("queues", ApiRoute, prefix="/api/v1/queues", tags=["queues"])
limits = Routes("limits", ApiRoute, prefix="/api/v1/limits", tags=["queues"])
processes = Routes("fleet", ApiRoute, prefix="/api/v1/processes", tags=["fleet"])
leases = Routes("fleet", ApiRoute, prefix="/api/v1/leases", tags=["fleet"])
events = Routes("events", ApiRoute, prefix="/api/v1/events", tags=["events"])


class PauseNote(Body):
    """Why, for those who find it paused."""

    note: Line | None = None


class WhichLimits(Params):
    """Which limits."""

    name: Text | None = None
    key: Text | None = None
    limit: Limit = 100


class NewEvent(Body):
    """What jobs wait for."""

    name: Name
    payload: Any = None
    job_id: AnId | None = None


class Changed(Value, frozen=True, kw_only=True):
    """A queue, and whether it is other than before."""

    name: str
    changed: bool


@queues.get("", **answers_items(QueueView))
async def list_queues(admin: AnAdmin) -> Response:
    """Every queue that has a job, a worker or a pause, by name."""
    found = await admin.queues.aall(about=True)
    return items([QueueView.of(each) for each in found])


@queues.get("/{name}", **answers(QueueView))
async def show_queue(admin: AnAdmin, name: InPath) -> Response:
    """One queue."""
    for each in await admin.queues.aall(about=True):
        if each.name == name_of(name):
            return json(QueueView.of(each))
    raise NotFound("queue", name_of(name))


@queues.post("/{name}/pause", role=AccessRole.OPERATOR, order=Queues.apause, **answers(Changed))
async def pause(admin: AnAdmin, name: InPath, body: PauseNote | None = None) -> Response:
    """Claim nothing more from a queue; what runs goes on."""
    note = None if body is None else body.note
    done = await admin.queues.apause(name_of(name), note=note)
    return json(Changed(name=name_of(name), changed=done))


@queues.post("/{name}/resume", role=AccessRole.OPERATOR, order=Queues.aresume, **answers(Changed))
async def resume(admin: AnAdmin, name: InPath) -> Response:
    """Claim from a queue again."""
    return json(Changed(name=name_of(name), changed=await admin.queues.aresume(name_of(name))))


@limits.get("", **answers_items(LimitView))
async def list_limits(admin: AnAdmin, which: Annotated[WhichLimits, Query()]) -> Response:
    """Limits that jobs wait for, by name and key, and who holds their places."""
    found = await admin.limits.afind(name=which.name, key=which.key, limit=which.limit)
    return items([LimitView.of(each) for each in found])


@processes.get("", **answers_items(ProcessView))
async def list_processes(admin: AnAdmin) -> Response:
    """Every process on record: workers and schedulers."""
    return items([ProcessView.of(each) for each in await admin.processes.aall()])


@leases.get("", **answers_items(LeaseInfo))
async def list_leases(admin: AnAdmin) -> Response:
    """Every name that was ever leased, by name, held or not."""
    return items(await admin.leases.aall())


@events.post("", role=AccessRole.OPERATOR, order=Events.asend, **answers(SentView))
async def send(admin: AnAdmin, body: NewEvent) -> Response:
    """Send an event to one job, or to all that wait or will wait for it; the first one counts."""
    sent = await admin.events.asend(body.name, body.payload, job_id=body.job_id)
    return json(SentView.of(sent))
