"""`/alerts` and `/status`: what is wrong, who was told of it, and whether telling works."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.alerts import Alerts, alert_view, rule_view, shown_view, testable, tried_view
from mainspring.admin.health.status import look, status_view, troubles
from mainspring.alerts.notification_sender import into_log
from mainspring.model.access import AccessRole
from mainspring.model.alert import AlertFilter
from mainspring.model.trouble import Rule
from mainspring.web.api import alert_shapes as shapes
from mainspring.web.api.answers import answers, answers_page, json, page
from mainspring.web.api.values import Body, Cursor, Id, Limit, Line, Params, Text
from mainspring.web.cursor import cursor, position
from mainspring.web.desk import AnAdmin, AtDesk
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

routes = Routes("alerts", ApiRoute, prefix="/api/v1/alerts", tags=["alerts"])
status = Routes("health", ApiRoute, prefix="/api/v1", tags=["health"])


class Which(Params):
    """Which alerts."""

    state: Literal["open", "recovered"] | None = None
    rule: Rule | None = None
    subject: Text | None = None
    limit: Limit = 50
    cursor: Cursor = None


class Targets(Body):
    """Whom to try: some of the targets that are set, as they are shown; all of them when none is named."""

    to: list[Line] = Field(default_factory=list, max_length=50)


@routes.get("", **answers_page(shapes.Alert))
async def list_alerts(admin: AnAdmin, which: Annotated[Which, Query()]) -> Response:
    """What was wrong and is, newest first."""
    question = ("alerts", which.state, which.rule, which.subject)
    before = position(which.cursor, *question)
    found = await admin.alerts.afind(
        AlertFilter(
            open=None if which.state is None else which.state == "open",
            rule=which.rule,
            subject=which.subject,
            before=before if isinstance(before, int) else None,
            limit=which.limit,
        )
    )
    following = cursor(found[-1].id, *question) if len(found) == which.limit else None
    return page([alert_view(each) for each in found], following)


@routes.get("/rules", **answers(shapes.AlertRules))
async def list_rules(admin: AnAdmin) -> Response:
    """Every rule, whether it is on, and its thresholds."""
    return json({"items": [rule_view(each) for each in admin.alerts.rules()]})


@routes.post("/test", role=AccessRole.OPERATOR, order=Alerts.atest, **answers(shapes.AlertTest))
async def try_targets(desk: AtDesk, admin: AnAdmin, body: Targets | None = None) -> Response:
    """Send a test alert and its recovery to targets that are set, and tell what came of each."""
    app = desk.app
    targets = testable(
        app.settings.alerts, app.clock, into_log(app.telemetry), [] if body is None else body.to
    )
    tried = await admin.alerts.atest(targets)
    return json({"items": [tried_view(each) for each in tried]})


@routes.get("/{alert_id}", **answers(shapes.AlertShown))
async def show(admin: AnAdmin, alert_id: Id) -> Response:
    """One alert, and what was said of it to whom."""
    return json(shown_view(await admin.alerts.aget(alert_id)))


@routes.post("/{alert_id}/ack", role=AccessRole.OPERATOR, order=Alerts.aack, **answers(shapes.Acknowledged))
async def ack(admin: AnAdmin, alert_id: Id) -> Response:
    """Say that somebody knows: it is not repeated."""
    return json({"id": alert_id, "changed": await admin.alerts.aack(alert_id)})


@status.get("/status", **answers(shapes.Status))
async def show_status(desk: AtDesk) -> Response:
    """How the whole stands, and what is wrong with it."""
    config = desk.app.settings.alerts
    found = await look(await desk.store(), desk.clock, config)
    return json(status_view(found, troubles(found, config)))
