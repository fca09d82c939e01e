"""Stands between a driver and PostgreSQL, and counts what the driver asks for.

Counted on the wire, whatever the driver and however it is called: a statement that no seam of ours sees is
seen here.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

_STARTUP = 3 << 16
"""The protocol's version, with which a session begins; what comes before it has no type either."""
_HEADER = 5
_CHUNK = 1 << 16


class Frontend:
    """One session's messages to the server, cut out of its bytes as they come."""

    def __init__(self, seen: Counter[str]) -> None:
        self._seen = seen
        self._buffer = bytearray()
        self._begun = False
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Count the messages that begin in these bytes and those before."""
        self._buffer += data
        while self._message():
            pass

    def _message(self) -> bool:
        if self._skip:
            gone = min(self._skip, len(self._buffer))
            del self._buffer[:gone]
            self._skip -= gone
            if self._skip:
                return False
        if not self._begun:
            if len(self._buffer) < 8:
                return False
            self._skip = int.from_bytes(self._buffer[:4])
            self._begun = int.from_bytes(self._buffer[4:8]) == _STARTUP
            return True
        if len(self._buffer) < _HEADER:
            return False
        self._seen[chr(self._buffer[0])] += 1
        self._skip = 1 + int.from_bytes(self._buffer[1:_HEADER])
        return True


class Relay:
    """A port of its own that leads to a server's."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self._seen: Counter[str] = Counter()
        self.port = 0

    @property
    def url(self) -> str:
        """The server's, by way of this relay."""
        host = f"{self._server.username}@127.0.0.1:{self.port}"
        return urlunsplit(self._server._replace(netloc=host))

    @property
    def statements(self) -> int:
        """Simple queries (BEGIN, COMMIT and COPY come as these) and executions of prepared statements."""
        return self._seen["Q"] + self._seen["E"]

    @property
    def trips(self) -> int:
        """How often the driver waited for an answer."""
        return self._seen["Q"] + self._seen["S"]

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._session, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await stop.wait()

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, asks = await asyncio.open_connection(self._server.hostname, self._server.port)
        back = asyncio.create_task(_copy(answers, writer, None))
        await _copy(reader, asks, Frontend(self._seen))
        await back


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, heard: Frontend | None) -> None:
    # Either side may hang up on the other: then there is nobody left to carry bytes to.
    with suppress(ConnectionError):
        while data := await source.read(_CHUNK):
            if heard is not None:
                heard.feed(data)
            sink.write(data)
            await sink.drain()
    with suppress(ConnectionError):
        sink.close()
        await sink.wait_closed()


@contextmanager
def relayed(url: str) -> Iterator[Relay]:
    """On a thread of its own that is there before counting begins: so it is not counted itself."""
    relay, ready, stop = Relay(url), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    def carry() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(relay.serve(ready, stop))

    thread = threading.Thread(target=carry, name="guard-relay")
    thread.start()
    ready.wait()
    try:
        yield relay
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
