"""Every page and every question of the API: whatever routes there are, with parameters that exist."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request

from benchmarks.pages.fill import Size
from mainspring import Mainspring
from mainspring.model.access import AccessRole, Actor
from mainspring.web.app import create_app
from mainspring.web.auth.policy import guard_of

Read = Callable[[], Awaitable[object]]
ENDLESS = ("stream", "events", "sse", "live")
"""Words in the paths of answers that do not end."""


LONG = {"/api/v1/plan", "/api/v1/ledger/verify"}
"""No pages: one compares every schedule with what an app declares (2 s), the other proves every slot."""


def samples(size: Size) -> dict[str, str]:
    """A value for each name that a path may ask for."""
    live, flow = size.runs + size.live // 2, size.runs + size.live + size.dead + 1010
    return {
        "job_id": str(live),
        "dead_id": str(size.runs + size.live + 20),
        "workflow_id": str(flow),
        "process_id": "3",
        "worker_id": "3",
        "name": "customer.000500.report",
        "schedule": "customer.000500.report",
        "queue": "queue3",
        "task": "work.task3",
        "number": "1",
        "step": "step1",
    }


def paths(web: FastAPI, size: Size) -> Iterator[tuple[str, str]]:
    """What can be asked for with GET, and with what in its place; what has no sample is left out and told."""
    known = samples(size)
    for route in web.routes:
        if not isinstance(route, APIRoute) or "GET" not in (route.methods or ()) or guard_of(route) is None:
            continue
        if route.path in LONG or any(word in route.path.split("/") for word in ENDLESS):
            continue
        wanted = re.findall(r"{(\w+)(?::\w+)?}", route.path)
        path = route.path
        for name in wanted:
            value = _value(route.path, name, known)
            path = re.sub(rf"{{{name}(?::\w+)?}}", value, path)
        yield route.path, path


def _value(path: str, name: str, known: dict[str, str]) -> str:
    if "queue" in path and name == "name":
        return known["queue"]
    if "dead" in path and name in ("job_id", "id"):
        return known["dead_id"]
    if "workflow" in path and name in ("id", "job_id"):
        return known["workflow_id"]
    return known.get(name, "1")


def requests(app: Mainspring, size: Size) -> dict[str, Read]:
    """One call for each route. Whoever calls is let in as an administrator."""
    web = create_app(app, identify=[_anybody])

    def ask(path: str) -> Read:
        return lambda: _get(web, path)

    return {f"GET {shown}": ask(path) for shown, path in paths(web, size)}


async def _anybody(request: Request) -> Actor | None:
    return Actor(name="bench", role=AccessRole.ADMIN, via="host")


async def _get(web: FastAPI, path: str) -> int:
    """The status of the answer, once all of it is there; raises when it is the server's fault."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"accept", b"text/html, application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    status, body = 0, b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")

    await web(scope, receive, send)
    if status >= 500:
        raise RuntimeError(f"{path}: {status} {body[:200]!r}")
    return status
