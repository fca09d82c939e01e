"""The OpenAPI document of the API, for those who are signed in."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from mainspring.version import __version__
from mainspring.web.api.answers import components
from mainspring.web.privacy import Public
from mainspring.web.routes import Routes, guard_of
from mainspring.web.wire.strict import ApiRoute

PREFIX = "/api/v1"
routes = Routes("health", ApiRoute, prefix=PREFIX, tags=["health"])
_ABOUT = """Everything that the `mainspring` command can do. Send `Authorization: Bearer ms_…`.

Lists come in pages: `next` is the `cursor` of the page after. Ids are integers that grow by one and fit
into a double; those of processes are long and therefore text. In paths, write `~` for each `/` of a name."""


@routes.get("/openapi.json", response_model=None, include_in_schema=False)
async def document(request: Request) -> Response:
    """What is said of every route."""
    root = request.scope.get("root_path", "")
    body = msgspec.json.encode({**made(request.app), "servers": [{"url": root or "/"}]})
    return Public(body, media_type="application/json")


@cache
def made(web: Any) -> dict[str, Any]:
    """Made once for each app."""
    own = [each for each in web.routes if isinstance(each, APIRoute) and each.path.startswith(PREFIX)]
    found = get_openapi(title="Mainspring", version=__version__, description=_ABOUT, routes=own)
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= components()
    found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    found["security"] = [{"token": []}]
    by_place = {(each.path, method.lower()): each for each in own for method in each.methods or ()}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            _finish(operation, by_place[path, method])
    return found


def _finish(operation: dict[str, Any], route: APIRoute) -> None:
    # FastAPI's own words for it; ours are those of 4XX.
    operation["responses"].pop("422", None)
    guard = guard_of(route)
    if guard is not None and guard.role is None:
        operation["security"] = []
    elif guard is not None:
        operation["x-role"] = guard.role
