"""Nights when the clocks change, against a walker that goes minute by minute and against cronsim."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from cronsim import CronSim

from mainspring.triggers.cron import Cron
from mainspring.triggers.zones import zone
from tests.support.walker import Stretch

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
NIGHTS = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "Europe/Dublin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "America/Sao_Paulo": ("2018-11-04", "2018-02-18"),
    "America/Havana": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "Antarctica/Troll": ("2026-03-29", "2026-10-25"),
    "Pacific/Chatham": ("2026-04-05", "2026-09-27"),
    "Pacific/Apia": ("2011-12-30", "2011-12-31"),
    "Africa/Casablanca": ("2026-02-15", "2026-03-22"),
}
FIXED = ["30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 1 * * *", "59 23 * * *", "5-50/15 2 * * *"]
STARRED_MINUTE = ["* 2 * * *", "*/20 1 * * *", "*/15 22-2 * * *"]
STARRED_HOUR = ["*/15 * * * *", "0 */2 * * *", "30 * * * *", "0 */3 * * *"]


def slots(cron: Cron, start: datetime) -> list[datetime]:
    found, moment = [], start - SECOND
    while (slot := cron.next_after(moment)) is not None and slot < start + timedelta(days=3):
        found.append(slot)
        moment = slot
    return found


@pytest.mark.parametrize("tz", NIGHTS)
def test_every_slot_around_a_change_is_one_the_walker_finds(tz: str) -> None:
    policies = [(gap, fold) for gap in ("shift", "skip") for fold in ("first", "second", "both")]
    for night in NIGHTS[tz]:
        start = datetime.fromisoformat(f"{night}T00:00+00:00") - DAY
        stretch = Stretch(zone(tz), start - DAY, 5 * 24 * 60)
        for expression, (gap, fold) in [
            *product(FIXED + STARRED_MINUTE, policies),
            *product(STARRED_HOUR, policies[:1]),
        ]:
            walked = stretch.fires(expression, gap, fold)

            found = slots(Cron(expression, tz, gap, fold), start)

            assert found == [slot for slot in walked if start <= slot < start + 3 * DAY], (expression, night)


def test_a_skipped_time_moves_to_the_first_instant_after_the_gap() -> None:
    moment = datetime(2026, 3, 28, 12, tzinfo=UTC)

    assert Cron("30 2 * * *", "Europe/Berlin").next_after(moment) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_a_repeated_time_runs_the_first_time_only() -> None:
    cron = Cron("30 2 * * *", "Europe/Berlin")
    first = cron.next_after(datetime(2026, 10, 24, 12, tzinfo=UTC))

    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert cron.next_after(first) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    assert cron.next_after(first + timedelta(minutes=45)) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_seconds_are_found_through_a_repeated_hour() -> None:
    cron = Cron("*/20 * * * * *", "Europe/Berlin")
    turn = datetime(2026, 10, 25, 1, tzinfo=UTC)

    assert cron.next_after(turn - SECOND) == turn
    assert cron.next_after(turn + timedelta(minutes=30)) == turn + timedelta(minutes=30, seconds=20)


@pytest.mark.parametrize("tz", ["Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Pacific/Apia"])
@pytest.mark.parametrize("expression", FIXED + STARRED_HOUR)
def test_the_slots_are_those_of_cronsim_where_shifts_are_whole_hours(expression: str, tz: str) -> None:
    for night in NIGHTS[tz]:
        start = datetime.fromisoformat(f"{night}T00:00+00:00") - timedelta(days=1)
        theirs = CronSim(expression, (start - SECOND).astimezone(zone(tz)))
        ours = slots(Cron(expression, tz), start)

        assert ours == [next(theirs).astimezone(UTC) for _ in ours]
