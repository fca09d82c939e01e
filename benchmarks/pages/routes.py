"""Every page and every question of the API, over HTTP: whatever routes there are, with parameters that exist."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator

from fastapi import FastAPI
from fastapi.routing import APIRoute

from benchmarks.pages.fill import Size
from mainspring import Mainspring
from mainspring.web.app import create_app
from mainspring.web.routes import guard_of

Read = Callable[[], Awaitable[object]]
ENDLESS = ("stream", "events", "sse", "live")
"""Words in the paths of answers that do not end."""


def samples(size: Size) -> dict[str, str]:
    """A value for each name that a path may ask for."""
    live, flow = size.runs + size.live // 2, size.runs + size.live + size.dead + 1010
    return {
        "job_id": str(live),
        "dead_id": str(size.runs + size.live + 20),
        "workflow_id": str(flow),
        "member_id": "3",
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
        if not isinstance(route, APIRoute) or "GET" not in route.methods or guard_of(route) is None:
            continue
        if any(word in route.path.split("/") for word in ENDLESS):
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


async def requests(url: str, size: Size) -> dict[str, Read]:
    """One call for each route. Whoever calls is let in as an administrator."""
    import httpx

    from benchmarks.pages.visitor import visitor

    app = Mainspring(url)
    web = create_app(app, identify=[visitor])
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=web), base_url="http://localhost")

    def ask(path: str) -> Read:
        async def call() -> object:
            answer = await client.get(path, headers={"Accept": "text/html, application/json"})
            if answer.status_code >= 500:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:200]}")
            return answer.status_code

        return call

    return {f"GET {shown}": ask(path) for shown, path in paths(web, size)}
