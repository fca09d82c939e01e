"""`/stream`: what changes, as it changes (server-sent events)."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mainspring.errors import StoreError
from mainspring.model.access import AccessRole, Actor
from mainspring.web.access.identity import actor_of
from mainspring.web.guarded import identified
from mainspring.web.live import Live
from mainspring.web.problems import Forbidden, Problem, Unauthorized
from mainspring.web.routes import Routes
from mainspring.web.topics import Topic, topic_of
from mainspring.web.wire.strict import ApiRoute

MOST_TOPICS = 20
routes = Routes("stats", ApiRoute, prefix="/api/v1", tags=["stream"])
_ANSWERS: dict[str, Any] = {
    "response_model": None,
    "responses": {
        200: {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        "4XX": {
            "description": "Refused",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        },
        "5XX": {
            "description": "Not now",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        },
    },
}


@routes.get("/stream", **_ANSWERS)
async def stream(request: Request, topic: Annotated[list[str], Query(max_length=MOST_TOPICS)]) -> Response:
    """Events named like their topic, with the JSON of what it is now, whenever that changes: overview,
    queues, workers, dead, schedules, job/ID, workflow/ID, schedule/NAME. `unavailable` while the database is
    away, `gone` for what is not there, `closed` when you may not listen any more."""
    _refuse_others(request)
    live: Live = request.app.state.live
    actor = actor_of(request)
    topics = [topic_of(each) for each in dict.fromkeys(topic)]
    for each in topics:
        if not actor.may(AccessRole.VIEWER, each.noun):
            raise Forbidden(AccessRole.VIEWER)
    live.room_for(actor)

    async def still() -> bool:
        return await _may_still(request, actor, topics)

    return StreamingResponse(
        live.stream(actor, topics, still),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _may_still(request: Request, before: Actor, topics: list[Topic]) -> bool:
    """Who listens is asked for again: a token may have been revoked, a session closed, a role taken."""
    try:
        actor = await identified(request)
    except Unauthorized:
        return False
    except StoreError:
        return True  # nobody can tell now, and nothing is told either
    return (
        actor is not None
        and actor.name == before.name
        and all(actor.may(AccessRole.VIEWER, each.noun) for each in topics)
    )


def _refuse_others(request: Request) -> None:
    """Pages of other sites, whose browser would send our cookie with what they ask for."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
    if foreign or site in ("cross-site", "same-site"):
        raise Problem(403, "forbidden", "origin: not a page of this server", field="origin")
