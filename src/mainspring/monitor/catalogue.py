"""Every metric there is: its name, kind, labels, and what it counts. The docs are made from it."""

from __future__ import annotations

from typing import Literal

from mainspring.model.value import Value

Source = Literal["process", "store"]


class Metric(Value, frozen=True, kw_only=True):
    """One metric, as it is exported."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    source: Source = "process"


def _counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name=f"mainspring_{name}", kind="counter", help=help, labels=labels)


def _gauge(name: str, help: str, *labels: str, source: Source = "process") -> Metric:
    return Metric(name=f"mainspring_{name}", kind="gauge", help=help, labels=labels, source=source)


def _histogram(name: str, help: str, *labels: str) -> Metric:
    return Metric(name=f"mainspring_{name}", kind="histogram", help=help, labels=labels)


RUNS_STARTED = _counter("runs_started", "Runs begun: every attempt counts.", "task")
RETRIES = _counter("retries", "Runs begun after a failure of the same job.", "task")
RUNS = _counter("runs", "Runs that were settled.", "task", "verdict")
RUN_SECONDS = _histogram("run_seconds", "How long handlers ran.", "task")
START_LATENCY = _histogram(
    "start_latency_seconds", "From when a job was due to when it was taken, by the store's clock.", "task"
)
DEAD = _counter("jobs_died", "Jobs that this process made dead letters.", "reason")
REFUSED = _counter("settlements_refused", "Runs that ended after their claim had been lost.", "task")
CLAIMS_LOST = _counter("claims_lost", "Claims that were cancelled or taken away while they ran.")
RENEWALS = _counter("lease_renewals", "Heartbeats that the store took.", "role")
RENEWALS_FAILED = _counter("lease_renewals_failed", "Heartbeats without an answer.", "role")
LEASES_ENDED = _counter("leases_ended", "Leases lost, or given up before their end.", "how")
REAPED = _counter("processes_reaped", "Dead processes that this one found.")
GIVEN_BACK = _counter("jobs_given_back", "Jobs of dead processes that this one gave back.")
SLOTS_FIRED = _counter("slots_fired", "Slots that became jobs.")
SLOTS_SKIPPED = _counter("slots_skipped", "Slots that became no job: missed, overlapping, paused or ended.")
SLOTS_DROPPED = _counter(
    "slots_dropped",
    "Missed slots that were left out: older than catch_up, or by the circuit breaker.",
    "reason",
)
SLOT_LATENESS = _histogram("slot_lateness_seconds", "From a slot to when it was fired.")
LAG = _gauge("scheduler_lag_seconds", "How late the latest due trigger was at this scheduler's last pass.")
DUE = _gauge("scheduler_due", "Triggers that were due at this scheduler's last pass.")
WORKFLOWS = _counter("workflows_ended", "Workflows that this process brought to their end.", "state")
LOOP_STALLS = _counter("loop_stalls", "Passes that made no progress and were ended.", "loop")
LOOP_FAILURES = _counter("loop_failures", "Passes that raised what nobody expected.", "loop")
STORE_TROUBLES = _counter("store_troubles", "Passes that failed on the store.", "loop")
STORE_SECONDS = _histogram("store_call_seconds", "How long calls to the store took.", "call")
STORE_ERRORS = _counter("store_call_errors", "Calls to the store that raised.", "call")
LEAKED = _counter("handlers_leaked", "Handlers that ignored a stop.", "what")
BLOCKED = _counter("event_loop_blocked", "Times that a handler held up the event loop beyond its timeout.")
RUNNING = _gauge("jobs_running", "Jobs that this process runs now.")
LOOP_AGE = _gauge("loop_age_seconds", "Since a loop was last heard of.", "loop")
HEALTHY = _gauge("healthy", "1 while every loop makes progress.")
BUILD = _gauge("build", "1, with the version.", "version")
STORE_UP = _gauge("store_up", "1 if the store answered when it was last asked.", source="store")
STORE_POLL_AGE = _gauge(
    "store_poll_age_seconds", "Since the store last answered; its figures below are that old.", source="store"
)
QUEUE_JOBS = _gauge("queue_jobs", "Live jobs.", "queue", "state", source="store")
OLDEST = _gauge(
    "queue_oldest_ready_seconds", "How long the oldest ready job has waited.", "queue", source="store"
)
QUEUE_WORKERS = _gauge("queue_workers", "Live workers that serve the queue.", "queue", source="store")
QUEUE_PAUSED = _gauge("queue_paused", "1 while the queue is paused.", "queue", source="store")
PROCESSES = _gauge("processes", "Live processes.", "role", source="store")
BEHIND = _gauge(
    "schedules_behind_seconds", "How late the earliest slot is that nobody has decided about.", source="store"
)
OVERDUE = _gauge("schedules_overdue", "Schedules whose slot was missed; counted up to 200.", source="store")
TROUBLES = _gauge(
    "troubles", "What is wrong, by the rules of alerts; notices left out.", "rule", source="store"
)
DEAD_LETTERS = _gauge("dead_letters", "Dead letters on record; counted up to 1000.", source="store")
DEAD_LATELY = _gauge(
    "dead_letters_lately", "Those that died within alerts.dead_window; up to a bound.", source="store"
)
DATABASE = _gauge("database_bytes", "How large the database is.", source="store")
TABLE_ROWS = _gauge("table_rows", "Rows, as the database estimates them.", "table", source="store")
TABLE_DEAD = _gauge("table_dead_rows", "Rows gone and not yet cleared away.", "table", source="store")
TABLE_BYTES = _gauge("table_bytes", "How large tables and indices are.", "table", "part", source="store")
SNAPSHOT = _gauge(
    "oldest_snapshot_seconds",
    "Age of what keeps rows from being cleared away.",
    source="store",
)
SKEW = _gauge("clock_skew_seconds", "The store's clock less this machine's.", source="store")

ALL: tuple[Metric, ...] = tuple(each for each in globals().values() if isinstance(each, Metric))

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""Of runs and latencies."""
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
OTHER = "other"


def series(metric: Metric) -> tuple[str, ...]:
    """The names under which queries find it."""
    match metric.kind:
        case "counter":
            return (f"{metric.name}_total",)
        case "histogram":
            return tuple(f"{metric.name}_{part}" for part in ("bucket", "sum", "count"))
        case _:
            return (metric.name,)
