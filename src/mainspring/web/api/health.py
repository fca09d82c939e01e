"""Is everything as it should be, and did every slot happen, once?"""

from __future__ import annotations

import platform
from datetime import timedelta
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.health.doctor import examine
from mainspring.admin.health.finding import Level
from mainspring.admin.slot_verification.auditing import Auditor, report_view
from mainspring.admin.views import check_view, iso
from mainspring.version import __version__
from mainspring.web.api import shapes
from mainspring.web.api.answers import answers, json
from mainspring.web.api.values import LengthText, Moment, Name, Params, at, length
from mainspring.web.desk import AtDesk
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

routes = Routes("health", ApiRoute, prefix="/api/v1", tags=["health"])
ledger = Routes("ledger", ApiRoute, prefix="/api/v1", tags=["ledger"])


class Range(Params):
    """Which slots are judged, and from when on one is late."""

    start: Moment | None = Field(default=None, alias="from")
    end: Moment | None = Field(default=None, alias="to")
    schedule: Name | None = None
    late: LengthText = "60s"
    strict: bool = False


@routes.get("/version", **answers(shapes.About))
async def about(desk: AtDesk) -> Response:
    """Of whom these answers are, and which tasks the app that serves declares."""
    now = await (await desk.store()).now(at=desk.clock.stamp())
    return json(
        {
            "version": __version__,
            "python": platform.python_version(),
            "now": iso(now),
            "tasks": sorted(desk.app._registry.tasks),
        }
    )


@routes.get("/doctor", **answers(shapes.Checks))
async def doctor(desk: AtDesk) -> Response:
    """Check the database, the fleet and the queues."""
    checks = await examine(await desk.store(), desk.clock)
    ok = all(each.level is not Level.FAIL for each in checks)
    return json({"ok": ok, "items": [check_view(each) for each in checks]})


@ledger.get("/ledger/audit", **answers(shapes.Audit))
async def prove(desk: AtDesk, which: Annotated[Range, Query()]) -> Response:
    """Compute anew every slot that should have happened, and compare with the ledger and the jobs."""
    auditor = Auditor(await desk.store(), desk.clock, keep=desk.app.settings.retention.history)
    report = await auditor.audit(
        start=at(which.start, "from"),
        end=at(which.end, "to"),
        name=which.schedule,
        late=length(which.late, "late") or timedelta(),
    )
    return json(report_view(report, strict=which.strict))
