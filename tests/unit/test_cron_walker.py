"""Random expressions, zones and instants, against a walker that goes minute by minute.

MAINSPRING_TEST_TRIPLES sets how many; 100000 takes a few minutes.
"""

from __future__ import annotations

import os
import random
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest

from mainspring.errors import InvalidArgument
from mainspring.triggers.cron import Cron
from mainspring.triggers.zones import zone
from tests.support.walker import MONTHS, WEEKDAYS, Stretch, transitions

TRIPLES = int(os.environ.get("MAINSPRING_TEST_TRIPLES", "5000"))
EXPRESSIONS, INSTANTS = 10, 5
SHARES = 20
ZONES = [
    "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/Sao_Paulo",
    "America/Havana", "America/Santiago", "America/St_Johns", "Africa/Cairo", "Africa/Casablanca",
    "Asia/Tehran", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Gaza", "Asia/Pyongyang", "Australia/Lord_Howe",
    "Pacific/Apia", "Pacific/Chatham", "Pacific/Norfolk", "Antarctica/Troll", "Antarctica/Casey", "UTC",
]  # fmt: skip
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


@cache
def changes(tz: str) -> list[datetime]:
    return transitions(zone(tz), 1990, 2040)


def values(chance: random.Random, low: int, high: int, names: list[str] | None = None) -> str:
    def value() -> str:
        found = chance.randint(low, high)
        return names[found - low] if names and chance.random() < 0.3 else str(found)

    match chance.randrange(4):
        case 0:
            return f"{value()}-{value()}"
        case 1:
            return f"{value()}-{value()}/{chance.randint(1, min(7, high - low))}"
        case 2:
            return ",".join(value() for _ in range(chance.randint(2, 4)))
        case _:
            return value()


def field(chance: random.Random, low: int, high: int, stars: float, names: list[str] | None = None) -> str:
    if chance.random() < stars:
        return chance.choice(["*", "*", f"*/{chance.randint(1, high - low)}"])
    return values(chance, low, high, names)


def days(chance: random.Random) -> tuple[str, str]:
    day, weekday = field(chance, 1, 31, 0.8), field(chance, 0, 6, 0.8, WEEKDAYS)
    if chance.random() < 0.2:
        day = chance.choice(["L", "LW", "1W", "31W", f"{chance.randint(1, 31)}W", "5W,20", "L,10-20"])
    if chance.random() < 0.2:
        weekday = chance.choice(["5L", "SUN#1", "0#5", "7", "7-3", "1L,3", "FRI-MON", "SATL", "6#2,0"])
    return day, weekday


def hours(chance: random.Random) -> str:
    # The clocks change at night: fixed hours near midnight are the ones that tell.
    near = [
        "0",
        "1",
        "2",
        "3",
        "23",
        "1-3",
        "22-2",
        "0,2",
        "23-1",
        "2-2",
        "0-23",
        "0-23/2",
        "*/2",
        "*/3",
        "*",
    ]
    return chance.choice(near) if chance.random() < 0.7 else field(chance, 0, 23, 0.4)


def expression(chance: random.Random) -> str:
    day, weekday = days(chance)
    month = field(chance, 1, 12, 0.9, MONTHS)
    return f"{field(chance, 0, 59, 0.5)} {hours(chance)} {day} {month} {weekday}"


def near_a_change(chance: random.Random, tz: str) -> datetime:
    if changes(tz) and chance.random() < 0.8:
        return chance.choice(changes(tz))
    return datetime(1990, 1, 1, tzinfo=UTC) + timedelta(chance.randrange(50 * 365))


def some_moment(chance: random.Random, stretch: Stretch, middle: datetime) -> datetime:
    """Anywhere in two days; half of the time within an hour or so of the change itself."""
    if stretch.changes and chance.random() < 0.5:
        return chance.choice(stretch.changes) + chance.randint(-5400, 5400) * SECOND
    return middle - DAY + chance.randrange(2 * 86_400_000) * timedelta(milliseconds=1)


def policies(chance: random.Random) -> tuple[str, str]:
    return chance.choice(["shift", "skip"]), chance.choice(["first", "second", "both"])


def some_cron(chance: random.Random, tz: str, seconds: str = "") -> Cron:
    while True:
        try:
            return Cron(seconds + expression(chance), tz, *policies(chance))
        except InvalidArgument as refusal:
            # A date that never comes, such as 31 FEB, is the one thing the generator may get wrong.
            assert "a date that exists" in str(refusal)


def agree(cron: Cron, stretch: Stretch, moments: list[datetime], end: datetime) -> None:
    expected = stretch.fires(cron.expression, cron.gap, cron.fold)
    for moment in moments:
        place = bisect_right(expected, moment)
        slot = cron.next_after(moment)
        if place < len(expected) and expected[place] < end:
            assert slot == expected[place], (cron, moment)
        else:
            assert slot is None or slot >= end, (cron, moment)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(SHARES))
def test_the_next_slot_is_the_one_the_walker_finds(share: int) -> None:
    chance = random.Random(share)
    for _ in range(max(1, TRIPLES // (SHARES * EXPRESSIONS * INSTANTS))):
        tz = chance.choice(ZONES)
        middle = near_a_change(chance, tz)
        stretch = Stretch(zone(tz), middle - 3 * DAY, 7 * 24 * 60)
        for _ in range(EXPRESSIONS):
            moments = [some_moment(chance, stretch, middle) for _ in range(INSTANTS)]
            agree(some_cron(chance, tz), stretch, moments, middle + 2 * DAY)


@pytest.mark.parametrize("tz", ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Cairo"])
def test_the_next_slot_in_seconds_is_the_one_the_walker_finds(tz: str) -> None:
    chance = random.Random(tz)
    for change in chance.sample(changes(tz), 2):
        stretch = Stretch(zone(tz), change - timedelta(hours=4), 32 * 3600, SECOND)
        moments = [change + chance.randrange(24 * 3600) * SECOND for _ in range(10)]
        for _ in range(4):
            cron = some_cron(chance, tz, f"{field(chance, 0, 59, 0.5)} ")
            agree(cron, stretch, moments, change + DAY)


@pytest.mark.parametrize("tz", ZONES)
def test_slots_do_not_depend_on_where_the_walk_began(tz: str) -> None:
    chance = random.Random(tz)
    for _ in range(8):
        cron, start = some_cron(chance, tz), near_a_change(chance, tz) - DAY
        walked, slot = [], cron.next_after(start)
        while slot is not None and slot < start + 3 * DAY and len(walked) < 300:
            walked.append(slot)
            slot = cron.next_after(slot)
        for before, after in pairwise(walked):
            inside = before + (after - before) * chance.random()

            assert cron.next_after(inside) == after
            assert cron.next_after(after - timedelta(microseconds=1)) == after
