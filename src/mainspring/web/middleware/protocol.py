"""HTTP/1.1 as we speak it: clients that send nothing, or no end of it, are answered and closed."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from mainspring.web.middleware.stack import LARGEST_HEADERS, plain_headers
from mainspring.web.problems import MEDIA_TYPE, Problem

HEADERS_WITHIN = timedelta(seconds=10)
LINGER = timedelta(seconds=1)
"""How long what a refused client still sends is thrown away: to close at once would take our answer back."""


class CarefulProtocol(H11Protocol):
    """uvicorn's, with a limit on how long headers may take, and refusals that are problems like others."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._too_slow: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._too_slow is None and self.conn.their_state is h11.IDLE:
            self._expect_headers()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._headers_came()

    def eof_received(self) -> None:
        if self._refused:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What h11 did not take."""
        error = sys.exception()
        hint = getattr(error, "error_status_hint", 400)
        begun, _ = self.conn.trailing_data
        if hint == 431 and b"\n" not in begun:
            self._refuse(Problem(414, "uri_too_long", "the URL is too long"))
        elif hint == 431:
            self._refuse(Problem(431, "too_large", f"headers have at most {LARGEST_HEADERS} bytes"))
        else:
            self._refuse(Problem(400, "bad_request", "this is no HTTP request that we understand"))

    def _refuse(self, problem: Problem) -> None:
        self._refused = True
        self._headers_came()
        body = json.dumps(problem.body()).encode()
        headers = {
            **plain_headers(),
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        try:
            response = h11.Response(status_code=problem.status, headers=list(headers.items()))
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            # An answer to an earlier request is on its way: there is no place for this one.
            self.transport.close()
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER.total_seconds(), self.transport.close)

    def _expect_headers(self) -> None:
        self._headers_came()
        self._too_slow = self.loop.call_later(HEADERS_WITHIN.total_seconds(), self._on_too_slow)

    def _headers_came(self) -> None:
        if self._too_slow is not None:
            self._too_slow.cancel()
            self._too_slow = None

    def _on_too_slow(self) -> None:
        self._too_slow = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
