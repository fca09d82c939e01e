"""Is everything as it should be, and did every slot happen, once?"""

from __future__ import annotations

import platform
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.health.doctor import examine
from mainspring.admin.health.finding import Check, Level
from mainspring.admin.slot_verification.auditing import Auditor, ReportView
from mainspring.model.value import Value
from mainspring.version import __version__
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


class About(Value, frozen=True, kw_only=True):
    """The program that answers, and the tasks that its app declares."""

    version: str
    python: str
    now: datetime
    tasks: tuple[str, ...]


class Checks(Value, frozen=True, kw_only=True):
    """What the checks found; `ok` where none of them failed."""

    ok: bool
    items: tuple[Check, ...]


@routes.get("/version", **answers(About))
async def about(desk: AtDesk) -> Response:
    """Of whom these answers are, and which tasks the app that serves declares."""
    now = await (await desk.store()).now(at=desk.clock.stamp())
    tasks = tuple(sorted(desk.app.registry.tasks))
    return json(About(version=__version__, python=platform.python_version(), now=now, tasks=tasks))


@routes.get("/doctor", **answers(Checks))
async def doctor(desk: AtDesk) -> Response:
    """Check the database, the fleet and the queues."""
    checks = await examine(await desk.store(), desk.clock)
    ok = all(each.level is not Level.FAIL for each in checks)
    return json(Checks(ok=ok, items=tuple(checks)))


@ledger.get("/ledger/audit", **answers(ReportView))
async def prove(desk: AtDesk, which: Annotated[Range, Query()]) -> Response:
    """Compute anew every slot that should have happened, and compare with the ledger and the jobs."""
    auditor = Auditor(await desk.store(), desk.clock, keep=desk.app.settings.retention.history)
    report = await auditor.audit(
        start=at(which.start, "from"),
        end=at(which.end, "to"),
        name=which.schedule,
        late=length(which.late, "late") or timedelta(),
    )
    return json(ReportView.of(report, strict=which.strict))
