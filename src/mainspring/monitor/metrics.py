"""The metrics of one process: a sink for its events, and what Prometheus reads of it. Extra `[metrics]`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidConfig
from mainspring.monitor import catalogue as c
from mainspring.monitor.cells import Counts, Spread, Tasks
from mainspring.monitor.told import Families
from mainspring.telemetry import (
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
    MembersReaped,
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

    from mainspring.engine.progress import Progress
    from mainspring.monitor.survey import Survey

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
        self._tasks = Tasks(labels)
        self._calls: dict[str, Spread] = {}
        self._lateness = Spread()
        self._survey: Survey | None = None
        self.progress: Progress | None = None
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
            MembersReaped: self._reaped,
            **{kind: self._counting(*how) for kind, how in _COUNTED.items()},
        }
        """What is done with each kind of event."""

    def hear(self, event: Event) -> None:
        """A telemetry sink."""
        heard = self.heard.get(type(event))
        if heard is not None:
            heard(event)

    def watch(self, survey: Survey) -> None:
        """Tell what this survey finds, too."""
        self._survey = survey

    def tells(self, survey: Survey) -> bool:
        """Whether this is the survey whose findings are told: the first that offers itself."""
        if self._survey is None:
            self.watch(survey)
        return self._survey is survey

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
        told = Families()
        for each in _SELDOM:
            yield told.numbers(each, self._counts.of(each))
        yield from told.of_tasks(self._tasks.told)
        yield from told.of_process(
            self._calls, self._lateness, running=self.running(), progress=self.progress
        )
        if self._survey is not None:
            yield from told.of_survey(self._survey, labels=self.labels)

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
        # Crashes are told by those who bury, or by the settler, as quarantined.
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

    def _reaped(self, event: MembersReaped) -> None:
        self._counts.add(c.REAPED, many=len(event.members))
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
