"""`/schedules`: what runs by itself, and when; made and changed at run time; and what the app declares."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from mainspring.admin.schedules.draft import WrittenView, read
from mainspring.admin.schedules.orders import (
    ScheduleDone,
    ScheduleDoneView,
    ScheduleEffect,
    Schedules,
    Skipping,
    Triggered,
)
from mainspring.admin.schedules.plan import PlannedView
from mainspring.admin.schedules.versions import VersionView, steps
from mainspring.admin.views import FireView, ListedSchedule, ScheduleDetail
from mainspring.admin.why.answer import Answer, answer_view
from mainspring.model.access import AccessRole
from mainspring.model.schedule import Only, ScheduleFilter, Slot
from mainspring.model.value import Value
from mainspring.tasks.schedule import changed_when
from mainspring.tasks.schedule_options import TriggerOptions
from mainspring.triggers.slots import upcoming_slots
from mainspring.web.api.answers import answers, answers_items, answers_page, items, json, page
from mainspring.web.api.values import (
    Body,
    Cursor,
    IfMatch,
    InPath,
    Length,
    LengthText,
    Limit,
    Line,
    Moment,
    Name,
    Params,
    Text,
    at,
    cursor,
    etag,
    expected_version,
    length,
    name_of,
    position,
)
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.problems import Problem
from mainspring.web.services import AnAdmin, TheServices

MOST_FIRES, MOST_SKIPS = 1000, 1000
routes = Routes("schedules", ApiRoute, prefix="/api/v1/schedules", tags=["schedules"])
plan_routes = Routes("schedules", ApiRoute, prefix="/api/v1", tags=["schedules"])
Word = Annotated[str, StringConstraints(max_length=300)]
Moments = Annotated[list[Word], Field(max_length=1000)]
_OWN = {"name", "note", "dry_run"}


class Which(Params):
    """Which schedules."""

    text: Text | None = Field(default=None, description="What its name, or its task's, holds.")
    task: Name | None = None
    queue: Name | None = None
    only: Only | None = None
    limit: Limit = 50
    cursor: Cursor = None


class Slots(Params):
    """Which rows of the ledger; from `from` on and before `to`, newest first."""

    start: Moment | None = Field(default=None, alias="from")
    end: Moment | None = Field(default=None, alias="to")
    limit: Limit = 50
    cursor: Cursor = None


class ScheduleNote(Body):
    """Why, for those who find it so."""

    note: Line | None = None


class Names(Body):
    """Which ones, and why."""

    names: list[Name] = Field(min_length=1, max_length=1000)
    note: Line | None = None


class Skip(Body):
    """How many slots, on top of those that are to be skipped already."""

    count: int = Field(default=1, ge=1, le=MOST_SKIPS)


class Fires(Value, frozen=True, kw_only=True):
    """The next fires; None when this version cannot read the trigger."""

    fires: tuple[datetime, ...] | None


class SlotAnswer(Value, frozen=True, kw_only=True):
    """Why a schedule did, or did not do, something: at a moment, or at its last and its next slot."""

    schedule: str
    at: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    next: dict[str, Any] | None = None


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


class NewSchedule(Options):
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


class Preview(Value, frozen=True, kw_only=True):
    """When a trigger would fire."""

    fires: tuple[FireView, ...]


@routes.get("", **answers_page(ListedSchedule))
async def list_schedules(admin: AnAdmin, which: Annotated[Which, Query()]) -> Response:
    """By name, each with its newest slot."""
    question = ("schedules", which.text, which.task, which.queue, which.only)
    after = position(which.cursor, *question)
    found = await admin.schedules.apage(
        ScheduleFilter(
            text=which.text,
            task=which.task,
            queue=which.queue,
            only=which.only,
            after=after if isinstance(after, str) else None,
            limit=which.limit,
        )
    )
    views = [ListedSchedule.of(each.schedule, last=each.last) for each in found.rows]
    following = None if found.next is None else cursor(found.next, *question)
    return page(views, following)


@routes.post("/pause", role=AccessRole.OPERATOR, order=Schedules.apause, **answers_items(ScheduleDoneView))
async def pause_many(admin: AnAdmin, body: Names) -> Response:
    """Skip the slots of schedules from now on, until they are resumed."""
    return _many(await admin.schedules.apause(body.names, note=body.note))


@routes.post("/resume", role=AccessRole.OPERATOR, order=Schedules.aresume, **answers_items(ScheduleDoneView))
async def resume_many(admin: AnAdmin, body: Names) -> Response:
    """End the pause of schedules; the slots of the pause are not caught up."""
    return _many(await admin.schedules.aresume(body.names))


@routes.post("/delete", role=AccessRole.ADMIN, order=Schedules.adelete, **answers_items(ScheduleDoneView))
async def delete_many(admin: AnAdmin, body: Names) -> Response:
    """Take schedules away; their ledger, their versions and the jobs they made stay."""
    return _many(await admin.schedules.adelete(body.names))


@routes.get("/{name}", **answers(ScheduleDetail))
async def show(admin: AnAdmin, name: InPath) -> Response:
    """One schedule, its last slots and its next fires. The ETag is its version."""
    found = await admin.schedules.aget(name_of(name))
    view = ScheduleDetail.of(found.schedule, slots=found.slots, fires=found.fires)
    return json(view, ETag=etag(found.schedule.version))


@routes.get("/{name}/slots", **answers_page(Slot))
async def slots(admin: AnAdmin, name: InPath, which: Annotated[Slots, Query()]) -> Response:
    """The ledger: what became of each slot, newest first; of a schedule that was deleted too."""
    question = ("slots", name, which.start, which.end)
    before = position(which.cursor, *question)
    until = datetime.fromisoformat(before) if isinstance(before, str) else at(which.end, "to")
    found = await admin.schedules.aslots(
        name_of(name), start=at(which.start, "from"), before=until, limit=which.limit
    )
    last = found[-1].slot_at.astimezone(UTC).isoformat() if found else ""
    following = cursor(last, *question) if len(found) == which.limit else None
    return page(found, following)


@routes.get("/{name}/versions", **answers_items(VersionView))
async def versions(admin: AnAdmin, name: InPath) -> Response:
    """Who changed what, and when; oldest first."""
    found = await admin.schedules.aversions(name_of(name))
    return items([VersionView.of(each) for each in steps(found)])


@routes.get("/{name}/next", **answers(Fires))
async def next_fires(
    admin: AnAdmin, name: InPath, count: Annotated[int, Query(ge=1, le=MOST_FIRES)] = 5
) -> Response:
    """When it fires next; null when this version cannot read its trigger."""
    found = await admin.schedules.aget(name_of(name), slots=0, fires=count)
    return json(Fires(fires=found.fires))


@routes.get("/{name}/why", **answers(SlotAnswer))
async def why(
    admin: AnAdmin, name: InPath, when: Annotated[Moment | None, Query(alias="at")] = None
) -> Response:
    """Why it did, or did not do, something at a moment; without one, the last and the next slot."""
    schedule = name_of(name)
    found = await admin.schedules.awhy(schedule, at(when, "at"))
    if isinstance(found, Answer):
        return json(SlotAnswer(schedule=schedule, at=answer_view(found)))
    return json(SlotAnswer(schedule=schedule, last=answer_view(found.last), next=answer_view(found.next)))


@routes.post("/{name}/pause", role=AccessRole.OPERATOR, order=Schedules.apause, **answers(ScheduleDoneView))
async def pause(admin: AnAdmin, name: InPath, body: ScheduleNote | None = None) -> Response:
    """Skip its slots from now on, until it is resumed."""
    note = None if body is None else body.note
    return _one(await admin.schedules.apause(name_of(name), note=note))


@routes.post("/{name}/resume", role=AccessRole.OPERATOR, order=Schedules.aresume, **answers(ScheduleDoneView))
async def resume(admin: AnAdmin, name: InPath) -> Response:
    """End its pause; the slots of the pause are not caught up."""
    return _one(await admin.schedules.aresume(name_of(name)))


@routes.post("/{name}/skip", role=AccessRole.OPERATOR, order=Schedules.askip, **answers(Skipping))
async def skip(admin: AnAdmin, name: InPath, body: Skip | None = None) -> Response:
    """Skip its next slots."""
    count = 1 if body is None else body.count
    done = await admin.schedules.askip(name_of(name), count)
    return json(done)


@routes.post(
    "/{name}/trigger",
    role=AccessRole.OPERATOR,
    order=Schedules.atrigger,
    **answers(Triggered, status=201),
)
async def trigger(admin: AnAdmin, name: InPath) -> Response:
    """Make a job of it now, besides its slots, even if it is paused."""
    done = await admin.schedules.atrigger(name_of(name))
    return json(done, 201)


@routes.post("/{name}/revert", role=AccessRole.OPERATOR, order=Schedules.arevert, **answers(ScheduleDoneView))
async def revert(admin: AnAdmin, name: InPath, body: ScheduleNote | None = None) -> Response:
    """End the edit of a schedule: what an app declares counts again."""
    note = None if body is None else body.note
    return _one(await admin.schedules.arevert(name_of(name), note=note))


@routes.delete("/{name}", role=AccessRole.ADMIN, order=Schedules.adelete, **answers(ScheduleDoneView))
async def delete(admin: AnAdmin, name: InPath) -> Response:
    """Take it away; its ledger, its versions and the jobs it made stay."""
    return _one(await admin.schedules.adelete(name_of(name)))


@routes.post(
    "",
    role=AccessRole.OPERATOR,
    order=Schedules.acreate,
    **answers(WrittenView, status=201, also=200),
)
async def create(admin: AnAdmin, body: NewSchedule) -> Response:
    """Make a schedule that is code's to leave alone: one of cron, every, rrule and at, and what goes with
    it. 200 for a dry run."""
    written = await admin.schedules.acreate(body.name, note=body.note, dry_run=body.dry_run, **body.said())
    return json(WrittenView.of(written), 200 if body.dry_run else 201, ETag=etag(written.version))


@routes.patch("/{name}", role=AccessRole.OPERATOR, order=Schedules.aedit, **answers(WrittenView))
async def edit(admin: AnAdmin, name: InPath, body: Changes, if_match: IfMatch = None) -> Response:
    """Change the options that are given, and no others. With `If-Match`, only what was read."""
    written = await admin.schedules.aedit(
        name_of(name),
        note=body.note,
        expected_version=expected_version(if_match),
        dry_run=body.dry_run,
        **body.said(),
    )
    return json(WrittenView.of(written), ETag=etag(written.version))


@plan_routes.get("/plan", **answers_items(PlannedView))
async def plan(admin: AnAdmin) -> Response:
    """What the app that serves would change of the schedules on record; nothing is written."""
    found = await admin.schedules.aplan()
    return items([PlannedView.of(each) for each in found])


@plan_routes.post("/plan/apply", role=AccessRole.ADMIN, order=Schedules.aapply, **answers_items(PlannedView))
async def apply_plan(admin: AnAdmin, body: Apply | None = None) -> Response:
    """Write the schedules of the app that serves; schedules that were edited stay."""
    prune = body is not None and body.prune
    found = await admin.schedules.aapply(prune=prune)
    return items([PlannedView.of(each) for each in found])


@plan_routes.get("/next", **answers(Preview))
async def preview(services: TheServices, which: Annotated[Trigger, Query()]) -> Response:
    """When a trigger would fire, in UTC and in its zone."""
    given: dict[str, object] = {
        name: value
        for name, value in which.model_dump(exclude={"name", "after", "count"}).items()
        if value is not None and (name != "tz" or which.every is None)
    }
    if which.every is not None:
        given["every"] = length(which.every, "every")
    trigger = changed_when(TriggerOptions(), read(given).when).trigger(which.name or "preview")
    start = at(which.after, "after") or await (await services.store()).now(at=services.clock.stamp())
    found = upcoming_slots(trigger, start, which.count, which.tz)
    return json(Preview(fires=tuple(FireView.of(each) for each in found)))


def _many(done: list[ScheduleDone]) -> Response:
    return items([ScheduleDoneView.of(each) for each in done])


def _one(done: list[ScheduleDone]) -> Response:
    [only] = done
    if only.effect is ScheduleEffect.NONE:
        raise Problem(409, "refused", f"schedule {only.name} {only.why}")
    return json(ScheduleDoneView.of(only))
