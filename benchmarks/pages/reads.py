"""What stands behind every page: one call for each question that a page asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from benchmarks.pages.fill import RARE_TASK, Size
from mainspring.admin.admin import Admin
from mainspring.admin.health.stats import Stats
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import JobFilter, JobState
from mainspring.model.schedule import Only, ScheduleFilter
from mainspring.model.stats import By
from mainspring.model.workflow import WorkflowState
from mainspring.store.store import Store

Read = Callable[[], Awaitable[object]]
FINISHED = (JobState.SUCCEEDED, JobState.CANCELLED, JobState.DISCARDED)
SCHEDULE = "customer.000500.report"
DAY = timedelta(days=1)


def reads(admin: Admin, store: Store, size: Size) -> dict[str, Read]:
    """By page and question."""
    stats, now = Stats(store, admin.context.clock), datetime.now(UTC)

    def jobs(**which: object) -> Read:
        return lambda: admin.jobs.apage(JobFilter(**which))  # type: ignore[arg-type]

    def schedules(**which: object) -> Read:
        return lambda: admin.schedules.apage(ScheduleFilter(**which))  # type: ignore[arg-type]

    def dead(**which: object) -> Read:
        return lambda: admin.dead_letters.agroups(DeadFilter(**which))  # type: ignore[arg-type]

    an_hour = {"since": now - 9 * DAY, "until": now - 9 * DAY + DAY / 24}
    return {
        "overview: queues": lambda: admin.queues.aall(about=True),
        "overview: schedules": admin.schedules.acounts,
        "overview: processes": admin.processes.aall,
        "overview: dead letters": lambda: store.dead_letters.count(DeadFilter(limit=10_000)),
        "overview: three hours": stats.series,
        "overview: a day": lambda: stats.series(since=now - DAY),
        "overview: a month": lambda: stats.series(since=now - 30 * DAY),
        "overview: a year": lambda: stats.series(since=now - 364 * DAY),
        "overview: busiest tasks": lambda: stats.totals(By.TASK, since=now - DAY),
        "jobs: live": jobs(),
        "jobs: far down": jobs(before=size.runs + size.live // 3),
        "jobs: ready": jobs(state=JobState.READY),
        "jobs: delayed": jobs(state=JobState.DELAYED),
        "jobs: running": jobs(state=JobState.RUNNING),
        "jobs: running in a queue": jobs(state=JobState.RUNNING, queue="queue3"),
        "jobs: live of a task that has none": jobs(task=RARE_TASK),
        "jobs: live of a rare task and queue": jobs(task="work.task40", queue="queue12"),
        "jobs: live, long ago": jobs(until=now - timedelta(hours=5)),
        "jobs: of a worker": jobs(worker=3),
        "jobs: by key": jobs(key="customer-77"),
        "jobs: succeeded": jobs(state=JobState.SUCCEEDED),
        "jobs: succeeded, a rare task": jobs(state=JobState.SUCCEEDED, task=RARE_TASK),
        "jobs: succeeded, a task and a queue": jobs(
            state=JobState.SUCCEEDED, task="work.task30", queue="queue12"
        ),
        "jobs: cancelled": jobs(state=JobState.CANCELLED),
        "jobs: cancelled, a rare task": jobs(state=JobState.CANCELLED, task=RARE_TASK),
        "jobs: finished in an hour of last week": jobs(states=FINISHED, **an_hour),
        "jobs: finished, of a schedule": jobs(states=FINISHED, schedule=SCHEDULE),
        "jobs: live, of a schedule": jobs(schedule=SCHEDULE),
        "jobs: every state": jobs(states=tuple(JobState)),
        "jobs: every state, a task and a queue": jobs(
            states=tuple(JobState), task="work.task40", queue="queue12"
        ),
        "job: live": lambda: admin.jobs.aget(size.runs + size.live // 2),
        "job: finished": lambda: admin.jobs.aget(size.runs // 2),
        "dead letters: page": lambda: admin.dead_letters.afind(DeadFilter()),
        "dead letters: groups": dead(limit=100),
        "dead letters: groups of an error": dead(limit=100, error="Error7"),
        "dead letters: groups of a text": dead(limit=100, text="customer 123"),
        "schedules: page": schedules(),
        "schedules: far down": schedules(after="customer.090000"),
        "schedules: a text": schedules(text="99999"),
        "schedules: paused": schedules(only=Only.PAUSED),
        "schedules: overdue": schedules(only=Only.OVERDUE),
        "schedules: edited": schedules(only=Only.EDITED),
        "schedule: page": lambda: admin.schedules.aget(SCHEDULE, slots=100),
        "schedule: versions": lambda: admin.schedules.aversions(SCHEDULE),
        "workflows: page": lambda: store.workflows.find(name=None, state=None, before=None, limit=50),
        "workflows: failed": lambda: store.workflows.find(
            name=None, state=WorkflowState.FAILED, before=None, limit=50
        ),
        "workflows: of a name": lambda: store.workflows.find(name="flow3", state=None, before=None, limit=50),
        "limits: limit keys": lambda: store.limits.keys(limit=50, holders=10),
        "limits: limit keys, far down": lambda: store.limits.keys(
            after=("api", "tenant400"), limit=50, holders=10
        ),
        "health": store.health.look,
    }
