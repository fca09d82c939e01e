"""The HTTP API `/api/v1`: one module per noun, over the same commands and queries as the command line."""

from __future__ import annotations

from collections.abc import Mapping

from mainspring.web.api import (
    access,
    alerts,
    backfills,
    dead,
    document,
    fleet,
    health,
    jobs,
    schedule_edits,
    schedules,
    stats,
    stream,
    workflows,
)
from mainspring.web.routes import Routes

LARGER: Mapping[str, int] = {"/api/v1/jobs/bulk": jobs.LARGEST_BULK}
"""Paths whose bodies may be larger than others, and how large."""


def all_routes() -> list[Routes]:
    """Every route of the API."""
    return [
        jobs.routes,
        dead.routes,
        schedules.routes,
        schedule_edits.routes,
        schedule_edits.plan_routes,
        backfills.routes,
        workflows.routes,
        fleet.queues,
        fleet.limits,
        fleet.members,
        fleet.leases,
        fleet.events,
        alerts.routes,
        alerts.status,
        health.routes,
        health.ledger,
        access.routes,
        access.acts,
        stats.routes,
        stream.routes,
        document.routes,
    ]
