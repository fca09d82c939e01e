"""The first page: what is wrong, where it is mended, and then how it goes."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.health.stats import LAST, SeriesView, Stats
from mainspring.admin.health.troubles import troubles
from mainspring.declare.names import is_name
from mainspring.lifecycle.troubles import OTHERS
from mainspring.model.trouble import Rule, Trouble
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.charts import charts
from mainspring.web.frame.rendering import page
from mainspring.web.frame.shapes import took
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Plain
from mainspring.web.routes import Routes

TROUBLES, SHOWN = 20, 6
routes = Routes("stats", PageRoute, include_in_schema=False)


@routes.get("/")
async def overview(request: Request, desk: AtDesk) -> Response:
    return page(request, "overview.html", **await _now(desk))


@routes.get("/part")
async def overview_part(request: Request, desk: AtDesk) -> Response:
    return page(request, "parts/overview.html", **await _now(desk))


async def _now(desk: Desk) -> dict[str, Any]:
    store = await desk.store()
    found = await troubles(store, desk.app.settings.alerts, desk.clock)
    queues = await desk.questions.queues.aall(about=True)
    members = await desk.questions.processes.aall()
    series = await Stats(store, desk.clock).series()
    return {
        "troubles": [(each, mended_at(each)) for each in found[:TROUBLES]],
        "more_troubles": max(0, len(found) - TROUBLES),
        "charts": charts(SeriesView.of(series), took(series.step)),
        "span": took(LAST),
        "ready": sum(each.ready for each in queues),
        "delayed": sum(each.delayed for each in queues),
        "running_count": sum(each.running for each in queues),
        "queues": len(queues),
        "paused": sum(each.pause is not None for each in queues),
        "alive": sum(each.alive for each in members),
        "members": {each.id: each for each in members},
        "running": await store.jobs.running(limit=SHOWN),
        "coming": await store.slots.coming(limit=SHOWN),
        "failed": [(each, each.message) for each in await store.runs.failed(among=500, limit=SHOWN)],
    }


def mended_at(trouble: Trouble) -> str:
    """The page on which something can be done about it: its subject is a name."""
    made = _mended_at(trouble)
    return Plain(made) if is_name(trouble.subject) else made


def _mended_at(trouble: Trouble) -> str:
    if trouble.subject == OTHERS:
        return "/health"
    match trouble.rule:
        case Rule.MISSED | Rule.SLOTS_DROPPED | Rule.LATE_START | Rule.LATE_FINISH | Rule.FAILING:
            return f"/schedules/{quote(trouble.subject, safe='')}"
        case Rule.RETRYING:
            return f"/jobs?{urlencode({'task': trouble.subject})}"
        case Rule.FAILED:
            return f"/dead/letters?{urlencode({'task': trouble.subject})}"
        case Rule.DEAD_GROWTH:
            return "/dead"
        case Rule.OLDEST_WAITING:
            return f"/jobs?{urlencode({'queue': trouble.subject, 'state': 'ready'})}"
        case Rule.NO_WORKER:
            return "/queues"
        case Rule.NO_SCHEDULER | Rule.SCHEDULER_LAG | Rule.MEMBER_LOST | Rule.CLOCK_SKEW:
            return "/workers"
        case Rule.STORE | Rule.OUTAGE:
            return "/health"
