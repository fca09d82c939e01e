"""Counts that cost little: plain numbers, written by the threads that have the news and read at a scrape.

prometheus-client writes the page and does not count: its locks, once a job, would be felt. Cells of tasks
have one writer and no lock; a reader may see one number newer than another, which no rate will notice.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from mainspring.monitor.catalogue import OTHER, SECONDS, Metric

_log = logging.getLogger("mainspring")


class Spread:
    """A histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """One observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as they are told."""
        seen, told = 0, list[tuple[str, float]]()
        for bound, count in zip((*map(str, self.bounds), "+Inf"), list(self.counts), strict=True):
            seen += count
            told.append((bound, float(seen)))
        return told


class TaskCell:
    """What is counted of one task."""

    __slots__ = ("latency", "refused", "retries", "seconds", "started", "verdicts")

    def __init__(self) -> None:
        self.started = self.retries = self.refused = 0
        self.verdicts: defaultdict[str, int] = defaultdict(int)
        self.seconds = Spread()
        self.latency = Spread()


class Counts:
    """Numbers by metric and labels, for what happens seldom, on whichever thread."""

    def __init__(self, *at_zero: Metric) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[tuple[str, ...], float]] = {each.name: {} for each in at_zero}
        for each in at_zero:
            if not each.labels:
                self._values[each.name][()] = 0.0

    def add(self, metric: Metric, *labels: str, many: float = 1.0) -> None:
        """So many more."""
        with self._lock:
            values = self._values[metric.name]
            values[labels] = values.get(labels, 0.0) + many

    def put(self, metric: Metric, value: float) -> None:
        """From now on it is this."""
        with self._lock:
            self._values[metric.name][()] = value

    def of(self, metric: Metric) -> list[tuple[tuple[str, ...], float]]:
        """As they stand."""
        with self._lock:
            return list(self._values[metric.name].items())


class Tasks(dict[str, TaskCell]):
    """A cell for each task, up to a bound; the rest share one. A name that was met is looked up, no more."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.told: dict[str, TaskCell] = {}
        """By the name under which it is told."""
        self._names = Names("task", most)

    def __missing__(self, task: str) -> TaskCell:
        name = self._names.of(task)
        cell = self.told.setdefault(name, TaskCell())
        if name == task:
            self[task] = cell
        return cell


class Names:
    """The values of a label, up to a bound; those beyond are `other`, and that is said once."""

    def __init__(self, kind: str, most: int) -> None:
        self._kind, self._most = kind, most
        self._known: set[str] = set()
        self._said = False

    def of(self, name: str) -> str:
        """The name to count it under."""
        if name in self._known:
            return name
        if len(self._known) < self._most:
            self._known.add(name)
            return name
        if not self._said:
            self._said = True
            _log.warning(
                "metrics: more than %d names of a %s; the others count as %s (metrics.labels)",
                self._most,
                self._kind,
                OTHER,
            )
        return OTHER
