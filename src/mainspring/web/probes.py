"""`/metrics` for those who may look; `/healthz` and `/readyz` for everybody, who learn up or down alone."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from mainspring.errors import StoreError
from mainspring.model.access import AccessRole
from mainspring.monitor.store_poll import StorePoll
from mainspring.web.auth.policy import GuardedRoute, Routes
from mainspring.web.services import Services, TheServices

_metrics = Routes("metrics", GuardedRoute)
_health = Routes("health", GuardedRoute)
_FRESH = {"Cache-Control": "no-store"}


def all_routes() -> list[Routes]:
    """For the app."""
    return [_metrics, _health]


@_metrics.get("/metrics", role=AccessRole.VIEWER, include_in_schema=False)
async def metrics(request: Request, services: TheServices) -> Response:
    """What Prometheus reads. The store is asked at most as often as the settings say."""
    from mainspring.monitor.metrics import CONTENT_TYPE, metrics_of

    found = metrics_of(services.app)
    store_poll = await _store_poll(request, services)
    if store_poll is not None and found.tells(store_poll):
        await store_poll.refreshed()
    return Response(found.render(), media_type=CONTENT_TYPE, headers=_FRESH)


@_health.get("/healthz", role=None, include_in_schema=False)
async def healthz() -> Response:
    """Up, if this can be answered at all."""
    return PlainTextResponse("up\n", headers=_FRESH)


@_health.get("/readyz", role=None, include_in_schema=False)
async def readyz(request: Request, services: TheServices) -> Response:
    """Up, if the store answers with the schema that this code needs."""
    store_poll = await _store_poll(request, services)
    if store_poll is not None:
        await store_poll.refreshed()
    if store_poll is None or not store_poll.ready:
        return PlainTextResponse("down\n", 503, headers=_FRESH)
    return PlainTextResponse("up\n", headers=_FRESH)


async def _store_poll(request: Request, services: Services) -> StorePoll | None:
    """One for all requests; None while the store cannot be opened."""
    known: StorePoll | None = getattr(request.app.state, "store_poll", None)
    if known is None:
        try:
            store = await services.store()
        except StoreError:
            return None
        known = request.app.state.store_poll = StorePoll(store, services.clock, services.app.settings)
    return known
