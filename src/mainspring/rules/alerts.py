"""From troubles to alerts: which open, close and repeat, when each notifier gets them, and in which words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from mainspring.config import AlertsConfig
from mainspring.model.alert import (
    Alert,
    AlertChange,
    AlertMove,
    AlertNote,
    Message,
    MessagePart,
    NewNote,
    NoteKind,
    Rule,
    Severity,
    Trouble,
)
from mainspring.model.value import Value
from mainspring.rules.troubles import OTHERS

TOLD_AFTERWARDS = frozenset({Rule.OUTAGE})
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=10), timedelta(minutes=15)
MOST_LISTED = 50
LONGEST_TITLE = 120
_WORDS = {NoteKind.OPENED: "alert", NoteKind.REPEATED: "still", NoteKind.RECOVERED: "recovered"}


class Addressee(Value, frozen=True, kw_only=True):
    """A notifier as alerts know it: without its address, which may contain a secret."""

    key: str
    shown: str
    patient: bool = True
    """Whether it gets nothing in quiet hours. The log gets everything at once."""


class Delivery(Value, frozen=True, kw_only=True):
    """Notes that go to one target as one message; `batch` is its id, the same for every try."""

    target: str
    batch: str
    notes: tuple[AlertNote, ...]


class Judge:
    """Compares the troubles of now with the alerts on record."""

    def __init__(self, config: AlertsConfig, to: Sequence[Addressee], uid: Callable[[], int]) -> None:
        self._config = config
        self._to = to
        self._uid = uid
        self._watched_since: datetime | None = None
        self._cut: frozenset[Rule] = frozenset()

    def changes(
        self,
        standing: Sequence[Alert],
        troubles: Sequence[Trouble],
        now: datetime,
        *,
        watched_since: datetime | None = None,
        cut: Collection[Rule] = (),
    ) -> list[AlertChange]:
        """What to write. Nothing, when all is as it was. Since `watched_since` some process has looked again
        and again; what was seen before need not have been so in between. Of the rules in `cut` not everything
        was seen: their alerts stand."""
        self._watched_since, self._cut = watched_since, frozenset(cut)
        seen = {(trouble.rule, trouble.subject): trouble for trouble in troubles}
        known = {(alert.rule, alert.subject) for alert in standing}
        new = [self._new(trouble, now) for key, trouble in seen.items() if key not in known]
        moved = [
            change
            for alert in standing
            for change in self._moves(alert, seen.get((alert.rule, alert.subject)), now)
        ]
        return [*new, *moved]

    def _new(self, trouble: Trouble, now: datetime) -> AlertChange:
        if not self._is_due(trouble, now, now):
            return AlertChange(uid=self._uid(), trouble=trouble)
        notes = self._notes(NoteKind.OPENED, trouble.severity, now)
        return AlertChange(uid=self._uid(), trouble=trouble, move=AlertMove.OPENED, notes=notes)

    def _moves(self, alert: Alert, trouble: Trouble | None, now: datetime) -> Iterator[AlertChange]:
        if trouble is None:
            yield from self._unseen(alert, now)
            return
        if alert.clearing_at is not None:
            yield AlertChange(alert_id=alert.id, move=AlertMove.STANDING)
        if alert.opened_at is None:
            if self._is_due(trouble, alert.seen_at, now):
                notes = self._notes(NoteKind.OPENED, trouble.severity, now)
                yield AlertChange(alert_id=alert.id, move=AlertMove.OPENED, trouble=trouble, notes=notes)
        elif self._is_to_repeat(alert, now):
            place = alert.repeats + 1
            notes = self._notes(NoteKind.REPEATED, trouble.severity, now, place)
            yield AlertChange(
                alert_id=alert.id, move=AlertMove.REPEATED, trouble=trouble, notes=notes, place=place
            )

    def _is_due(self, trouble: Trouble, seen_at: datetime, now: datetime) -> bool:
        """Whether the trouble has lasted long enough, and long enough after a start."""
        watched = self._watched_since
        if trouble.after_start and watched is not None and now - watched < self._config.restart_within:
            return False
        since = trouble.since if trouble.recorded else seen_at
        if not trouble.recorded and watched is not None:
            since = max(since, watched)
        return now - since >= trouble.hold

    def _unseen(self, alert: Alert, now: datetime) -> Iterator[AlertChange]:
        if alert.rule in self._cut and alert.subject != OTHERS:
            return
        if alert.opened_at is None:
            yield AlertChange(alert_id=alert.id, move=AlertMove.FORGOTTEN)
            return
        if alert.clearing_at is None:
            yield AlertChange(alert_id=alert.id, move=AlertMove.CLEARING)
        if now - (alert.clearing_at or now) >= self._config.recover_after:
            # An alert that is sent when the trouble is over has no recovery of its own.
            over = alert.rule in TOLD_AFTERWARDS
            notes = () if over else self._notes(NoteKind.RECOVERED, alert.severity, now)
            yield AlertChange(alert_id=alert.id, move=AlertMove.CLOSED, notes=notes)

    def _is_to_repeat(self, alert: Alert, now: datetime) -> bool:
        last = alert.repeated_at or alert.opened_at
        repeat = self._config.repeat
        return bool(repeat) and alert.acked_at is None and last is not None and now - last >= repeat

    def _notes(
        self, kind: NoteKind, severity: Severity, now: datetime, place: int = 0
    ) -> tuple[NewNote, ...]:
        quiet = None if severity is Severity.CRITICAL else quiet_until(self._config, now)
        return tuple(
            NewNote(
                kind=kind,
                place=place,
                target=each.key,
                shown=each.shown,
                due_at=quiet if quiet is not None and each.patient else now,
            )
            for each in self._to
        )


def quiet_until(config: AlertsConfig, now: datetime) -> datetime | None:
    """When the quiet hours end that `now` is in; None outside of them. They go by the wall clock, so that on
    the nights on which it is set they are longer or shorter; an end that comes twice is the second one, and
    one that does not come is as much later as the clock is set forward."""
    hours = config.quiet_hours
    if hours is None:
        return None
    start, end = hours
    zone = ZoneInfo(config.quiet_zone)
    local = now.astimezone(zone)
    wall = local.time()
    inside = start <= wall < end if start < end else wall >= start or wall < end
    if not inside:
        return None
    day = local.date() + timedelta(days=1) if wall >= end else local.date()
    ends = [datetime.combine(day, end.replace(fold=fold), zone).astimezone(now.tzinfo) for fold in (0, 1)]
    return max(ends)


def deliveries(notes: Sequence[AlertNote], config: AlertsConfig) -> list[Delivery]:
    """How notes that are due go out, in order. What was tried before goes as it went then; more than a storm
    of new ones, and all that was held back in quiet hours, go together."""
    tried: dict[tuple[str, str], list[AlertNote]] = {}
    held: dict[str, list[AlertNote]] = {}
    fresh: dict[str, list[AlertNote]] = {}
    for note in notes:
        if note.batch is not None:
            tried.setdefault((note.target, note.batch), []).append(note)
        elif note.due_at > note.created_at:
            held.setdefault(note.target, []).append(note)
        else:
            fresh.setdefault(note.target, []).append(note)
    found = [
        Delivery(target=target, batch=batch, notes=tuple(each)) for (target, batch), each in tried.items()
    ]
    found += [_together(each) for each in held.values()]
    for each in fresh.values():
        if len(each) > config.storm:
            found.append(_together(each))
        else:
            found += [_together([note]) for note in each]
    return found


def _together(notes: Sequence[AlertNote]) -> Delivery:
    first = notes[0]
    more = f"+{len(notes) - 1}" if len(notes) > 1 else ""
    place = f".{first.place}" if first.place else ""
    batch = f"{first.alert.uid:016x}.{first.kind}{place}{more}"
    return Delivery(target=first.target, batch=batch, notes=tuple(notes))


def next_try(tries: int, config: AlertsConfig) -> timedelta | None:
    """How long to wait after so many tries; None when it is given up."""
    if tries >= config.attempts:
        return None
    return min(FIRST_WAIT * (1 << min(tries - 1, 10)), LONGEST_WAIT)


def message_part(note: AlertNote) -> MessagePart:
    """What a note says."""
    alert = note.alert
    return MessagePart(
        kind=note.kind,
        key=f"{alert.rule}:{alert.subject}",
        rule=alert.rule,
        subject=alert.subject,
        severity=alert.severity,
        sentence=alert.sentence,
        since=alert.since,
        alert_id=alert.id,
    )


def message_title(message: Message) -> str:
    """The message in one line."""
    mark = "mainspring test" if message.test else "mainspring"
    if len(message.parts) == 1:
        [only] = message.parts
        found = f"[{mark}] {_WORDS[only.kind]}: {only.rule} {only.subject}"
    else:
        opened = sum(each.kind is not NoteKind.RECOVERED for each in message.parts)
        found = f"[{mark}] {opened} alerts, {len(message.parts) - opened} recovered"
    return found if len(found) <= LONGEST_TITLE else f"{found[: LONGEST_TITLE - 1]}…"


def message_text(message: Message) -> str:
    """The message in full: one line for each alert, up to MOST_LISTED."""
    lines = [_message_line(each) for each in message.parts[:MOST_LISTED]]
    if (more := len(message.parts) - MOST_LISTED) > 0:
        lines.append(f"and {more} more: mainspring alerts list")
    return "\n".join(lines)


def _message_line(said: MessagePart) -> str:
    """One alert in one line."""
    return f"{_WORDS[said.kind]} ({said.severity}): {said.sentence}"


def message_json(message: Message, now: datetime) -> bytes:
    """The message as JSON: a type, a time and data."""
    kinds: Sequence[NoteKind] = [each.kind for each in message.parts]
    return msgspec.json.encode(
        {
            "type": f"alert.{kinds[0]}" if len(kinds) == 1 else "alert.summary",
            "timestamp": now,
            "id": message.id,
            "test": message.test,
            "title": message_title(message),
            "data": [
                {
                    "kind": each.kind,
                    "key": each.key,
                    "rule": each.rule,
                    "subject": each.subject,
                    "severity": each.severity,
                    "sentence": each.sentence,
                    "since": each.since,
                    "alert_id": each.alert_id,
                }
                for each in message.parts[:MOST_LISTED]
            ],
            "more": max(0, len(kinds) - MOST_LISTED),
        }
    )
