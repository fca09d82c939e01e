"""Puts the doors together: one ASGI app, to be served alone or mounted into another under any prefix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Mount

from mainspring.app import Mainspring
from mainspring.errors import MainspringError
from mainspring.version import __version__
from mainspring.web import api, pages
from mainspring.web.assets import Assets
from mainspring.web.desk import Desk
from mainspring.web.identity import Identify
from mainspring.web.problems import Problem, on_problem
from mainspring.web.routes import guard_of

STATIC = Path(__file__).parent / "static"


def create_app(app: Mainspring, *, identify: Sequence[Identify]) -> FastAPI:
    """The API and the dashboard of an app."""
    web = FastAPI(title="Mainspring", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    web.state.desk = Desk(app)
    web.state.identify = tuple(identify)
    for error in (Problem, MainspringError):
        web.add_exception_handler(error, on_problem)
    for routes in (*api.all_routes(), *pages.all_routes()):
        # The routes themselves: an included router would hide them from the check below.
        web.router.routes.extend(routes.router.routes)
    web.mount("/static", Assets(directory=STATIC), name="static")
    _check(web)
    return web


def _check(web: FastAPI) -> None:
    """Refuse to start with a door that nobody guards."""
    for route in web.routes:
        if guard_of(route) is None and not (isinstance(route, Mount) and route.name == "static"):
            raise RuntimeError(f"route {getattr(route, 'path', route)}: does not say who may use it")
