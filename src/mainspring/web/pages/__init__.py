"""The dashboard's pages: one module for each subject."""

from __future__ import annotations

from mainspring.web.auth.policy import Routes
from mainspring.web.pages import (
    audit,
    backfills,
    dead_letters,
    fleet,
    health,
    jobs,
    overview,
    schedule,
    schedules,
    workflows,
)


def all_routes() -> list[Routes]:
    """Every route of the dashboard. The path of a schedule takes any text: its routes come last of theirs."""
    return [
        overview.routes,
        jobs.routes,
        dead_letters.routes,
        fleet.queues_routes,
        fleet.workers_routes,
        schedules.routes,
        backfills.routes,
        schedule.routes,
        workflows.routes,
        audit.routes,
        audit.ledger,
        health.routes,
    ]
