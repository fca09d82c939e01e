"""A real server on a free port: what is no HTTP, what is too slow, and who may listen where."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidConfig
from mainspring.web.middleware import protocol, stack
from mainspring.web.server import Server, first_token, is_loopback
from tests.support.door import make_app

SHORT = timedelta(milliseconds=500)
HOST = b"Host: 127.0.0.1\r\n"


class Running:
    """A server on a thread and a loop of its own, and raw words to it."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="test-server")
        self.token = ""

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.server = Server(self._app)
        self.token = await first_token(self._app, author="test", insecure=False) or ""
        self.port = int(self.server.url.rpartition(":")[2])
        self._loop.call_soon(self._ready.set)
        try:
            await self.server.run()
        finally:
            await self._app.aclose()

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self.server.stop)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def say(self, *parts: bytes, within: float = 10.0) -> tuple[bytes, dict[str, Any]]:
        """Send these bytes; answer the status line and the body's JSON, once the other side has closed
        or an answer is whole."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=within) as connection:
            got = b""
            try:
                for part in parts:
                    connection.sendall(part)
            except OSError:
                pass  # they have closed while we spoke
            while b"\r\n\r\n" not in got or len(got) < _whole(got):
                more = connection.recv(65536)
                if not more:
                    break
                got += more
        head, _, body = got.partition(b"\r\n\r\n")
        return head, json.loads(body) if body else {}


def _whole(got: bytes) -> int:
    head, _, _ = got.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    ]
    return len(head) + 4 + (int(lengths[0]) if lengths else 0)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    patch = pytest.MonkeyPatch()
    assert timedelta(seconds=10) == stack.BODY_WITHIN == protocol.HEADERS_WITHIN
    patch.setattr(stack, "BODY_WITHIN", SHORT)
    patch.setattr(protocol, "HEADERS_WITHIN", SHORT)
    app = make_app(f"sqlite:///{tmp_path_factory.mktemp('server')}/mainspring.db")
    app._configure({"server.port": 0})
    with Running(app) as running:
        yield running
    patch.undo()


def authorized(running: Running) -> bytes:
    return f"Authorization: Bearer {running.token}\r\nContent-Type: application/json\r\n".encode()


def test_the_first_token_lets_in(running: Running) -> None:
    head, body = running.say(b"GET /api/v1/me HTTP/1.1\r\n" + HOST + authorized(running) + b"\r\n")

    assert head.startswith(b"HTTP/1.1 200")
    assert body == {"name": "first", "role": "admin", "via": "token", "scopes": [], "until": None}


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        pytest.param(
            b"POST /api/v1/jobs HTTP/1.1\r\n%bContent-Length: -1\r\n\r\n", 400, "bad_request", id="api-065"
        ),
        pytest.param(
            b"POST /api/v1/jobs HTTP/1.1\r\n%bContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            "bad_request",
            id="api-066",
        ),
        pytest.param(
            b"POST /api/v1/jobs HTTP/1.1\r\n%bExpect: 100-continue\r\nContent-Length: 10000000000\r\n\r\n",
            413,
            "too_large",
            id="api-069",
        ),
        pytest.param(
            b"GET /?" + b"a" * 1_000_000 + b" HTTP/1.1\r\n%b\r\n", 414, "uri_too_long", id="api-039"
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\n%bX: " + b"a" * 100_000 + b"\r\n\r\n", 431, "too_large", id="headers"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n%b", 400, "bad_request", id="host"),
        pytest.param(b"GET / HTTP/1.1\r\n%bHost: two\r\n\r\n", 400, "bad_request", id="hosts"),
        pytest.param(b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n%b\r\n", 400, "bad_request", id="tls"),
        pytest.param(
            b"GET /static/..%%2f..%%2fetc/passwd HTTP/1.1\r\n%b\r\n", 404, "not_found", id="api-077"
        ),
    ],
)
def test_what_is_odd_is_refused_before_its_body(
    running: Running, said: bytes, status: int, code: str
) -> None:
    head, body = running.say(said % HOST)

    assert head.split()[1] == str(status).encode()
    assert body["code"] == code
    assert b"nosniff" in head
    assert b"100 Continue" not in head
    assert b"server:" not in head.lower()


def test_a_body_that_does_not_come_is_not_waited_for(running: Running) -> None:
    """api-067"""
    start = b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + authorized(running) + b"Content-Length: 99\r\n\r\n{"
    head, body = running.say(start)

    assert head.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in head.lower()
    assert body["code"] == "too_slow"


def test_headers_that_trickle_are_not_waited_for(running: Running) -> None:
    """api-068"""
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - began < 10:
                connection.sendall(b"G")
                connection.settimeout(SHORT.total_seconds() / 5)
                try:
                    if connection.recv(1) == b"":
                        raise ConnectionResetError
                except TimeoutError:
                    continue


def test_a_second_request_of_one_connection_may_not_trickle_either(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(b"GET /api/v1/me HTTP/1.1\r\n" + HOST + b"\r\n")
        answer = connection.recv(65536)
        while len(answer) < _whole(answer):
            answer += connection.recv(65536)
        connection.sendall(b"GET /api")
        rest = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 401")
    assert rest == b""


def test_nobody_is_who_a_header_says_they_are(running: Running) -> None:
    """api-063"""
    forged = b"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n"
    call = b'{"task":"greet","args":["Ada"]}'
    length = f"Content-Length: {len(call)}\r\n\r\n".encode()
    head, _ = running.say(
        b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + authorized(running) + forged + length + call
    )
    _, acts = running.say(b"GET /api/v1/audit-log HTTP/1.1\r\n" + HOST + authorized(running) + b"\r\n")

    assert head.startswith(b"HTTP/1.1 201")
    assert b"strict-transport-security" not in head.lower()
    assert acts["items"][0]["address"] == "127.0.0.1"


# Where it listens.


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("web", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_others_are_not_let_near_a_door_without_a_key(run: Any, tmp_path: Path) -> None:
    app = Mainspring(f"sqlite:///{tmp_path}/mainspring.db")
    app._configure({"server.host": "0.0.0.0"})

    async def story() -> tuple[str | None, str | None]:
        try:
            with pytest.raises(InvalidConfig, match=r"server\.host: expected a loopback address"):
                await first_token(app, author="test", insecure=False)
            return (
                await first_token(app, author="test", insecure=True),
                await first_token(app, author="test", insecure=False),
            )
        finally:
            await app.aclose()

    made, known = run(story())
    assert made is not None
    assert made.startswith("ms_")
    assert known is None  # somebody can sign in now


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        app = Mainspring(f"sqlite:///{tmp_path}/mainspring.db")
        app._configure({"server.port": other.getsockname()[1]})
        with pytest.raises(InvalidConfig, match=r"server\.port: expected an address that is free here"):
            Server(app)
