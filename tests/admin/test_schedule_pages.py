"""What the pages of schedules and of health read, on both stores."""

from __future__ import annotations

import pytest

from mainspring.admin.admin import Admin
from mainspring.admin.health.finding import Level
from mainspring.admin.health.sheet import health_sheet
from mainspring.errors import NotFound
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import ScheduleFilter
from mainspring.triggers.cron import Cron
from tests.support.desk import DAY, HOUR, MINUTE, Desk

NIGHTLY = Cron("30 2 * * *", "Europe/Berlin")


def _put(desk: Desk, name: str) -> None:
    first = NIGHTLY.next_after(desk.now)
    assert first is not None
    desk.schedule(
        name,
        trigger=NIGHTLY.encode(),
        next_at=first,
        following_at=NIGHTLY.next_after(first),
        payload=b'{"a":1}',
    )


def _fire(desk: Desk) -> None:
    slot = min(each.next_at for each in desk.schedules() if each.next_at is not None)
    desk.clock.move_to(slot)
    desk.fire_due(next_at=NIGHTLY.next_after(slot))


def test_a_sheet_has_its_slots_its_next_fires_and_its_reasons(desk: Desk, admin: Admin) -> None:
    desk.join(1, lease=9 * DAY)
    _put(desk, "a")
    _fire(desk)
    desk.end(desk.take(), Verdict.SUCCEEDED)
    desk.pause("a", note="because")
    sheet = desk.run(admin.schedules.asheet("a"))

    assert [tile.state for tile in sheet.tiles] == [JobState.SUCCEEDED]
    assert (sheet.tz, sheet.older, sheet.overdue) == ("Europe/Berlin", None, None)
    assert sheet.fires is not None
    assert {fire.note for fire in sheet.fires} == {"skipped: paused"}
    assert [step.version.change.value for step in sheet.history] == ["paused", "created"]
    assert "because" in sheet.why.next.sentence
    with pytest.raises(NotFound):
        desk.run(admin.schedules.asheet("nobody"))


def test_slots_to_be_skipped_are_told_of_those_that_come_next(desk: Desk, admin: Admin) -> None:
    _put(desk, "a")
    desk.skip(2, "a")
    sheet = desk.run(admin.schedules.asheet("a"))

    assert sheet.fires is not None
    assert [fire.skipped for fire in sheet.fires][:3] == [True, True, False]


def test_the_list_tells_what_came_of_the_last_slot_and_what_is_overdue(desk: Desk, admin: Admin) -> None:
    desk.join(1, lease=9 * DAY)
    _put(desk, "a")
    _fire(desk)
    desk.schedule("late", trigger='{"moon":"full"}', next_at=desk.now + MINUTE)
    desk.advance(HOUR)
    summary = desk.run(admin.schedules.asummary())
    found = desk.run(admin.schedules.alisted(ScheduleFilter(text="A")))

    assert (summary.counts.total, summary.counts.overdue) == (2, 1)
    assert [each.schedule.name for each in summary.overdue] == ["late"]
    assert summary.overdue[0].overdue == HOUR - MINUTE
    assert [(each.schedule.name, each.last and each.last.words) for each in found.rows if each.last] == [
        ("a", "fired, ready")
    ]


def test_health_puts_what_is_wrong_first(desk: Desk) -> None:
    _put(desk, "a")
    sheet = desk.run(health_sheet(desk.store, desk.clock))

    assert sheet.worst is Level.FAIL
    assert sheet.checks[0].level is Level.FAIL
    assert sheet.schema_name.startswith(f"{sheet.schema_version:04}_")
    assert sheet.cost is None
    assert desk.run(desk.store.health.damage()) in ([], None)
