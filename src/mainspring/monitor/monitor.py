"""Watches one process from a thread of its own, which a blocked event loop does not hold up: serves probes
and metrics over HTTP (GET only, no bodies, bounded in everything), and reports to the service manager."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mainspring.clock import Clock
from mainspring.config import Settings
from mainspring.errors import InvalidConfig
from mainspring.model.value import Value
from mainspring.monitor.service_manager import ServiceManager
from mainspring.monitor.store_poll import StorePoll
from mainspring.store.around import timed
from mainspring.store.store import Store
from mainspring.telemetry.events import Event, ProcessStarted, ProcessStopping
from mainspring.telemetry.progress import LoopProgress
from mainspring.waiting import until

if TYPE_CHECKING:
    from mainspring.monitor.metrics import Metrics

STOP_WITHIN_SECONDS = 2.0


class Monitor:
    """Metrics and probes on a port, and words to the service manager, as far as they are wanted."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        notifier: ServiceManager,
        *,
        metrics: Callable[[], Metrics],
    ) -> None:
        config = settings.metrics
        self._settings, self._config, self._clock, self._notifier = settings, config, clock, notifier
        self._metrics = metrics() if config.port else None
        self._heard: dict[type[Any], Callable[[Any], None]] = {
            **({} if self._metrics is None else self._metrics.heard),
            ProcessStarted: self._started,
            ProcessStopping: lambda event: notifier.stopping(),
        }
        self._store_poll: StorePoll | None = None
        self.progress = LoopProgress(clock, config.stuck_after)
        self._running: Callable[[], int] = lambda: 0
        self._names: list[str] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._ended = False
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="mainspring-monitor", daemon=True)

    def timed(self, store: Store) -> Store:
        """The store, its calls timed where metrics are served."""
        return store if self._metrics is None else timed(store, self._clock, self._metrics.called)

    def loops(self, store: Store) -> list[StorePoll]:
        """What has to be done on the process's own event loop."""
        if self._metrics is None:
            return []
        self._store_poll = StorePoll(store, self._clock, self._settings)
        self._metrics.watch(self._store_poll)
        self._metrics.progress = self.progress
        return [self._store_poll]

    def hear(self, event: Event) -> None:
        """A telemetry sink; of every job's, so nothing is asked twice."""
        heard = self._heard.get(type(event))
        if heard is not None:
            heard(event)

    def _started(self, event: ProcessStarted) -> None:
        self._names.append(f"{event.role} {event.name}")
        self._notifier.ready(self._status())

    def start(self, running: Callable[[], int]) -> None:
        """Begin to watch; raises if the port cannot be served on."""
        self._running = running
        if self._metrics is not None:
            self._metrics.running = running
            self._socket = listen(self._config.host, self._config.port)
        if self._socket is not None or self._notifier.wanted:
            self._thread.start()

    def stop(self) -> None:
        """End, and say so. A second time changes nothing."""
        self._notifier.stopping()
        self._ended = True
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._watch())

    async def _watch(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = ProbeServer(
            {
                "/metrics": self._page_of_metrics,
                "/healthz": lambda: _page(alive(self.progress)),
                "/readyz": self._page_of_readiness,
            }
        )
        if self._socket is not None:
            await server.start(self._socket)
        while not self._ended and not await until(self._stopping, self._notifier.every):
            if alive(self.progress).ok:
                self._notifier.alive(self._status())
            else:
                # No word of the watchdog: if this goes on, the manager ends us.
                self._notifier.status("stuck: " + "; ".join(alive(self.progress).reasons))
        await server.close()

    def _status(self) -> str:
        return f"{', '.join(self._names)}; {self._running()} jobs running"

    def _page_of_metrics(self) -> ProbePage:
        from mainspring.monitor.metrics import CONTENT_TYPE

        if self._metrics is None:
            return ProbePage(status=404)
        return ProbePage(body=self._metrics.render(), kind=CONTENT_TYPE)

    def _page_of_readiness(self) -> ProbePage:
        if self._store_poll is None:
            return _page(alive(self.progress))
        return _page(ready(self.progress, self._store_poll))


def _page(verdict: ProbeAnswer) -> ProbePage:
    body = json.dumps({"status": "up" if verdict.ok else "down", "reasons": verdict.reasons}) + "\n"
    return ProbePage(status=200 if verdict.ok else 503, body=body.encode(), kind="application/json")


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


def alive(progress: LoopProgress) -> ProbeAnswer:
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


def ready(progress: LoopProgress, store_poll: StorePoll) -> ProbeAnswer:
    """Whether it can work: alive, and the store answers with the schema that this code needs."""
    found = alive(progress)
    if store_poll.ready:
        return found
    trouble = store_poll.trouble or "the store has not answered lately"
    return ProbeAnswer(ok=False, reasons=(*found.reasons, f"store: {trouble}"))
