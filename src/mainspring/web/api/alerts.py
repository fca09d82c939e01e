"""`/alerts` and `/status`: what is wrong, which notifiers were sent it, and whether sending works."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from mainspring.admin.alerts import (
    AlertDetail,
    Alerts,
    AlertView,
    RuleInfo,
    TriedView,
    testable,
)
from mainspring.admin.health.status import StatusView, look, troubles
from mainspring.alerts.notification_sender import into_log
from mainspring.model.access import AccessRole
from mainspring.model.alert import AlertFilter, Rule
from mainspring.model.value import Value
from mainspring.web.api.answers import answers, answers_items, answers_page, items, json, page
from mainspring.web.api.values import Body, Cursor, Id, Limit, Line, Params, Text, cursor, position
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.services import AnAdmin, TheServices

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


class Acknowledged(Value, frozen=True, kw_only=True):
    """An alert, and whether it had not been acknowledged before."""

    id: int
    changed: bool


@routes.get("", **answers_page(AlertView))
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
    return page([AlertView.of(each) for each in found], following)


@routes.get("/rules", **answers_items(RuleInfo))
async def list_rules(admin: AnAdmin) -> Response:
    """Every rule, whether it is on, and its thresholds."""
    return items(admin.alerts.rules())


@routes.post("/test", role=AccessRole.OPERATOR, order=Alerts.atest, **answers_items(TriedView))
async def try_targets(services: TheServices, admin: AnAdmin, body: Targets | None = None) -> Response:
    """Send a test alert and its recovery to targets that are set, and answer what came of each."""
    app = services.app
    targets = testable(
        app.settings.alerts, app._clock, into_log(app._telemetry), [] if body is None else body.to
    )
    tried = await admin.alerts.atest(targets)
    return items([TriedView.of(each) for each in tried])


@routes.get("/{alert_id}", **answers(AlertDetail))
async def show(admin: AnAdmin, alert_id: Id) -> Response:
    """One alert, and the messages about it."""
    return json(AlertDetail.of_shown(await admin.alerts.aget(alert_id)))


@routes.post("/{alert_id}/ack", role=AccessRole.OPERATOR, order=Alerts.aack, **answers(Acknowledged))
async def ack(admin: AnAdmin, alert_id: Id) -> Response:
    """Acknowledge an alert: it is not repeated."""
    return json(Acknowledged(id=alert_id, changed=await admin.alerts.aack(alert_id)))


@status.get("/status", **answers(StatusView))
async def show_status(services: TheServices) -> Response:
    """How the whole stands, and what is wrong with it."""
    config = services.app.settings.alerts
    found = await look(await services.store(), services.clock, config)
    return json(StatusView.of(found, troubles(found, config)))
