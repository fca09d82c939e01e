"""Connections to checked addresses only.

A name is looked up once, every address it has is checked, and the connection goes to one of those very
addresses: there is no second look-up for an attacker's name server to answer differently.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore2

from mainspring.errors import TargetRefused, TargetUnavailable, shown
from mainspring.targets.networks import IPAddress, Network, address_of, is_reachable
from mainspring.targets.url import Address

WorkflowResolver = Callable[[str, int], Awaitable[Sequence[str]]]
_TRIED = 4
"""Addresses of one host that are tried, at most."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """What the system's resolver says."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(each[4][0]) for each in found]


class Guard(httpcore2.AsyncNetworkBackend):
    """The network as one call sees it."""

    def __init__(self, address: Address, allowed: Sequence[Network], resolve: WorkflowResolver) -> None:
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
