"""Business calendars as the store keeps them."""

from __future__ import annotations

from mainspring.model.value import Value


class StoredCalendar(Value, frozen=True, kw_only=True):
    """One version of a named calendar; `definition` is its canonical JSON and never changes."""

    name: str
    version: int
    definition: str
