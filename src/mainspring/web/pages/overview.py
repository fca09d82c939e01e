"""The first page: what is wrong, where it is mended, and then how it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.health.stats import LAST, SeriesView, Stats
from mainspring.admin.health.troubles import facts
from mainspring.model.alert import Rule, Trouble
from mainspring.rules.troubles import OTHERS, troubles
from mainspring.tasks.checks import is_name
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Plain
from mainspring.web.rendering import count, page, took
from mainspring.web.services import Services, TheServices

TROUBLES, SHOWN = 20, 6
routes = Routes("stats", PageRoute, include_in_schema=False)
Column = Sequence[float | None]


class ChartLine(NamedTuple):
    """One line of a chart."""

    name: str
    tone: str
    """The variable of the style sheet that it is drawn in."""
    values: Column


class Chart(NamedTuple):
    """One chart, with the same moments for all of its lines."""

    id: str
    title: str
    summary: str
    unit: str
    at: Sequence[int]
    lines: tuple[ChartLine, ...]
    shown: Callable[[Any], str]

    def data(self) -> dict[str, object]:
        """For the script that draws it."""
        lines = [{"name": each.name, "tone": each.tone, "values": list(each.values)} for each in self.lines]
        return {"unit": self.unit, "at": list(self.at), "lines": lines}

    def rows(self) -> list[tuple[str, list[str]]]:
        """The table: moments in which something happened, newest first."""
        found = []
        for place in range(len(self.at) - 1, -1, -1):
            values = [each.values[place] for each in self.lines]
            if any(values):
                moment = datetime.fromtimestamp(self.at[place], UTC)
                found.append(
                    (f"{moment:%H:%M}", ["–" if each is None else self.shown(each) for each in values])
                )
        return found


@routes.get("/")
async def overview(request: Request, services: TheServices) -> Response:
    return page(request, "overview.html", **await _now(services))


@routes.get("/part")
async def overview_part(request: Request, services: TheServices) -> Response:
    return page(request, "parts/overview.html", **await _now(services))


def mended_at(trouble: Trouble) -> str:
    """The page on which something can be done about it: its subject is a name."""
    made = _mended_at(trouble)
    return Plain(made) if is_name(trouble.subject) else made


def charts(series: SeriesView, step: str) -> list[Chart]:
    """Those of the overview, from columns of statistics. The last step is not over, and is left out."""
    names = ("at", "succeeded", "failed", "died", "wait_p50", "wait_p95")
    at, done, failed, died, p50, p95 = (getattr(series, name)[:-1] for name in names)
    slowest = max((each for each in p95 if each is not None), default=None)
    return [
        Chart(
            "throughput",
            "Throughput",
            f"{count(sum(done))} jobs succeeded, at most {count(max(done, default=0))} in {step}",
            "jobs",
            at,
            (ChartLine("succeeded", "--accent", done),),
            count,
        ),
        Chart(
            "latency",
            "Start latency",
            "no job was started"
            if slowest is None
            else f"95 of 100 jobs started within {took(slowest)} at worst",
            "seconds",
            at,
            (ChartLine("median", "--info", p50), ChartLine("95 of 100", "--warn", p95)),
            took,
        ),
        Chart(
            "failures",
            "Failures",
            f"{count(sum(failed))} runs failed, {count(sum(died))} jobs became dead letters",
            "runs",
            at,
            (ChartLine("failed runs", "--warn", failed), ChartLine("dead letters", "--bad", died)),
            count,
        ),
    ]


async def _now(services: Services) -> dict[str, Any]:
    store = await services.store()
    seen = await facts(store, services.app.settings.alerts, services.clock)
    found = troubles(seen, services.app.settings.alerts)
    queues = await services.questions.queues.aall(about=True)
    series = await Stats(store, services.clock).series()
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
        "alive": sum(each.alive for each in seen.processes),
        "processes": {each.id: each for each in seen.processes},
        "running": await store.jobs.running(limit=SHOWN),
        "coming": await store.slots.coming(limit=SHOWN),
        "failed": [(each, each.message) for each in await store.runs.failed(among=500, limit=SHOWN)],
    }


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
        case Rule.NO_SCHEDULER | Rule.SCHEDULER_LAG | Rule.PROCESS_LOST | Rule.CLOCK_SKEW:
            return "/workers"
        case Rule.STORE | Rule.OUTAGE:
            return "/health"
