"""The route that takes no more than it says: its query parameters, each once, and bodies that are JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, get_args, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mainspring.errors import InvalidArgument, shown
from mainspring.tasks.payload import read_json
from mainspring.web.auth.policy import READING, GuardedRoute
from mainspring.web.privacy import JsonAnswer, Public
from mainspring.web.problems import Problem
from mainspring.web.services import services_of

IGNORED = frozenset(("callback", "_"))
"""What some clients add on their own. There is no JSONP."""
_LARGEST = 64 * 1024 * 1024


_DIGITS = re.compile(r"-?[0-9]{1,20}")


class ExactRoute(APIRoute):
    """Reads numbers in the digits 0 to 9: `int()` takes 1_000, +5 and the digits of every script."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        numbers = {name for name, kind in _parameters(self.dependant) if int in _kinds(kind)}
        places = {
            each.alias for each in self.dependant.path_params if int in _kinds(each.field_info.annotation)
        }

        async def exact(request: Request) -> Response:
            for name, value in request.query_params.multi_items():
                if name in numbers and value.strip() and not _DIGITS.fullmatch(value):
                    wrong = InvalidArgument(name, value, "a whole number in the digits 0 to 9")
                    expected, got = wrong.expected, shown(value)
                    raise Problem(422, "type", str(wrong), field=name, expected=expected, got=got)
            for name in places:
                if not _DIGITS.fullmatch(str(request.path_params[name])):
                    raise Problem(404, "not_found", "there is nothing at this path")
            return await handle(request)

        return exact


class StrictRoute(ExactRoute):
    """Checks what FastAPI would let pass, after the actor was let in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = {name: get_origin(kind) is list for name, kind in _parameters(self.dependant)}

        async def strict(request: Request) -> Response:
            _check_query(request, known)
            if request.method not in READING:
                request = _StrictRequest(request.scope, request.receive)
                await request.json()
            return _private(request, await handle(request))

        return strict


def _private(request: Request, answer: Response) -> Response:
    if isinstance(answer, JsonAnswer):
        return answer.finished(services_of(request))
    if isinstance(answer, Public | StreamingResponse):
        return answer
    raise RuntimeError(f"{request.url.path}: answers with secrets: it must answer with json() or Public")


class ApiRoute(GuardedRoute, StrictRoute):
    """A route of the API: guarded first, strict then."""


class _StrictRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = await self._read()
        return self._json

    async def _read(self) -> object:
        if not _has_body(self):
            return None
        kind, _, charset = self.headers.get("content-type", "").lower().partition(";")
        if kind.strip() != "application/json" or charset.strip() not in ("", "charset=utf-8"):
            got = self.headers.get("content-type", "")
            raise Problem(
                415,
                "media_type",
                f"content-type: expected application/json, got {shown(got)}",
                field="content-type",
                got=shown(got),
                expected="application/json",
            )
        return read_json(await self.body(), "body", largest=_LARGEST)


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _check_query(request: Request, known: dict[str, bool]) -> None:
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name in IGNORED:
            continue
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            wrong = InvalidArgument("query", name, f"only parameters it has ({listed})")
            raise Problem(422, "unknown_field", str(wrong), field=shown(name)[1:-1], expected=wrong.expected)
        if name in seen and not known[name]:
            detail = str(InvalidArgument(name, value, "the parameter once"))
            raise Problem(422, "duplicate", detail, field=name, expected="the parameter once")
        seen.add(name)


def _kinds(annotation: object) -> set[object]:
    """Every type that a value may have: of `list[int] | None` int, list and None."""
    inner = {kind for each in get_args(annotation) for kind in _kinds(each)}
    return inner | {annotation, get_origin(annotation)}


def _parameters(dependant: Dependant) -> Iterator[tuple[str, object]]:
    """Names of query parameters, and what they are: those that may be repeated are lists."""
    for each in dependant.query_params:
        kind = each.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, field in kind.model_fields.items():
                yield field.alias or name, field.annotation
        else:
            yield each.alias, kind
    for inner in dependant.dependencies:
        yield from _parameters(inner)
