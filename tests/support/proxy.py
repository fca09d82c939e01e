"""A TCP proxy between one process and the database, which can fall silent, cut or vanish."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Passes bytes on, both ways, from a free port of 127.0.0.1 to the host of `url`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open = True
        self._passing = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._port = 0

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._do(self._listen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """The same database by way of us."""
        user, at, _ = self._parts.netloc.rpartition("@")
        return urlunsplit(self._parts._replace(netloc=f"{user}{at}127.0.0.1:{self._port}"))

    def fall_silent(self) -> None:
        """Whatever comes is swallowed, and sessions are taken without an answer: a black hole."""
        self._do(self._swallow)

    def cut(self) -> None:
        """Every session is broken, and every new one, as soon as it is taken."""
        self._do(self._cut)

    def vanish(self) -> None:
        """Nobody listens any more: new sessions are refused, and those there are break."""
        self._do(self._end)

    def mend(self) -> None:
        """Pass everything on again; sessions from before are broken."""
        self._do(self._mend)

    def _do(self, what: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(what(), self._loop).result(10)

    async def _listen(self) -> None:
        self._passing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _swallow(self) -> None:
        self._passing.clear()

    async def _cut(self) -> None:
        self._open = False
        self._abort()

    async def _end(self) -> None:
        self._server.close()
        self._abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _mend(self) -> None:
        self._abort()
        self._open = True
        self._passing.set()
        if not self._server.is_serving():
            await self._listen()

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        ends = {writer}
        try:
            if not self._open:
                return
            await self._passing.wait()
            there, back = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            self._writers.add(back)
            ends.add(back)
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        except OSError:
            return
        finally:
            for end in ends:
                end.transport.abort()
            self._writers -= ends
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
