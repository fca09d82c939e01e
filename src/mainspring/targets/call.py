"""One HTTP call: one connection, a limit on its time and on what is read of the answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from datetime import timedelta
from functools import cache

import httpcore2

from mainspring.errors import TargetInDoubt, TargetRefused, TargetUnavailable
from mainspring.model.value import Value
from mainspring.targets.answer import Answer, answer
from mainspring.targets.guard import Guard
from mainspring.targets.url import Address

_BEFORE = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout)
_BROKEN = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.RemoteProtocolError)


class Outgoing(Value, frozen=True, kw_only=True):
    """A call that is ready to be made."""

    method: str
    address: Address
    headers: Sequence[tuple[str, str]]
    body: bytes
    harmless: bool
    """Whether a second call does no harm."""


async def call(outgoing: Outgoing, guard: Guard, *, timeout: timedelta, keep: int) -> Answer:  # noqa: ASYNC109 - it is the whole call's, and part of what is declared
    """Make the call; answer what the server said, whatever that was."""
    exchange = _Exchange(keep)
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


class _Exchange:
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
        """It broke, or its time was up. Once there is a status, only the body is incomplete."""
        if self._response is not None:
            self._truncated = True
            return
        where = f"{outgoing.method} {outgoing.address}"
        if before or not self._sent:
            raise TargetUnavailable(f"{where}: not sent, {reason}") from None
        raise TargetInDoubt(f"{where}: sent, then {reason}", harmless=outgoing.harmless) from None

    def answer(self) -> Answer:
        if self._response is None:  # pragma: no cover
            raise AssertionError("a call that ended without a response has raised")
        return answer(
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
