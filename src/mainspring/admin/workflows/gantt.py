"""The timeline of a workflow as bars on one axis, with positions in thousandths of its length."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.admin.words import length
from mainspring.admin.workflows.views import Attempt, Bar, WorkflowView
from mainspring.model.value import Value

WHOLE = 1000
_LEAST = 4
"""The least width of a bar in thousandths, so that a step of a millisecond is visible."""
_TICKS = 5


class Stroke(Value, frozen=True, kw_only=True):
    """A part of a line: waiting in the queue, or one attempt."""

    kind: str
    """`queued`, or the verdict of an attempt."""
    x: float
    width: float
    sentence: str


class Line(Value, frozen=True, kw_only=True):
    """One step, or one item of a map."""

    label: str
    name: str
    item: int | None
    job_id: int
    state: str
    strokes: tuple[Stroke, ...]
    lasted: str


class Tick(Value, frozen=True, kw_only=True):
    """A mark on the axis."""

    x: float
    words: str


class Gantt(Value, frozen=True, kw_only=True):
    """All lines, from the start of the workflow to its end or to now."""

    start: datetime
    end: datetime
    lines: tuple[Line, ...]
    ticks: tuple[Tick, ...]


def gantt(view: WorkflowView) -> Gantt:
    """The timeline of a workflow."""
    start = view.started_at
    ended = [each.finished_at for each in view.timeline if each.finished_at is not None]
    end = max(view.ended_at or view.as_of, *ended, start + timedelta(milliseconds=1))
    scale = _Scale(start, end)
    return Gantt(
        start=start,
        end=end,
        lines=tuple(_line(each, scale) for each in view.timeline),
        ticks=_ticks(end - start),
    )


class _Scale:
    def __init__(self, start: datetime, end: datetime) -> None:
        self.start, self.end = start, end

    def stroke(self, kind: str, start: datetime, end: datetime | None, sentence: str) -> Stroke:
        left = self._x(start)
        width = max(self._x(end or self.end) - left, _LEAST)
        # A bar at the end of the axis that is too short grows to the left.
        return Stroke(
            kind=kind, x=round(min(left, WHOLE - width), 1), width=round(width, 1), sentence=sentence
        )

    def _x(self, moment: datetime) -> float:
        return min(max((moment - self.start) / (self.end - self.start), 0), 1) * WHOLE


def _line(bar: Bar, scale: _Scale) -> Line:
    label = bar.name if bar.item is None else f"{bar.name}[{bar.item}]"
    strokes = []
    begun = bar.attempts[0].started_at if bar.attempts else bar.started_at
    if bar.released_at is not None and (begun is None or begun > bar.released_at):
        until = begun or bar.finished_at
        waited = (until or scale.end) - bar.released_at
        strokes.append(scale.stroke("queued", bar.released_at, until, f"waited {length(waited)}"))
    strokes += [_attempt(each, scale) for each in bar.attempts]
    first = begun or bar.released_at or scale.start
    return Line(
        label=label,
        name=bar.name,
        item=bar.item,
        job_id=bar.job_id,
        state=bar.state,
        strokes=tuple(strokes),
        lasted=length((bar.finished_at or scale.end) - first),
    )


def _attempt(attempt: Attempt, scale: _Scale) -> Stroke:
    lasted = length((attempt.finished_at or scale.end) - attempt.started_at)
    by = f" by {attempt.worker}" if attempt.worker else ""
    error = f": {attempt.error}" if attempt.error else ""
    sentence = f"attempt {attempt.number}{by}, {attempt.verdict}, {lasted}{error}"
    return scale.stroke(attempt.verdict, attempt.started_at, attempt.finished_at, sentence)


def _ticks(whole: timedelta) -> tuple[Tick, ...]:
    return tuple(
        Tick(x=WHOLE * number / _TICKS, words=_short(whole * number / _TICKS)) for number in range(_TICKS)
    )


def _short(value: timedelta) -> str:
    seconds = value.total_seconds()
    return f"{seconds:.3g} s" if 0 < seconds < 10 else "0" if not seconds else length(value)
