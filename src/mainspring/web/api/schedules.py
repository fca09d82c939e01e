"""`/schedules`: what runs by itself, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.schedules.orders import (
    ScheduleDone,
    ScheduleDoneView,
    ScheduleEffect,
    Schedules,
    Skipping,
    Triggered,
)
from mainspring.admin.schedules.versions import VersionView, steps
from mainspring.admin.views import ListedSchedule, ScheduleDetail
from mainspring.admin.why.answer import Answer, answer_view
from mainspring.model.access import AccessRole
from mainspring.model.pages import Only, ScheduleFilter
from mainspring.model.schedule import Slot
from mainspring.model.value import Value
from mainspring.web.api.answers import answers, answers_items, answers_page, items, json, page
from mainspring.web.api.etag import etag
from mainspring.web.api.values import (
    Body,
    Cursor,
    InPath,
    Limit,
    Line,
    Moment,
    Name,
    Params,
    Text,
    at,
    name_of,
)
from mainspring.web.cursor import cursor, position
from mainspring.web.desk import AnAdmin
from mainspring.web.problems import Problem
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

MOST_FIRES, MOST_SKIPS = 1000, 1000
routes = Routes("schedules", ApiRoute, prefix="/api/v1/schedules", tags=["schedules"])


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


class Note(Body):
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
async def fires(
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
async def pause(admin: AnAdmin, name: InPath, body: Note | None = None) -> Response:
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


@routes.post(
    "/{name}/hand-back", role=AccessRole.OPERATOR, order=Schedules.arevert, **answers(ScheduleDoneView)
)
async def hand_back(admin: AnAdmin, name: InPath, body: Note | None = None) -> Response:
    """Let code have what somebody edited: what an app declares counts again."""
    note = None if body is None else body.note
    return _one(await admin.schedules.arevert(name_of(name), note=note))


@routes.delete("/{name}", role=AccessRole.ADMIN, order=Schedules.adelete, **answers(ScheduleDoneView))
async def delete(admin: AnAdmin, name: InPath) -> Response:
    """Take it away; its ledger, its versions and the jobs it made stay."""
    return _one(await admin.schedules.adelete(name_of(name)))


def _many(done: list[ScheduleDone]) -> Response:
    return items([ScheduleDoneView.of(each) for each in done])


def _one(done: list[ScheduleDone]) -> Response:
    [only] = done
    if only.effect is ScheduleEffect.NONE:
        raise Problem(409, "refused", f"schedule {only.name} {only.why}")
    return json(ScheduleDoneView.of(only))
