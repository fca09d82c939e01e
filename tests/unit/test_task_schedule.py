"""Schedules as they are declared."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

import pytest

from mainspring.errors import InvalidArgument, UnknownTask
from mainspring.model.schedule import Misfire, NewSchedule
from mainspring.tasks.context import Context
from mainspring.tasks.registry import Registry
from mainspring.tasks.retry import Retry
from mainspring.tasks.schedule import declare_schedule
from mainspring.tasks.task import Task
from mainspring.triggers.calendars import from_dates
from mainspring.triggers.codec import decode
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every, Instants
from mainspring.triggers.rolled import Roll, Rolled
from mainspring.triggers.rrule import RRule
from mainspring.triggers.trigger import Bounded, Trigger

NOW = datetime(2026, 11, 15, 7, 30, tzinfo=UTC)
XMAS = from_dates("de", [date(2026, 12, 25)], tz="Europe/Berlin")


def report(ctx: Context, tenant: str, *, dry: bool = False) -> None: ...


@pytest.fixture
def task() -> Task[..., object]:
    return Task(report, sender=None, queue="slow", priority=5, retry=Retry(attempts=4))  # type: ignore[arg-type]


def test_a_cron_schedule_carries_its_first_two_slots(task: Task[..., object]) -> None:
    declared = declare_schedule("nightly", task, cron="0 2 * * *", tz="Europe/Berlin", args=["acme"])

    assert declared.new_schedule(NOW) == NewSchedule(
        name="nightly",
        task="report",
        trigger='{"cron":"0 2 * * *","tz":"Europe/Berlin"}',
        payload=b'{"args":["acme"]}',
        queue="slow",
        priority=5,
        max_attempts=4,
        limit_keys=(),
        misfire=Misfire.LATEST,
        catch_up=None,
        next_at=datetime(2026, 11, 16, 1, tzinfo=UTC),
        following_at=datetime(2026, 11, 17, 1, tzinfo=UTC),
    )


def test_a_cron_schedule_carries_its_policies_and_its_own_h(task: Task[..., object]) -> None:
    declared = declare_schedule(
        "nightly", task, cron="H 2 * * *", tz="Europe/Berlin", gap="skip", fold="both", args=["acme"]
    )

    expected = Cron("H 2 * * *", "Europe/Berlin", gap="skip", fold="both", key="nightly")
    assert declared.trigger == expected
    assert decode(declared.new_schedule(NOW).trigger) == expected


def test_an_interval_schedule_may_override_queue_and_priority(task: Task[..., object]) -> None:
    declared = declare_schedule(
        "often", task, every="15m", kwargs=MappingProxyType({"tenant": "acme", "dry": True}),
        queue="fast", priority=-1, catch_up="1h", misfire="latest",
    )  # fmt: skip

    written = declared.new_schedule(NOW)

    assert written.payload == b'{"kwargs":{"dry":true,"tenant":"acme"}}'
    assert (written.queue, written.priority, written.catch_up) == ("fast", -1, timedelta(hours=1))
    assert (written.next_at, written.following_at) == (
        NOW + timedelta(minutes=15),
        NOW + timedelta(minutes=30),
    )


@pytest.mark.parametrize(
    ("options", "trigger"),
    [
        ({"every": "1h", "anchor": NOW}, Every(timedelta(hours=1), NOW)),
        ({"at": NOW}, Instants((NOW,))),
        ({"at": [NOW, NOW]}, Instants((NOW,))),
        (
            {"rrule": "FREQ=DAILY", "dtstart": NOW, "tz": "Europe/Berlin", "exdates": [NOW]},
            RRule("FREQ=DAILY", NOW, "Europe/Berlin", (NOW,)),
        ),
        ({"every": "1h", "start": NOW}, Bounded(Every(timedelta(hours=1)), start=NOW)),
        (
            {"every": "1h", "calendar": XMAS, "end": NOW},
            Bounded(Rolled(Every(timedelta(hours=1)), XMAS, Roll.SKIP, "Europe/Berlin"), end=NOW),
        ),
        (
            {"cron": "@daily", "tz": "Asia/Tokyo", "calendar": XMAS, "on_holiday": "next"},
            Rolled(Cron("@daily", "Asia/Tokyo"), XMAS, Roll.NEXT, "Asia/Tokyo"),
        ),
    ],
)
def test_every_trigger_can_be_declared(
    task: Task[..., object], options: dict[str, object], trigger: Trigger
) -> None:
    declared = declare_schedule("often", task, args=["acme"], max_fires=3, **options)  # type: ignore[arg-type]

    assert declared.trigger == trigger
    assert declared.calendar is options.get("calendar")
    assert declared.new_schedule(NOW).max_fires == 3


def test_a_trigger_without_a_next_slot_is_written_without_one(task: Task[..., object]) -> None:
    declared = declare_schedule("late", task, cron="@yearly", args=["acme"])

    written = declared.new_schedule(datetime.max.replace(tzinfo=UTC))

    assert (written.next_at, written.following_at) == (None, None)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "schedule"),
        ({"cron": "@daily", "every": "1h"}, "schedule"),
        ({"cron": "@dayly"}, "cron"),
        ({"cron": "@daily", "tz": "Mars/Phobos"}, "tz"),
        ({"every": "1h", "tz": "Europe/Berlin"}, "tz"),
        ({"every": "1h", "gap": "skip"}, "gap"),
        ({"every": "1h", "fold": "both"}, "fold"),
        ({"cron": "@daily", "gap": "forward"}, "gap"),
        ({"cron": "@daily", "fold": "last"}, "fold"),
        ({"every": "1ms"}, "every"),
        ({"every": "soon"}, "every"),
        ({"cron": "@daily", "anchor": NOW}, "anchor"),
        ({"cron": "@daily", "at": NOW}, "schedule"),
        ({"every": "1h", "anchor": datetime(2026, 1, 1)}, "anchor"),  # noqa: DTZ001
        ({"every": "1h", "exdates": [NOW]}, "exdates"),
        ({"at": NOW, "tz": "Europe/Berlin"}, "tz"),
        ({"at": []}, "at"),
        ({"at": "2026-01-01"}, "at"),
        ({"rrule": "FREQ=DAILY"}, "dtstart"),
        ({"rrule": "FREQ=DAILY", "dtstart": NOW, "gap": "skip"}, "gap"),
        ({"rrule": "FREQ=SECONDLY", "dtstart": NOW}, "rrule"),
        ({"cron": "@daily", "start": NOW, "end": NOW}, "end"),
        ({"cron": "@daily", "max_fires": 0}, "schedule.max_fires"),
        ({"cron": "@daily", "max_fires": True}, "schedule.max_fires"),
        ({"cron": "@daily", "on_holiday": "skip"}, "on_holiday"),
        ({"cron": "@daily", "calendar": "de"}, "calendar"),
        ({"cron": "@daily", "calendar": XMAS, "on_holiday": "maybe"}, "on_holiday"),
        ({"cron": "@daily", "misfire": "sometimes"}, "schedule.misfire"),
        ({"cron": "@daily", "catch_up": "-1s"}, "schedule.catch_up"),
        ({"cron": "@daily", "queue": ""}, "schedule.queue"),
        ({"cron": "@daily", "priority": 500}, "schedule.priority"),
        ({"cron": "@daily", "args": []}, "report.tenant"),
        ({"cron": "@daily", "args": [{1}]}, "report.args[0]"),
        ({"cron": "@daily", "name": "a b"}, "schedule.name"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(
    task: Task[..., object], options: dict[str, object], field: str
) -> None:
    given = {"name": "nightly", "args": ["acme"]} | options

    with pytest.raises(InvalidArgument) as refusal:
        declare_schedule(task=task, **given)  # type: ignore[arg-type]

    assert refusal.value.field == field


def test_a_schedule_is_registered_once_and_only_with_its_task(task: Task[..., object]) -> None:
    registry = Registry()
    declared = declare_schedule("nightly", task, cron="@daily", args=["acme"])

    with pytest.raises(UnknownTask):
        registry.add_schedule(declared)
    registry.add_task(task)
    registry.add_schedule(declared)
    with pytest.raises(InvalidArgument, match="no other schedule has"):
        registry.add_schedule(declared)

    assert dict(registry.schedules) == {"nightly": declared}


def test_a_deadline_of_the_task_is_one_of_each_slot(task: Task[..., object]) -> None:
    hour = timedelta(hours=1)

    written = declare_schedule("s", task.using(expires="1h"), every="1d", args=["acme"]).new_schedule(NOW)
    brief = declare_schedule("s", task.using(expires="1h"), every="1d", args=["acme"], catch_up="5m")

    assert (written.expires, written.catch_up) == (hour, hour), "a slot past its deadline is not caught up"
    assert brief.new_schedule(NOW).catch_up == timedelta(minutes=5)


def test_an_instant_is_no_deadline_of_a_schedule(task: Task[..., object]) -> None:
    with pytest.raises(InvalidArgument, match=r"^schedule\.task: "):
        declare_schedule("s", task.using(expires=NOW), every="1d", args=["acme"])
