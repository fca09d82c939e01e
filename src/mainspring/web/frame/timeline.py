"""One job's life as parts of a line, drawn to scale: waiting, running, waiting to be tried again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from mainspring.model.job import Job, JobState
from mainspring.model.run import Run, Verdict
from mainspring.web.frame.shapes import took

WIDTH = 1000
_NARROWEST = 4
"""Of a run, so that a short one among long waits can still be seen."""
_WAITS_AGAIN = (Verdict.FAILED, Verdict.CRASHED, Verdict.SNOOZED)


class Part(NamedTuple):
    """A stretch of time, and what the job did in it."""

    kind: str
    start: datetime
    end: datetime
    title: str


class Drawn(NamedTuple):
    """A part with its place on the line."""

    kind: str
    title: str
    x: float
    width: float


def parts(job: Job, runs: Sequence[Run], now: datetime, running_since: datetime | None) -> list[Part]:
    """From when it was put into the queue until it ended, or now."""
    found: list[Part] = []
    at, waits = job.enqueued_at, "waiting"
    for run in runs:
        if run.started_at is None:
            continue  # no run: an edit, or a job that ended without one
        _add(found, waits, at, run.started_at)
        title = f"attempt {run.attempt}: {run.verdict} after {took(run.finished_at - run.started_at)}"
        found.append(Part(run.verdict.value, run.started_at, run.finished_at, title))
        at, waits = run.finished_at, "backoff" if run.verdict in _WAITS_AGAIN else "waiting"
    return found + _now(job, at, waits, now, running_since)


def drawn(of: Sequence[Part]) -> list[Drawn]:
    """Their places, so that all of them fill the line."""
    if not of:
        return []
    begin, end = of[0].start, max(each.end for each in of)
    whole = max((end - begin).total_seconds(), 0.001)
    places = []
    for each in of:
        x = (each.start - begin).total_seconds() / whole * WIDTH
        width = max((each.end - each.start).total_seconds() / whole * WIDTH, _NARROWEST)
        places.append(Drawn(each.kind, each.title, round(min(x, WIDTH - width), 2), round(width, 2)))
    # Waits first: a run that was widened lies over them.
    return sorted(places, key=lambda each: each.kind not in ("waiting", "backoff", "delayed"))


def _now(job: Job, at: datetime, waits: str, now: datetime, running_since: datetime | None) -> list[Part]:
    """What it does since its last run."""
    found: list[Part] = []
    match job.state:
        case JobState.RUNNING if running_since is not None:
            _add(found, waits, at, running_since)
            found.append(Part("running", running_since, now, f"running since {took(now - running_since)}"))
        case JobState.DELAYED:
            _add(found, waits if waits == "backoff" else "delayed", at, now)
        case JobState.READY:
            due = min(max(job.run_at, at), now)
            _add(found, waits if waits == "backoff" else "delayed", at, due)
            _add(found, "waiting", due, now)
        case _:
            pass
    return found


_WORDS = {"waiting": "waited", "backoff": "waited to be tried again", "delayed": "waited for its time"}


def _add(found: list[Part], kind: str, start: datetime, end: datetime) -> None:
    if end > start:
        found.append(Part(kind, start, end, f"{_WORDS[kind]} {took(end - start)}"))
