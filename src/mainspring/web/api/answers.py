"""What routes answer: bodies, and what the OpenAPI document says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from mainspring.web.api import shapes
from mainspring.web.privacy import Answer
from mainspring.web.problems import MEDIA_TYPE

_JSON = "application/json"
_OPEN = frozenset(("Answer", "Problem", "JobWhy"))
"""Shapes that may say more than is written down."""
_shapes: dict[str, Any] = {"Problem": shapes.Problem}


def json(view: object, status: int = 200, **headers: str) -> Response:
    """An answer; its route takes the secrets out."""
    return Answer(view, status, headers)


def page(items: Sequence[object], following: str | None) -> Response:
    """One page of a list."""
    return json({"items": items, "next": following})


def answers(shape: Any, *, status: int = 200, also: int | None = None) -> dict[str, Any]:
    """Options of a route that answers this shape."""
    return _route({"$ref": _known(shape)}, status, also)


def answers_page(shape: Any) -> dict[str, Any]:
    """Options of a route that answers a page of these."""
    schema = {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": _known(shape)}},
            "next": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }
    return _route(schema, 200, None)


def components() -> dict[str, Any]:
    """The schemas of all shapes that routes have named."""
    _, found = msgspec.json.schema_components(
        list(_shapes.values()),
        ref_template="#/components/schemas/{name}",
        schema_hook=_anything,
    )
    for name, schema in found.items():
        if "properties" in schema and name not in _OPEN:
            schema["additionalProperties"] = False
    return found


def _anything(kind: type) -> dict[str, Any]:
    if kind is object:
        return {"title": "Anything"}
    raise NotImplementedError


def _known(shape: Any) -> str:
    _shapes[shape.__name__] = shape
    return f"#/components/schemas/{shape.__name__}"


def _route(schema: dict[str, Any], status: int, also: int | None) -> dict[str, Any]:
    told = {"description": "Done", "content": {_JSON: {"schema": schema}}}
    refused = {"content": {MEDIA_TYPE: {"schema": {"$ref": _known(shapes.Problem)}}}}
    return {
        "response_model": None,
        "status_code": status,
        "responses": {
            status: told,
            **({} if also is None else {also: told}),
            "4XX": {"description": "Refused", **refused},
            "5XX": {"description": "Not now", **refused},
        },
    }
