"""What routes answer: bodies, and the OpenAPI document made of their structs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.why.answer import Because
from mainspring.model.value import Value
from mainspring.version import __version__
from mainspring.web.auth.policy import Routes, guard_of
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.privacy import JsonAnswer, Public
from mainspring.web.problems import MEDIA_TYPE

_JSON = "application/json"
PREFIX = "/api/v1"
routes = Routes("health", ApiRoute, prefix=PREFIX, tags=["health"])
_ABOUT = """Everything that the `mainspring` command can do. Send `Authorization: Bearer ms_…`.

Lists come in pages: `next` is the `cursor` of the page after. Ids are integers that grow by one and fit
into a double; those of processes are long and therefore text. In paths, write `~` for each `/` of a name."""


class Problem(Value, frozen=True, kw_only=True):
    """What every refusal says; some say more (RFC 9457)."""

    title: str
    status: int
    code: str
    detail: str


class WhyView(Value, frozen=True, kw_only=True):
    """WhyView something is as it is; the facts that belong to it stand beside the sentence."""

    because: Because
    sentence: str


_OPEN = frozenset((Problem.__name__, WhyView.__name__))
"""Answers that may have more fields than are written down."""
_shapes: dict[str, type] = {"Problem": Problem}


def json(view: object, status: int = 200, **headers: str) -> Response:
    """An answer; its route hides the secrets in it."""
    return JsonAnswer(view, status, headers)


def items(found: Sequence[object], status: int = 200, **headers: str) -> Response:
    """All of a list."""
    return json({"items": found}, status, **headers)


def page(items: Sequence[object], following: str | None) -> Response:
    """One page of a list."""
    return json({"items": items, "next": following})


def answers(shape: type, *, status: int = 200, also: int | None = None) -> dict[str, Any]:
    """Options of a route that answers this shape."""
    return _route({"$ref": _known(shape)}, status, also)


def answers_items(shape: type, *, status: int = 200) -> dict[str, Any]:
    """Options of a route that answers a list of these."""
    return _route(_object(items=_array(shape)), status, None)


def answers_page(shape: type) -> dict[str, Any]:
    """Options of a route that answers a page of these."""
    following = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    return _route(_object(items=_array(shape), next=following), 200, None)


def components() -> dict[str, Any]:
    """The schemas of all shapes that routes have named."""
    _, found = msgspec.json.schema_components(
        list(_shapes.values()),
        ref_template="#/components/schemas/{name}",
    )
    for name, schema in found.items():
        _close(name, schema)
    return found


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


def _close(name: str, schema: dict[str, Any]) -> None:
    """A field with a default is in every answer: only UNSET leaves a field out, and has no default here."""
    required = schema.get("required", [])
    for field, says in schema.get("properties", {}).items():
        if "default" in says:
            del says["default"]
            required.append(field)
    if "properties" in schema and name not in _OPEN:
        schema["additionalProperties"] = False


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _array(shape: type) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": _known(shape)}}


def _known(shape: type) -> str:
    _shapes[shape.__name__] = shape
    return f"#/components/schemas/{shape.__name__}"


def _route(schema: dict[str, Any], status: int, also: int | None) -> dict[str, Any]:
    done = {"description": "Done", "content": {_JSON: {"schema": schema}}}
    refused = {"content": {MEDIA_TYPE: {"schema": {"$ref": _known(Problem)}}}}
    return {
        "response_model": None,
        "status_code": status,
        "responses": {
            status: done,
            **({} if also is None else {also: done}),
            "4XX": {"description": "Refused", **refused},
            "5XX": {"description": "Not now", **refused},
        },
    }


def _finish(operation: dict[str, Any], route: APIRoute) -> None:
    # FastAPI's own words for it; ours are those of 4XX.
    operation["responses"].pop("422", None)
    guard = guard_of(route)
    if guard is not None and guard.role is None:
        operation["security"] = []
    elif guard is not None:
        operation["x-role"] = guard.role
