"""Nights when the clocks change, against walkers that go minute by minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from mainspring.trigger.cron import Cron
from mainspring.trigger.zones import zone

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
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
ONCE = ["30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 1 * * *", "59 23 * * *", "5-50/15 2 * * *"]
REAL = ["*/15 * * * *", "0 */2 * * *", "30 * * * *", "* 2 * * *", "0 */3 * * *", "*/20 1 * * *"]


@cache
def fields(expression: str) -> CronSim:
    return CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))


def matches(expression: str, wall: datetime) -> bool:
    """All expressions here name every day."""
    return wall.minute in fields(expression).minutes and wall.hour in fields(expression).hours


def minutes(tz: ZoneInfo, start: datetime) -> Iterator[tuple[datetime, datetime]]:
    for step in range(3 * 24 * 60):
        instant = start + step * MINUTE
        yield instant, instant.astimezone(tz).replace(tzinfo=None, fold=0)


def walked_real(expression: str, tz: ZoneInfo, start: datetime) -> list[datetime]:
    return [instant for instant, wall in minutes(tz, start) if matches(expression, wall)]


def walked_once(expression: str, tz: ZoneInfo, start: datetime) -> list[datetime]:
    """Fire when the wall clock first reaches or jumps over a matching time."""
    found, reached = [], (start - MINUTE).astimezone(tz).replace(tzinfo=None)
    for instant, wall in minutes(tz, start):
        hit = False
        while reached < wall:
            reached += MINUTE
            hit |= matches(expression, reached)
        if hit:
            found.append(instant)
    return found


def slots(cron: Cron, start: datetime) -> list[datetime]:
    found, moment = [], start - SECOND
    while (slot := cron.next_after(moment)) is not None and slot < start + timedelta(days=3):
        found.append(slot)
        moment = slot
    return found


@pytest.mark.parametrize("tz", NIGHTS)
@pytest.mark.parametrize("expression", ONCE)
def test_a_fixed_time_runs_exactly_once_a_day_through_every_change(expression: str, tz: str) -> None:
    for night in NIGHTS[tz]:
        start = datetime.fromisoformat(f"{night}T00:00+00:00") - timedelta(days=1)

        assert slots(Cron(expression, tz), start) == walked_once(expression, zone(tz), start)


@pytest.mark.parametrize("tz", NIGHTS)
@pytest.mark.parametrize("expression", REAL)
def test_a_repeating_expression_runs_whenever_the_clock_shows_it(expression: str, tz: str) -> None:
    for night in NIGHTS[tz]:
        start = datetime.fromisoformat(f"{night}T00:00+00:00") - timedelta(days=1)

        assert slots(Cron(expression, tz), start) == walked_real(expression, zone(tz), start)


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
@pytest.mark.parametrize("expression", ONCE + REAL)
def test_the_slots_are_those_of_cronsim_where_shifts_are_whole_hours(expression: str, tz: str) -> None:
    for night in NIGHTS[tz]:
        start = datetime.fromisoformat(f"{night}T00:00+00:00") - timedelta(days=1)
        theirs = CronSim(expression, (start - SECOND).astimezone(zone(tz)))
        ours = slots(Cron(expression, tz), start)

        assert ours == [next(theirs).astimezone(UTC) for _ in ours]
