"""Who sends a token: `Authorization: Bearer ms_…`, once, and nowhere else."""

from __future__ import annotations

from starlette.requests import Request

from mainspring.app import Mainspring
from mainspring.model.access import Actor
from mainspring.web.desk import desk_of
from mainspring.web.problems import Problem, Unauthorized

_IN_ADDRESSES = ("token", "access_token", "api_key")


class TokenWay:
    """Looked up for every request: a token that is revoked is gone at once. One that is there and wrong is
    refused, whatever else was sent."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def __call__(self, request: Request) -> Actor | None:
        for name in _IN_ADDRESSES:
            if name in request.query_params:
                # Addresses are written to logs and histories: one that works there would stay there.
                raise Problem(400, "bad_request", f"{name}: expected in Authorization, not in the address")
        said = request.headers.getlist("authorization")
        if not said:
            return None
        if len(said) > 1:
            raise Problem(400, "bad_request", "authorization: expected one header")
        scheme, _, secret = said[0].strip().partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthorized("authorization: expected Bearer and a token")
        actor = await (await desk_of(request).credentials()).token_actor(secret.strip())
        if actor is None:
            raise Unauthorized("this token is not known here, or has ended")
        return actor
