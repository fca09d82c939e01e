"""The current problems, from the same facts and rules as alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.model.alert import Facts, Rule, Severity, Trouble
from mainspring.model.value import Value
from mainspring.rules.troubles import watched
from mainspring.store.store import Store


async def facts(store: Store, config: AlertsConfig, clock: Clock) -> Facts:
    """The facts, in one bounded read of the store."""
    return await store.health.watch(watched(config), at=clock.stamp())


class TroubleView(Value, frozen=True, kw_only=True):
    """One problem, as programs read it."""

    rule: Rule
    subject: str
    severity: Severity
    since: datetime
    sentence: str

    @classmethod
    def of(cls, trouble: Trouble) -> Self:
        """Of a problem."""
        return cls(
            rule=trouble.rule,
            subject=trouble.subject,
            severity=trouble.severity,
            since=trouble.since,
            sentence=trouble.sentence,
        )
