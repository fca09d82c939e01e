"""Queues, limits, processes, leases, events: what stands between a job and its run."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from mainspring.errors import NotFound
from mainspring.model.access import AccessRole
from mainspring.ops.events import Events, sent_view
from mainspring.ops.leases import lease_view
from mainspring.ops.limits import gate_view
from mainspring.ops.queues import queue_view
from mainspring.ops.views import member_view
from mainspring.web.access.identity import actor_of
from mainspring.web.api import shapes
from mainspring.web.api.answers import answers, json
from mainspring.web.api.values import AnId, Body, InPath, Limit, Line, Name, Params, Text, name_of
from mainspring.web.desk import AtDesk
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

HOLDERS = 20
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
async def list_queues(desk: AtDesk) -> Response:
    """Every queue that has a job, a worker or a pause, by name."""
    found = await (await desk.queues()).all(about=True)
    return json({"items": [queue_view(each) for each in found]})


@queues.get("/{name}", **answers(shapes.Queue))
async def show_queue(desk: AtDesk, name: InPath) -> Response:
    """One queue."""
    for each in await (await desk.queues()).all(about=True):
        if each.name == name_of(name):
            return json(queue_view(each))
    raise NotFound("queue", name_of(name))


@queues.post("/{name}/pause", role=AccessRole.OPERATOR, act="queues.pause", **answers(shapes.Changed))
async def pause(request: Request, desk: AtDesk, name: InPath, body: Note | None = None) -> Response:
    """Claim nothing more from a queue; what runs goes on."""
    note = None if body is None else body.note
    done = await (await desk.queues()).pause(name_of(name), author=actor_of(request).name, note=note)
    return json({"name": name_of(name), "changed": done})


@queues.post("/{name}/resume", role=AccessRole.OPERATOR, act="queues.resume", **answers(shapes.Changed))
async def resume(desk: AtDesk, name: InPath) -> Response:
    """Claim from a queue again."""
    return json({"name": name_of(name), "changed": await (await desk.queues()).resume(name_of(name))})


@limits.get("", **answers(shapes.Limits))
async def list_limits(desk: AtDesk, which: Annotated[WhichLimits, Query()]) -> Response:
    """Limits that jobs wait for, by name and key, and who holds their places."""
    store = await desk.store()
    found = await store.limits.keys(name=which.name, key=which.key, limit=which.limit, holders=HOLDERS)
    return json({"items": [gate_view(each) for each in found]})


@members.get("", **answers(shapes.Members))
async def list_members(desk: AtDesk) -> Response:
    """Every process on record: workers and schedulers."""
    return json({"items": [member_view(each) for each in await (await desk.queries()).members()]})


@leases.get("", **answers(shapes.Leases))
async def list_leases(desk: AtDesk) -> Response:
    """Every name that was ever leased, by name, held or not."""
    found = await (await desk.store()).leases.all(at=desk.clock.stamp())
    return json({"items": [lease_view(each) for each in found]})


@events.post("", role=AccessRole.OPERATOR, act="events.send", **answers(shapes.SentEvent))
async def send(desk: AtDesk, body: NewEvent) -> Response:
    """Send an event to one job, or to all that wait or will wait for it; the first one counts."""
    sent = await Events(await desk.store(), desk.clock).send(body.name, body.payload, job_id=body.job_id)
    return json(sent_view(sent))
