"""The dashboard's pages."""

from __future__ import annotations

from mainspring.web.routes import Routes


def all_routes() -> list[Routes]:
    """Every route of the dashboard."""
    return []
