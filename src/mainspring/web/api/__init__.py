"""The HTTP API `/api/v1`: one module per noun, over the same questions and orders as the command line."""

from __future__ import annotations

from collections.abc import Mapping

from mainspring.web import live
from mainspring.web.api import (
    access,
    alerts,
    answers,
    backfills,
    dead_letters,
    fleet,
    health,
    jobs,
    schedules,
    workflows,
)
from mainspring.web.auth.policy import Routes

LARGER: Mapping[str, int] = {"/api/v1/jobs/bulk": jobs.LARGEST_BULK}
"""Paths whose bodies may be larger than others, and how large."""


def all_routes() -> list[Routes]:
    """Every route of the API."""
    return [
        jobs.routes,
        dead_letters.routes,
        schedules.routes,
        schedules.plan_routes,
        backfills.routes,
        workflows.routes,
        fleet.queues,
        fleet.limits,
        fleet.processes,
        fleet.leases,
        fleet.events,
        alerts.routes,
        alerts.status,
        health.routes,
        health.ledger,
        access.routes,
        access.audit_log,
        health.stats,
        live.routes,
        answers.routes,
    ]
