"""Looks for what is wrong and has it told: in every process, and one of them at a time does it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.engine.courier import Courier, together
from mainspring.engine.outage import Outage
from mainspring.engine.pinger import Pinger
from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.model.process import Lease
from mainspring.rules.alerts import Addressee, Judge
from mainspring.rules.troubles import hindrance, troubles, watched
from mainspring.store.store import Store
from mainspring.targets.notify import LOG, Notifier
from mainspring.telemetry import Telemetry

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
        self._courier = Courier(store, notifiers, config, clock, telemetry)
        self._outage = None
        if "store" not in config.off:
            self._outage = Outage(who, notifiers, config, clock, entropy, telemetry)
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
        """Take or keep the duty. It is only so that not everybody looks: each note is taken on its own."""
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
        sending = self._courier.run(self._hold)
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
