"""What a receiver gets."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.alert import NoteKind
from mainspring.model.trouble import Rule, Severity
from mainspring.model.value import Value


class MessagePart(Value, frozen=True, kw_only=True):
    """What is said of one alert."""

    kind: NoteKind
    key: str
    """Rule and subject: what opens under a key recovers under it."""
    rule: Rule
    subject: str
    severity: Severity
    sentence: str
    since: datetime
    alert_id: int = 0
    """Under which it is on record; zero for one that could not be written."""


class Message(Value, frozen=True, kw_only=True):
    """One or more alerts for one receiver. It may come twice, then with the same id."""

    id: str
    parts: tuple[MessagePart, ...]
    test: bool = False

    @property
    def severity(self) -> Severity:
        """The worst of its parts."""
        return max((part.severity for part in self.parts), key=tuple(Severity).index)
