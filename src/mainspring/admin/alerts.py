"""Alerts: look at them, acknowledge them, test who is notified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import timedelta

from mainspring.admin.order import Noun, blocking, order
from mainspring.admin.views import View, iso
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
    Rule.MEMBER_LOST: ("lost_window",),
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
    Rule.MEMBER_LOST: "a process that did not renew its lease",
    Rule.CLOCK_SKEW: "a process whose clock is far from the database's",
    Rule.OUTAGE: "a time in which nothing ran at all, told once, when it is over",
    Rule.STORE: "a process that cannot reach the store",
}


class RuleInfo(Value, frozen=True, kw_only=True):
    """A rule, whether it is on, and what its thresholds are."""

    rule: Rule
    on: bool
    words: str
    thresholds: dict[str, str]


class Tried(Value, frozen=True, kw_only=True):
    """What came of a test message to one target."""

    target: str
    kind: NoteKind
    problem: str | None


class AlertShown(Value, frozen=True, kw_only=True):
    """An alert and what was or will be said of it."""

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
        """The newest notes that a notifier did not take at its last try."""
        return await (await self._store()).alerts.undelivered_notes(limit=UNDELIVERED)

    @order("alerts.ack", result=lambda changed: {"changed": changed})
    async def aack(self, alert_id: int) -> bool:
        """Acknowledge an alert: it is not repeated. False when it is over, or was acknowledged already."""
        await self.aget(alert_id)
        return await (await self._store()).alerts.acknowledge(alert_id, author=self._author, at=self._stamp)

    @order(
        "alerts.test",
        about=lambda *_, **__: "",
        result=lambda tried: {"tried": [tried_view(each) for each in tried]},
    )
    async def atest(self, targets: Sequence[Notifier]) -> list[Tried]:
        """Send a test alert and its recovery to each of these; answer what came of each."""
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
    """Every rule, in the order in which they are told."""
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
    """The targets that are set, or those of them that are named as they are shown. Only who may set them may
    also name others (`any_target`): a test reaches whatever it is given."""
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
    """Send a test alert and its recovery to each target; answer what came of each."""
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


async def _problem(target: Notifier, message: Message) -> str | None:
    try:
        await target.send(message)
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is the answer
        return str(problem) or type(problem).__name__
    return None


def alert_view(alert: Alert) -> View:
    """An alert, for JSON."""
    return {
        "id": alert.id,
        "rule": alert.rule.value,
        "subject": alert.subject,
        "severity": alert.severity.value,
        "sentence": alert.sentence,
        "state": "open" if alert.closed_at is None else "recovered",
        "since": iso(alert.since),
        "opened_at": iso(alert.opened_at),
        "closed_at": iso(alert.closed_at),
        "repeats": alert.repeats,
        "acked_at": iso(alert.acked_at),
        "acked_by": alert.acked_by,
    }


def note_view(note: AlertNote) -> View:
    """A note, for JSON."""
    return {
        "id": note.id,
        "alert_id": note.alert.id,
        "kind": note.kind.value,
        "target": note.shown,
        "state": note.state.value,
        "message_id": note.batch,
        "tries": note.tries,
        "created_at": iso(note.created_at),
        "due_at": iso(note.due_at),
        "ended_at": iso(note.ended_at),
        "problem": note.problem,
    }


def shown_view(shown: AlertShown) -> View:
    """An alert with its notes, for JSON."""
    return {**alert_view(shown.alert), "notes": [note_view(each) for each in shown.notes]}


def rule_view(info: RuleInfo) -> View:
    """A rule, for JSON."""
    return {"rule": info.rule.value, "on": info.on, "words": info.words, "thresholds": info.thresholds}


def tried_view(tried: Tried) -> View:
    """One test message, for JSON."""
    return {
        "target": tried.target,
        "kind": tried.kind.value,
        "delivered": tried.problem is None,
        "problem": tried.problem,
    }


def _plain(value: object) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)
