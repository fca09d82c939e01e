"""A small app behind guarded routes with a client that needs no socket, and a house with something of
everything in it, once per store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from mainspring.admin.admin import Admin
from mainspring.admin.audit_log import RecordedOrder
from mainspring.app import Mainspring
from mainspring.entropy import SeededEntropy
from mainspring.errors import MainspringError, NotFound
from mainspring.model.access import AccessRole, Actor
from mainspring.model.audit_log import AuditFilter
from mainspring.testing.clock import ManualClock
from mainspring.web import auth
from mainspring.web.auth.identity import Identify, actor_of, by_token_or_session
from mainspring.web.auth.policy import GuardedRoute, Routes
from mainspring.web.problems import Problem, on_problem
from mainspring.web.services import AnAdmin, Services
from tests.support.door import House, open_house

things = Routes("jobs", GuardedRoute, prefix="/things")


@things.get("/{thing}")
async def look(request: Request, thing: str) -> Response:
    return JSONResponse({"thing": thing, "by": actor_of(request).name})


@things.get("/{thing}/stream")
async def stream(thing: str) -> Response:
    return StreamingResponse(iter([b"data: x\n\n"]), media_type="text/event-stream")


@things.post("/{thing}/poke", role=AccessRole.OPERATOR, order="jobs.poke")
async def poke(request: Request, admin: AnAdmin, thing: str) -> Response:
    body = await request.json()
    async with admin.context.recorded("jobs.poke", object=thing, details=body) as ending:
        if thing == "missing":
            raise NotFound("thing", thing)
        if thing == "busy":
            raise Problem(409, "refused", f"thing {thing} is busy")
        ending.details = {"poked": thing}
    return JSONResponse({"body": body})


@things.delete("/{thing}", role=AccessRole.ADMIN, order="jobs.purge")
async def purge(thing: str) -> Response:
    return JSONResponse({})


class Site:
    """The app, its doors, and the words of whoever stands before them."""

    def __init__(self, app: Mainspring, clock: ManualClock) -> None:
        self.app, self.clock = app, clock

    def web(self, *identify: Identify) -> FastAPI:
        web = FastAPI(openapi_url=None)
        web.state.services = Services(self.app)
        web.state.identify = identify or by_token_or_session(self.app)
        for error in (Problem, MainspringError):
            web.add_exception_handler(error, on_problem)
        for routes in (things, *auth.all_routes()):
            web.router.routes.extend(routes.router.routes)
        return web

    @asynccontextmanager
    async def client(
        self, *identify: Identify, base: str = "http://127.0.0.1:8383", inside: Any = None
    ) -> AsyncIterator[httpx2.AsyncClient]:
        transport = httpx2.ASGITransport(app=inside or self.web(*identify), client=("10.1.2.3", 4711))
        async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
            yield client

    def admin(self) -> Admin:
        return self.app.admin("root")

    async def token(self, name: str = "ada", role: str = "operator", **more: Any) -> str:
        made = await self.admin().tokens.acreate(name, role=role, **more)
        return made.secret

    async def orders(self) -> list[RecordedOrder]:
        """Orders that came in through the doors, oldest first."""
        found = await self.admin().audit_log.afind(AuditFilter(limit=100))
        return [each for each in reversed(found) if each.entry.via != "python"]


@pytest.fixture
def site(run: Callable[[Any], Any], clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Any:
    app = Mainspring._with("sqlite://:memory:", clock=clock, entropy=SeededEntropy(1))
    yield Site(app, clock)
    run(app.aclose())
    if app._in_memory is not None:
        run(app._in_memory.close())


def of_host(name: str = "host", role: AccessRole = AccessRole.ADMIN) -> Identify:
    """An app that holds our pages, and knows its people."""

    async def identify(request: Request) -> Actor | None:
        return Actor(name=name, role=role, via="host")

    return identify


@pytest.fixture
def house(database_url: str) -> Iterator[House]:
    """All of the API with something of everything behind it, once per store."""
    with open_house(database_url) as opened:
        yield opened


@pytest.fixture
def sqlite_house(tmp_path: object) -> Iterator[House]:
    """For what the store has no part in."""
    with open_house(f"sqlite:///{tmp_path}/mainspring.db") as opened:
        yield opened


@pytest.fixture
def token_house(tmp_path: object) -> Iterator[House]:
    """One that knows people by their tokens."""
    with open_house(f"sqlite:///{tmp_path}/mainspring.db", tokens=True) as opened:
        yield opened
