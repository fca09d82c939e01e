"""Who sends a request. The first of several ways that knows them answers."""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request

from mainspring.model.access import Actor


class Identify(Protocol):
    """One way to know who sends a request."""

    async def __call__(self, request: Request) -> Actor | None:
        """The actor, or None when this way says nothing of them. Raises Unauthorized for credentials that
        are there and wrong."""


def actor_of(request: Request) -> Actor:
    """Who sent a request that its route has let in."""
    actor: Actor = request.state.actor
    return actor
