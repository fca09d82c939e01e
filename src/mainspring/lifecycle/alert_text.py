"""Alerts in words, and as the JSON that webhooks get."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from mainspring.model.alert import Note, NoteKind
from mainspring.model.message import Message, MessagePart

MOST_LISTED = 50
LONGEST_TITLE = 120
_WORDS = {NoteKind.OPENED: "alert", NoteKind.REPEATED: "still", NoteKind.RECOVERED: "recovered"}


def part(note: Note) -> MessagePart:
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


def title(message: Message) -> str:
    """In one line."""
    mark = "mainspring test" if message.test else "mainspring"
    if len(message.parts) == 1:
        [only] = message.parts
        text = f"[{mark}] {_WORDS[only.kind]}: {only.rule} {only.subject}"
    else:
        opened = sum(each.kind is not NoteKind.RECOVERED for each in message.parts)
        text = f"[{mark}] {opened} alerts, {len(message.parts) - opened} recovered"
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"


def text(message: Message) -> str:
    """In full: a line for each alert, the first so many of them."""
    lines = [line(each) for each in message.parts[:MOST_LISTED]]
    if (more := len(message.parts) - MOST_LISTED) > 0:
        lines.append(f"and {more} more: mainspring alerts list")
    return "\n".join(lines)


def line(said: MessagePart) -> str:
    """One alert in one line."""
    return f"{_WORDS[said.kind]} ({said.severity}): {said.sentence}"


def body(message: Message, now: datetime) -> bytes:
    """As JSON: a type, a time and data, as webhooks are used to."""
    kinds: Sequence[NoteKind] = [each.kind for each in message.parts]
    return msgspec.json.encode(
        {
            "type": f"alert.{kinds[0]}" if len(kinds) == 1 else "alert.summary",
            "timestamp": now,
            "id": message.id,
            "test": message.test,
            "title": title(message),
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
