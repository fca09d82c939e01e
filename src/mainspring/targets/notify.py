"""Notifiers: where alerts are sent. Webhooks by our own client, everything else by apprise."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from mainspring.clock import Clock
from mainspring.config import AlertsConfig, masked_target
from mainspring.errors import InvalidArgument, InvalidConfig, TargetUnavailable
from mainspring.model.alert import Message, Severity
from mainspring.rules.alerts import message_json, message_text, message_title
from mainspring.targets.http import Signer
from mainspring.targets.outbound import Outbound
from mainspring.targets.task import needs

if TYPE_CHECKING:
    import apprise

LOG = "log"
_HTTP = {"http": "http", "https": "https", "json": "http", "jsons": "https"}


class Notifier(Protocol):
    """A place that alerts are sent to."""

    key: str
    """A digest of the address: it is kept, and the address is not."""
    shown: str

    async def send(self, message: Message) -> None:
        """Send; the error says why that failed."""


class LogNotifier:
    """The log of the process that sends the alert."""

    key = shown = LOG

    def __init__(self, write: Callable[[Message], None]) -> None:
        self._write = write

    async def send(self, message: Message) -> None:
        self._write(message)


class WebhookNotifier:
    """A POST of JSON, signed if there is a secret. Every try has the same id."""

    def __init__(self, target: str, config: AlertsConfig, clock: Clock) -> None:
        scheme, _, rest = target.partition("://")
        self.key, self.shown = _key(target), masked_target(target)
        self._outbound = Outbound(
            f"{_HTTP[scheme.lower()]}://{rest}",
            "alerts.to",
            timeout=config.timeout,
            allow_private=config.allow_private,
        )
        self._signer = _signer(config)
        self._clock = clock

    async def send(self, message: Message) -> None:
        now = self._clock.now()
        said = message_json(message, now)
        headers = [
            ("Content-Type", "application/json"),
            ("Idempotency-Key", message.id),
            *self._signer.headers(message.id, int(now.timestamp()), said),
        ]
        await self._outbound.send("POST", headers=headers, body=said, now=now)


class AppriseNotifier:
    """Mail, chat and the rest, by apprise. Its calls block and have no timeout, so each has a thread, which
    is abandoned when the time is up."""

    def __init__(self, target: str, config: AlertsConfig) -> None:
        self.key, self.shown = _key(target), masked_target(target)
        self._timeout = config.timeout
        with needs("alerts", "apprise"):
            import apprise
        self._apprise: apprise.Apprise = apprise.Apprise()
        if not self._apprise.add(target):
            raise InvalidConfig("alerts.to", self.shown, "a URL that apprise understands")

    async def send(self, message: Message) -> None:
        kind = "failure" if message.severity is Severity.CRITICAL else "warning"

        def send() -> bool:
            return bool(
                self._apprise.notify(
                    title=message_title(message), body=message_text(message), notify_type=kind
                )
            )

        if not await _within(send, self._timeout, self.shown):
            raise TargetUnavailable(f"{self.shown}: apprise says that it was not delivered")


def notifiers(
    config: AlertsConfig, clock: Clock, log: Callable[[Message], None], to: Sequence[str] | None = None
) -> list[Notifier]:
    """Those that are set, or these; InvalidConfig where one makes no sense or its extra is missing."""
    found: list[Notifier] = []
    for target in config.to if to is None else to:
        if target == LOG:
            found.append(LogNotifier(log))
        elif target.partition("://")[0].lower() in _HTTP:
            found.append(WebhookNotifier(target, config, clock))
        else:
            found.append(AppriseNotifier(target, config))
    return found


def _key(target: str) -> str:
    return hashlib.sha256(target.encode()).hexdigest()[:16]


def _signer(config: AlertsConfig) -> Signer:
    try:
        return Signer(config.secret or (), "alerts.secret")
    except InvalidArgument as wrong:
        raise InvalidConfig("alerts.secret", wrong.got, wrong.expected) from None


async def _within(call: Callable[[], bool], limit: timedelta, shown: str) -> bool:
    future: Future[bool] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - not swallowed: the waiting caller gets it
            future.set_exception(error)

    threading.Thread(target=work, name="mainspring-alert", daemon=True).start()
    waiting = asyncio.wrap_future(future)
    done, _ = await asyncio.wait({waiting}, timeout=limit.total_seconds())
    if not done:
        # It cannot be stopped; its result is not wanted any more.
        waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise TargetUnavailable(f"{shown}: no answer within {limit.total_seconds():g} s")
    return waiting.result()
