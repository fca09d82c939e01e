"""Who is close to ours, and is measured again: one measurement does not tell two apart that differ by less
than the machine does from minute to minute."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.beside.drain import name_of
from benchmarks.beside.run import ONE_BY_ONE, Run, Size
from benchmarks.goals import POSTGRESQL
from benchmarks.known import System

WITHIN = 2.0
"""How many times better or worse somebody may be and still be close."""


def close(run: Run, workload: str, systems: Sequence[System]) -> list[System]:
    """Those whose first measurement says so, ours among them; nobody where nothing is to be told apart."""
    measure = _measures(run.size).get(workload, "")
    mine = run.book.value(POSTGRESQL, measure)
    if not mine:
        return []
    values = ((system, run.book.value(system.key, measure)) for system in systems)
    return [system for system, value in values if value and 1 / WITHIN <= value / mine <= WITHIN]


def _measures(size: Size) -> dict[str, str]:
    """What a workload is mostly about."""
    return {
        "enqueue": ONE_BY_ONE.format(size.one_by_one),
        "drain": name_of(size.drain, 1),
        "sustained": "highest rate held, jobs/s",
        "pickup": "pickup p50, ms",
    }
