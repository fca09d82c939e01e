"""The HTTP API `/api/v1`: one module per noun, over the same commands and queries as the command line."""

from __future__ import annotations

from mainspring.web.routes import Routes


def all_routes() -> list[Routes]:
    """Every route of the API."""
    return []
