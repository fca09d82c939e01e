"""Is this process alive, and can it work? Two questions with two answers."""

from __future__ import annotations

from mainspring.engine.progress import Progress
from mainspring.model.value import Value
from mainspring.monitor.survey import Survey


class Verdict(Value, frozen=True, kw_only=True):
    """Yes or no, and why not."""

    ok: bool
    reasons: tuple[str, ...] = ()


def alive(progress: Progress) -> Verdict:
    """Whether every loop makes progress. A store that is away does not make a process unhealthy: to start it
    anew would not bring the store back."""
    late = progress.late()
    return Verdict(
        ok=not late,
        reasons=tuple(
            f"{each.loop}: {'hangs in a pass' if each.in_pass else 'made no pass'}, "
            f"{each.by.total_seconds():.0f} s late"
            for each in late
        ),
    )


def ready(progress: Progress, survey: Survey) -> Verdict:
    """Whether it can work: alive, and the store answers with the schema that this code needs."""
    found = alive(progress)
    if survey.ready:
        return found
    trouble = survey.trouble or "the store has not answered lately"
    return Verdict(ok=False, reasons=(*found.reasons, f"store: {trouble}"))
