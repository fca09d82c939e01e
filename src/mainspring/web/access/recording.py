"""What a route changes is on record: the order before its handler runs, and then what came of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from mainspring.model.access import Actor
from mainspring.web.access.gate import acts_of, address_of

LARGEST_SHOWN = 64 * 1024
"""Bytes of a body that are read for the record."""
FAILED = 400
Handle = Callable[[Request], Awaitable[Response]]


async def recorded(request: Request, act: str, actor: Actor, handle: Handle) -> Response:
    """Run the handler as an act. If the order cannot be put on record, it does not run."""
    body = await request.body()
    acts = await acts_of(request)
    asked = {"path": request.url.path, "body": _shown(request, body)}
    async with acts.recorded(
        actor, act, target=target_of(request), details=asked, address=address_of(request)
    ) as ending:
        response = await handle(_again(request, body))
        ending.details = {"status": response.status_code}
        ending.failed = response.status_code >= FAILED
        return response


def target_of(request: Request) -> str:
    """What the address names: an id, a name."""
    return "/".join(str(each) for each in request.path_params.values())


def _shown(request: Request, body: bytes) -> object:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return None
    if len(body) <= LARGEST_SHOWN:
        try:
            if kind == "application/json":
                return json.loads(body)
            if kind == "application/x-www-form-urlencoded":
                return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000)
        except (ValueError, RecursionError):
            pass  # the handler will say what is wrong with it
    return f"[{len(body)} bytes]"


def _again(request: Request, body: bytes) -> Request:
    """The same request with its body still to be read."""
    return Request(request.scope, _replayed(body, request.receive))


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
