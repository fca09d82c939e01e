"""Routes that say who may use them. One that does not say it cannot be made, and the app refuses to start
with a route that was made elsewhere: what is not allowed is forbidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter
from fastapi.routing import APIRoute

from mainspring.admin.order import act_of
from mainspring.model.access import AccessRole

READING = frozenset({"GET", "HEAD"})
Endpoint = Callable[..., Any]
Order = Callable[..., Any] | str
"""What a route orders: a method of a noun of `Admin`, or the name of the act where the route itself records
it."""


class Guard(NamedTuple):
    """Who may use a route, and what is put on record of it."""

    noun: str
    role: AccessRole | None
    """None lets in everybody, signed in or not."""
    act: str | None
    """Noun and verb of the act that it carries out; every route that changes something has one."""


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
        return self._route(path, ("POST",), role, _act(order), more)

    def put(
        self, path: str, *, role: AccessRole, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that replaces something."""
        return self._route(path, ("PUT",), role, _act(order), more)

    def patch(
        self, path: str, *, role: AccessRole, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that changes a part of something."""
        return self._route(path, ("PATCH",), role, _act(order), more)

    def delete(
        self, path: str, *, role: AccessRole, order: Order, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A route that takes something away."""
        return self._route(path, ("DELETE",), role, _act(order), more)

    def _route(
        self,
        path: str,
        methods: Sequence[str],
        role: AccessRole | None,
        act: str | None,
        more: dict[str, Any],
    ) -> Callable[[Endpoint], Endpoint]:
        guard = Guard(self.noun, role, act)

        def declare(endpoint: Endpoint) -> Endpoint:
            # Before the route is built: it reads its guard while it is.
            endpoint.__guard__ = guard  # type: ignore[attr-defined]
            self.router.add_api_route(path, endpoint, methods=list(methods), **more)
            return endpoint

        return declare


def _act(order: Order) -> str:
    return order if isinstance(order, str) else act_of(order)


def guard_of(route: object) -> Guard | None:
    """What a route says of itself; None for one that says nothing."""
    return getattr(getattr(route, "endpoint", None), "__guard__", None)
