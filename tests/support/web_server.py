"""The dashboard on a real port of the loopback, served by a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from mainspring.app import Mainspring
from mainspring.model.access import AccessRole, Actor
from mainspring.web.app import create_app

PATIENCE = 60.0


class Anyone:
    """Everybody is this actor; tests change `role`."""

    def __init__(self, role: AccessRole = AccessRole.ADMIN) -> None:
        self.role = role

    async def __call__(self, request: Request) -> Actor | None:
        return Actor(name="ada", role=self.role, via="host")


class WebServer:
    """Where it listens, and a way onto its event loop."""

    def __init__(self, app: Mainspring, base: str, loop: asyncio.AbstractEventLoop, anyone: Anyone) -> None:
        self.app, self.base, self._loop, self.anyone = app, base, loop, anyone

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end where the app lives."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)


@contextmanager
def serving(
    app: Mainspring, *, prefix: str = "", identify: Sequence[Any] | None = None
) -> Iterator[WebServer]:
    """Serve an app until the block ends; with a prefix it is mounted into another one there."""
    anyone = Anyone()
    web = create_app(app, identify=identify if identify is not None else (anyone,))
    asgi: Any = Starlette(routes=[Mount(prefix, web)]) if prefix else web
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}{prefix}"
    config = uvicorn.Config(
        asgi,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    loops: queue.Queue[asyncio.AbstractEventLoop] = queue.Queue()

    async def serve() -> None:
        loops.put(asyncio.get_running_loop())
        try:
            await server.serve(sockets=[listening])
        finally:
            await app.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="web-server", daemon=True)
    thread.start()
    loop = loops.get(timeout=PATIENCE)
    try:
        yield WebServer(app, base, loop, anyone)
    finally:
        loop.call_soon_threadsafe(web.state.live.close)
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not stop"
