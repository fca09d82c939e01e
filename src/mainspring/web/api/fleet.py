"""Queues, limits, processes, leases, events: what stands between a job and its run."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from mainspring.admin.events import Events, sent_view
from mainspring.admin.processes import lease_view
from mainspring.admin.queues import Queues, gate_view, queue_view
from mainspring.admin.views import member_view
from mainspring.errors import NotFound
from mainspring.model.access import AccessRole
from mainspring.web.api import shapes
from mainspring.web.api.answers import answers, json
from mainspring.web.api.values import AnId, Body, InPath, Limit, Line, Name, Params, Text, name_of
from mainspring.web.desk import AnAdmin
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

queues = Routes("queues", ApiRoute, prefix="/api/v1/queues", tags=["queues"])
limits = Routes("limits", ApiRoute, prefix="/api/v1/limits", tags=["queues"])
members = Routes("fleet", ApiRoute, prefix="/api/v1/members", tags=["fleet"])
leases = Routes("fleet", ApiRoute, prefix="/api/v1/leases", tags=["fleet"])
events = Routes("events", ApiRoute, prefix="/api/v1/events", tags=["events"])


class Note(Body):
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


@queues.get("", **answers(shapes.Queues))
async def list_queues(admin: AnAdmin) -> Response:
    """Every queue that has a job, a worker or a pause, by name."""
    found = await admin.queues.aall(about=True)
    return json({"items": [queue_view(each) for each in found]})


@queues.get("/{name}", **answers(shapes.Queue))
async def show_queue(admin: AnAdmin, name: InPath) -> Response:
    """One queue."""
    for each in await admin.queues.aall(about=True):
        if each.name == name_of(name):
            return json(queue_view(each))
    raise NotFound("queue", name_of(name))


@queues.post("/{name}/pause", role=AccessRole.OPERATOR, order=Queues.apause, **answers(shapes.Changed))
async def pause(admin: AnAdmin, name: InPath, body: Note | None = None) -> Response:
    """Claim nothing more from a queue; what runs goes on."""
    note = None if body is None else body.note
    done = await admin.queues.apause(name_of(name), note=note)
    return json({"name": name_of(name), "changed": done})


@queues.post("/{name}/resume", role=AccessRole.OPERATOR, order=Queues.aresume, **answers(shapes.Changed))
async def resume(admin: AnAdmin, name: InPath) -> Response:
    """Claim from a queue again."""
    return json({"name": name_of(name), "changed": await admin.queues.aresume(name_of(name))})


@limits.get("", **answers(shapes.Limits))
async def list_limits(admin: AnAdmin, which: Annotated[WhichLimits, Query()]) -> Response:
    """Limits that jobs wait for, by name and key, and who holds their places."""
    found = await admin.limits.afind(name=which.name, key=which.key, limit=which.limit)
    return json({"items": [gate_view(each) for each in found]})


@members.get("", **answers(shapes.Members))
async def list_members(admin: AnAdmin) -> Response:
    """Every process on record: workers and schedulers."""
    return json({"items": [member_view(each) for each in await admin.processes.aall()]})


@leases.get("", **answers(shapes.Leases))
async def list_leases(admin: AnAdmin) -> Response:
    """Every name that was ever leased, by name, held or not."""
    found = await admin.leases.aall()
    return json({"items": [lease_view(each) for each in found]})


@events.post("", role=AccessRole.OPERATOR, order=Events.asend, **answers(shapes.SentEvent))
async def send(admin: AnAdmin, body: NewEvent) -> Response:
    """Send an event to one job, or to all that wait or will wait for it; the first one counts."""
    sent = await admin.events.asend(body.name, body.payload, job_id=body.job_id)
    return json(sent_view(sent))
