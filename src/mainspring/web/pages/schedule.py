"""One schedule: its page, orders, edit form and preview. Names hold slashes, and never a lone dash: `/-/`
ends them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.admin import Admin
from mainspring.admin.schedules.draft import Draft, Written
from mainspring.admin.schedules.form import FIELDS, field_of, options_from
from mainspring.admin.schedules.form import form_of as form_of_draft
from mainspring.admin.schedules.orders import ScheduleDone, ScheduleEffect, Schedules
from mainspring.admin.schedules.sheet import legend
from mainspring.admin.schedules.triggers import calendars_of
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.access import AccessRole
from mainspring.model.schedule import Schedule
from mainspring.tasks.checks import valid_name
from mainspring.triggers.codec import decode
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.forms import asked, form_of, text, when, whole
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Payloads, Plain, redaction_of
from mainspring.web.rendering import done, page
from mainspring.web.services import AnAdmin, Services, TheServices

routes = Routes("schedules", PageRoute, include_in_schema=False)
_DAY = timedelta(days=1)
MOST_SKIPS = 1000
_MOST = 2**31 - 1


def path_of(name: str) -> str:
    """The page of the schedule of this name."""
    return f"/schedules/{quote(name)}"


@routes.get("/schedules/{name:path}/-/part")
async def part(request: Request, services: TheServices, name: str) -> Response:
    return page(request, "parts/schedule.html", **await _values(request, services, name))


@routes.get("/schedules/{name:path}/-/why")
async def why(request: Request, services: TheServices, name: str) -> Response:
    """What became of a slot, or what kept a job from being made at a moment."""
    at = when(asked(request), "at")
    answer = None if at is None else await services.questions.schedules.awhy(name, at)
    return page(request, "parts/why.html", name=name, answer=answer, at=at)


@routes.post("/schedules/{name:path}/-/pause", role=AccessRole.OPERATOR, order=Schedules.apause)
async def pause(request: Request, admin: AnAdmin, name: str) -> Response:
    note = text(await form_of(request), "note")
    [answer] = await admin.schedules.apause(name, note=note)
    return _said(request, answer, "Paused: its slots are skipped from now on.")


@routes.post("/schedules/{name:path}/-/resume", role=AccessRole.OPERATOR, order=Schedules.aresume)
async def resume(request: Request, admin: AnAdmin, name: str) -> Response:
    [answer] = await admin.schedules.aresume(name)
    return _said(request, answer, "Resumed: slots of the pause are not caught up.")


@routes.post("/schedules/{name:path}/-/revert", role=AccessRole.OPERATOR, order=Schedules.arevert)
async def revert(request: Request, admin: AnAdmin, name: str) -> Response:
    note = text(await form_of(request), "note")
    [answer] = await admin.schedules.arevert(name, note=note)
    return _said(request, answer, "Handed back: what code declares next counts.")


@routes.post("/schedules/{name:path}/-/skip", role=AccessRole.OPERATOR, order=Schedules.askip)
async def skip(request: Request, admin: AnAdmin, name: str) -> Response:
    count = whole(await form_of(request), "count", least=1, most=MOST_SKIPS) or 1
    answer = await admin.schedules.askip(name, count)
    slots = "Its next slot is" if answer.skips == 1 else f"Its next {answer.skips} slots are"
    return done(request, path_of(name), f"{slots} to be skipped.")


@routes.post("/schedules/{name:path}/-/trigger", role=AccessRole.OPERATOR, order=Schedules.atrigger)
async def trigger(request: Request, admin: AnAdmin, name: str) -> Response:
    answer = await admin.schedules.atrigger(name)
    return done(request, path_of(name), f"Triggered: job {answer.job_id} is in queue {answer.queue}.")


@routes.post("/schedules/{name:path}/-/delete", role=AccessRole.ADMIN, order=Schedules.adelete)
async def delete(request: Request, admin: AnAdmin, name: str) -> Response:
    typed = (await form_of(request)).get("name", "")
    if typed != name:
        raise InvalidArgument("name", typed, f"the name of the schedule, {name}")
    [answer] = await admin.schedules.adelete(name)
    if answer.effect is ScheduleEffect.NONE:
        return done(request, "/schedules", f"{name} {answer.why}.", kind="warn")
    return done(request, "/schedules", f"Deleted {name}; its ledger, versions and jobs stay.")


@routes.get("/schedules/{name:path}/-/edit", role=AccessRole.OPERATOR)
async def edit(request: Request, services: TheServices, name: str) -> Response:
    stored = await _stored(services, name)
    return await _form(request, services, stored, {}, None)


@routes.get("/schedules/{name:path}/-/preview", role=AccessRole.OPERATOR)
async def preview(request: Request, services: TheServices, admin: AnAdmin, name: str) -> Response:
    """What the schedule would do if the form were sent; nothing is written."""
    stored = await _stored(services, name)
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
        hide=Payloads(services),
    )


@routes.post("/schedules/{name:path}/-/edit", role=AccessRole.OPERATOR, order=Schedules.aedit)
async def save(request: Request, services: TheServices, admin: AnAdmin, name: str) -> Response:
    stored = await _stored(services, name)
    said = await form_of(request)
    try:
        written = await _written(admin, stored, said, dry_run=False)
    except InvalidArgument as refused:
        return await _form(request, services, stored, said, refused)
    if not written.differences:
        return done(request, path_of(name), "Nothing was changed.", kind="info")
    changed = ", ".join(each.field for each in written.differences)
    return done(request, path_of(name), f"Changed {changed}: it is at version {written.version}.")


# The last of the paths: a name may hold anything, so that this one fits all of them.
@routes.get("/schedules/{name:path}")
async def show(request: Request, services: TheServices, name: str) -> Response:
    """The whole page."""
    values = await _values(request, services, name)
    at = when(asked(request), "at")
    answer = None if at is None else await services.questions.schedules.awhy(name, at)
    return page(request, "schedule.html", answer=answer, at=at, **values)


class _Stored(NamedTuple):
    schedule: Schedule
    draft: Draft
    form: dict[str, str]


async def _values(request: Request, services: Services, name: str) -> dict[str, Any]:
    before = when(asked(request), "before")
    sheet = await services.questions.schedules.asheet(name, before=before)
    return {
        "name": name,
        "sheet": sheet,
        "legend": legend(sheet.tiles),
        "before": before,
        "hide": Payloads(services),
        "topic": _topic(name),
        "declared": name in services.app._registry.schedules,
        "yesterday": sheet.now.replace(hour=0, minute=0, second=0, microsecond=0) - _DAY,
    }


def _topic(name: str) -> str:
    """The topic of the page; a name that is not valid today has no topic."""
    try:
        return f"schedule/{valid_name(name, 'schedule').replace('/', '~')}"
    except InvalidArgument:
        return ""


def _said(request: Request, answer: ScheduleDone, words: str) -> Response:
    if answer.effect is ScheduleEffect.NONE:
        return done(request, path_of(answer.name), f"It {answer.why}.", kind="warn")
    return done(request, path_of(answer.name), words)


async def _stored(services: Services, name: str) -> _Stored:
    store = await services.store()
    schedule = await store.schedules.get(name)
    if schedule is None:
        raise NotFound("schedule", name)
    calendars = await calendars_of(store, [schedule.trigger])
    draft = Draft.of(schedule, decode(schedule.trigger, calendars))
    return _Stored(schedule, draft, form_of_draft(draft, redaction_of(services)))


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
    services: Services,
    stored: _Stored,
    said: Mapping[str, str],
    error: InvalidArgument | None,
) -> Response:
    schedule = stored.schedule
    calendars = sorted({each.name for each in await (await services.store()).calendars.all()})
    values: dict[str, Any] = {
        "name": schedule.name,
        "schedule": schedule,
        "form": {
            **stored.form,
            # Secrets in these are hidden already, and the other values come from the same request.
            **{each: Plain(stored.form[each]) for each in ("args", "kwargs")},
            "note": "",
            "version": str(schedule.version),
            **{name: Plain(value) for name, value in said.items()},
        },
        "error": error,
        "wrong": None if error is None else field_of(error, said),
        "calendars": calendars,
        "declared": schedule.name in services.app._registry.schedules,
        "fields": _fields(),
    }
    return page(request, "schedule_edit.html", status=200 if error is None else 422, **values)


def _fields() -> tuple[str, ...]:
    return ("kind", *FIELDS)
