"""Two ASGI apps behind one address."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from mainspring.errors import InvalidArgument


class Prefixed:
    """Sends to the first what begins with the prefix, and all else to the other."""

    def __init__(self, prefix: str, inside: ASGIApp, otherwise: ASGIApp) -> None:
        if not prefix.startswith("/") or prefix.endswith("/"):
            raise InvalidArgument("prefix", prefix, "a path such as /mainspring")
        self._prefix, self._inside, self._otherwise = prefix, inside, otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        root = scope.get("root_path", "")
        path: str = scope.get("path", "")
        if scope["type"] != "http" or not f"{path.removeprefix(root)}/".startswith(f"{self._prefix}/"):
            await self._otherwise(scope, receive, send)
            return
        await self._inside({**scope, "root_path": f"{root}{self._prefix}"}, receive, send)


async def _live(receive: Receive, send: Send) -> None:
    """Neither has anything to begin or to end: those for whom this is do not know these messages."""
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
