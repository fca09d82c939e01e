"""The ways in which a server of its own knows people."""

from __future__ import annotations

from starlette.requests import Request

from mainspring.app import Mainspring
from mainspring.model.access import Actor
from mainspring.ops.access import Gatehouse
from mainspring.web.identity import Identify
from mainspring.web.problems import Unauthorized


def usual_ways(app: Mainspring) -> tuple[Identify, ...]:
    """By a token in `Authorization`."""
    return (TokenWay(app),)


class TokenWay:
    """By `Authorization: Bearer ms_…`. Looked up for every request: one that is revoked is gone at once."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def __call__(self, request: Request) -> Actor | None:
        said = request.headers.get("authorization")
        if said is None:
            return None
        scheme, _, secret = said.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthorized("authorization: expected Bearer and a token")
        gate = Gatehouse(
            await self._app.store(), self._app.clock, self._app.entropy, self._app.settings.access
        )
        actor = await gate.token_actor(secret.strip())
        if actor is None:
            raise Unauthorized("this token is not known here, or has ended")
        return actor
