"""When steps waited and ran, as bars over one stretch of time."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.admin.workflows.views import Attempt, Bar
from mainspring.cli.signs import Signs

_DONE = ("succeeded", "running", "snoozed", "released")
"""Ends of a run that are no failure."""


class Scale:
    """A stretch of time on so many columns."""

    def __init__(self, start: datetime, end: datetime, columns: int) -> None:
        self._start, self._columns = start, columns
        self._length = max(end - start, timedelta(microseconds=1))

    def column(self, moment: datetime) -> int:
        """Where a moment is."""
        passed = (moment - self._start) / self._length
        return max(0, min(self._columns - 1, int(passed * self._columns)))

    def bar(self, bar: Bar, now: datetime, signs: Signs) -> str:
        """One line: where it waited, and each of its runs, which takes at least one column."""
        cells = [" "] * self._columns
        last = bar.attempts[-1] if bar.attempts else None
        if bar.released_at is not None:
            end = bar.finished_at or (
                now if last is None or last.finished_at is not None else last.started_at
            )
            self._fill(cells, bar.released_at, end, signs.waited)
        for attempt in bar.attempts:
            sign = signs.ran if attempt.verdict in _DONE else signs.failed
            self._fill(cells, attempt.started_at, attempt.finished_at or now, sign)
        if last is not None and last.finished_at is None:
            cells[self.column(now)] = signs.going
        return "".join(cells).rstrip()

    def _fill(self, cells: list[str], start: datetime, end: datetime, sign: str) -> None:
        # An end belongs to the column before it, so that what comes next begins in its own.
        first = self.column(start)
        last = max(first, self.column(end) - (end < self._start + self._length))
        for column in range(first, last + 1):
            cells[column] = sign


def ran(attempts: tuple[Attempt, ...], now: datetime) -> timedelta:
    """From the beginning of the first to the end of the last."""
    return (attempts[-1].finished_at or now) - attempts[0].started_at
