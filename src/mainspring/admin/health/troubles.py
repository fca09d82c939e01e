"""What is wrong now, for whoever asks: the same facts and rules that alerts are made of."""

from __future__ import annotations

from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.model.alert import Facts, Trouble
from mainspring.rules.troubles import troubles as judged
from mainspring.rules.troubles import watched
from mainspring.store.store import Store


async def facts(store: Store, config: AlertsConfig, clock: Clock) -> Facts:
    """One bounded look at the store."""
    return await store.health.watch(watched(config), at=clock.stamp())


async def troubles(store: Store, config: AlertsConfig, clock: Clock) -> list[Trouble]:
    """What is wrong, the worst first. Nothing is waited for: what an alert would hold back for a while,
    because it often passes, is here at once."""
    return judged(await facts(store, config, clock), config)


def trouble_view(trouble: Trouble) -> dict[str, object]:
    """As JSON."""
    return {
        "rule": trouble.rule,
        "subject": trouble.subject,
        "severity": trouble.severity,
        "since": trouble.since.isoformat(),
        "sentence": trouble.sentence,
    }
