"""Who may use a route. A route that does not say it cannot be made, and the app refuses to start with a route
that was made elsewhere: what is not allowed is forbidden.

A browser sends our cookie, and what a host app knows people by, along with requests that other sites
cause. It also says where a request comes from, and pages cannot change that (`Sec-Fetch-Site`, `Origin`):
orders that come from another site's page are refused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.order import action_of
from mainspring.model.access import AccessRole, Actor
from mainspring.web.problems import Forbidden, Problem, Unauthorized
from mainspring.web.services import address_of, services_of

READING = frozenset({"GET", "HEAD"})
Endpoint = Callable[..., Any]
Order = Callable[..., Any] | str
"""What a route orders: a method of a noun of `Admin`, or the name of the action if the route itself writes
its audit entry."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Guard(NamedTuple):
    """Who may use a route, and what is put on record of it."""

    noun: str
    role: AccessRole | None
    """None lets in everybody, signed in or not."""
    action: str | None
    """Noun and verb of the order that it carries out; every route that changes something has one."""


class Routes:
    """The routes of one noun."""

    def __init__(self, noun: str, route_class: type[APIRoute], *, prefix: str = "", **router: Any) -> None:
        self.noun = noun
        self.router = APIRouter(prefix=prefix, route_class=route_class, **router)

    def get(
        self, path: str, *, role: AccessRole | None = AccessRole.VIEWER, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that reads."""
        return self._route(path, ("GET",), role, None, more)

    def post(
        self, path: str, *, role: AccessRole | None, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that gives an order."""
        return self._route(path, ("POST",), role, _action(order), more)

    def put(
        self, path: str, *, role: AccessRole, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that replaces something."""
        return self._route(path, ("PUT",), role, _action(order), more)

    def patch(
        self, path: str, *, role: AccessRole, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that changes a part of something."""
        return self._route(path, ("PATCH",), role, _action(order), more)

    def delete(
        self, path: str, *, role: AccessRole, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that takes something away."""
        return self._route(path, ("DELETE",), role, _action(order), more)

    def _route(
        self,
        path: str,
        methods: Sequence[str],
        role: AccessRole | None,
        action: str | None,
        more: dict[str, Any],
    ) -> Callable[[Endpoint], Endpoint]:
        guard = Guard(self.noun, role, action)

        def declare(endpoint: Endpoint) -> Endpoint:
            # Before the route is built: it reads its guard while it is.
            endpoint.__guard__ = guard  # type: ignore[attr-defined]
            self.router.add_api_route(path, endpoint, methods=list(methods), **more)
            return endpoint

        return declare


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
                # Open to all: the handler itself puts on record whom it signs in.
                refuse_others(request, actor)
                return await handle(request)
            if actor is None:
                raise Unauthorized
            await _let_in(request, guard, guard.role, actor)
            return await _read(request, handle)

        return guarded


class CrossSite(Problem):
    """An order from another site's page."""

    def __init__(self, detail: str) -> None:
        super().__init__(403, "csrf", detail)


def guard_of(route: object) -> Guard | None:
    """What a route says of itself; None for one that says nothing."""
    return getattr(getattr(route, "endpoint", None), "__guard__", None)


async def identified(request: Request) -> Actor | None:
    """The actor who sends it, by the first way that knows the actor."""
    for identify in request.app.state.identify:
        actor: Actor | None = await identify(request)
        if actor is not None:
            return actor
    return None


def target_of(request: Request) -> str:
    """What the address names: an id, a name."""
    return "/".join(str(each) for each in request.path_params.values())


def refuse_others(request: Request, actor: Actor | None) -> None:
    """Raise CrossSite for an order, or a stream, that did not come from our own pages. A browser does not
    send a token by itself: a request with a token may come from anywhere."""
    if actor is not None and actor.via == "token":
        return
    if request.method in READING:
        if "text/event-stream" in request.headers.get("accept", ""):
            _check(request, ("same-origin", "none"))
        return
    _check(request, ("same-origin",))
    if "cookie" in request.headers and not {"origin", "sec-fetch-site"} & {*request.headers}:
        raise CrossSite("origin: expected, as browsers send it; programs send a token instead of a cookie")


def _action(order: Order) -> str:
    return order if isinstance(order, str) else action_of(order)


async def _read(request: Request, handle: Handler) -> Response:
    """The handler's answer; where it met rows that cannot be read, without them."""
    try:
        return await handle(request)
    except (Problem, HTTPException, RequestValidationError):
        raise
    except Exception as error:
        if request.method != "GET":
            raise
        store = await services_of(request).app._store()
        if not await store.health.left_out(error):
            raise
    return await handle(request)


async def _let_in(request: Request, guard: Guard, role: AccessRole, actor: Actor) -> None:
    try:
        refuse_others(request, actor)
        if not actor.may(role, guard.noun):
            raise Forbidden(role)
    except (CrossSite, Forbidden) as refused:
        # A refused order is on record, and so is a refused look at what only admins may see.
        if guard.action is not None or role is not AccessRole.VIEWER:
            await (await services_of(request).recorder()).refused(
                actor,
                guard.action or f"{guard.noun}.read",
                object=target_of(request),
                details={"code": refused.code, "path": request.url.path},
                address=address_of(request),
            )
        raise


def _check(request: Request, sites: tuple[str, ...]) -> None:
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in sites:
        raise CrossSite(f"sec-fetch-site: expected {' or '.join(sites)}; this came from another site's page")
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(origin, request):
        raise CrossSite("origin: expected our own; this came from another site's page")


def _is_ours(origin: str, request: Request) -> bool:
    parts = urlsplit(origin)
    # A proxy that ends TLS may not say so: https outside and http here is no contradiction, the reverse is.
    schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
    return parts.scheme in schemes and parts.netloc.lower() == request.headers.get("host", "").lower()
