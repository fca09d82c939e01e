"""Statistics over time, for charts, with a bounded number of points for any length of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from msgspec import UNSET, UnsetType

from mainspring.clock import Clock
from mainspring.errors import InvalidArgument
from mainspring.model.stats import BUCKETS, PLACES, SPANS, By, Counted, Stat, StatFilter, quantile
from mainspring.model.value import Value
from mainspring.store.stats import KEPT
from mainspring.store.store import Store

MOST_POINTS = 500
USUAL_POINTS = 120
MOST_ROWS = 400
"""The most rows of one sum. Beyond this number, rows of longer spans are read."""
LEAST_ROWS = 12
"""The least rows of a total: they decide how exact its begin and its end are."""
LAST = timedelta(hours=3)
MINUTE = timedelta(minutes=1)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
STEPS = tuple(MINUTE * n for n in (1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080))
PARTS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
FAILURES = (Counted.FAILED, Counted.DEAD, Counted.CRASHED)
RUNS = (Counted.SUCCEEDED, *FAILURES, Counted.SNOOZED, Counted.DISCARDED, Counted.RELEASED, Counted.STARTED)


class Series(Value, frozen=True, kw_only=True):
    """One point for each step, also for steps in which nothing happened."""

    since: datetime
    until: datetime
    step: timedelta
    jobs: tuple[Stat, ...]
    fleet: tuple[Stat, ...] = ()
    """Slots and other values of no task or queue; empty for a question about one task or queue."""


class Stats:
    """Questions about the statistics of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def series(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta | None = None,
        task: str | None = None,
        queue: str | None = None,
    ) -> Series:
        """The default is the last three hours. A step may be longer than requested, if shorter ones are no
        longer kept or would be too many."""
        which = await self._which(since, until, step, task, queue)
        jobs = await self._store.stats.find(which)
        fleet: list[Stat] = []
        if task is None and queue is None:
            fleet = await self._store.stats.find(_replace(which, fleet=True))
        return Series(
            since=which.since,
            until=which.until,
            step=which.step,
            jobs=_filled(jobs, which),
            fleet=_filled(fleet, which) if fleet else (),
        )

    async def totals(
        self,
        by: By,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        task: str | None = None,
        queue: str | None = None,
    ) -> list[Stat]:
        """One sum for each task or queue, the one with the most runs first."""
        length = LAST if since is None else (until or self._clock.now()) - since
        which = await self._which(since, until, max(length / LEAST_ROWS, MINUTE), task, queue)
        found = await self._store.stats.find(_replace(which, step=which.until - which.since, by=by))
        return sorted(found, key=lambda each: (-each.count(*RUNS), each.key))

    async def _which(
        self,
        since: datetime | None,
        until: datetime | None,
        step: timedelta | None,
        task: str | None,
        queue: str | None,
    ) -> StatFilter:
        now = await self._store.now(at=self._clock.stamp())
        until = until or now
        since = since or until - LAST
        if since >= until:
            raise InvalidArgument("since", since.isoformat(), f"a moment before {until.isoformat()}")
        if step is not None and step < MINUTE:
            raise InvalidArgument("step", f"{step.total_seconds():g} s", "at least a minute")
        if step is not None and (until - since) / step > MOST_POINTS:
            raise InvalidArgument("step", f"{step.total_seconds():g} s", f"no more than {MOST_POINTS} steps")
        span = _span(since, until, now, step)
        width = span * MINUTE
        step = max(step or _step(until - since), width)
        step = -(-step // width) * width
        start = EPOCH + (since - EPOCH) // width * width
        end = start + -(-(until - start) // step) * step
        return StatFilter(since=start, until=end, step=step, span=span, task=task, queue=queue)


class StatView(Value, frozen=True, kw_only=True):
    """One sum. Waiting times and running times are in seconds."""

    at: datetime
    key: str | UnsetType = UNSET
    runs: int
    succeeded: int
    failed: int
    died: int
    wait_p50: float | None
    wait_p95: float | None
    wait_p99: float | None
    took_p50: float | None
    took_p95: float | None
    took_p99: float | None

    @classmethod
    def of(cls, stat: Stat) -> Self:
        """Of a sum; `key` is the task or the queue of which it is."""
        return cls(
            at=stat.at,
            key=stat.key or UNSET,
            runs=stat.count(*RUNS),
            succeeded=stat.count(Counted.SUCCEEDED),
            failed=stat.count(*FAILURES),
            died=stat.count(Counted.DIED),
            **{f"wait_{name}": quantile(stat.waits, part) for name, part in PARTS.items()},
            **{f"took_{name}": quantile(stat.tooks, part) for name, part in PARTS.items()},
        )


COLUMNS = tuple(each for each in StatView.__struct_fields__ if each not in ("at", "key"))


class SeriesView(Value, frozen=True, kw_only=True):
    """Statistics over time in columns, for charts: one place for each step."""

    since: datetime
    until: datetime
    step_seconds: float
    at: list[int]
    runs: list[int]
    succeeded: list[int]
    failed: list[int]
    died: list[int]
    wait_p50: list[float | None]
    wait_p95: list[float | None]
    wait_p99: list[float | None]
    took_p50: list[float | None]
    took_p95: list[float | None]
    took_p99: list[float | None]
    fired: list[int] | UnsetType = UNSET
    skipped: list[int] | UnsetType = UNSET
    late: list[int] | UnsetType = UNSET
    lateness_p95: list[float | None] | UnsetType = UNSET
    log_bytes_per_run: list[float | None] | UnsetType = UNSET

    @classmethod
    def of(cls, series: Series) -> Self:
        """Of a series; without the columns of schedulers where one task or queue was asked for."""
        points = [StatView.of(each) for each in series.jobs]
        columns: dict[str, Any] = {name: [getattr(each, name) for each in points] for name in COLUMNS}
        if fleet := series.fleet:
            pairs = zip(series.jobs, fleet, strict=True)
            columns |= {
                "fired": [each.count(Counted.FIRED) for each in fleet],
                "skipped": [each.count(Counted.SKIPPED) for each in fleet],
                "late": [each.count(Counted.LATE) for each in fleet],
                "lateness_p95": [quantile(each.waits, 0.95) for each in fleet],
                "died": [job.count(Counted.DIED) + own.count(Counted.DIED) for job, own in pairs],
                "log_bytes_per_run": _log_per_run(series),
            }
        return cls(
            since=series.since,
            until=series.until,
            step_seconds=series.step.total_seconds(),
            at=[int(each.at.timestamp()) for each in series.jobs],
            **columns,
        )


def _replace(
    which: StatFilter, *, step: timedelta | None = None, by: By | None = None, fleet: bool = False
) -> StatFilter:
    return StatFilter(
        since=which.since,
        until=which.until,
        step=step or which.step,
        span=which.span,
        task=which.task,
        queue=which.queue,
        by=by,
        fleet=fleet,
    )


def _filled(found: Sequence[Stat], which: StatFilter) -> tuple[Stat, ...]:
    known = {each.at: each for each in found}
    nothing = (0,) * BUCKETS
    points, at = [], which.since
    while at < which.until:
        points.append(known.get(at) or Stat(at=at, counts=(0,) * PLACES, waits=nothing, tooks=nothing))
        at += which.step
    return tuple(points)


def _span(since: datetime, until: datetime, now: datetime, step: timedelta | None) -> int:
    """The shortest rows that are still kept and are not too many; longer ones if the step is as long."""
    fitting = [
        span for span in SPANS if now - since <= KEPT[span] and (until - since) / (span * MINUTE) <= MOST_ROWS
    ]
    fitting = fitting or [SPANS[-1]]
    within = [span for span in fitting if step is not None and span * MINUTE <= step]
    return within[-1] if within else fitting[0]


def _step(length: timedelta) -> timedelta:
    return next((step for step in STEPS if length / step <= USUAL_POINTS), STEPS[-1])


def _log_per_run(series: Series) -> list[float | None]:
    """Bytes that the database wrote to its log since the point before, for each run; None if not known."""
    found: list[float | None] = []
    before: int | None = None
    for own, job in zip(series.fleet, series.jobs, strict=True):
        runs = job.count(*RUNS)
        known = before is not None and own.mark is not None and runs > 0
        found.append((own.mark - before) / runs if known and own.mark and before else None)
        before = own.mark or before
    return found
