"""The dashboard's pages."""

from __future__ import annotations

from mainspring.web.pages import (
    audit,
    backfill,
    dead,
    edit,
    health,
    job,
    jobs,
    overview,
    queues,
    schedule,
    schedule_acts,
    schedule_edit,
    schedules,
    workers,
    workflow,
    workflow_acts,
    workflows,
)
from mainspring.web.routes import Routes


def all_routes() -> list[Routes]:
    """Every route of the dashboard."""
    return [
        overview.routes,
        jobs.routes,
        job.routes,
        dead.routes,
        edit.routes,
        queues.routes,
        workers.routes,
        schedules.routes,
        schedule_acts.routes,
        schedule_edit.routes,
        backfill.routes,
        schedule.routes,
        workflows.routes,
        workflow.routes,
        workflow_acts.routes,
        audit.routes,
        audit.ledger,
        health.routes,
    ]
