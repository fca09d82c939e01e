"""The route that lets nobody in whom its guard does not name, and puts on record what it changes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from mainspring.web.problems import Forbidden, Unauthorized
from mainspring.web.routes import Guard, guard_of


class GuardedRoute(APIRoute):
    """Identify, authorize, record, and only then run the handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        guard = guard_of(self)
        if guard is None:
            raise RuntimeError(f"route {self.path}: does not say who may use it")

        async def guarded(request: Request) -> Response:
            await _let_in(request, guard)
            return await handle(request)

        return guarded


async def _let_in(request: Request, guard: Guard) -> None:
    actor: Any = None
    for identify in request.app.state.identify:
        actor = await identify(request)
        if actor is not None:
            break
    request.state.actor = actor
    if guard.role is None:
        return
    if actor is None:
        raise Unauthorized
    if not actor.may(guard.role, guard.noun):
        raise Forbidden(guard.role)
