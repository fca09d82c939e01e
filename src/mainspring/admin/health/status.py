"""The status of the whole system, in one bounded read of the store, and its problems by the alert rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self

from mainspring.admin.health.troubles import TroubleView
from mainspring.admin.health.troubles import facts as looked_at
from mainspring.admin.queues import QueueInfo, QueueView, every_queue
from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.duration import format_duration
from mainspring.model.alert import Facts, Severity, Trouble
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.process import Role
from mainspring.model.value import Value
from mainspring.rules.troubles import troubles as judged
from mainspring.store.store import Store

COUNTED = 1000
"""Dead letters are counted up to here."""


class Status(Value, frozen=True, kw_only=True):
    """The facts of one read."""

    facts: Facts
    queues: tuple[QueueInfo, ...]
    dead: int
    """Dead letters; counted up to a bound."""

    @property
    def at(self) -> datetime:
        """By the store's clock."""
        return self.facts.now

    @property
    def lag(self) -> timedelta:
        """How late the earliest slot without a decision is."""
        behind = self.facts.behind_since
        return timedelta() if behind is None else max(self.at - behind, timedelta())

    def alive(self, role: Role) -> int:
        """Live processes."""
        return sum(each.alive and each.role is role for each in self.facts.processes)


async def look(store: Store, clock: Clock, config: AlertsConfig) -> Status:
    """Read the store. The length of queues that are too long to count is estimated."""
    return Status(
        facts=await looked_at(store, config, clock),
        queues=tuple(await every_queue(store, about=True, at=clock.stamp())),
        dead=await store.dead_letters.count(DeadFilter(limit=COUNTED)),
    )


def troubles(status: Status, config: AlertsConfig) -> list[Trouble]:
    """The problems, the worst first. The result of an operator's order is a notice, and no problem."""
    return [each for each in judged(status.facts, config) if each.severity is not Severity.NOTICE]


def age(queue: QueueInfo, now: datetime) -> timedelta:
    """How long the oldest ready job has waited."""
    return timedelta() if queue.oldest_ready_at is None else max(now - queue.oldest_ready_at, timedelta())


def short(length: timedelta) -> str:
    """A length of time, to the second."""
    return format_duration(timedelta(seconds=int(length.total_seconds())))


class StatusQueue(QueueView, frozen=True, kw_only=True):
    """A queue, and how long its oldest ready job has waited."""

    oldest_ready_seconds: float


class StatusView(Value, frozen=True, kw_only=True):
    """The status of the whole system, as programs read it."""

    at: datetime
    ok: bool
    troubles: tuple[TroubleView, ...]
    workers: int
    schedulers: int
    lag_seconds: float
    overdue: tuple[str, ...]
    dead: int
    dead_lately: int
    queues: tuple[StatusQueue, ...]

    @classmethod
    def of(cls, status: Status, found: Sequence[Trouble]) -> Self:
        """Of one read, and the problems in it."""
        return cls(
            at=status.at,
            ok=not found,
            troubles=tuple(TroubleView.of(each) for each in found),
            workers=status.alive(Role.WORKER),
            schedulers=status.alive(Role.SCHEDULER),
            lag_seconds=status.lag.total_seconds(),
            overdue=tuple(each.schedule for each in status.facts.overdue),
            dead=status.dead,
            dead_lately=status.facts.grown,
            queues=tuple(
                StatusQueue.of(each, oldest_ready_seconds=age(each, status.at).total_seconds())
                for each in status.queues
            ),
        )
