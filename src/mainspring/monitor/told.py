"""From counts to families of samples, as Prometheus reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mainspring.admin.health.status import Status, age
from mainspring.model.alert import Rule
from mainspring.model.health import StoreHealth
from mainspring.model.process import Role
from mainspring.monitor import catalogue as c
from mainspring.monitor.cells import Names, Spread, TaskCell
from mainspring.monitor.survey import Survey

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from mainspring.engine.progress import Progress


class Families:
    """Makes the families of one scrape."""

    def of_tasks(self, tasks: Mapping[str, TaskCell]) -> Iterator[Family]:
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
        self, calls: Mapping[str, Spread], lateness: Spread, *, running: int, progress: Progress | None
    ) -> Iterator[Family]:
        """The rest of what this process knows of itself."""
        yield self._spreads(c.STORE_SECONDS, (((call,), spread) for call, spread in list(calls.items())))
        yield self._spreads(c.SLOT_LATENESS, [((), lateness)])
        yield self.numbers(c.RUNNING, [((), running)])
        if progress is not None:
            yield self.numbers(c.LOOP_AGE, (((loop,), age) for loop, age in progress.ages().items()))
            yield self.numbers(c.HEALTHY, [((), int(not progress.late()))])

    def of_survey(self, survey: Survey, *, labels: int) -> Iterator[Family]:
        """What the store said. Figures that are too old to be believed are left out."""
        yield self.numbers(c.STORE_UP, [((), int(survey.answers))])
        told_age, status = survey.age(), survey.fresh()
        if told_age is not None:
            yield self.numbers(c.SURVEY_AGE, [((), told_age)])
        if status is not None:
            yield from self._status(status, labels)
            found = Counter(each.rule for each in survey.troubles(status))
            yield self.numbers(c.TROUBLES, (((rule.value,), found[rule]) for rule in Rule))
            yield self.numbers(c.SKEW, [((), survey.skew.total_seconds())])
            if survey.health is not None:
                yield from self._health(survey.health)

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
        names = Names("queue", labels)
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
        yield self.numbers(c.MEMBERS, (((role.value,), status.alive(role)) for role in Role))
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
