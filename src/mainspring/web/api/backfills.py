"""`/backfills`: slots of the past, run on request; and simulations, which run none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.backfills import (
    MOST_AT_ONCE,
    BackfillPlan,
    Backfills,
    BackfillView,
    PlannedSlotView,
)
from mainspring.admin.simulation.load import load, spread_in
from mainspring.admin.simulation.simulate import Horizon, Planned, simulate
from mainspring.admin.simulation.views import LoadView, SimulationView, notes
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.access import AccessRole
from mainspring.model.schedule import Backfill, Reprocess
from mainspring.model.value import Value
from mainspring.triggers.calendars import decode_calendar
from mainspring.triggers.codec import Calendars
from mainspring.triggers.zones import read_instant
from mainspring.web.api.answers import answers, answers_items, items, json
from mainspring.web.api.values import (
    Body,
    Id,
    InPath,
    LengthText,
    Limit,
    Moment,
    Name,
    Params,
    length,
    name_of,
)
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.services import AnAdmin, Services, TheServices

MOST_LISTED = 1000
LONGEST_SIMULATION, LONGEST_LOAD = timedelta(days=400), timedelta(days=31)
routes = Routes("backfills", ApiRoute, prefix="/api/v1", tags=["backfills"])


class Range(Body):
    """Which slots: from `from` on and before `to`."""

    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")
    dry_run: bool = False
    max_active: int | None = Field(default=None, ge=1, le=MOST_AT_ONCE)
    reverse: bool = False
    reprocess: Literal["none", "failed", "all"] = "none"


class GoOn(Body):
    """Whether to look only, and how many jobs at once."""

    dry_run: bool = False
    max_active: int | None = Field(default=None, ge=1, le=MOST_AT_ONCE)


class Span(Params):
    """A stretch of time, to come or gone."""

    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")
    schedule: Name | None = None


class Simulated(Span):
    """What is assumed."""

    assume_duration: LengthText | None = None
    limit: int = Field(default=1000, ge=1, le=10_000)


class Loaded(Span):
    """What if every schedule had a place of its own in this window."""

    window: LengthText = "15m"


class Backfilling(Value, frozen=True, kw_only=True):
    """A backfill that was begun, or that would be, and its first slots; `cut` where there are more."""

    backfill: BackfillView | None
    to_run: int
    slots: tuple[PlannedSlotView, ...]
    cut: bool


class Cancelled(Value, frozen=True, kw_only=True):
    """Whether a backfill was cancelled; it was not where it had ended before."""

    id: int
    cancelled: bool


@routes.post(
    "/schedules/{name}/backfill",
    role=AccessRole.OPERATOR,
    order=Backfills.astart,
    **answers(Backfilling, status=201, also=200),
)
async def backfill(admin: AnAdmin, name: InPath, body: Range) -> Response:
    """Run slots of a schedule that are past. Schedulers make the jobs, so this answers at once; 200 when
    nothing was begun. The first 1000 slots are listed."""
    plan = await admin.backfills.aplan(
        name_of(name),
        start=read_instant(body.start, "from"),
        end=read_instant(body.end, "to"),
        max_active=body.max_active,
        reverse=body.reverse,
        reprocess=Reprocess(body.reprocess),
    )
    return await _begun(admin.backfills.astart, plan, dry_run=body.dry_run)


@routes.post(
    "/schedules/{name}/go-on",
    role=AccessRole.OPERATOR,
    order=Backfills.ago_on,
    **answers(Backfilling, status=201, also=200),
)
async def go_on(admin: AnAdmin, name: InPath, body: GoOn | None = None) -> Response:
    """Run exactly the missed slots of a schedule that the circuit breaker left out, oldest first, as a
    backfill; 200 when nothing was begun. The first 1000 slots are listed."""
    asked = body or GoOn()
    plan = await admin.backfills.aplan_left_out(name_of(name), max_active=asked.max_active)
    return await _begun(admin.backfills.ago_on, plan, dry_run=asked.dry_run)


@routes.get("/backfills", **answers_items(BackfillView))
async def list_backfills(admin: AnAdmin, limit: Limit = 50) -> Response:
    """Newest first."""
    found = await admin.backfills.anewest(limit=limit)
    return items([BackfillView.of(each) for each in found])


@routes.get("/backfills/{backfill_id}", **answers(BackfillView))
async def show(admin: AnAdmin, backfill_id: Id) -> Response:
    """How far one is."""
    return json(BackfillView.of(await admin.backfills.aget(backfill_id)))


@routes.post(
    "/backfills/{backfill_id}/cancel",
    role=AccessRole.OPERATOR,
    order=Backfills.acancel,
    **answers(Cancelled),
)
async def cancel(admin: AnAdmin, backfill_id: Id) -> Response:
    """Make no more jobs of one; those there are go on."""
    return json(Cancelled(id=backfill_id, cancelled=await admin.backfills.acancel(backfill_id)))


@routes.get("/simulation", **answers(SimulationView))
async def simulation(services: TheServices, which: Annotated[Simulated, Query()]) -> Response:
    """Every slot of a time to come, or gone, and what would become of it."""
    start, end = _span(which, LONGEST_SIMULATION)
    horizon = Horizon(
        start=start,
        end=end,
        breaker=services.app.settings.scheduler.breaker,
        duration=length(which.assume_duration, "assume_duration"),
    )
    chosen, calendars = await _stored(services, which.schedule)
    # Not here: it may take a while, and others want to be answered.
    done = await asyncio.to_thread(simulate, chosen, horizon, calendars, limit=which.limit)
    return json(SimulationView.of(done, notes(done, horizon, jitter=any(each.jitter for each in chosen))))


@routes.get("/load", **answers(LoadView))
async def jobs_by_minute(services: TheServices, which: Annotated[Loaded, Query()]) -> Response:
    """Jobs by minute of a time to come, summed up; and what a window would do to the peaks."""
    start, end = _span(which, LONGEST_LOAD)
    horizon = Horizon(start=start, end=end, breaker=services.app.settings.scheduler.breaker)
    window = length(which.window, "window") or timedelta()
    chosen, calendars = await _stored(services, which.schedule)
    busy = await asyncio.to_thread(load, chosen, horizon, calendars)
    spread = await asyncio.to_thread(
        load, chosen, horizon, calendars, offset=lambda each: spread_in(each, window), peaks=1
    )
    return json(LoadView.of(busy, spread, window))


async def _begun(
    start: Callable[[BackfillPlan], Awaitable[Backfill]], plan: BackfillPlan, *, dry_run: bool
) -> Response:
    begin = not dry_run and bool(plan.to_run)
    begun = await start(plan) if begin else None
    view = Backfilling(
        backfill=None if begun is None else BackfillView.of(begun),
        to_run=len(plan.to_run),
        slots=tuple(PlannedSlotView.of(each) for each in plan.slots[:MOST_LISTED]),
        cut=len(plan.slots) > MOST_LISTED,
    )
    return json(view, 200 if begun is None else 201)


def _span(which: Span, longest: timedelta) -> tuple[datetime, datetime]:
    start, end = read_instant(which.start, "from"), read_instant(which.end, "to")
    if not start < end <= start + longest:
        raise InvalidArgument("to", which.end, f"a moment after from, at most {longest.days} days later")
    return start, end


async def _stored(services: Services, name: str | None) -> tuple[list[Planned], Calendars]:
    store = await services.store()
    calendars = {(c.name, c.version): decode_calendar(c.definition) for c in await store.calendars.all()}
    if name is None:
        return list(await store.schedules.all()), calendars
    found = await store.schedules.get(name)
    if found is None:
        raise NotFound("schedule", name)
    return [found], calendars
