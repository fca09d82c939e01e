"""HTTP calls against a real server, which behaves as badly as servers do."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import subprocess
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.errors import InvalidArgument, TargetError, TargetInDoubt, TargetRefused, TargetUnavailable
from mainspring.targets.answer import LONGEST_WAIT
from mainspring.targets.http import HttpTarget, Signer
from mainspring.tasks.context import Context
from mainspring.testing.clock import ManualClock
from tests.engine.kit import until as eventually
from tests.support.http_server import Request, Script, Server, answers, serving
from tests.support.processes import PATIENCE

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOOPBACK = ["127.0.0.0/8"]
Call = Callable[..., Any]


@pytest.fixture
def call(run: Callable[[Any], Any], context: Callable[..., Context]) -> Call:
    """Make one call to a server with this script; answer its result, or what was raised, and the server."""

    def made(script: Script, values: dict[str, Any] | None = None, **options: Any) -> tuple[Any, Server]:
        async def go() -> tuple[Any, Server]:
            async with serving(script) as server:
                given = {"ports": [server.port], "allow_private": LOOPBACK, **options}
                path = given.pop("path", "/hook")
                target = HttpTarget("notify", f"http://127.0.0.1:{server.port}{path}", **given)
                try:
                    return await target.run(context(), values or {}), server
                except TargetError as raised:
                    return raised, server

        return run(go())

    return made


def test_arguments_are_the_json_body_and_the_answer_is_the_result(call: Call, context: Any) -> None:
    script = answers(201, b'{"ok":true}', "Content-Type: application/json", "Set-Cookie: x=y")

    result, server = call(script, {"event": "paid", "amount": 12.5}, headers={"X-Team": "billing"})

    [request] = server.requests
    assert request.line == "POST /hook HTTP/1.1"
    assert json.loads(request.body) == {"event": "paid", "amount": 12.5}
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-team"] == "billing"
    assert request.headers["idempotency-key"] == context().token
    assert request.headers["user-agent"].startswith("mainspring/")
    assert result == {
        "status": 201,
        "headers": {"content-length": "11", "content-type": "application/json"},
        "body": '{"ok":true}',
        "truncated": False,
    }


def test_a_method_without_a_body_has_them_in_its_query(call: Call) -> None:
    values = {"q": "a b&c", "n": 3, "yes": True}

    _, server = call(answers(200), values, method="GET", path="/find?lang=cs")

    [request] = server.requests
    assert request.line == "GET /find?lang=cs&q=a+b%26c&n=3&yes=true HTTP/1.1"
    assert (request.body, "content-length" in request.headers) == (b"", False)


def test_a_value_that_no_query_can_hold_is_refused_at_the_door() -> None:
    target = HttpTarget("find", "https://example.com/", method="GET")

    with pytest.raises(InvalidArgument, match=r"find\.q: expected text, a number"):
        target.check({"q": ["a"]})


def test_a_body_of_ones_own_is_sent_as_it_is(call: Call) -> None:
    _, server = call(answers(204), body=b"\x00\xff", method="PUT", headers={"content-type": "image/png"})

    [request] = server.requests
    assert request.body == b"\x00\xff"
    assert request.headers["content-type"] == "image/png"


def test_each_try_is_signed_anew_under_the_same_id(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    clock = ManualClock()

    async def twice() -> list[Request]:
        async with serving(answers(200)) as server:
            url = f"http://127.0.0.1:{server.port}/"
            target = HttpTarget(
                "notify", url, secret=SECRET, clock=clock, ports=[server.port], allow_private=LOOPBACK
            )
            await target.run(context(attempt=1), {"n": 1})
            clock.advance(timedelta(minutes=5))
            await target.run(context(attempt=2), {"n": 1})
            return server.requests

    first, second = run(twice())

    ids = {each.headers["webhook-id"] for each in (first, second)}
    assert ids == {context().token}
    for each in (first, second):
        stamp = int(each.headers["webhook-timestamp"])
        signed = dict(Signer(SECRET, "secret").headers(context().token, stamp, each.body))
        assert each.headers["webhook-signature"] == signed["webhook-signature"]
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 300


@pytest.mark.parametrize(("status", "kind"), [(404, TargetRefused), (503, TargetUnavailable)])
def test_a_status_is_judged(call: Call, status: int, kind: type[TargetError]) -> None:
    raised, server = call(answers(status, b"why\nnot"))

    assert type(raised) is kind
    assert str(raised) == f"POST http://127.0.0.1:{server.port}/hook answered {status}: 'why\\nnot'"


def test_a_wait_of_thirty_years_is_capped(call: Call) -> None:
    raised, _ = call(answers(429, b"", f"Retry-After: {10**9}"))

    assert raised.retry_after == LONGEST_WAIT


def test_a_redirect_to_the_metadata_service_is_not_followed(call: Call) -> None:
    raised, server = call(answers(302, b"", "Location: http://169.254.169.254/latest/meta-data/"))

    assert (type(raised), raised.permanent, server.connections) == (TargetRefused, True, 1)


def test_ten_gigabytes_are_cut_at_the_limit(call: Call) -> None:
    sent = 0

    async def endless(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    tracemalloc.start()
    result, _ = call(endless, keep=1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (result["status"], result["body"], result["truncated"]) == (200, "x" * 1000, True)
    assert sent < 50_000_000
    assert peak < 20_000_000


def test_a_body_of_one_byte_at_a_time_is_cut_when_the_time_is_up(call: Call) -> None:
    async def drip(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    result, _ = call(drip, timeout="600ms")

    assert (result["status"], result["truncated"]) == (200, True)
    assert 0 < len(result["body"]) < 1000


async def drip_headers(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-A: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def hang(_: Request, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def reset(_: Request, writer: asyncio.StreamWriter) -> None:
    # With no time to linger, closing sends a reset.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def hang_up(_: Request, writer: asyncio.StreamWriter) -> None:
    """The connection is closed without an answer."""


async def nonsense(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    "script", [drip_headers, hang, reset, hang_up, nonsense], ids=lambda each: each.__name__
)
@pytest.mark.parametrize(
    ("options", "permanent"),
    [
        ({}, True),
        ({"idempotent": True}, False),
        ({"method": "PUT"}, False),
        ({"method": "PUT", "idempotent": False}, True),
    ],
    ids=["POST", "POST that may repeat", "PUT", "PUT that may not"],
)
def test_no_answer_to_what_was_sent_is_doubt(
    call: Call, script: Script, options: Any, permanent: bool
) -> None:
    raised, server = call(script, timeout="500ms", **options)

    assert type(raised) is TargetInDoubt
    assert raised.permanent is permanent
    assert "it may or may not have happened" in str(raised)
    assert len(server.requests) == 1


def test_a_refused_connection_is_tried_again(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    with socket.socket() as reserved:  # bound and not listening: nobody else gets the port
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        target = HttpTarget("notify", f"http://127.0.0.1:{port}/", ports=[port], allow_private=LOOPBACK)

        with pytest.raises(TargetUnavailable, match="not sent") as raised:
            run(target.run(context(), {}))

    assert not raised.value.permanent


def test_a_name_that_does_not_resolve_is_tried_again(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(TargetUnavailable, match="could not be looked up"):
        run(HttpTarget("notify", "https://example.com/", resolve=resolve).run(context(), {}))


def self_signed(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=example.com"]
    subprocess.run(
        ["openssl", *words, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_a_certificate_that_nobody_signed_ends_the_call_before_anything_is_sent(
    run: Callable[[Any], Any], context: Callable[..., Context], tmp_path: Path
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async def go() -> Server:
        async with serving(answers(200), ssl=self_signed(tmp_path)) as server:
            target = HttpTarget(
                "notify",
                f"https://example.com:{server.port}/",
                ports=[server.port],
                allow_private=LOOPBACK,
                resolve=resolve,
            )
            with pytest.raises(TargetUnavailable, match=r"not sent, .*certificate"):
                await target.run(context(), {})
            return server

    assert run(go()).requests == []


@pytest.mark.parametrize(
    "found",
    [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"]],
)
def test_a_listener_that_must_not_be_reached_sees_nothing(
    run: Callable[[Any], Any], context: Callable[..., Context], found: list[str]
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    async def go() -> int:
        async with serving(answers(200)) as server:
            url = f"http://hooks.example.com:{server.port}/"
            target = HttpTarget("notify", url, ports=[server.port], resolve=resolve)
            with pytest.raises(TargetRefused, match="private"):
                await target.run(context(), {})
            return server.connections

    assert run(go()) == 0


def test_a_name_that_changes_its_answer_is_asked_once_and_held_to_it(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    async def go() -> int:
        async with serving(answers(200)) as server:  # on 127.0.0.1 alone
            url = f"http://hooks.example.com:{server.port}/"
            target = HttpTarget(
                "notify", url, ports=[server.port], resolve=rebinding, allow_private=["127.0.0.2/32"]
            )
            with pytest.raises(TargetUnavailable):
                await target.run(context(), {})
            return server.connections

    assert run(go()) == 0
    assert asked == ["hooks.example.com"]


def test_the_host_header_is_the_name_and_the_connection_goes_to_the_checked_address(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.9", "127.0.0.1"]  # nobody listens on the first

    async def go() -> list[Request]:
        async with serving(answers(200)) as server:
            url = f"http://Hooks.Example.COM:{server.port}/"
            target = HttpTarget("notify", url, ports=[server.port], resolve=resolve, allow_private=LOOPBACK)
            await target.run(context(), {})
            assert server.requests[0].headers["host"] == f"hooks.example.com:{server.port}"
            return server.requests

    assert len(run(go())) == 1


def test_a_proxy_in_the_environment_is_not_asked(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")

    result, server = call(answers(200))

    assert (result["status"], server.connections) == (200, 1)


def test_a_call_that_is_cancelled_lets_go_of_its_connection(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    gone = asyncio.Event()

    async def wait_for_the_end(request: Request, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await request.rest.read()
        gone.set()

    async def go() -> None:
        async with serving(wait_for_the_end) as server:
            url = f"http://127.0.0.1:{server.port}/"
            target = HttpTarget("notify", url, ports=[server.port], allow_private=LOOPBACK)
            running = asyncio.create_task(target.run(context(), {}))
            await eventually(lambda: server.requests, PATIENCE)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            async with asyncio.timeout(PATIENCE):
                await gone.wait()

    run(go())


@pytest.mark.parametrize(
    "options",
    [
        {"method": "post"}, {"method": "TRACE"}, {"method": "CONNECT"}, {"timeout": "0s"}, {"timeout": "2h"},
        {"timeout": "soon"}, {"body": 5}, {"body": b"x", "method": "GET"}, {"body": b"x" * 1024 * 1025},
        {"ports": []}, {"ports": [0]}, {"ports": 80}, {"ports": ["80"]}, {"allow_private": "10.0.0.0/8"},
        {"keep": -1}, {"keep": 10**9}, {"keep": True}, {"idempotent": "yes"}, {"secret": "whsec_"},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_when_it_is_declared(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"^notify\."):
        HttpTarget("notify", "https://example.com/", **options)


def test_the_time_of_a_retry_is_counted_from_the_clock_that_was_given(call: Call) -> None:
    clock = ManualClock(datetime(2026, 11, 15, 7, 0, tzinfo=UTC))

    raised, _ = call(answers(503, b"", "Retry-After: Sun, 15 Nov 2026 07:01:30 GMT"), clock=clock)

    assert raised.retry_after == timedelta(seconds=90)
