"""One HTTP call: one connection, a guard on its address, limits on its time and on how much is read."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from functools import cache

import httpcore2

from mainspring.errors import TargetInDoubt, TargetRefused, TargetUnavailable, shown
from mainspring.model.value import Value
from mainspring.targets.address import Address, IPAddress, Network, address_of, is_reachable
from mainspring.targets.answer import HttpAnswer, read_answer

_BEFORE = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout)
_BROKEN = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.RemoteProtocolError)
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
_TRIED = 4
"""Addresses of one host that are tried, at most."""


class Outgoing(Value, frozen=True, kw_only=True):
    """A call that is ready to be made."""

    method: str
    address: Address
    headers: Sequence[tuple[str, str]]
    body: bytes
    harmless: bool
    """Whether a second call does no harm."""


async def call(outgoing: Outgoing, guard: NetworkGuard, *, timeout: timedelta, keep: int) -> HttpAnswer:  # noqa: ASYNC109 - it is the whole call's, and part of what is declared
    """Make the call; return the response of the server, whatever its status is."""
    exchange = _HttpExchange(keep)
    connection = httpcore2.AsyncHTTPConnection(
        _url(outgoing.address).origin, ssl_context=_trust(), network_backend=guard
    )
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            await exchange.over(connection, outgoing)
    except (TimeoutError, *_BROKEN) as problem:
        reason = (
            f"no answer within {timeout.total_seconds():g} s"
            if isinstance(problem, TimeoutError)
            else str(problem) or type(problem).__name__
        )
        exchange.ended(outgoing, reason, before=isinstance(problem, _BEFORE))
    except httpcore2.LocalProtocolError as problem:
        raise TargetRefused(f"{outgoing.address}: {problem}") from None
    finally:
        await connection.aclose()
    return exchange.answer()


class _HttpExchange:
    """How far a call has come: that decides what its failure means."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._sent = False
        self._response: httpcore2.Response | None = None
        self._body = bytearray()
        self._truncated = False

    async def over(self, connection: httpcore2.AsyncHTTPConnection, outgoing: Outgoing) -> None:
        request = httpcore2.Request(
            outgoing.method.encode(),
            _url(outgoing.address),
            headers=[(name.encode(), value.encode()) for name, value in outgoing.headers],
            content=outgoing.body,
            extensions={"trace": self._trace},
        )
        self._response = await connection.handle_async_request(request)
        async for chunk in self._response.aiter_stream():
            self._body += chunk[: self._keep + 1 - len(self._body)]
            if len(self._body) > self._keep:
                break

    async def _trace(self, event: str, _: dict[str, object]) -> None:
        if event.endswith("send_request_headers.started"):
            self._sent = True

    def ended(self, outgoing: Outgoing, reason: str, *, before: bool) -> None:
        """The connection broke, or the time was up. Once there is a status, only the body is incomplete."""
        if self._response is not None:
            self._truncated = True
            return
        where = f"{outgoing.method} {outgoing.address}"
        if before or not self._sent:
            raise TargetUnavailable(f"{where}: not sent, {reason}") from None
        raise TargetInDoubt(f"{where}: sent, then {reason}", harmless=outgoing.harmless) from None

    def answer(self) -> HttpAnswer:
        if self._response is None:  # pragma: no cover
            raise AssertionError("a call that ended without a response has raised")
        return read_answer(
            self._response.status,
            self._response.headers,
            bytes(self._body[: self._keep]),
            truncated=self._truncated or len(self._body) > self._keep,
        )


def _url(address: Address) -> httpcore2.URL:
    return httpcore2.URL(
        scheme=address.scheme.encode(),
        host=address.host.encode(),
        port=address.port,
        target=address.path.encode(),
    )


@cache
def _trust() -> ssl.SSLContext:
    """The system's certificates, read once: it takes as long as many calls."""
    return ssl.create_default_context()


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses that the system's resolver returns."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(each[4][0]) for each in found]


class NetworkGuard(httpcore2.AsyncNetworkBackend):
    """The network of one call: it connects to checked addresses only.

    The name is looked up once, each of its addresses is checked, and the connection goes to one of those
    addresses. There is no second look-up, to which the name server of an attacker could answer otherwise.
    """

    def __init__(self, address: Address, allowed: Sequence[Network], resolve: Resolver) -> None:
        self._address = address
        self._allowed = allowed
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that takes it, if all may be reached. The name and port asked
        for are the call's own, as there are no redirects and no proxies."""
        problem: Exception | None = None
        for address in (await self._checked())[:_TRIED]:
            try:
                stream = await self._network.connect_tcp(str(address), self._address.port, timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
                continue
            peer = stream.get_extra_info("server_addr")
            if peer is None or address_of(peer[0]) != address:
                await stream.aclose()
                raise TargetRefused(f"{self._address}: connected to {shown(peer)} instead of {address}")
            return stream
        raise problem or httpcore2.ConnectError("no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface is httpcore's
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """No URL leads to one."""
        raise TargetRefused(f"{self._address}: sockets of this machine are not reached")

    async def _checked(self) -> list[IPAddress]:
        addresses = [self._address.literal] if self._address.literal else await self._looked_up()
        for each in addresses:
            if not is_reachable(each, self._allowed):
                raise TargetRefused(
                    f"{self._address}: {shown(self._address.host)} leads to {each}, which is private; "
                    "allow_private=… names exceptions"
                )
        return addresses

    async def _looked_up(self) -> list[IPAddress]:
        host = self._address.host
        try:
            texts = await self._resolve(host, self._address.port)
        except (OSError, UnicodeError) as problem:
            raise TargetUnavailable(
                f"{self._address}: {shown(host)} could not be looked up: {problem}"
            ) from None
        found = [address_of(text) for text in dict.fromkeys(texts)]
        addresses = [each for each in found if each is not None]
        if not addresses or len(addresses) < len(found):
            raise TargetUnavailable(f"{self._address}: {shown(host)} has no address that can be read")
        return addresses
