"""What is done to one schedule from its page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.schedules.orders import ScheduleDone, ScheduleEffect, Schedules
from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.web.desk import AnAdmin
from mainspring.web.frame.flash import done
from mainspring.web.frame.forms import form_of, text, whole
from mainspring.web.pages.route import PageRoute
from mainspring.web.pages.schedule import path_of
from mainspring.web.routes import Routes

routes = Routes("schedules", PageRoute, include_in_schema=False)
MOST_SKIPS = 1000


@routes.post("/schedules/{name:path}/-/pause", role=AccessRole.OPERATOR, order=Schedules.apause)
async def pause(request: Request, admin: AnAdmin, name: str) -> Response:
    note = text(await form_of(request), "note")
    [answer] = await admin.schedules.apause(name, note=note)
    return _said(request, answer, "Paused: its slots are skipped from now on.")


@routes.post("/schedules/{name:path}/-/resume", role=AccessRole.OPERATOR, order=Schedules.aresume)
async def resume(request: Request, admin: AnAdmin, name: str) -> Response:
    [answer] = await admin.schedules.aresume(name)
    return _said(request, answer, "Resumed: slots of the pause are not caught up.")


@routes.post("/schedules/{name:path}/-/hand-back", role=AccessRole.OPERATOR, order=Schedules.arevert)
async def hand_back(request: Request, admin: AnAdmin, name: str) -> Response:
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


def _said(request: Request, answer: ScheduleDone, words: str) -> Response:
    if answer.effect is ScheduleEffect.NONE:
        return done(request, path_of(answer.name), f"It {answer.why}.", kind="warn")
    return done(request, path_of(answer.name), words)
