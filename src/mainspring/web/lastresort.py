"""What nobody expected: the caller gets an id and no more, the log gets the rest."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainspring.entropy import Entropy
from mainspring.web.problems import Problem, problem_response

_log = logging.getLogger("mainspring.web")


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
            error_id = f"{self._entropy.worker_id():x}"
            _log.exception("%s %s: unexpected error %s", scope["method"], scope["path"], error_id)
            if begun:
                raise
            unexpected = Problem(
                500, "internal", "something went wrong here; the log tells more", id=error_id
            )
            await problem_response(unexpected)(scope, receive, send)
