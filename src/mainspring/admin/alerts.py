"""Alerts: find them, acknowledge them, send test alerts to the destinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.admin.views import to_json
from mainspring.clock import Clock
from mainspring.config import AlertsConfig, masked_target
from mainspring.duration import format_duration
from mainspring.entropy import Entropy
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.alert import (
    Alert,
    AlertFilter,
    AlertNote,
    Message,
    MessagePart,
    NoteKind,
    NoteState,
    Rule,
    Severity,
)
from mainspring.model.value import Value
from mainspring.targets.notify import Notifier, notifiers

UNDELIVERED = 20
EVERY = AlertFilter()
_SETTINGS: dict[Rule, tuple[str, ...]] = {
    Rule.MISSED: ("missed_after",),
    Rule.SLOTS_DROPPED: ("dropped_window",),
    Rule.LATE_START: ("late_after",),
    Rule.LATE_FINISH: (),
    Rule.FAILED: ("failed_window",),
    Rule.FAILING: ("failing_after",),
    Rule.RETRYING: ("retrying_after",),
    Rule.DEAD_GROWTH: ("dead_growth", "dead_window"),
    Rule.OLDEST_WAITING: ("oldest_waiting",),
    Rule.NO_WORKER: ("no_worker_after",),
    Rule.NO_SCHEDULER: ("no_scheduler_after", "restart_within"),
    Rule.SCHEDULER_LAG: ("scheduler_lag",),
    Rule.PROCESS_LOST: ("lost_window",),
    Rule.CLOCK_SKEW: ("clock_skew",),
    Rule.OUTAGE: ("outage_after",),
    Rule.STORE: ("store_after",),
}
_WORDS = {
    Rule.MISSED: "a slot that nobody decided about",
    Rule.SLOTS_DROPPED: "missed slots that were dropped: older than catch_up, or by the circuit breaker",
    Rule.LATE_START: "a slot's job that has not started; schedules may say expect_start_within",
    Rule.LATE_FINISH: "a slot's job that has not ended by its schedule's expect_finish_by",
    Rule.FAILED: "jobs of a task that became dead letters",
    Rule.FAILING: "jobs of a schedule that became dead letters, one after the other",
    Rule.RETRYING: "a task whose runs fail and are tried again, and do not succeed",
    Rule.DEAD_GROWTH: "many dead letters in a short time",
    Rule.OLDEST_WAITING: "a job that is due and waits in its queue",
    Rule.NO_WORKER: "a queue with jobs that are due and nobody who takes them",
    Rule.NO_SCHEDULER: "schedules, and no live scheduler",
    Rule.SCHEDULER_LAG: "live schedulers that are behind",
    Rule.PROCESS_LOST: "a process that did not renew its lease",
    Rule.CLOCK_SKEW: "a process whose clock is far from the database's",
    Rule.OUTAGE: "a time in which nothing ran at all, told once, when it is over",
    Rule.STORE: "a process that cannot reach the store",
}


class RuleInfo(Value, frozen=True, kw_only=True):
    """A rule, whether it is on, and its thresholds."""

    rule: Rule
    on: bool
    words: str
    thresholds: dict[str, str]


class Tried(Value, frozen=True, kw_only=True):
    """The result of a test message to one target."""

    target: str
    kind: NoteKind
    problem: str | None


class AlertShown(Value, frozen=True, kw_only=True):
    """An alert and its notifications, sent or not yet sent."""

    alert: Alert
    notes: tuple[AlertNote, ...]


class Alerts(Noun):
    """Alerts of one store."""

    async def afind(self, which: AlertFilter = EVERY) -> list[Alert]:
        """Newest first."""
        return await (await self._store()).alerts.find(which)

    async def aget(self, alert_id: int) -> AlertShown:
        """One alert and its notes; NotFound when there is none, or when it has not been opened yet."""
        store = await self._store()
        alert = await store.alerts.get(alert_id)
        if alert is None or alert.opened_at is None:
            raise NotFound("alert", alert_id)
        return AlertShown(alert=alert, notes=tuple(await store.alerts.notes(alert_id)))

    async def aundelivered(self) -> list[AlertNote]:
        """The newest notifications whose last try failed."""
        return await (await self._store()).alerts.undelivered_notes(limit=UNDELIVERED)

    @order("alerts.ack", result=lambda changed: {"changed": changed})
    async def aack(self, alert_id: int) -> bool:
        """Acknowledge an alert: it is not repeated. False when it is over, or was acknowledged already."""
        await self.aget(alert_id)
        store = await self._store()
        return await carried_out(store.alerts.acknowledge(alert_id, author=self._author, at=self._stamp))

    @order(
        "alerts.test",
        about=lambda *_, **__: "",
        result=lambda tried: {"tried": to_json([TriedView.of(each) for each in tried])},
        several=True,
    )
    async def atest(self, targets: Sequence[Notifier]) -> list[Tried]:
        """Send a test alert and its recovery to each of these targets; answer the results."""
        return await test(targets, self._clock, self._context.entropy, who=self._author)

    def rules(self) -> list[RuleInfo]:
        """Every rule, whether it is on, and its thresholds."""
        return rules(self._context.settings.alerts)

    find = blocking(afind)
    get = blocking(aget)
    undelivered = blocking(aundelivered)
    ack = blocking(aack)
    test = blocking(atest)


def rules(config: AlertsConfig) -> list[RuleInfo]:
    """Every rule, in the order in which notifications name them."""
    known = {each.name for each in fields(config)}
    return [
        RuleInfo(
            rule=Rule(name),
            on=config.enabled and name not in config.off,
            words=_WORDS[Rule(name)],
            thresholds={
                f"alerts.{each}": _plain(getattr(config, each))
                for each in _SETTINGS[Rule(name)]
                if each in known
            },
        )
        for name in Rule
    ]


def testable(
    config: AlertsConfig,
    clock: Clock,
    log: Callable[[Message], None],
    to: Sequence[str] = (),
    *,
    any_target: bool = False,
) -> list[Notifier]:
    """The configured targets, or the ones that `to` names in their shown form. `any_target` permits other
    targets too: only for callers who may configure targets, because a test calls any address."""
    if not to:
        return notifiers(config, clock, log)
    if any_target:
        return notifiers(config, clock, log, to)
    found = [each for each in notifiers(config, clock, log) if each.shown in to]
    missing = sorted(set(to) - {each.shown for each in found})
    if missing:
        known = ", ".join(masked_target(each) for each in config.to)
        raise InvalidArgument("to", missing[0], f"one of {known}")
    return found


async def test(targets: Sequence[Notifier], clock: Clock, entropy: Entropy, *, who: str) -> list[Tried]:
    """Send a test alert and its recovery to each target; answer the results."""
    uid, since = entropy.worker_id(), clock.now()
    tried = []
    for target in targets:
        for kind in (NoteKind.OPENED, NoteKind.RECOVERED):
            part = MessagePart(
                kind=kind,
                key="test:alerts",
                rule=Rule.STORE,
                subject="test",
                severity=Severity.NOTICE,
                sentence=f"this is a test that {who} asked for; nothing is wrong",
                since=since,
            )
            message = Message(id=f"{uid:016x}.{kind}", parts=(part,), test=True)
            tried.append(Tried(target=target.shown, kind=kind, problem=await _problem(target, message)))
    return tried


class AlertView(Value, frozen=True, kw_only=True):
    """An alert as programs read it."""

    id: int
    rule: Rule
    subject: str
    severity: Severity
    sentence: str
    state: Literal["open", "recovered"]
    since: datetime
    opened_at: datetime | None
    closed_at: datetime | None
    repeats: int
    acked_at: datetime | None
    acked_by: str | None

    @classmethod
    def of(cls, alert: Alert, **more: Any) -> Self:
        """Of an alert; `more` are the fields that a larger answer adds."""
        return cls(
            id=alert.id,
            rule=alert.rule,
            subject=alert.subject,
            severity=alert.severity,
            sentence=alert.sentence,
            state="open" if alert.closed_at is None else "recovered",
            since=alert.since,
            opened_at=alert.opened_at,
            closed_at=alert.closed_at,
            repeats=alert.repeats,
            acked_at=alert.acked_at,
            acked_by=alert.acked_by,
            **more,
        )


class NoteView(Value, frozen=True, kw_only=True):
    """A message about an alert to one notifier."""

    id: int
    alert_id: int
    kind: NoteKind
    target: str
    state: NoteState
    message_id: str | None
    tries: int
    created_at: datetime
    due_at: datetime
    ended_at: datetime | None
    problem: str | None

    @classmethod
    def of(cls, note: AlertNote) -> Self:
        """Of a message; its target as it may be shown."""
        return cls(
            id=note.id,
            alert_id=note.alert.id,
            kind=note.kind,
            target=note.shown,
            state=note.state,
            message_id=note.batch,
            tries=note.tries,
            created_at=note.created_at,
            due_at=note.due_at,
            ended_at=note.ended_at,
            problem=note.problem,
        )


class AlertDetail(AlertView, frozen=True, kw_only=True):
    """An alert with the messages about it."""

    notes: tuple[NoteView, ...]

    @classmethod
    def of_shown(cls, shown: AlertShown) -> Self:
        """Of an alert and its messages."""
        return cls.of(shown.alert, notes=tuple(NoteView.of(each) for each in shown.notes))


class TriedView(Value, frozen=True, kw_only=True):
    """The result of one test message."""

    target: str
    kind: NoteKind
    delivered: bool
    problem: str | None

    @classmethod
    def of(cls, tried: Tried) -> Self:
        """Of a test message."""
        return cls(
            target=tried.target, kind=tried.kind, delivered=tried.problem is None, problem=tried.problem
        )


def _plain(value: object) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)


async def _problem(target: Notifier, message: Message) -> str | None:
    try:
        await target.send(message)
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is the answer
        return str(problem) or type(problem).__name__
    return None
