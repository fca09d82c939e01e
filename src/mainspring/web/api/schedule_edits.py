"""`/schedules`: made and changed at run time; and what the app itself declares."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from mainspring.admin.schedules.draft import read, written_view
from mainspring.admin.schedules.orders import Schedules
from mainspring.admin.schedules.plan import planned_view
from mainspring.admin.views import iso
from mainspring.declare.edit import changed_when
from mainspring.declare.when import When
from mainspring.model.access import AccessRole
from mainspring.trigger.preview import fires
from mainspring.web.api import schedule_shapes as shapes
from mainspring.web.api.answers import answers, json
from mainspring.web.api.etag import IfMatch, etag, expected_version
from mainspring.web.api.values import (
    Body,
    InPath,
    Length,
    LengthText,
    Line,
    Moment,
    Name,
    Params,
    at,
    length,
    name_of,
)
from mainspring.web.desk import AnAdmin, AtDesk
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

routes = Routes("schedules", ApiRoute, prefix="/api/v1/schedules", tags=["schedules"])
plan_routes = Routes("schedules", ApiRoute, prefix="/api/v1", tags=["schedules"])
Word = Annotated[str, StringConstraints(max_length=300)]
Moments = Annotated[list[Word], Field(max_length=1000)]
_OWN = {"name", "note", "dry_run"}


class Options(Body):
    """Options of `app.schedule`, by their names; null asks for a default."""

    cron: Word | None = None
    every: Length | None = None
    rrule: Annotated[str, StringConstraints(max_length=2000)] | None = None
    at: Word | Moments | None = None
    tz: Word | None = None
    gap: Word | None = None
    fold: Word | None = None
    anchor: Word | None = None
    dtstart: Word | None = None
    exdates: Moments | None = None
    rdates: Moments | None = None
    start: Word | None = None
    end: Word | None = None
    max_fires: int | None = None
    calendar: Word | None = None
    on_holiday: Word | None = None
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    misfire: Word | None = None
    catch_up: Length | None = None
    overlap: Word | None = None
    allow: int | None = None
    window: Length | None = None
    jitter: Length | None = None
    expect_start_within: Length | None = None
    expect_finish_by: Length | None = None
    queue: Word | None = None
    priority: int | None = None
    attempts: int | None = None
    note: Line | None = None
    dry_run: bool = False

    def said(self) -> dict[str, object]:
        """What was said, and nothing that was not."""
        return self.model_dump(exclude_unset=True, exclude=_OWN)


class New(Options):
    """A schedule to be made."""

    name: Name
    task: Name


class Changes(Options):
    """What is to be different."""

    task: Name | None = None


class Apply(Body):
    """How to write what the app declares."""

    prune: bool = False


class Trigger(Params):
    """A trigger that is no schedule's."""

    cron: Word | None = None
    every: LengthText | None = None
    anchor: Moment | None = None
    rrule: Annotated[str, StringConstraints(max_length=2000)] | None = None
    dtstart: Word | None = None
    tz: Word = "UTC"
    gap: Word | None = None
    fold: Word | None = None
    name: Name | None = Field(default=None, description="The schedule's name, which H is hashed from.")
    after: Moment | None = None
    count: int = Field(default=5, ge=1, le=1000)


@routes.post(
    "",
    role=AccessRole.OPERATOR,
    order=Schedules.acreate,
    **answers(shapes.WrittenSchedule, status=201, also=200),
)
async def create(admin: AnAdmin, body: New) -> Response:
    """Make a schedule that is code's to leave alone: one of cron, every, rrule and at, and what goes with
    it. 200 for a dry run."""
    written = await admin.schedules.acreate(body.name, note=body.note, dry_run=body.dry_run, **body.said())
    return json(written_view(written), 200 if body.dry_run else 201, ETag=etag(written.version))


@routes.patch("/{name}", role=AccessRole.OPERATOR, order=Schedules.aedit, **answers(shapes.WrittenSchedule))
async def edit(admin: AnAdmin, name: InPath, body: Changes, if_match: IfMatch = None) -> Response:
    """Change the options that are given, and no others. With `If-Match`, only what was read."""
    written = await admin.schedules.aedit(
        name_of(name),
        note=body.note,
        expected_version=expected_version(if_match),
        dry_run=body.dry_run,
        **body.said(),
    )
    return json(written_view(written), ETag=etag(written.version))


@plan_routes.get("/plan", **answers(shapes.Plan))
async def plan(admin: AnAdmin) -> Response:
    """What the app that serves would change of the schedules on record; nothing is written."""
    found = await admin.schedules.aplan()
    return json({"items": [planned_view(each) for each in found]})


@plan_routes.post("/plan/apply", role=AccessRole.ADMIN, order=Schedules.aapply, **answers(shapes.Plan))
async def apply_plan(admin: AnAdmin, body: Apply | None = None) -> Response:
    """Write the schedules of the app that serves; what somebody edited stays."""
    prune = body is not None and body.prune
    found = await admin.schedules.aapply(prune=prune)
    return json({"items": [planned_view(each) for each in found]})


@plan_routes.get("/next", **answers(shapes.Preview))
async def preview(desk: AtDesk, which: Annotated[Trigger, Query()]) -> Response:
    """When a trigger would fire, in UTC and in its zone."""
    given: dict[str, object] = {
        name: value
        for name, value in which.model_dump(exclude={"name", "after", "count"}).items()
        if value is not None and (name != "tz" or which.every is None)
    }
    if which.every is not None:
        given["every"] = length(which.every, "every")
    trigger = changed_when(When(), read(given).when).trigger(which.name or "preview")
    start = at(which.after, "after") or await (await desk.store()).now(at=desk.clock.stamp())
    found = fires(trigger, start, which.count, which.tz)
    told = [{"at": iso(each.at), "local": each.local.isoformat(), "note": each.note} for each in found]
    return json({"fires": told})
