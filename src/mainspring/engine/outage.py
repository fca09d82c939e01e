"""The one alert that cannot go through the store: that it is not there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.duration import format_duration
from mainspring.engine.courier import told
from mainspring.entropy import Entropy
from mainspring.model.alert import Message, MessagePart, NoteKind, Rule, Severity
from mainspring.rules.alerts import next_try
from mainspring.targets.notify import Notifier
from mainspring.telemetry import AlertUndelivered, Telemetry


class Outage:
    """Every process tells of its own, since there is no place to agree in who does. What it says ends with
    the process: one that restarts meanwhile tells again."""

    def __init__(
        self,
        name: str,
        notifiers: Sequence[Notifier],
        config: AlertsConfig,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._name = name
        self._notifiers = notifiers
        self._config = config
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._since: tuple[float, datetime] | None = None
        self._uid = 0
        self._reason = ""
        self._waiting: list[Notifier] = []
        self._told: list[Notifier] = []
        self._tries = 0
        self._not_before = 0.0

    async def goes_on(self, reason: str) -> None:
        """The store did not answer, once more."""
        now = self._clock.monotonic()
        self._reason = reason
        if self._since is None:
            self._since = (now, self._clock.now())
            self._uid, self._tries, self._not_before = self._entropy.worker_id(), 0, 0.0
            self._waiting, self._told = list(self._notifiers), []
        lasted = timedelta(seconds=now - self._since[0])
        if lasted < self._config.store_after or not self._waiting or now < self._not_before:
            return
        self._tries += 1
        message = self._message(NoteKind.OPENED, f"for {format_duration(lasted)}: {self._reason}")
        again_in = next_try(self._tries, self._config)
        self._told += [each for each in self._waiting if await self._tell(each, message, again_in)]
        self._waiting = [] if again_in is None else [each for each in self._waiting if each not in self._told]
        self._not_before = now + (again_in.total_seconds() if again_in else 0.0)

    async def ended(self) -> None:
        """The store answers. Whoever was told of it hears so."""
        if self._since is None:
            return
        for each in self._told:
            await self._tell(each, self._message(NoteKind.RECOVERED, "and can again"), None)
        self._since = None

    async def _tell(self, notifier: Notifier, message: Message, again_in: timedelta | None) -> bool:
        problem = await told(notifier, message)
        if problem is not None:
            self._telemetry.emit(AlertUndelivered(target=notifier.shown, reason=problem, again_in=again_in))
        return problem is None

    def _message(self, kind: NoteKind, how: str) -> Message:
        since = self._since[1] if self._since else self._clock.now()
        part = MessagePart(
            kind=kind,
            key=f"{Rule.STORE}:{self._name}",
            rule=Rule.STORE,
            subject=self._name,
            severity=Severity.CRITICAL,
            sentence=f"process {self._name} cannot reach the store {how}"
            if kind is NoteKind.OPENED
            else f"process {self._name} could not reach the store {how}",
            since=since,
        )
        return Message(id=f"{self._uid:016x}.{kind}", parts=(part,))
