"""What nobody expected: the caller gets an id and no more, the log gets the rest."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainspring.entropy import Entropy
from mainspring.web.problems import Problem, problem_response

_log = logging.getLogger("mainspring.web")
_TOLD = "mainspring.error"


class LastResort:
    """Answers 500 where a handler fell over before it began to answer."""

    def __init__(self, app: ASGIApp, entropy: Entropy) -> None:
        self._app, self._entropy = app, entropy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Problem as problem:
            if begun:
                raise
            await problem_response(problem)(scope, receive, send)
        except Exception:
            if scope["type"] != "http":
                raise
            if scope.get(_TOLD):
                return  # Starlette has sent the answer below, and raises for servers that would log it
            unexpected = told(scope, self._entropy)
            if begun:
                raise
            await problem_response(unexpected)(scope, receive, send)


def told(scope: Scope, entropy: Entropy) -> Problem:
    """The answer to an exception that is being handled; it is logged under the answer's id."""
    scope[_TOLD] = error_id = f"{entropy.worker_id():x}"
    _log.exception("%s %s: unexpected error %s", scope["method"], scope["path"], error_id)
    return Problem(500, "internal", "something went wrong here; the log tells more", id=error_id)
