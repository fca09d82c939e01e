"""Schedules of workflows: parameters that nobody gives are filled from the slot."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from typing import Any

import pytest

from mainspring import Context, Mainspring, Period, Workflow
from mainspring.errors import InvalidArgument, InvalidWorkflow
from mainspring.tasks.context import Begin
from mainspring.tasks.payload import decode
from mainspring.triggers.calendars import from_dates

SLOT = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)


class Stop:
    def is_set(self) -> bool:
        return False


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("sqlite://:memory:")


@pytest.fixture
def flow(app: Mainspring) -> Workflow:
    @app.task
    def fetch(day: str) -> None: ...

    flow = app.workflow("nightly-load")
    flow.step(fetch, flow.param("day"))
    return flow


def params(flow: Workflow, slot: datetime | None, given: dict[str, object]) -> dict[str, object]:
    context = Context(
        job_id=1, task="t", queue="q", attempt=1, max_attempts=1, fence=1, log=None, stop=Stop(), slot=slot  # type: ignore[arg-type]
    )  # fmt: skip
    with pytest.raises(Begin) as begin:
        asyncio.run(flow.task(context, **given))
    return begin.value.workflow.params


def test_a_schedule_fills_in_the_local_date_of_its_slot(app: Mainspring, flow: Workflow) -> None:
    declared = app.schedule("nightly", flow, cron="0 2 * * *", tz="Europe/Berlin")

    args, kwargs = decode(declared.payload)
    assert (declared.task.name, args) == ("workflow:nightly-load", [])
    assert kwargs == {"day": {"$slot": "%Y-%m-%d", "tz": "Europe/Berlin"}}
    assert params(flow, SLOT, kwargs) == {"day": "2026-11-16"}


def test_a_form_of_one_s_own_and_defaults(app: Mainspring, flow: Workflow) -> None:
    flow.param("at", slot="%Y-%m-%dT%H:%M")
    flow.param("again", default="never", slot="%H")
    flow.param("dry", default=False)
    declared = app.schedule("hourly", flow, every="1h", kwargs={"day": "today"})

    kwargs = decode(declared.payload)[1]
    assert kwargs == {
        "day": "today",
        "at": {"$slot": "%Y-%m-%dT%H:%M", "tz": "UTC"},
        "again": {"$slot": "%H", "tz": "UTC"},
    }
    assert params(flow, SLOT, kwargs) == {
        "day": "today", "at": "2026-11-15T23:30", "again": "23", "dry": False
    }  # fmt: skip
    assert params(flow, None, {"day": "x", "at": "y"})["again"] == "never"


def test_an_interval_on_business_days_has_the_calendar_s_zone(app: Mainspring, flow: Workflow) -> None:
    days = from_dates("jp", [date(2026, 12, 25)], tz="Asia/Tokyo")
    declared = app.schedule("daily", flow, every="1d", calendar=days)

    assert decode(declared.payload)[1]["day"] == {"$slot": "%Y-%m-%d", "tz": "Asia/Tokyo"}


def test_options_of_one_call_can_be_scheduled(app: Mainspring, flow: Workflow) -> None:
    declared = app.schedule("nightly", flow.using(queue="loads"), cron="@daily")

    assert (declared.queue, declared.task.name) == ("loads", "workflow:nightly-load")
    assert "$slot" in decode(declared.payload)[1]["day"]  # type: ignore[operator]


def test_what_a_schedule_gives_must_be_known(app: Mainspring, flow: Workflow) -> None:
    with pytest.raises(InvalidArgument, match=r"only parameters it has \(day\), got 'dey'"):
        app.schedule("nightly", flow, cron="@daily", kwargs={"dey": "x"})
    with pytest.raises(InvalidArgument, match="at most 0 positional"):
        app.schedule("nightly", flow, cron="@daily", args=["x"])
    with pytest.raises(InvalidArgument, match="tz: expected an IANA time zone"):
        app.schedule("nightly", flow, cron="@daily", tz="Nowhere")
    with pytest.raises(InvalidArgument, match="calendar: expected a Calendar"):
        app.schedule("nightly", flow, every="1d", calendar="de")  # type: ignore[arg-type]


def test_a_workflow_of_another_app_is_refused(flow: Workflow) -> None:
    other = Mainspring("sqlite://:memory:")

    with pytest.raises(Exception, match="no task named 'workflow:nightly-load'"):
        other.schedule("nightly", flow, cron="@daily")


@pytest.mark.parametrize(
    ("value", "slot", "says"),
    [
        ({"$slot": "%Y", "tz": "UTC"}, None, "no schedule made this job"),
        ({"$slot": "%Y"}, SLOT, "stands for the slot"),
        ({"$slot": 5, "tz": "UTC"}, SLOT, "stands for the slot"),
        ({"$slot": "%Y", "tz": "UTC", "more": 1}, SLOT, "stands for the slot"),
        ({"$slot": "%Y", "tz": "Nowhere"}, SLOT, "IANA time zone"),
    ],
)
def test_a_slot_that_cannot_be_filled_in(flow: Workflow, value: Any, slot: Any, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        flow.begun({"day": value}, None if slot is None else Period(end=slot))


@pytest.mark.parametrize("form", ["", "day", 5, "%" * 101, "%Y\n", "\ud800%Y", "%%%"[:1]])
def test_a_form_says_something(flow: Workflow, form: Any) -> None:
    with pytest.raises(InvalidWorkflow, match=r"nightly-load\.at\.slot: expected a form"):
        flow.param("at", slot=form)
