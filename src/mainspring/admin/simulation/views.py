"""Simulations as text for people and as answers for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Self

from mainspring.admin.simulation.load import Load, Peak
from mainspring.admin.simulation.simulate import Fate, Horizon, Outcome, Simulation
from mainspring.admin.words import length, moment
from mainspring.model.schedule import Period, Skipped
from mainspring.model.value import Value

BAR = 40
_NAMED = 5


def outcome_in_words(outcome: Outcome) -> str:
    """The result of a slot, as text."""
    late = f", {length(outcome.late)} late" if outcome.late else ""
    match outcome.fate:
        case Fate.FIRED:
            missed = outcome.period.missed if outcome.period is not None else 0
            return f"fired{late}" + (f", for {missed:,} missed before it too" if missed else "")
        case Fate.COALESCED:
            return f"coalesced into {moment(outcome.into or outcome.slot_at)}"
        case Fate.SKIPPED:
            return f"skipped: {outcome.reason}"


def notes(simulation: Simulation, horizon: Horizon, *, jitter: bool) -> list[str]:
    """Notes about what the list leaves out."""
    found = []
    if simulation.cut:
        last = moment(simulation.outcomes[-1].slot_at)
        found.append(
            f"cut after {len(simulation.outcomes):,} slots, at {last}: see --limit, --schedule, --load"
        )
    if horizon.duration is None:
        found.append("overlap is left out, for nobody knows how long jobs run: see --assume-duration")
    else:
        found.append(f"every job is assumed to start when it is due and to run {length(horizon.duration)}")
    if jitter:
        found.append("the random delay of jitter is left out")
    return found


def counted(outcomes: Sequence[Outcome]) -> str:
    """The number of slots of each result, in one line."""
    kinds = Counter(f"{each.fate} ({each.reason})" if each.reason else each.fate.value for each in outcomes)
    parts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    return f"{len(outcomes):,} slots: {parts}" if parts else "no slots"


class OutcomeView(Value, frozen=True, kw_only=True):
    """One slot of a simulation."""

    schedule: str
    slot_at: datetime
    fate: Fate
    reason: Skipped | None
    decided_at: datetime
    late_seconds: float
    into: datetime | None
    runs_at: datetime | None
    note: str | None
    period: Period | None

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """Of a slot."""
        return cls(
            schedule=outcome.schedule,
            slot_at=outcome.slot_at,
            fate=outcome.fate,
            reason=outcome.reason,
            decided_at=outcome.decided_at,
            late_seconds=outcome.late.total_seconds(),
            into=outcome.into,
            runs_at=outcome.runs_at,
            note=outcome.note,
            period=outcome.period,
        )


class SimulationView(Value, frozen=True, kw_only=True):
    """Every slot of a simulation."""

    slots: tuple[OutcomeView, ...]
    cut: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, simulation: Simulation, notes: Sequence[str]) -> Self:
        """Of a simulation, with what the list does not show."""
        slots = tuple(OutcomeView.of(each) for each in simulation.outcomes)
        return cls(slots=slots, cut=simulation.cut, notes=tuple(notes))


def load_lines(load: Load, spread: Load, window: timedelta) -> Iterator[str]:
    """Peaks and hours as bars of text."""
    if not load.peaks:
        yield "no jobs"
        return
    most = load.peaks[0].jobs
    yield f"{load.total:,} jobs in {load.busy_minutes:,} busy minutes; at most {most:,} in a minute"
    yield ""
    yield "busiest minutes"
    for peak in load.peaks:
        yield f"{moment(peak.minute)}  {_bar(peak.jobs, most)}  {peak.jobs:,}  {_who(peak)}".rstrip()
    yield ""
    yield "busiest minute of each hour of the day (UTC)"
    for hour, jobs in enumerate(load.by_hour):
        yield f"{hour:02}:00  {_bar(jobs, most)}  {jobs:,}"
    yield ""
    yield window_in_words(load, spread, window)


def window_in_words(load: Load, spread: Load, window: timedelta) -> str:
    """The effect of a window on the peak, as text."""
    before, after = (each.peaks[0].jobs if each.peaks else 0 for each in (load, spread))
    given = f'window="{length(window)}" on every schedule without a place of its own'
    return f"{given}: at most {after:,} jobs in a minute instead of {before:,}"


class ShareView(Value, frozen=True, kw_only=True):
    """The jobs of one schedule in one minute."""

    name: str
    jobs: int


class PeakView(Value, frozen=True, kw_only=True):
    """A busy minute."""

    minute: datetime
    jobs: int
    schedules: tuple[ShareView, ...]

    @classmethod
    def of(cls, peak: Peak) -> Self:
        """Of a minute, with the schedules whose jobs those are."""
        shares = tuple(ShareView(name=name, jobs=jobs) for name, jobs in peak.schedules)
        return cls(minute=peak.minute, jobs=peak.jobs, schedules=shares)


class WindowView(Value, frozen=True, kw_only=True):
    """The highest peak if every schedule had a place of its own in this window."""

    seconds: float
    peak: int


class LoadView(Value, frozen=True, kw_only=True):
    """Jobs by minute, summed up."""

    total: int
    busy_minutes: int
    peaks: tuple[PeakView, ...]
    by_hour: tuple[int, ...]
    window: WindowView

    @classmethod
    def of(cls, load: Load, spread: Load, window: timedelta) -> Self:
        """Of the load as it is, and as it would be spread over a window."""
        peak = spread.peaks[0].jobs if spread.peaks else 0
        return cls(
            total=load.total,
            busy_minutes=load.busy_minutes,
            peaks=tuple(PeakView.of(each) for each in load.peaks),
            by_hour=tuple(load.by_hour),
            window=WindowView(seconds=window.total_seconds(), peak=peak),
        )


def _bar(jobs: int, most: int) -> str:
    return ("#" * -(-jobs * BAR // most)).ljust(BAR)


def _who(peak: Peak) -> str:
    named = [name if jobs == 1 else f"{name} x{jobs}" for name, jobs in peak.schedules[:_NAMED]]
    more = len(peak.schedules) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")
