"""The dashboard's pages."""

from __future__ import annotations

from mainspring.web.pages import dead, edit, job, jobs, overview, queues, workers
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
    ]
