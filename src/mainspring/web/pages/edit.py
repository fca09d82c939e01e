"""Giving a dead letter other arguments: first shown beside those it has, then written."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, NamedTuple

from fastapi import Form
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.dead_letters import Arguments, DeadLetters
from mainspring.admin.redact import restored
from mainspring.admin.views import call_view
from mainspring.declare.jsontext import read_json
from mainspring.declare.task import Task
from mainspring.errors import InvalidArgument, UnknownTask
from mainspring.model.access import AccessRole
from mainspring.model.history import DeadJob
from mainspring.web.desk import AnAdmin, AtDesk, Desk
from mainspring.web.frame.flash import done
from mainspring.web.frame.rendering import page
from mainspring.web.frame.shapes import json_text
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.queries import JobId
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Plain
from mainspring.web.routes import Routes

routes = Routes("dead", PageRoute, include_in_schema=False)

_ARRAY, _OBJECT = "a JSON array", "a JSON object"


class Line(NamedTuple):
    """A line of the difference: `sign` is +, - or nothing."""

    sign: str
    text: str


@routes.get("/dead/{job_id}/edit", role=AccessRole.OPERATOR)
async def edit(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    letter = await desk.questions.dead_letters.aget(job_id)
    had = call_view(letter.payload)
    shown = Payloads(desk).call(letter.payload)
    return page(
        request,
        "edit.html",
        letter=letter,
        args=Plain(json_text(shown["args"] or [])),
        kwargs=Plain(json_text(shown["kwargs"] or {})),
        wrong=None,
        lines=(),
        checked=_task(desk, letter) is not None,
        unreadable=had["args"] is None,
    )


@routes.post("/dead/{job_id}/edit", role=AccessRole.OPERATOR, order=DeadLetters.aedit)
async def write(
    request: Request,
    desk: AtDesk,
    admin: AnAdmin,
    job_id: JobId,
    args: Annotated[str, Form()] = "[]",
    kwargs: Annotated[str, Form()] = "{}",
    step: Annotated[str, Form()] = "look",
) -> Response:
    """First the difference is shown; with `step` write or replay it is written."""
    letter = await desk.questions.dead_letters.aget(job_id)
    task = _task(desk, letter)

    def change(found: DeadJob, had: Arguments) -> Arguments:
        wanted = _read(args, kwargs)
        seen = Payloads(desk).call(found.payload)
        back: Arguments = (
            restored(wanted[0], had[0], seen["args"]),  # type: ignore[assignment]
            restored(wanted[1], had[1], seen["kwargs"]),
        )
        if task is not None:
            task.check(*back)
        return back

    values: dict[str, Any] = {
        "letter": letter,
        # What the same request said.
        "args": Plain(args),
        "kwargs": Plain(kwargs),
        "checked": task is not None,
        "unreadable": False,
    }
    try:
        now = change(letter, _had(letter))
    except InvalidArgument as wrong:
        return page(request, "edit.html", status=422, **values, wrong=wrong, lines=())
    if step not in ("write", "replay"):
        return page(request, "edit.html", **values, wrong=None, lines=_difference(desk, letter, now))
    _, changed = await admin.dead_letters.aedit(job_id, change)
    said = "Its arguments were changed" if changed else "Its arguments were these already"
    if step == "replay":
        await admin.dead_letters.areplay(job_id)
        said += ", and it went back into its queue"
    return done(request, f"/jobs/{job_id}", f"{said}.")


def _read(args: str, kwargs: str) -> Arguments:
    listed = read_json(args, "args", expected=_ARRAY)
    named = read_json(kwargs, "kwargs", expected=_OBJECT)
    if not isinstance(listed, list):
        raise InvalidArgument("args", args, _ARRAY)
    if not isinstance(named, dict):
        raise InvalidArgument("kwargs", kwargs, _OBJECT)
    return listed, named


def _had(letter: DeadJob) -> Arguments:
    seen = call_view(letter.payload)
    return seen["args"] or [], seen["kwargs"] or {}  # type: ignore[return-value]


def _task(desk: Desk, letter: DeadJob) -> Task[..., Any] | None:
    """What the task may be given, where this process knows it."""
    try:
        return desk.app.registry.get(letter.task)
    except UnknownTask:
        return None


def _difference(desk: Desk, letter: DeadJob, now: Arguments) -> list[Line]:
    old = json_text(Payloads(desk).call(letter.payload)).splitlines()
    new = json_text(Payloads(desk).value({"args": now[0], "kwargs": now[1]})).splitlines()
    return [Line(each[0].strip(), each[2:]) for each in difflib.ndiff(old, new) if each[0] in "+- "]
