"""What happened over time, as charts: columns for the browser to draw, and words and a table for those who
cannot see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mainspring.admin.health.stats import SeriesView
from mainspring.web.frame.shapes import count, took

Column = Sequence[float | None]


class Line(NamedTuple):
    """One line of a chart."""

    name: str
    tone: str
    """The variable of the style sheet that it is drawn in."""
    values: Column


class Chart(NamedTuple):
    """One chart, with the same moments for all of its lines."""

    id: str
    title: str
    summary: str
    unit: str
    at: Sequence[int]
    lines: tuple[Line, ...]
    shown: Callable[[Any], str]

    def data(self) -> dict[str, object]:
        """For the script that draws it."""
        lines = [{"name": each.name, "tone": each.tone, "values": list(each.values)} for each in self.lines]
        return {"unit": self.unit, "at": list(self.at), "lines": lines}

    def rows(self) -> list[tuple[str, list[str]]]:
        """The table: moments in which something happened, newest first."""
        found = []
        for place in range(len(self.at) - 1, -1, -1):
            values = [each.values[place] for each in self.lines]
            if any(values):
                moment = datetime.fromtimestamp(self.at[place], UTC)
                found.append(
                    (f"{moment:%H:%M}", ["–" if each is None else self.shown(each) for each in values])
                )
        return found


def charts(series: SeriesView, step: str) -> list[Chart]:
    """Those of the overview, from columns of statistics. The last step is not over, and is left out."""
    names = ("at", "succeeded", "failed", "died", "wait_p50", "wait_p95")
    at, done, failed, died, p50, p95 = (getattr(series, name)[:-1] for name in names)
    slowest = max((each for each in p95 if each is not None), default=None)
    return [
        Chart(
            "throughput",
            "Throughput",
            f"{count(sum(done))} jobs succeeded, at most {count(max(done, default=0))} in {step}",
            "jobs",
            at,
            (Line("succeeded", "--accent", done),),
            count,
        ),
        Chart(
            "latency",
            "Start latency",
            "no job was started"
            if slowest is None
            else f"95 of 100 jobs started within {took(slowest)} at worst",
            "seconds",
            at,
            (Line("median", "--info", p50), Line("95 of 100", "--warn", p95)),
            took,
        ),
        Chart(
            "failures",
            "Failures",
            f"{count(sum(failed))} runs failed, {count(sum(died))} jobs became dead letters",
            "runs",
            at,
            (Line("failed runs", "--warn", failed), Line("dead letters", "--bad", died)),
            count,
        ),
    ]
