"""Short calls to addresses that an operator has set: webhooks of alerts, and the ping."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from mainspring.config import masked_target
from mainspring.errors import InvalidArgument, InvalidConfig, TargetError
from mainspring.targets.address import PORTS, Address, Network, networks, read_url
from mainspring.targets.answer import check_answer
from mainspring.targets.task import needs
from mainspring.version import __version__

_KEPT = 2048


class Outbound:
    """One checked address, and how long a call to it may take."""

    def __init__(self, url: str, field: str, *, timeout: timedelta, allow_private: Sequence[str]) -> None:
        with needs("http", "httpcore2"):
            import httpcore2  # noqa: F401 - so that it is missing now and not in the night
        self._allowed = _networks(allow_private)
        self._timeout = timeout
        self.shown = masked_target(url)
        self.address = _read(url, field, self._allowed)

    async def send(
        self, method: str, *, headers: Sequence[tuple[str, str]] = (), body: bytes = b"", now: datetime
    ) -> None:
        """Make the call; anything but a success is raised, without the secrets in the address."""
        from mainspring.targets.call import NetworkGuard, Outgoing, call, look_up

        outgoing = Outgoing(
            method=method,
            address=self.address,
            headers=[
                ("Host", self.address.authority),
                ("User-Agent", f"mainspring/{__version__}"),
                ("Connection", "close"),
                ("Accept", "*/*"),
                *([("Content-Length", str(len(body)))] if method == "POST" else []),
                *headers,
            ],
            body=body,
            harmless=True,
        )
        guard = NetworkGuard(self.address, self._allowed, look_up)
        try:
            answer = await call(outgoing, guard, timeout=self._timeout, keep=_KEPT)
            check_answer(answer, f"{method} {self.shown}", now=now)
        except TargetError as problem:
            # A path may be as secret as a password is.
            reason = str(problem).replace(str(self.address), self.shown)
            raise TargetError(reason, permanent=problem.permanent, retry_after=problem.retry_after) from None


def _networks(allow_private: Sequence[str]) -> tuple[Network, ...]:
    try:
        return networks(allow_private, "alerts.allow_private")
    except InvalidArgument as wrong:
        raise InvalidConfig("alerts.allow_private", wrong.got, wrong.expected) from None


def _read(url: str, field: str, allowed: Sequence[Network]) -> Address:
    try:
        # If a private network is allowed, its ports need not be named as well.
        return read_url(url, field, ports=(*PORTS, *_port(url)) if allowed else PORTS, allowed=allowed)
    except InvalidArgument as wrong:
        # The URL stays out of the message: there is a secret in most of them.
        expected = wrong.expected.replace("allow_private=…", "alerts.allow_private")
        raise InvalidConfig(
            field, masked_target(url), expected.replace("; ports=… names others", "")
        ) from None


def _port(url: str) -> tuple[int, ...]:
    try:
        port = urlsplit(url).port
    except ValueError:
        return ()
    return (port,) if port else ()
