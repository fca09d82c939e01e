"""A small HTTP server for probes: GET, no bodies, bounded in everything, and nothing of a framework."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta

from mainspring.errors import InvalidConfig
from mainspring.model.value import Value
from mainspring.monitor.store_poll import StorePoll
from mainspring.telemetry.progress import Progress

HEAD_WITHIN = timedelta(seconds=5)
LARGEST_HEAD = 8 * 1024
MOST = 32
"""Requests answered at once; others are turned away."""
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class ProbePage(Value, frozen=True, kw_only=True):
    """An answer."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"


Pages = Mapping[str, Callable[[], ProbePage]]


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve on; what is wrong with it is said at once, and not by a thread."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(found[0][4][:2], family=found[0][0])
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidConfig(
            "metrics.port", f"{host}:{port}", f"an address that can be served on ({why})"
        ) from None


class ProbeServer:
    """Answers from what is known already: a page never waits for anything."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._open = 0
        self._server: asyncio.Server | None = None

    async def start(self, on: socket.socket) -> None:
        """Serve on this socket."""
        self._server = await asyncio.start_server(self._serve, sock=on, limit=LARGEST_HEAD)

    async def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(HEAD_WITHIN.total_seconds()):
                head = await reader.readuntil(b"\r\n\r\n") if self._open <= MOST else b""
                page, is_head = self._answer(head)
                writer.write(_written(page, with_body=not is_head))
                await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            writer.transport.abort()  # gone, or too slow to be waited for
        except asyncio.LimitOverrunError:
            writer.write(_written(ProbePage(status=400, body=b"too large\n"), with_body=True))
        finally:
            self._open -= 1
            writer.close()

    def _answer(self, head: bytes) -> tuple[ProbePage, bool]:
        if not head:
            return ProbePage(status=503, body=b"busy\n"), False
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return ProbePage(status=400, body=b"not a request\n"), False
        method, target = words[0], words[1]
        make = self._pages.get(target.partition(b"?")[0].decode("ascii", "replace"))
        if make is None:
            return ProbePage(status=404, body=b"/metrics, /healthz and /readyz are here\n"), method == b"HEAD"
        if method not in (b"GET", b"HEAD"):
            return ProbePage(status=405, body=b"only GET\n"), False
        return make(), method == b"HEAD"


def _written(page: ProbePage, *, with_body: bool) -> bytes:
    lines = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}",
        f"Content-Type: {page.kind}",
        f"Content-Length: {len(page.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        *(["Allow: GET, HEAD"] if page.status == 405 else []),
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + (page.body if with_body else b"")


class ProbeAnswer(Value, frozen=True, kw_only=True):
    """Yes or no, and why not."""

    ok: bool
    reasons: tuple[str, ...] = ()


def alive(progress: Progress) -> ProbeAnswer:
    """Whether every loop makes progress. A store that is away does not make a process unhealthy: to start it
    anew would not bring the store back."""
    late = progress.late()
    return ProbeAnswer(
        ok=not late,
        reasons=tuple(
            f"{each.loop}: {'hangs in a pass' if each.in_pass else 'made no pass'}, "
            f"{each.by.total_seconds():.0f} s late"
            for each in late
        ),
    )


def ready(progress: Progress, store_poll: StorePoll) -> ProbeAnswer:
    """Whether it can work: alive, and the store answers with the schema that this code needs."""
    found = alive(progress)
    if store_poll.ready:
        return found
    trouble = store_poll.trouble or "the store has not answered lately"
    return ProbeAnswer(ok=False, reasons=(*found.reasons, f"store: {trouble}"))
