"""The HTTP API and the dashboard. Extra `[server]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from mainspring.app import Mainspring
    from mainspring.web.auth.identity import Identify


def dashboard(app: Mainspring, *, identify: Identify | None = None) -> ASGIApp:
    """An ASGI app with the API and the dashboard, to be mounted into another under any prefix. `identify`
    says who sends a request, as the app around it knows; without it users sign in with tokens."""
    try:
        from mainspring.web.app import create_app
        from mainspring.web.auth.identity import by_token_or_session
    except ModuleNotFoundError as missing:
        extra = "pip install 'mainspring[server]'"
        raise UsageError(f"dashboard: {missing.name} is missing; it comes with {extra}") from None
    ways = by_token_or_session(app)
    return create_app(app, identify=ways if identify is None else (identify, *ways))


def mounted(prefix: str, dashboard: ASGIApp, *, otherwise: ASGIApp) -> ASGIApp:
    """One ASGI app out of two, for frameworks that mount none, such as Django: what begins with the prefix
    goes to the dashboard, everything else to the other."""
    from mainspring.web.middleware.stack import Prefixed

    return Prefixed(prefix, dashboard, otherwise)
