"""`/stats`: what happened over time, by task and by queue."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from mainspring.admin.health.stats import SeriesView, Stats, StatView
from mainspring.model.stats import By
from mainspring.web.api.answers import answers, answers_items, items, json
from mainspring.web.api.values import LengthText, Moment, Name, Params, at, length
from mainspring.web.desk import AtDesk
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

routes = Routes("stats", ApiRoute, prefix="/api/v1/stats", tags=["stats"])


class Span(Params):
    """Since when, until when; by default the last three hours."""

    since: Moment | None = None
    until: Moment | None = None
    task: Name | None = None
    queue: Name | None = None


class Steps(Span):
    """And how far apart."""

    step: LengthText | None = None


@routes.get("", **answers(SeriesView))
async def series(desk: AtDesk, which: Annotated[Steps, Query()]) -> Response:
    """In columns, one place for each step: runs, failures, and how long jobs waited and took, in seconds."""
    found = await Stats(await desk.store(), desk.clock).series(
        since=at(which.since, "since"),
        until=at(which.until, "until"),
        step=length(which.step, "step"),
        task=which.task,
        queue=which.queue,
    )
    return json(SeriesView.of(found))


@routes.get("/{by}", **answers_items(StatView))
async def totals(desk: AtDesk, by: By, which: Annotated[Span, Query()]) -> Response:
    """One sum for each task or queue, the one with the most runs first."""
    found = await Stats(await desk.store(), desk.clock).totals(
        by,
        since=at(which.since, "since"),
        until=at(which.until, "until"),
        task=which.task,
        queue=which.queue,
    )
    return items([StatView.of(each) for each in found])
