"""Slots kept to business days, against a walk over every slot."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.calendars import Calendar, from_dates
from mainspring.triggers.codec import calendar_of, decode
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every, Instants
from mainspring.triggers.rolled import Roll, Rolled, is_skipped
from mainspring.triggers.rrule import RRule
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import LocalClock, zone
from tests.support.budget import within_calls

DAY = timedelta(days=1)
ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Jerusalem", "America/Havana", "Africa/Cairo"]
XMAS = from_dates("de", [date(2026, 12, 25), date(2026, 12, 26)], tz="Europe/Berlin")


def utc(*numbers: int) -> datetime:
    return datetime(*numbers, tzinfo=UTC)


def triggers(tz: str) -> list[Trigger]:
    return [
        Cron("30 2 * * *", tz), Cron("0 0 * * *", tz), Cron("*/20 * * * *", tz), Cron("15 9,17 1,15 * *", tz),
        Every(timedelta(hours=5)), Every(timedelta(minutes=50)),
        RRule("FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30", datetime(2026, 1, 1), tz),  # noqa: DTZ001
        Cron("0 12 29 2 *", tz),
    ]  # fmt: skip


def walked(rolled: Rolled, first: datetime, last: datetime) -> list[datetime]:
    """Every slot in (first, last], each moved by the rule as it is written."""
    local, calendar = LocalClock(zone(rolled.tz)), rolled.calendar
    found, slot = set(), rolled.trigger.next_after(first - 40 * DAY)
    while slot is not None and slot <= last + 40 * DAY:
        wall = slot.astimezone(zone(rolled.tz)).replace(tzinfo=None, fold=0)
        day = wall.date()
        if not calendar.is_business_day(day):
            forward = rolled.roll is Roll.NEXT
            day = calendar.next_business_day(day) if forward else calendar.previous_business_day(day)
            moved = local.settled(datetime.combine(day, wall.time()))
        else:
            moved = slot
        found.add(moved)
        slot = rolled.trigger.next_after(slot)
    return sorted(each for each in found if first < each <= last)


@st.composite
def rolled_triggers(draw: st.DrawFn) -> Rolled:
    tz = draw(st.sampled_from(ZONES))
    days = draw(st.lists(st.dates(date(2026, 1, 1), date(2026, 12, 31)), max_size=60))
    weekend = draw(st.sampled_from([(5, 6), (4, 5), (), (0, 1, 2, 3, 5, 6)]))
    calendar = from_dates("c", days, weekend=weekend, tz=tz)
    roll = draw(st.sampled_from([Roll.NEXT, Roll.PREVIOUS]))
    return Rolled(draw(st.sampled_from(triggers(tz))), calendar, roll)


@st.composite
def moments(draw: st.DrawFn) -> datetime:
    """Half of them in the weeks when clocks change."""
    odd = [utc(2026, month, day) for month, day in ((3, 5), (3, 25), (4, 2), (4, 23), (10, 22), (10, 30))]
    seconds = st.integers(0, 300 * 86_400).map(lambda each: utc(2026, 1, 1) + timedelta(seconds=each))
    return draw(st.sampled_from(odd) | seconds)


@settings(max_examples=60, deadline=None)
@given(rolled_triggers(), moments())
def test_it_agrees_with_a_walk_over_every_slot(rolled: Rolled, moment: datetime) -> None:
    expected = walked(rolled, moment, moment + 8 * DAY)

    found, slot = [], rolled.next_after(moment)
    while slot is not None and slot <= moment + 8 * DAY:
        found.append(slot)
        slot = rolled.next_after(slot)

    assert found == expected


@settings(max_examples=100, deadline=None)
@given(rolled_triggers(), moments(), st.floats(0, 0.999))
def test_the_answer_does_not_depend_on_where_one_starts_to_ask(
    rolled: Rolled, moment: datetime, part: float
) -> None:
    slot = rolled.next_after(moment)

    assert slot is not None
    assert slot > moment
    assert rolled.next_after(moment + (slot - moment) * part) == slot
    assert decode(rolled.encode(), {("c", 1): rolled.calendar}) == rolled


@pytest.mark.parametrize(
    ("roll", "expected"),
    [
        ("next", [utc(2026, 12, 24, 8), utc(2026, 12, 28, 8), utc(2026, 12, 29, 8)]),
        ("previous", [utc(2026, 12, 24, 8), utc(2026, 12, 28, 8), utc(2026, 12, 29, 8)]),
        ("skip", [utc(2026, 12, 24, 8), utc(2026, 12, 25, 8), utc(2026, 12, 26, 8)]),
    ],
)
def test_slots_that_come_to_lie_on_one_instant_are_one(roll: Roll, expected: list[datetime]) -> None:
    trigger = Rolled(Cron("0 9 * * *", "Europe/Berlin"), XMAS, roll)

    found = [utc(2026, 12, 23, 20)]
    for _ in expected:
        found.append(trigger.next_after(found[-1]) or found[-1])

    assert found[1:] == expected


def test_the_last_day_of_a_month_can_be_the_business_day_before() -> None:
    last_day = RRule("FREQ=MONTHLY;BYMONTHDAY=-1", utc(2026, 1, 1, 18))
    trigger = Rolled(last_day, XMAS, Roll.PREVIOUS, "UTC")

    assert trigger.next_after(utc(2026, 1, 1)) == utc(2026, 1, 30, 18)
    assert trigger.next_after(utc(2026, 1, 30, 18)) == utc(2026, 2, 27, 18)


def test_a_gap_at_midnight_hides_no_slot() -> None:
    every = Every(timedelta(minutes=50))
    trigger = Rolled(every, from_dates("cu", [], tz="America/Havana"), Roll.NEXT)

    assert every.next_after(utc(2026, 3, 8, 4, 59)) == utc(2026, 3, 8, 5)
    assert trigger.next_after(utc(2026, 3, 9, 4, 50)) == utc(2026, 3, 9, 5)


def test_only_with_skip_a_slot_is_skipped() -> None:
    daily, holiday = Cron("0 9 * * *", "Europe/Berlin"), utc(2026, 12, 25, 8)
    skipping = Bounded(Rolled(daily, XMAS, Roll.SKIP), start=utc(2026, 1, 1))

    assert is_skipped(skipping, holiday)
    assert not is_skipped(skipping, utc(2026, 12, 24, 8))
    assert not is_skipped(Rolled(daily, XMAS, Roll.NEXT), holiday)
    assert not is_skipped(daily, holiday)


def test_the_zone_says_what_date_it_is() -> None:
    eve = utc(2026, 12, 24, 23, 30)

    assert Rolled(Instants((eve,)), XMAS, Roll.SKIP).is_skipped(eve)
    assert not Rolled(Instants((eve,)), XMAS, Roll.SKIP, "UTC").is_skipped(eve)


def test_the_text_names_the_calendar_and_its_version() -> None:
    trigger = Bounded(Rolled(Cron("@daily"), XMAS, Roll.NEXT, "UTC"), end=utc(2027, 1, 1))

    assert trigger.encode() == (
        '{"bounded":{"calendar":{"name":"de","version":1},"roll":"next",'
        '"rolled":{"cron":"0 0 * * *","tz":"UTC"},"tz":"UTC"},"end":"2027-01-01T00:00:00+00:00"}'
    )
    assert calendar_of(trigger.encode()) == ("de", 1)
    assert calendar_of(Cron("@daily").encode()) is None
    assert decode(trigger.encode(), {("de", 1): XMAS}) == trigger


def test_a_calendar_that_is_not_given_is_named() -> None:
    text = Rolled(Cron("@daily"), XMAS, Roll.NEXT).encode()

    with pytest.raises(InvalidArgument, match=r"calendar: expected .* version 1, got 'de'"):
        decode(text)
    with pytest.raises(InvalidArgument, match="de"):
        decode(text, {("de", 2): Calendar("de", 2)})


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"calendar":{}}', '{"bounded":[]}', '{"roll":"up","rolled":1}']
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="trigger"):
        decode(text)


def test_text_without_a_calendar_is_read_once() -> None:
    text = Bounded(Cron("@daily"), end=utc(2027, 1, 1)).encode()

    assert decode(text) is decode(text, {("de", 1): XMAS})


def test_an_unknown_roll_and_a_roll_of_a_roll_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="on_holiday: expected one of skip, next, previous"):
        Rolled(Cron("@daily"), XMAS, "sideways")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="trigger"):
        Rolled(Rolled(Cron("@daily"), XMAS, Roll.NEXT), XMAS, Roll.SKIP)


def test_a_trigger_that_ends_ends() -> None:
    trigger = Rolled(Instants((utc(2026, 12, 25),)), XMAS, Roll.NEXT, "UTC")

    assert trigger.next_after(utc(2026, 1, 1)) == utc(2026, 12, 28)
    assert trigger.next_after(utc(2026, 12, 28)) is None
    assert trigger.next_after(datetime.max.replace(tzinfo=UTC)) is None


def test_a_year_of_holidays_costs_no_walk_over_its_slots() -> None:
    closed = from_dates("closed", [date(2026, 1, 1) + n * DAY for n in range(350)])
    trigger = Rolled(Cron("* * * * *", "Europe/Berlin"), closed, Roll.NEXT, "Europe/Berlin")

    with within_calls(400_000):
        slot = trigger.next_after(utc(2026, 1, 1))

    assert slot == utc(2026, 12, 16, 23)
