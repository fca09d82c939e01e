"""Editing a schedule, with a preview of what it would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.admin import Admin
from mainspring.admin.schedules.draft import Draft, Written
from mainspring.admin.schedules.form import FIELDS, field_of, form_of, options_from
from mainspring.admin.schedules.orders import Schedules
from mainspring.admin.schedules.triggers import calendars_of
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.access import AccessRole
from mainspring.model.schedule import Schedule
from mainspring.trigger.codec import decode
from mainspring.web.desk import AnAdmin, AtDesk, Desk
from mainspring.web.frame.flash import done
from mainspring.web.frame.forms import asked, text, whole
from mainspring.web.frame.forms import form_of as sent
from mainspring.web.frame.rendering import page
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.route import PageRoute
from mainspring.web.pages.schedule import path_of
from mainspring.web.privacy import Plain, redaction_of
from mainspring.web.routes import Routes

routes = Routes("schedules", PageRoute, include_in_schema=False)
_MOST = 2**31 - 1


@routes.get("/schedules/{name:path}/-/edit", role=AccessRole.OPERATOR)
async def edit(request: Request, desk: AtDesk, name: str) -> Response:
    stored = await _stored(desk, name)
    return await _form(request, desk, stored, {}, None)


@routes.get("/schedules/{name:path}/-/preview", role=AccessRole.OPERATOR)
async def preview(request: Request, desk: AtDesk, admin: AnAdmin, name: str) -> Response:
    """What the schedule would do if the form were sent; nothing is written."""
    stored = await _stored(desk, name)
    said = asked(request)
    try:
        written, error = await _written(admin, stored, said, dry_run=True), None
    except InvalidArgument as refused:
        written, error = None, refused
    wrong = None if error is None else field_of(error, said)
    return page(
        request,
        "parts/schedule_preview.html",
        written=written,
        error=error,
        wrong=wrong,
        fields=_fields(),
        hide=Payloads(desk),
    )


@routes.post("/schedules/{name:path}/-/edit", role=AccessRole.OPERATOR, order=Schedules.aedit)
async def save(request: Request, desk: AtDesk, admin: AnAdmin, name: str) -> Response:
    stored = await _stored(desk, name)
    said = await sent(request)
    try:
        written = await _written(admin, stored, said, dry_run=False)
    except InvalidArgument as refused:
        return await _form(request, desk, stored, said, refused)
    if not written.differences:
        return done(request, path_of(name), "Nothing was changed.", kind="info")
    changed = ", ".join(each.field for each in written.differences)
    return done(request, path_of(name), f"Changed {changed}: it is at version {written.version}.")


class _Stored(NamedTuple):
    schedule: Schedule
    draft: Draft
    form: dict[str, str]


async def _stored(desk: Desk, name: str) -> _Stored:
    store = await desk.store()
    schedule = await store.schedules.get(name)
    if schedule is None:
        raise NotFound("schedule", name)
    calendars = await calendars_of(store, [schedule.trigger])
    draft = Draft.of(schedule, decode(schedule.trigger, calendars))
    return _Stored(schedule, draft, form_of(draft, redaction_of(desk)))


async def _written(admin: Admin, stored: _Stored, said: Mapping[str, str], *, dry_run: bool) -> Written:
    return await admin.schedules.aedit(
        stored.schedule.name,
        note=text(said, "note"),
        expected_version=None if dry_run else whole(said, "version", least=1, most=_MOST),
        dry_run=dry_run,
        **options_from(said, stored.form, stored.draft),
    )


async def _form(
    request: Request,
    desk: Desk,
    stored: _Stored,
    said: Mapping[str, str],
    error: InvalidArgument | None,
) -> Response:
    schedule = stored.schedule
    calendars = sorted({each.name for each in await (await desk.store()).calendars.all()})
    values: dict[str, Any] = {
        "name": schedule.name,
        "schedule": schedule,
        "form": {
            **stored.form,
            # Their secrets are hidden already, and what the same request said is no news.
            **{each: Plain(stored.form[each]) for each in ("args", "kwargs")},
            "note": "",
            "version": str(schedule.version),
            **{name: Plain(value) for name, value in said.items()},
        },
        "error": error,
        "wrong": None if error is None else field_of(error, said),
        "calendars": calendars,
        "declared": schedule.name in desk.app.registry.schedules,
        "fields": _fields(),
    }
    return page(request, "schedule_edit.html", status=200 if error is None else 422, **values)


def _fields() -> tuple[str, ...]:
    return ("kind", *FIELDS)
