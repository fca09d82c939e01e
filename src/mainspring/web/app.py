"""Puts the doors together: one ASGI app, to be served alone or mounted into another under any prefix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp

from mainspring.app import Mainspring
from mainspring.errors import MainspringError
from mainspring.version import __version__
from mainspring.web import api, pages, probes
from mainspring.web.access import doors
from mainspring.web.access.identity import Identify
from mainspring.web.desk import Desk, desk_of
from mainspring.web.frame.assets import Assets
from mainspring.web.guarded import identified
from mainspring.web.live import Live
from mainspring.web.pages.route import is_for_people, trouble
from mainspring.web.privacy import redaction_of
from mainspring.web.problems import Problem, Unauthorized, as_problem, on_problem, problem_response
from mainspring.web.routes import guard_of
from mainspring.web.wire.bounds import LARGEST_BODY, Bounds
from mainspring.web.wire.headers import SecurityHeaders
from mainspring.web.wire.lastresort import LastResort, told

STATIC = Path(__file__).parent / "static"


class Door(FastAPI):
    """FastAPI, with what comes before and after it: even its last answer goes through our hands."""

    hosts: frozenset[str] = frozenset()
    largest: int = LARGEST_BODY

    def build_middleware_stack(self) -> ASGIApp:
        """Outermost first: headers, the last resort, bounds."""
        desk: Desk = self.state.desk
        inside = super().build_middleware_stack()
        bounded = Bounds(inside, desk.app._clock, largest=self.largest, larger=api.LARGER, hosts=self.hosts)
        last = LastResort(bounded, desk.app._entropy)
        return SecurityHeaders(last, public_url=lambda: desk.app.settings.server.public_url)


def create_app(
    app: Mainspring,
    *,
    identify: Sequence[Identify],
    hosts: Sequence[str] = (),
    largest: int = LARGEST_BODY,
) -> Door:
    """The API and the dashboard of an app. `hosts`, where given, are the names it goes by; `largest` is what
    a body may have."""
    # Nor redirects to the same path with or without a slash: they answer before anybody has signed in, and
    # lead to whatever host the request named.
    web = Door(
        title="Mainspring",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    web.hosts, web.largest = frozenset(each.lower() for each in hosts), largest
    web.state.desk = Desk(app)
    web.state.identify = tuple(identify)
    web.state.live = Live(web.state.desk)
    for error in (Problem, MainspringError, RequestValidationError):
        web.add_exception_handler(error, on_problem)
    web.add_exception_handler(HTTPException, _on_unknown)
    web.add_exception_handler(Exception, _on_unexpected)
    for routes in (*probes.all_routes(), *api.all_routes(), *doors.all_routes(), *pages.all_routes()):
        # Not included but taken over: they stay the objects that have been guarded.
        web.router.routes.extend(routes.router.routes)
    web.mount("/static", Assets(directory=STATIC), name="static")
    _check(web)
    return web


async def _on_unknown(request: Request, error: Exception) -> Response:
    """Who is not signed in learns nothing of what is there and what is not, but for our own scripts."""
    # Inside /static the root is another.
    root = request.scope.get("app_root_path", request.scope.get("root_path", ""))
    if not request.scope["path"].removeprefix(root).startswith("/static/"):
        try:
            request.state.actor = await identified(request)
            if request.state.actor is None:
                error = Unauthorized()
        except (Problem, MainspringError) as refused:
            error = refused
        if is_for_people(request):
            return trouble(request, as_problem(error, redaction_of(desk_of(request))))
    return await on_problem(request, error)


async def _on_unexpected(request: Request, error: Exception) -> Response:
    return problem_response(told(request.scope, request.app.state.desk.app._entropy))


def _check(web: FastAPI) -> None:
    """Refuse to start with a door that nobody guards."""
    for route in web.routes:
        if guard_of(route) is None and not (isinstance(route, Mount) and route.name == "static"):
            raise RuntimeError(f"route {getattr(route, 'path', route)}: does not say who may use it")
