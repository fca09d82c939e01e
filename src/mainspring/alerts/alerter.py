"""Looks for what is wrong and has alerts sent: every process can do it, and one of them at a time does. Here
is also what goes past the store: the alert that the store itself is away, and the ping to an outside
address."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.alerts.notification_sender import NotificationSender, together, told
from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.duration import format_duration
from mainspring.entropy import Entropy
from mainspring.errors import MainspringError, StoreError
from mainspring.model.alert import Message, MessagePart, NoteKind, Rule, Severity
from mainspring.model.process import Lease
from mainspring.rules.alerts import Addressee, Judge, next_try
from mainspring.rules.troubles import hindrance, troubles, watched
from mainspring.store.store import Store
from mainspring.targets.notify import LOG, Notifier
from mainspring.targets.outbound import Outbound
from mainspring.telemetry.events import AlertUndelivered, PingFailed, Telemetry

DUTY = "__alerts"
"""No name that a user may give: none begins like this."""
PRUNE_EVERY = timedelta(hours=1)
SHORTEST_TTL = timedelta(seconds=5)


class Alerter:
    """One pass: hold the duty, look, compare with what is on record, write, send."""

    name = "alerter"

    def __init__(
        self,
        store: Store,
        config: AlertsConfig,
        notifiers: Sequence[Notifier],
        *,
        who: str,
        keep: timedelta,
        pinger: Pinger | None,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._config = config
        self._who = who
        self._keep = keep
        self._pinger = pinger
        self._clock = clock
        self._entropy = entropy
        self._holder_id = entropy.worker_id()
        self._ttl = max(SHORTEST_TTL, 2 * config.every + config.timeout)
        to = [Addressee(key=each.key, shown=each.shown, patient=each.key != LOG) for each in notifiers]
        self._judge = Judge(config, to, entropy.worker_id)
        self._sender = NotificationSender(store, notifiers, config, clock, telemetry)
        self._outage = None
        if "store" not in config.off:
            self._outage = StoreOutage(who, notifiers, config, clock, entropy, telemetry)
        self._pruned_at: float | None = None

    async def tick(self) -> timedelta:
        try:
            held = await self._hold()
            if held:
                await self._look()
        except StoreError as error:
            if self._outage is not None:
                await self._outage.goes_on(str(error))
            raise
        if self._outage is not None:
            await self._outage.ended()
        return self._config.every * (0.8 + 0.2 * self._entropy.fraction())

    async def _hold(self) -> bool:
        """Take or keep the duty. It only saves the other processes the look: each notification is taken on
        its own."""
        answer = await self._store.leases.acquire(
            DUTY, holder_id=self._holder_id, holder=self._who, ttl=self._ttl, at=self._clock.stamp()
        )
        return isinstance(answer, Lease)

    async def _look(self) -> None:
        config = self._config
        since = await self._store.alerts.mark_watch(
            restart=config.restart_within, outage=config.outage_after, at=self._clock.stamp()
        )
        facts = await self._store.health.watch(watched(config), at=self._clock.stamp())
        found = troubles(facts, config)
        standing = await self._store.alerts.standing()
        changes = self._judge.changes(standing, found, facts.now, watched_since=since, cut=facts.cut)
        if changes:
            await self._store.alerts.change(changes, at=self._clock.stamp())
        sending = self._sender.run(self._hold)
        if self._pinger is None:
            await sending
        else:
            await together(sending, self._pinger.ping(hindrance(facts, self._config)))
        await self._prune()

    async def _prune(self) -> None:
        now = self._clock.monotonic()
        if self._pruned_at is None or now - self._pruned_at >= PRUNE_EVERY.total_seconds():
            self._pruned_at = now
            await self._store.alerts.prune(keep=self._keep, at=self._clock.stamp())


class StoreOutage:
    """Every process reports its own outage, since without the store the processes cannot agree on one of
    them. The alert ends with the process: one that restarts meanwhile reports it again."""

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
        """The store answers. Report it to every target that got the alert."""
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


class Pinger:
    """A watch outside notices when it stops: that is the only sign that a dead cluster can give."""

    def __init__(self, outbound: Outbound, every: timedelta, clock: Clock, telemetry: Telemetry) -> None:
        self._outbound = outbound
        self._every = every.total_seconds()
        self._clock = clock
        self._telemetry = telemetry
        self._next = clock.monotonic()

    async def ping(self, hindrance: str | None) -> None:
        """If it is time: fetch the address, or say why not."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        problem = hindrance
        if problem is None:
            try:
                await self._outbound.send("GET", now=self._clock.now())
            except MainspringError as error:
                problem = str(error)
        if problem is not None:
            self._telemetry.emit(PingFailed(target=self._outbound.shown, reason=problem))
