"""The route that lets in only the actors whom its guard names."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mainspring.model.access import AccessRole, Actor
from mainspring.web.access.csrf import CrossSite, refuse_others
from mainspring.web.desk import address_of, desk_of
from mainspring.web.problems import Forbidden, Problem, Unauthorized
from mainspring.web.routes import Guard, guard_of

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """Identify, refuse other sites, authorize, and only then run the handler. Orders that it gives are put on
    record where they are carried out."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        guard = guard_of(self)
        if guard is None:
            raise RuntimeError(f"route {self.path}: does not say who may use it")

        async def guarded(request: Request) -> Response:
            actor = await identified(request)
            request.state.actor = actor
            if guard.role is None:
                # A door for everybody: whom its handler lets in, it puts on record itself.
                refuse_others(request, actor)
                return await handle(request)
            if actor is None:
                raise Unauthorized
            await _let_in(request, guard, guard.role, actor)
            return await _read(request, handle)

        return guarded


async def _read(request: Request, handle: Handler) -> Response:
    """The handler's answer; where it met rows that cannot be read, without them."""
    try:
        return await handle(request)
    except (Problem, HTTPException, RequestValidationError):
        raise
    except Exception as error:
        if request.method != "GET":
            raise
        store = await desk_of(request).app._store()
        if not await store.health.left_out(error):
            raise
    return await handle(request)


async def identified(request: Request) -> Actor | None:
    """Who sends it, by the first way that knows them."""
    for identify in request.app.state.identify:
        actor: Actor | None = await identify(request)
        if actor is not None:
            return actor
    return None


def target_of(request: Request) -> str:
    """What the address names: an id, a name."""
    return "/".join(str(each) for each in request.path_params.values())


async def _let_in(request: Request, guard: Guard, role: AccessRole, actor: Actor) -> None:
    try:
        refuse_others(request, actor)
        if not actor.may(role, guard.noun):
            raise Forbidden(role)
    except (CrossSite, Forbidden) as refused:
        # Who looks where they may not is told so; who orders, or looks at what is the admins', is on record.
        if guard.act is not None or role is not AccessRole.VIEWER:
            await (await desk_of(request).recorder()).refused(
                actor,
                guard.act or f"{guard.noun}.read",
                target=target_of(request),
                details={"code": refused.code, "path": request.url.path},
                address=address_of(request),
            )
        raise
