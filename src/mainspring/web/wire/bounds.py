"""What a request may be, before anybody looks at what it says: its length, its letters, its headers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainspring.clock import Clock
from mainspring.waiting import within
from mainspring.web.problems import Problem, problem_response

LONGEST_URL = 8 * 1024
LARGEST_HEADERS = 32 * 1024
LARGEST_BODY = 256 * 1024
SECOND = timedelta(seconds=1)
BODY_WITHIN = 10 * SECOND
"""For a small body, and the longest silence in a large one."""
SLOWEST = 256 * 1024
"""Bytes a second that a large body must come with."""
ONCE = (
    b"authorization",
    b"content-type",
    b"content-length",
    b"host",
    b"idempotency-key",
    b"if-match",
    b"origin",
)
"""Headers of which two would leave it open which one counts."""


class Bounds:
    """Refuses what is too long, too large, too slow or no text. A body is bounded by what its length says
    it is, and again while it is read; nobody reads it before somebody is let in."""

    def __init__(
        self,
        app: ASGIApp,
        clock: Clock,
        *,
        largest: int = LARGEST_BODY,
        larger: Mapping[str, int] = MappingProxyType({}),
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        """`larger` are the limits of single paths; `hosts`, where there are any, the names we go by."""
        self._app, self._clock = app, clock
        self._largest, self._larger, self._hosts = largest, larger, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        largest = self._limit(scope)
        refused = self._refused(scope, largest)
        if refused is not None:
            await problem_response(_closing(refused))(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive, largest), send)

    def _limit(self, scope: Scope) -> int:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        return max(self._largest, self._larger.get(path, 0))

    def _refused(self, scope: Scope, largest: int) -> Problem | None:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope["query_string"]
        if len(raw) + len(query) > LONGEST_URL:
            return Problem(414, "uri_too_long", f"a URL has at most {LONGEST_URL} bytes")
        for what, text in (("path", raw), ("query", query)):
            if not _is_text(text):
                return Problem(400, "bad_request", f"{what}: expected UTF-8 without NUL", field=what)
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
            return Problem(431, "too_large", f"headers have at most {LARGEST_HEADERS} bytes")
        names = [name for name, _ in headers]
        for name in ONCE:
            if names.count(name) > 1:
                return Problem(400, "bad_request", f"{name.decode()}: expected once", field=name.decode())
        found = dict(headers)
        if b"transfer-encoding" in found and b"content-length" in found:
            return Problem(
                400, "bad_request", "a body has one length: not content-length and transfer-encoding"
            )
        if self._hosts and _host(found.get(b"host", b"")) not in self._hosts:
            return Problem(400, "bad_request", "host: not a name of this server", field="host")
        return _too_large(found.get(b"content-length"), largest)

    def _bounded(self, receive: Receive, largest: int) -> Receive:
        got, whole = 0, False
        until = self._clock.monotonic() + (BODY_WITHIN + largest // SLOWEST * SECOND).total_seconds()

        async def bounded() -> Message:
            nonlocal got, whole
            if whole:
                return await receive()
            left = timedelta(seconds=max(0.0, until - self._clock.monotonic()))
            try:
                message = await within(_once(receive), min(left, BODY_WITHIN))
            except TimeoutError:
                raise _closing(Problem(408, "too_slow", "the body did not come in time")) from None
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if got > largest:
                    raise _closing(too_large(largest))
            return message

        return bounded


def too_large(largest: int) -> Problem:
    """A body that is not to be read."""
    return Problem(
        413, "too_large", f"a body has at most {largest} bytes", expected=f"at most {largest} bytes"
    )


def _too_large(length: bytes | None, largest: int) -> Problem | None:
    if length is None:
        return None
    if not length.isdigit():
        return Problem(400, "bad_request", "content-length: expected a whole number", field="content-length")
    return too_large(largest) if len(length) > 18 or int(length) > largest else None


def _closing(problem: Problem) -> Problem:
    """What else they send is not read."""
    problem.headers["Connection"] = "close"
    return problem


async def _once(receive: Receive) -> Message:
    return await receive()


def _is_text(encoded: bytes) -> bool:
    said = unquote_to_bytes(encoded)
    try:
        said.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in said


def _host(header: bytes) -> str:
    name = header.decode("latin-1").lower()
    return name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() and ":" in name else name
