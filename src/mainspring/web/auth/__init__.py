"""Who sends a request, what they may do, and how a browser signs in."""

from __future__ import annotations

from mainspring.web.auth import oidc, sign_in
from mainspring.web.auth.policy import Routes


def all_routes() -> list[Routes]:
    """The routes to sign in and out: `/login`, `/logout` and the way through an OpenID provider."""
    return [sign_in.routes, oidc.routes]
