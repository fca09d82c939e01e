"""What is counted, and that Prometheus can read it; and no more names than allowed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mainspring.config import MetricsConfig, Settings
from mainspring.errors import StoreUnavailable
from mainspring.model.job import Failure, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Reason, Verdict
from mainspring.model.schedule import Skipped
from mainspring.model.workflow import WorkflowState
from mainspring.monitor import catalogue
from mainspring.monitor.metrics import Metrics
from mainspring.monitor.store_poll import StorePoll
from mainspring.store.around import timed
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
from mainspring.telemetry.progress import LoopProgress
from mainspring.testing.clock import ManualClock
from tests.engine.kit import Faulty

SECOND = timedelta(seconds=1)
SETTINGS = Settings(metrics=MetricsConfig(every=15 * SECOND))


def ended(**more: Any) -> RunEnded:
    fields = {"job_id": 1, "task": "mail", "attempt": 1, "verdict": Verdict.SUCCEEDED, "took": 2 * SECOND}
    return RunEnded(**{**fields, "delay": timedelta(), "failure": None, **more})


def said(clock: ManualClock) -> dict[type[Event], tuple[Event, dict[str, float]]]:
    """Each event that counts, with the series it moves."""
    failure = Failure(type="ValueError", message="no")
    pairs: list[tuple[Event, dict[str, float]]] = [
        (
            RunStarted(job_id=1, task="mail", attempt=2, waited=3 * SECOND),
            {
                'runs_started_total{task="mail"}': 1,
                'retries_total{task="mail"}': 1,
                'start_latency_seconds_sum{task="mail"}': 3,
                'start_latency_seconds_bucket{le="2.5",task="mail"}': 0,
                'start_latency_seconds_bucket{le="5.0",task="mail"}': 1,
            },
        ),
        (
            ended(verdict=Verdict.DEAD, reason=Reason.FAILED, failure=failure),
            {
                'runs_total{task="mail",verdict="dead"}': 1,
                'run_seconds_sum{task="mail"}': 2,
                'run_seconds_count{task="mail"}': 1,
                'jobs_died_total{reason="failed"}': 1,
            },
        ),
        (
            SettlementRefused(job_id=1, task="mail", fence=1, verdict=Verdict.SUCCEEDED),
            {'settlements_refused_total{task="mail"}': 1},
        ),
        (ClaimsLost(job_ids=(1, 2)), {"claims_lost_total": 2}),
        (LeaseRenewed(role="worker"), {'lease_renewals_total{role="worker"}': 1}),
        (RenewalFailed(role="worker", reason="x"), {'lease_renewals_failed_total{role="worker"}': 1}),
        (LeaseEnded(name="w", running=0, expired=True), {'leases_ended_total{how="expired"}': 1}),
        (
            ProcessesReaped(processes=("a",), jobs=4),
            {"processes_reaped_total": 1, "jobs_given_back_total": 4},
        ),
        (JobsQuarantined(job_ids=(1,)), {'jobs_died_total{reason="crashed"}': 1}),
        (JobsExpired(job_ids=(1, 2)), {'jobs_died_total{reason="expired"}': 2}),
        (
            SlotsFired(slot_at=clock.now(), fired=3, skipped=2, late=SECOND),
            {"slots_fired_total": 3, "slots_skipped_total": 2, "slot_lateness_seconds_sum": 1},
        ),
        (
            SlotsDropped(
                slot_at=clock.now(), since=None, reason=Skipped.TOO_LATE, schedules=2, told=("a", "b")
            ),
            {'slots_dropped_total{reason="too_late"}': 2},
        ),
        (LagMeasured(lag=SECOND, due=7), {"scheduler_lag_seconds": 1, "scheduler_due": 7}),
        (
            WorkflowEnded(workflow_id=1, name="w", state=WorkflowState.FAILED),
            {'workflows_ended_total{state="failed"}': 1},
        ),
        (
            StoreTrouble(loop="lease my-own", reason="x", again_in=SECOND),
            {'store_troubles_total{loop="lease"}': 1},
        ),
        (
            LoopFailed(loop="claimer", error=ValueError(), again_in=SECOND),
            {'loop_failures_total{loop="claimer"}': 1},
        ),
        (LoopStalled(loop="claimer", after=SECOND), {'loop_stalls_total{loop="claimer"}': 1}),
        (
            HandlerLeaked(job_id=1, task="mail", what="thread", left=1),
            {'handlers_leaked_total{what="thread"}': 1},
        ),
        (LoopBlocked(job_id=1, task="mail"), {"event_loop_blocked_total": 1}),
    ]
    return {type(event): (event, moved) for event, moved in pairs}


def figures(metrics: Metrics) -> dict[str, float]:
    """Every sample of the page, as a parser of Prometheus reads it."""
    return {
        f"{sample.name.removeprefix('mainspring_')}{_labels(sample.labels)}": sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def _labels(labels: dict[str, str]) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{{{inside}}}" if inside else ""


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(labels=200)


def test_every_event_that_counts_moves_its_series(clock: ManualClock) -> None:
    for event, moved in said(clock).values():
        metrics = Metrics(labels=200)
        before = figures(metrics)
        metrics.hear(event)
        after = figures(metrics)
        assert {name: after[name] - before.get(name, 0) for name in moved} == moved, event


def test_names_beyond_the_bound_count_as_other_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics(labels=3)
    with caplog.at_level(logging.WARNING, "mainspring"):
        for number in range(50):
            metrics.hear(RunStarted(job_id=1, task=f"task-{number}", attempt=1))
            metrics.hear(ended(task=f"task-{number}"))
    counted = figures(metrics)
    assert {name: value for name, value in counted.items() if name.startswith("runs_total")} == {
        'runs_total{task="task-0",verdict="succeeded"}': 1,
        'runs_total{task="task-1",verdict="succeeded"}': 1,
        'runs_total{task="task-2",verdict="succeeded"}': 1,
        'runs_total{task="other",verdict="succeeded"}': 47,
    }
    assert counted['runs_started_total{task="other"}'] == 47
    assert len(caplog.records) == 1


def test_the_store_tells_its_queues_its_fleet_and_what_is_wrong(
    store: Any, run: Any, clock: ManualClock, metrics: Metrics, backend: str
) -> None:
    faulty = Faulty(store)
    survey = StorePoll(timed(faulty, clock, metrics.called), clock, SETTINGS)  # type: ignore[arg-type]
    metrics.watch(survey)
    progress = metrics.progress = LoopProgress(clock, 30 * SECOND)
    progress.mark("claimer")

    async def story() -> Iterator[dict[str, float]]:
        member = NewProcess(id=7, role=Role.WORKER, name="w", queues=("default",), tasks=("mail",))
        await store.processes.join(member, lease=3600 * SECOND, at=clock.stamp())
        jobs = [NewJob(task="mail", payload=b"{}", queue="lonely"), NewJob(task="mail", payload=b"{}")]
        await store.queue.insert(jobs, at=clock.stamp())
        clock.advance(1200 * SECOND)
        await survey.tick()
        first = figures(metrics)
        faulty.before("health.watch", StoreUnavailable("gone"))
        with pytest.raises(StoreUnavailable):
            await survey.tick()
        second = figures(metrics)
        clock.advance(61 * SECOND)
        third = figures(metrics)
        return iter((first, second, third))

    first, second, third = run(story())
    assert first['queue_jobs{queue="lonely",state="ready"}'] == 1
    assert first['queue_oldest_ready_seconds{queue="lonely"}'] == 1200
    assert first['queue_workers{queue="lonely"}'] == 0 and first['queue_workers{queue="default"}'] == 1
    assert first['processes{role="worker"}'] == 1 and first['processes{role="scheduler"}'] == 0
    assert first['troubles{rule="no_worker"}'] == 1 and first['troubles{rule="missed"}'] == 0
    assert first["store_up"] == 1 and first['store_call_seconds_count{call="health.watch"}'] == 1
    assert second["store_up"] == 0 and second['store_call_errors_total{call="health.watch"}'] == 1
    assert second['queue_jobs{queue="lonely",state="ready"}'] == 1, "still believed"
    assert not any(name.startswith("queue_") for name in third), "too old to be believed"
    assert third["store_poll_age_seconds"] == 61
    assert first["database_bytes"] > 0
    assert ('table_bytes{part="table",table="jobs"}' in first) == (backend == "postgres")
    for event, _ in said(clock).values():
        metrics.hear(event)
    run(survey.tick())
    told = {family.name for family in text_string_to_metric_families(metrics.render().decode())}
    assert told == {each.name for each in catalogue.ALL}
