"""The metrics of one process: counters that its events move, and the families of samples that Prometheus
reads. Extra `[metrics]`."""

from __future__ import annotations

import logging
import threading
import weakref
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mainspring.admin.health.status import Status, age
from mainspring.app import Mainspring
from mainspring.errors import InvalidConfig
from mainspring.model.alert import Rule
from mainspring.model.health import StoreHealth
from mainspring.model.process import Role
from mainspring.monitor import catalogue as c
from mainspring.monitor.catalogue import OTHER, SECONDS, Metric
from mainspring.monitor.store_poll import StorePoll
from mainspring.telemetry.events import (
    ClaimsLost,
    Event,
    HandlerLeaked,
    JobsExpired,
    JobsQuarantined,
    LagMeasured,
    LeaseEnded,
    LeaseRenewed,
    LoopBlocked,
    LoopFailed,
    LoopStalled,
    ProcessesReaped,
    RenewalFailed,
    RunEnded,
    RunStarted,
    SettlementRefused,
    SlotsDropped,
    SlotsFired,
    StoreTrouble,
    WorkflowEnded,
)
from mainspring.version import __version__

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from mainspring.monitor.store_poll import StorePoll
    from mainspring.telemetry.progress import LoopProgress

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts what it hears; answers a page of text. Its registry is its own, whatever else there is."""

    def __init__(self, *, labels: int) -> None:
        try:
            from prometheus_client import CollectorRegistry
        except ModuleNotFoundError as missing:
            if missing.name != "prometheus_client":
                raise
            raise InvalidConfig(
                "metrics.port", "no prometheus-client", "the extra: pip install 'mainspring[metrics]'"
            ) from None
        self.labels = labels
        self.registry = CollectorRegistry(auto_describe=False)
        self._tasks = CountersByTask(labels)
        self._calls: dict[str, Spread] = {}
        self._lateness = Spread()
        self._store_poll: StorePoll | None = None
        self.progress: LoopProgress | None = None
        self.running: Callable[[], int] = lambda: 0
        self._counts = Counts(*_SELDOM)
        self._counts.add(c.BUILD, __version__)
        self.registry.register(self)
        self.heard: dict[type[Any], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunEnded: self._run_ended,
            SettlementRefused: self._refused,
            SlotsFired: self._slots_fired,
            LagMeasured: self._lag_measured,
            ProcessesReaped: self._reaped,
            **{kind: self._counting(*how) for kind, how in _COUNTED.items()},
        }
        """What is done with each kind of event."""

    def hear(self, event: Event) -> None:
        """A telemetry sink."""
        heard = self.heard.get(type(event))
        if heard is not None:
            heard(event)

    def watch(self, store_poll: StorePoll) -> None:
        """Tell what this store_poll finds, too."""
        self._store_poll = store_poll

    def tells(self, store_poll: StorePoll) -> bool:
        """Whether this is the poll whose findings are exported: the first that is offered."""
        if self._store_poll is None:
            self.watch(store_poll)
        return self._store_poll is store_poll

    def called(self, call: str, seconds: float, *, error: BaseException | None) -> None:
        """A call to the store is over."""
        spread = self._calls.get(call)
        if spread is None:
            spread = self._calls.setdefault(call, Spread(c.CALL_SECONDS))
        spread.add(seconds)
        if error is not None:
            self._counts.add(c.STORE_ERRORS, call)

    def render(self) -> bytes:
        """The page that Prometheus reads. Safe from any thread; nothing is waited for."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def collect(self) -> Iterator[Family]:
        """Everything there is; called by the registry at a scrape."""
        told = PrometheusFamilies()
        for each in _SELDOM:
            yield told.numbers(each, self._counts.of(each))
        yield from told.of_tasks(self._tasks.told)
        yield from told.of_process(
            self._calls, self._lateness, running=self.running(), progress=self.progress
        )
        if self._store_poll is not None:
            yield from told.of_store_poll(self._store_poll, labels=self.labels)

    def _run_started(self, event: RunStarted) -> None:
        cell = self._tasks[event.task]
        cell.started += 1
        if event.attempt > 1:
            cell.retries += 1
        if event.waited is not None:
            waited = event.waited.total_seconds()
            cell.latency.counts[bisect_left(c.SECONDS, waited)] += 1
            cell.latency.total += waited

    def _run_ended(self, event: RunEnded) -> None:
        # Done once a job: the value as it is kept, for the property and the hash of an enum take longer; and
        # no call where two lines will do.
        cell, took = self._tasks[event.task], event.took.total_seconds()
        cell.verdicts[event.verdict._value_] += 1
        cell.seconds.counts[bisect_left(c.SECONDS, took)] += 1
        cell.seconds.total += took
        # A crash has an event of its own, JobsQuarantined, from the reaper or the result writer.
        if event.reason is not None and event.reason != "crashed":
            self._counts.add(c.DEAD, event.reason.value)

    def _refused(self, event: SettlementRefused) -> None:
        self._tasks[event.task].refused += 1

    def _slots_fired(self, event: SlotsFired) -> None:
        self._counts.add(c.SLOTS_FIRED, many=event.fired)
        self._counts.add(c.SLOTS_SKIPPED, many=event.skipped)
        self._lateness.add(max(event.late.total_seconds(), 0.0))

    def _lag_measured(self, event: LagMeasured) -> None:
        self._counts.put(c.LAG, event.lag.total_seconds())
        self._counts.put(c.DUE, event.due)

    def _reaped(self, event: ProcessesReaped) -> None:
        self._counts.add(c.REAPED, many=len(event.processes))
        self._counts.add(c.GIVEN_BACK, many=event.jobs)

    def _counting(
        self, metric: c.Metric, label: Callable[[Any], str] | None, many: Callable[[Any], int] | None
    ) -> Callable[[Any], None]:
        def count(event: Any) -> None:
            labels = () if label is None else (label(event),)
            self._counts.add(metric, *labels, many=1 if many is None else many(event))

        return count


def _loop(event: Any) -> str:
    # Leases of user code have loops of their own, named after them.
    return "lease" if event.loop.startswith("lease ") else str(event.loop)


_COUNTED: dict[type[Any], tuple[c.Metric, Callable[[Any], str] | None, Callable[[Any], int] | None]] = {
    ClaimsLost: (c.CLAIMS_LOST, None, lambda event: len(event.job_ids)),
    LeaseRenewed: (c.RENEWALS, lambda event: str(event.role), None),
    RenewalFailed: (c.RENEWALS_FAILED, lambda event: str(event.role), None),
    LeaseEnded: (c.LEASES_ENDED, lambda event: "expired" if event.expired else "given_up", None),
    JobsQuarantined: (c.DEAD, lambda event: "crashed", lambda event: len(event.job_ids)),
    JobsExpired: (c.DEAD, lambda event: "expired", lambda event: len(event.job_ids)),
    SlotsDropped: (c.SLOTS_DROPPED, lambda event: str(event.reason), lambda event: event.schedules),
    WorkflowEnded: (c.WORKFLOWS, lambda event: str(event.state), None),
    LoopStalled: (c.LOOP_STALLS, _loop, None),
    LoopFailed: (c.LOOP_FAILURES, _loop, None),
    StoreTrouble: (c.STORE_TROUBLES, _loop, None),
    HandlerLeaked: (c.LEAKED, lambda event: str(event.what), None),
    LoopBlocked: (c.BLOCKED, None, None),
}
_SELDOM = (
    *{how[0].name: how[0] for how in _COUNTED.values()}.values(),
    *(c.SLOTS_FIRED, c.SLOTS_SKIPPED, c.LAG, c.DUE, c.REAPED, c.GIVEN_BACK, c.STORE_ERRORS, c.BUILD),
)
"""What happens seldom, beside what happens with every job."""


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
        """Cumulative, as they are exported."""
        seen, told = 0, list[tuple[str, float]]()
        for bound, count in zip((*map(str, self.bounds), "+Inf"), list(self.counts), strict=True):
            seen += count
            told.append((bound, float(seen)))
        return told


class TaskCounters:
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


class CountersByTask(dict[str, TaskCounters]):
    """A cell for each task, up to a bound; the rest share one. A name that was met is looked up, no more."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.told: dict[str, TaskCounters] = {}
        """By the name under which it is exported."""
        self._names = LabelNames("task", most)

    def __missing__(self, task: str) -> TaskCounters:
        name = self._names.of(task)
        cell = self.told.setdefault(name, TaskCounters())
        if name == task:
            self[task] = cell
        return cell


class LabelNames:
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


if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from mainspring.telemetry.progress import LoopProgress


class PrometheusFamilies:
    """Makes the families of one scrape."""

    def of_tasks(self, tasks: Mapping[str, TaskCounters]) -> Iterator[Family]:
        """Counts by task."""
        cells = list(tasks.items())
        yield self.numbers(c.RUNS_STARTED, (((task,), cell.started) for task, cell in cells))
        yield self.numbers(c.RETRIES, (((task,), cell.retries) for task, cell in cells))
        yield self.numbers(c.REFUSED, (((task,), cell.refused) for task, cell in cells))
        yield self.numbers(
            c.RUNS,
            (
                ((task, verdict), count)
                for task, cell in cells
                for verdict, count in list(cell.verdicts.items())
            ),
        )
        yield self._spreads(c.RUN_SECONDS, (((task,), cell.seconds) for task, cell in cells))
        yield self._spreads(c.START_LATENCY, (((task,), cell.latency) for task, cell in cells))

    def of_process(
        self, calls: Mapping[str, Spread], lateness: Spread, *, running: int, progress: LoopProgress | None
    ) -> Iterator[Family]:
        """The rest of what this process knows of itself."""
        yield self._spreads(c.STORE_SECONDS, (((call,), spread) for call, spread in list(calls.items())))
        yield self._spreads(c.SLOT_LATENESS, [((), lateness)])
        yield self.numbers(c.RUNNING, [((), running)])
        if progress is not None:
            yield self.numbers(c.LOOP_AGE, (((loop,), age) for loop, age in progress.ages().items()))
            yield self.numbers(c.HEALTHY, [((), int(not progress.late()))])

    def of_store_poll(self, store_poll: StorePoll, *, labels: int) -> Iterator[Family]:
        """What the store said. Figures that are too old to be believed are left out."""
        yield self.numbers(c.STORE_UP, [((), int(store_poll.answers))])
        told_age, status = store_poll.age(), store_poll.fresh()
        if told_age is not None:
            yield self.numbers(c.STORE_POLL_AGE, [((), told_age)])
        if status is not None:
            yield from self._status(status, labels)
            found = Counter(each.rule for each in store_poll.troubles(status))
            yield self.numbers(c.TROUBLES, (((rule.value,), found[rule]) for rule in Rule))
            yield self.numbers(c.SKEW, [((), store_poll.skew.total_seconds())])
            if store_poll.health is not None:
                yield from self._health(store_poll.health)

    def _health(self, health: StoreHealth) -> Iterator[Family]:
        ages = [each.age.total_seconds() for each in health.snapshots if each.age is not None]
        sizes = [] if health.bytes is None else [((), float(health.bytes))]
        yield self.numbers(c.DATABASE, sizes)
        yield self.numbers(c.SNAPSHOT, [((), max(ages, default=0.0))])
        yield self.numbers(c.TABLE_ROWS, (((each.name,), each.rows) for each in health.tables))
        yield self.numbers(c.TABLE_DEAD, (((each.name,), each.dead_rows) for each in health.tables))
        yield self.numbers(
            c.TABLE_BYTES,
            (
                ((each.name, part), size)
                for each in health.tables
                for part, size in (("table", each.bytes), ("indices", each.index_bytes))
            ),
        )

    def _status(self, status: Status, labels: int) -> Iterator[Family]:
        names = LabelNames("queue", labels)
        jobs: dict[tuple[str, ...], float] = {}
        oldest: dict[tuple[str, ...], float] = {}
        workers: dict[tuple[str, ...], float] = {}
        paused: dict[tuple[str, ...], float] = {}
        for queue in status.queues:
            name = names.of(queue.name)
            for state in ("ready", "delayed", "running"):
                jobs[name, state] = jobs.get((name, state), 0) + getattr(queue, state)
            waited = age(queue, status.at).total_seconds()
            oldest[name,] = max(waited, oldest.get((name,), 0.0))
            workers[name,] = min(queue.workers, workers.get((name,), queue.workers))
            paused[name,] = max(int(queue.pause is not None), paused.get((name,), 0))
        for metric, values in (
            (c.QUEUE_JOBS, jobs),
            (c.OLDEST, oldest),
            (c.QUEUE_WORKERS, workers),
            (c.QUEUE_PAUSED, paused),
        ):
            yield self.numbers(metric, values.items())
        yield self.numbers(c.PROCESSES, (((role.value,), status.alive(role)) for role in Role))
        yield self.numbers(c.BEHIND, [((), status.lag.total_seconds())])
        yield self.numbers(c.OVERDUE, [((), len(status.facts.overdue))])
        yield self.numbers(c.DEAD_LETTERS, [((), status.dead)])
        yield self.numbers(c.DEAD_LATELY, [((), status.facts.grown)])

    def numbers(self, metric: c.Metric, values: Iterable[tuple[tuple[str, ...], float]]) -> Family:
        """A counter or a gauge."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kind: Any = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family: Any = kind(metric.name, metric.help, labels=metric.labels)
        for labels, value in values:
            family.add_metric(labels, value)
        return family  # type: ignore[no-any-return]

    def _spreads(self, metric: c.Metric, values: Iterable[tuple[tuple[str, ...], Spread]]) -> Family:
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, spread in values:
            family.add_metric(labels, spread.buckets(), spread.total)
        return family


_known: weakref.WeakKeyDictionary[Mainspring, Metrics] = weakref.WeakKeyDictionary()


def metrics_of(app: Mainspring) -> Metrics:
    """Made when first asked for; raises InvalidConfig where the extra is missing."""
    found = _known.get(app)
    if found is None:
        found = _known[app] = Metrics(labels=app.settings.metrics.labels)
    return found
