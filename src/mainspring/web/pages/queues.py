"""Queues and limits: what waits where, and what is in its way; pause and resume."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Form
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.queues import Queues, gate_in_words, gate_name
from mainspring.model.access import AccessRole
from mainspring.web.desk import AnAdmin, AtDesk, Desk
from mainspring.web.frame.flash import done
from mainspring.web.frame.rendering import page
from mainspring.web.pages.queries import Text
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

LIMITS, HOLDERS = 200, 10
routes = Routes("queues", PageRoute, include_in_schema=False)


@routes.get("/queues")
async def queues(request: Request, desk: AtDesk, limit: Text = None) -> Response:
    return page(request, "queues.html", **await _all(desk, limit))


@routes.get("/queues/part")
async def queues_part(request: Request, desk: AtDesk, limit: Text = None) -> Response:
    return page(request, "parts/queues.html", **await _all(desk, limit))


@routes.post("/queues/pause", role=AccessRole.OPERATOR, order=Queues.apause)
async def pause(
    request: Request, admin: AnAdmin, name: Annotated[str, Form()], note: Annotated[Text, Form()] = None
) -> Response:
    one_line = None if note is None else " ".join(note.split())
    paused = await admin.queues.apause(name, note=one_line)
    said = "is paused: nothing more is claimed from it" if paused else "was paused already"
    return done(request, "/queues", f"Queue {name} {said}.", kind="good" if paused else "warn")


@routes.post("/queues/resume", role=AccessRole.OPERATOR, order=Queues.aresume)
async def resume(request: Request, admin: AnAdmin, name: Annotated[str, Form()]) -> Response:
    resumed = await admin.queues.aresume(name)
    said = "goes on" if resumed else "was not paused"
    return done(request, "/queues", f"Queue {name} {said}.", kind="good" if resumed else "warn")


async def _all(desk: Desk, limit: str | None) -> dict[str, Any]:
    gates = await desk.questions.limits.afind(name=limit, limit=LIMITS + 1, holders=HOLDERS)
    return {
        "queues": await desk.questions.queues.aall(about=True),
        "gates": [(each, gate_name(each.gate), gate_in_words(each.gate)) for each in gates[:LIMITS]],
        "more": len(gates) > LIMITS,
        "limit": limit,
    }
