"""A server on 127.0.0.1 that does what a test tells it, byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext


@dataclass(slots=True)
class Request:
    line: str
    headers: dict[str, str]
    body: bytes
    rest: asyncio.StreamReader
    """What the client still sends: nothing, then its end."""


Script = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Server:
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)


@asynccontextmanager
async def serving(script: Script, *, ssl: SSLContext | None = None) -> AsyncIterator[Server]:
    """Each connection is one request, handed to the script."""
    server = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                request = await _read(reader)
                server.requests.append(request)
                await script(request, writer)
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=ssl)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listening.wait_closed()
        for _ in range(3):
            await asyncio.sleep(0)  # transports close when the loop comes round to them


def answers(status: int, body: bytes = b"", *headers: str) -> Script:
    """An ordinary answer."""

    async def script(_: Request, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return script


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line, headers, body, reader)
