"""Somebody on loopback who is told of alerts, and pinged."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Received:
    """One message, and when it came, by the machine's monotonic clock."""

    at: float
    headers: dict[str, str]
    body: dict[str, Any]


class Receiver:
    """Takes everything, and keeps it in the order in which it came."""

    def __init__(self) -> None:
        self.messages: list[Received] = []
        self.raw: list[bytes] = []
        self.pings: list[float] = []
        self.status = 200
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def told(self, kind: str | None = None) -> list[tuple[str, str, float]]:
        """(kind, key, when) of every alert in every message."""
        return [
            (part["kind"], part["key"], message.at)
            for message in list(self.messages)
            for part in message.body["data"]
            if kind is None or part["kind"] == kind
        ]

    def keys(self, kind: str) -> list[str]:
        return [key for _, key, _ in self.told(kind)]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.raw.append(body)
        if headers.get("content-type") == "application/json":
            self.receiver.messages.append(Received(time.monotonic(), headers, json.loads(body)))
        self._answer()

    def do_GET(self) -> None:
        self.receiver.pings.append(time.monotonic())
        self._answer()

    def _answer(self) -> None:
        self.send_response(self.receiver.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """On a free port of loopback."""
    receiver = Receiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()
