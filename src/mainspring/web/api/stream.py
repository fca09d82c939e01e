"""`/stream`: what changes, as it changes (server-sent events)."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mainspring.errors import StoreError
from mainspring.model.access import AccessRole, Actor
from mainspring.web.access.identity import actor_of
from mainspring.web.guarded import identified
from mainspring.web.live import Live, Recheck, Seat
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

    async def still() -> bool:
        return await _may_still(request, actor, topics)

    return _Listening(live, live.seat(actor), topics, still)


class _Listening(StreamingResponse):
    """Leaves its seat also when the browser has gone before the first event."""

    def __init__(self, live: Live, seat: Seat, topics: list[Topic], still: Recheck) -> None:
        self._seat = seat
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(live.stream(seat, topics, still), headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._seat.leave()


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
