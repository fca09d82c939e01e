"""Backfills: what one would do, first; then run, watched and cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.admin import Admin
from mainspring.admin.backfills import MOST_AT_ONCE, BackfillPlan, Backfills
from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.model.schedule import Backfill, Reprocess
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.forms import asked, form_of, when, whole
from mainspring.web.pages.route import PageRoute
from mainspring.web.pages.schedule import path_of
from mainspring.web.rendering import done, page
from mainspring.web.services import AnAdmin

routes = Routes("backfills", PageRoute, include_in_schema=False)
SHOWN = 200
_MOST = 2**53


@routes.get("/schedules/{name:path}/-/backfill", role=AccessRole.OPERATOR)
async def plan(request: Request, admin: AnAdmin, name: str) -> Response:
    """Which slots would be run, and why or why not; nothing is written."""
    said = asked(request)
    try:
        planned, error = await _plan(admin, name, said), None
    except InvalidArgument as refused:
        planned, error = None, refused
    status = 200 if error is None else 422
    return page(
        request, "backfill.html", status=status, name=name, plan=planned, said=said, error=error, shown=SHOWN
    )


@routes.post("/schedules/{name:path}/-/backfill", role=AccessRole.OPERATOR, order=Backfills.astart)
async def start(request: Request, admin: AnAdmin, name: str) -> Response:
    planned = await _plan(admin, name, await form_of(request))
    return await _begin(request, admin.backfills.astart, planned, none="No slot of that time is to be run.")


@routes.post("/schedules/{name:path}/-/go-on", role=AccessRole.OPERATOR, order=Backfills.ago_on)
async def go_on(request: Request, admin: AnAdmin, name: str) -> Response:
    planned = await admin.backfills.aplan_left_out(name)
    return await _begin(
        request, admin.backfills.ago_on, planned, none="There is nothing that is not run already."
    )


@routes.post(
    "/schedules/{name:path}/-/backfills/{backfill_id:int}/cancel",
    role=AccessRole.OPERATOR,
    order=Backfills.acancel,
)
async def cancel(request: Request, admin: AnAdmin, name: str, backfill_id: int) -> Response:
    if not 0 <= backfill_id < _MOST:
        raise InvalidArgument("backfill", backfill_id, "the id of a backfill")
    if await admin.backfills.acancel(backfill_id):
        return done(request, path_of(name), f"Backfill {backfill_id} makes no more jobs.")
    return done(request, path_of(name), f"Backfill {backfill_id} had ended already.", kind="warn")


async def _plan(admin: Admin, name: str, said: Mapping[str, str]) -> BackfillPlan:
    begin, end = when(said, "from"), when(said, "to")
    if begin is None or end is None:
        field = "from" if begin is None else "to"
        raise InvalidArgument(field, said.get(field, ""), "a moment, in UTC where it has no offset")
    return await admin.backfills.aplan(
        name,
        start=begin,
        end=end,
        max_active=whole(said, "max_active", least=1, most=MOST_AT_ONCE),
        reverse=said.get("reverse") == "on",
        reprocess=_reprocess(said.get("reprocess", "none")),
    )


def _reprocess(value: str) -> Reprocess:
    try:
        return Reprocess(value)
    except ValueError:
        raise InvalidArgument("reprocess", value, f"one of {', '.join(Reprocess)}") from None


async def _begin(
    request: Request,
    start: Callable[[BackfillPlan], Awaitable[Backfill]],
    planned: BackfillPlan,
    *,
    none: str,
) -> Response:
    back = path_of(planned.schedule)
    if not planned.to_run:
        return done(request, back, none, kind="info")
    begun = await start(planned)
    slots = "slot" if begun.slots == 1 else "slots"
    return done(request, back, f"Backfill {begun.id} runs {begun.slots:,} {slots}.")
