"""One ASGI app of the API and the dashboard, to be served alone or mounted into another under any prefix."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, stat_result
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from mainspring.app import Mainspring
from mainspring.errors import MainspringError
from mainspring.version import __version__
from mainspring.web import api, auth, pages, probes
from mainspring.web.auth.identity import Identify
from mainspring.web.auth.policy import guard_of, identified
from mainspring.web.live import Live
from mainspring.web.middleware.stack import (
    LARGEST_BODY,
    Bounds,
    LastResort,
    SecurityHeaders,
    unexpected_problem,
)
from mainspring.web.pages.route import is_for_people, trouble
from mainspring.web.privacy import redaction_of
from mainspring.web.problems import Problem, Unauthorized, as_problem, on_problem, problem_response
from mainspring.web.services import Services, services_of

STATIC = Path(__file__).parent / "static"


class WebApp(FastAPI):
    """FastAPI inside our middleware: every answer goes through it, also FastAPI's own answer to an error."""

    hosts: frozenset[str] = frozenset()
    largest: int = LARGEST_BODY

    def build_middleware_stack(self) -> ASGIApp:
        """Outermost first: headers, the last resort, bounds."""
        services: Services = self.state.services
        inside = super().build_middleware_stack()
        bounded = Bounds(
            inside, services.app._clock, largest=self.largest, larger=api.LARGER, hosts=self.hosts
        )
        last = LastResort(bounded, services.app._entropy)
        return SecurityHeaders(last, public_url=lambda: services.app.settings.server.public_url)


class Assets(StaticFiles):
    """Files that a browser keeps, and asks about each time: after an upgrade it must not use the old ones."""

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        answer = super().file_response(full_path, stat_result, scope, status_code)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def create_app(
    app: Mainspring,
    *,
    identify: Sequence[Identify],
    hosts: Sequence[str] = (),
    largest: int = LARGEST_BODY,
) -> WebApp:
    """The API and the dashboard of an app. `hosts`, where given, are the names it goes by; `largest` is what
    a body may have."""
    # Nor redirects to the same path with or without a slash: they answer before anybody has signed in, and
    # lead to whatever host the request named.
    web = WebApp(
        title="Mainspring",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    web.hosts, web.largest = frozenset(each.lower() for each in hosts), largest
    web.state.services = Services(app)
    web.state.identify = tuple(identify)
    web.state.live = Live(web.state.services)
    for error in (Problem, MainspringError, RequestValidationError):
        web.add_exception_handler(error, on_problem)
    web.add_exception_handler(HTTPException, _on_unknown)
    web.add_exception_handler(Exception, _on_unexpected)
    for routes in (*probes.all_routes(), *api.all_routes(), *auth.all_routes(), *pages.all_routes()):
        # Not included but taken over: they stay the objects that have been guarded.
        web.router.routes.extend(routes.router.routes)
    web.mount("/static", Assets(directory=STATIC), name="static")
    _check(web)
    return web


async def _on_unknown(request: Request, error: Exception) -> Response:
    """A caller who is not signed in does not learn which paths exist, except those of our scripts."""
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
            return trouble(request, as_problem(error, redaction_of(services_of(request))))
    return await on_problem(request, error)


async def _on_unexpected(request: Request, error: Exception) -> Response:
    return problem_response(unexpected_problem(request.scope, request.app.state.services.app.entropy))


def _check(web: FastAPI) -> None:
    """Refuse to start with a route that does not say who may use it."""
    for route in web.routes:
        if guard_of(route) is None and not (isinstance(route, Mount) and route.name == "static"):
            raise RuntimeError(f"route {getattr(route, 'path', route)}: does not say who may use it")
