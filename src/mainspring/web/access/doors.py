"""Every way to sign in."""

from __future__ import annotations

from mainspring.web.access import oidc, signin
from mainspring.web.routes import Routes


def all_routes() -> list[Routes]:
    """The routes of the doors: `/login`, `/logout` and the way through a provider."""
    return [signin.routes, oidc.routes]
