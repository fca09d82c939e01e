"""Watches one process from a thread of its own: a handler that holds up the rest does not hold up this."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mainspring.clock import Clock
from mainspring.config import Settings
from mainspring.monitor.probes import ProbeAnswer, ProbePage, ProbeServer, alive, listen, ready
from mainspring.monitor.service_manager import ServiceManager
from mainspring.monitor.store_poll import StorePoll
from mainspring.store.around import timed
from mainspring.store.store import Store
from mainspring.telemetry.events import Event, ProcessStarted, ProcessStopping
from mainspring.telemetry.progress import Progress
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
        self.progress = Progress(clock, config.stuck_after)
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
        return f"{', '.join(self._names)}; {self._running()} jobs in hand"

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
