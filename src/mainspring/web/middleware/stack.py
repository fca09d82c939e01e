"""Around the whole app: bounds of a request, headers of every answer, unexpected errors, a prefix."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from urllib.parse import unquote_to_bytes

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.errors import InvalidArgument
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
PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
DATA_POLICY = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with it browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_YEAR = "max-age=31536000"
_log = logging.getLogger("mainspring.web")
_REPORTED = "mainspring.error"


class Bounds:
    """Refuses what is too long, too large, too slow or no text. A body is bounded by what its length says
    it is, and again while it is read; it is read after the actor was let in."""

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


class SecurityHeaders:
    """Adds the headers. There is no CORS: no other site's page may read our answers."""

    def __init__(self, app: ASGIApp, *, public_url: Callable[[], str] = str) -> None:
        self._app, self._public_url = app, public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(MutableHeaders(scope=message), secure=self._is_secure(scope))
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _is_secure(self, scope: Scope) -> bool:
        """Whether browsers come by https. A proxy that ends TLS may not say so: the setting comes first."""
        if public_url := self._public_url():
            return public_url.startswith("https:")
        return bool(scope.get("scheme") == "https")


class LastResort:
    """Answers 500 where a handler fell over before it began to answer."""

    def __init__(self, app: ASGIApp, entropy: Entropy) -> None:
        self._app, self._entropy = app, entropy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Problem as problem:
            if begun:
                raise
            await problem_response(problem)(scope, receive, send)
        except Exception:
            if scope["type"] != "http":
                raise
            if scope.get(_REPORTED):
                return  # Starlette has sent the answer below, and raises for servers that would log it
            unexpected = unexpected_problem(scope, self._entropy)
            if begun:
                raise
            await problem_response(unexpected)(scope, receive, send)


class Prefixed:
    """Sends to the first what begins with the prefix, and all else to the other."""

    def __init__(self, prefix: str, inside: ASGIApp, otherwise: ASGIApp) -> None:
        if not prefix.startswith("/") or prefix.endswith("/"):
            raise InvalidArgument("prefix", prefix, "a path such as /mainspring")
        self._prefix, self._inside, self._otherwise = prefix, inside, otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        root = scope.get("root_path", "")
        path: str = scope.get("path", "")
        if scope["type"] != "http" or not f"{path.removeprefix(root)}/".startswith(f"{self._prefix}/"):
            await self._otherwise(scope, receive, send)
            return
        await self._inside({**scope, "root_path": f"{root}{self._prefix}"}, receive, send)


def too_large(largest: int) -> Problem:
    """A body that is not to be read."""
    return Problem(
        413, "too_large", f"a body has at most {largest} bytes", expected=f"at most {largest} bytes"
    )


def plain_headers() -> dict[str, str]:
    """Those of an answer that is made before there is a request."""
    return {**_ALWAYS, "Content-Security-Policy": DATA_POLICY, "Cache-Control": "no-store"}


def unexpected_problem(scope: Scope, entropy: Entropy) -> Problem:
    """The answer to an exception that is being handled; it is logged under the answer's id."""
    scope[_REPORTED] = error_id = f"{entropy.worker_id():x}"
    _log.exception("%s %s: unexpected error %s", scope["method"], scope["path"], error_id)
    return Problem(500, "internal", "something went wrong here; the log has the details", id=error_id)


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


def _add(headers: MutableHeaders, *, secure: bool) -> None:
    for name, value in _ALWAYS.items():
        headers.setdefault(name, value)
    is_page = headers.get("content-type", "").startswith("text/html")
    headers.setdefault("Content-Security-Policy", PAGE_POLICY if is_page else DATA_POLICY)
    # Static files say how long they may be kept; answers about jobs are not kept.
    headers.setdefault("Cache-Control", "no-store")
    if secure:
        headers.setdefault("Strict-Transport-Security", _YEAR)


async def _live(receive: Receive, send: Send) -> None:
    """Answer both messages: neither app has anything to start or to stop."""
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
