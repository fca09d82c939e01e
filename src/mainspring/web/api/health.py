"""`/doctor`, `/ledger/verify`, `/version` and `/stats`: is all well, did every slot happen once, what
happened over time?"""

from __future__ import annotations

import platform
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.health.doctor import examine
from mainspring.admin.health.finding import Check, Level
from mainspring.admin.health.stats import SeriesView, Stats, StatView
from mainspring.admin.slot_verification.verifier import ReportView, SlotVerifier
from mainspring.model.stats import By
from mainspring.model.value import Value
from mainspring.version import __version__
from mainspring.web.api.answers import answers, answers_items, items, json
from mainspring.web.api.values import LengthText, Moment, Name, Params, at, length
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.services import TheServices

routes = Routes("health", ApiRoute, prefix="/api/v1", tags=["health"])
ledger = Routes("ledger", ApiRoute, prefix="/api/v1", tags=["ledger"])
stats = Routes("stats", ApiRoute, prefix="/api/v1/stats", tags=["stats"])


class Range(Params):
    """Which slots are judged, and from when on one is late."""

    start: Moment | None = Field(default=None, alias="from")
    end: Moment | None = Field(default=None, alias="to")
    schedule: Name | None = None
    late: LengthText = "60s"
    strict: bool = False


class About(Value, frozen=True, kw_only=True):
    """The program that answers, and the tasks that its app declares."""

    version: str
    python: str
    now: datetime
    tasks: tuple[str, ...]


class Checks(Value, frozen=True, kw_only=True):
    """What the checks found; `ok` where none of them failed."""

    ok: bool
    items: tuple[Check, ...]


class Span(Params):
    """Since when, until when; by default the last three hours."""

    since: Moment | None = None
    until: Moment | None = None
    task: Name | None = None
    queue: Name | None = None


class Steps(Span):
    """And how far apart."""

    step: LengthText | None = None


@routes.get("/version", **answers(About))
async def about(services: TheServices) -> Response:
    """The version of the program that answers, and the tasks that its app declares."""
    now = await (await services.store()).now(at=services.clock.stamp())
    tasks = tuple(sorted(services.app._registry.tasks))
    return json(About(version=__version__, python=platform.python_version(), now=now, tasks=tasks))


@routes.get("/doctor", **answers(Checks))
async def doctor(services: TheServices) -> Response:
    """Check the database, the fleet and the queues."""
    checks = await examine(await services.store(), services.clock)
    ok = all(each.level is not Level.FAIL for each in checks)
    return json(Checks(ok=ok, items=tuple(checks)))


@ledger.get("/ledger/verify", **answers(ReportView))
async def verify_ledger(services: TheServices, which: Annotated[Range, Query()]) -> Response:
    """Compute anew every slot that should have happened, and compare with the ledger and the jobs."""
    verifier = SlotVerifier(
        await services.store(), services.clock, keep=services.app.settings.retention.history
    )
    report = await verifier.verify(
        start=at(which.start, "from"),
        end=at(which.end, "to"),
        name=which.schedule,
        late=length(which.late, "late") or timedelta(),
    )
    return json(ReportView.of(report, strict=which.strict))


@stats.get("", **answers(SeriesView))
async def series(services: TheServices, which: Annotated[Steps, Query()]) -> Response:
    """In columns, one place for each step: runs, failures, and how long jobs waited and took, in seconds."""
    found = await Stats(await services.store(), services.clock).series(
        since=at(which.since, "since"),
        until=at(which.until, "until"),
        step=length(which.step, "step"),
        task=which.task,
        queue=which.queue,
    )
    return json(SeriesView.of(found))


@stats.get("/{by}", **answers_items(StatView))
async def totals(services: TheServices, by: By, which: Annotated[Span, Query()]) -> Response:
    """One sum for each task or queue, the one with the most runs first."""
    found = await Stats(await services.store(), services.clock).totals(
        by,
        since=at(which.since, "since"),
        until=at(which.until, "until"),
        task=which.task,
        queue=which.queue,
    )
    return items([StatView.of(each) for each in found])
