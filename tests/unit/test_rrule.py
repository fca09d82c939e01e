"""Recurrence rules: what RFC 5545 says, and dateutil walked from the start as the judge."""

from __future__ import annotations

import itertools
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from dateutil import rrule as judge
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.codec import decode
from mainspring.triggers.rrule import RRule
from mainspring.triggers.zones import zone

BERLIN = "Europe/Berlin"
SECOND = timedelta(seconds=1)
ZONES = ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Africa/Cairo"]
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


def wall(*numbers: int) -> datetime:
    return datetime(*numbers)  # noqa: DTZ001  a wall time has no zone


def utc(*numbers: int) -> datetime:
    return datetime(*numbers, tzinfo=UTC)


def slots(trigger: RRule, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < count and (slot := trigger.next_after(found[-1] if found else after)) is not None:
        found.append(slot)
    return found


def numbers(low: int, high: int, most: int = 3) -> st.SearchStrategy[str]:
    picked = st.lists(st.integers(low, high).filter(bool), min_size=1, max_size=most, unique=True)
    return picked.map(lambda found: ",".join(map(str, found)))


def clock(low: int, high: int) -> st.SearchStrategy[str]:
    picked = st.lists(st.integers(low, high), min_size=1, max_size=4, unique=True)
    return picked.map(lambda found: ",".join(map(str, found)))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules that dateutil reads as RFC 5545 means them."""
    freq = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"]))
    parts = {"FREQ": freq, "INTERVAL": str(draw(st.integers(1, 7)))}
    optional: dict[str, st.SearchStrategy[str]] = {
        "BYMONTH": numbers(1, 12), "BYHOUR": clock(0, 23), "BYMINUTE": clock(0, 59), "BYSECOND": clock(0, 59),
        "BYDAY": st.lists(st.sampled_from(DAYS), min_size=1, max_size=3, unique=True).map(",".join),
    }  # fmt: skip
    if freq in ("YEARLY", "MONTHLY"):
        which = st.tuples(st.sampled_from([-2, -1, 1, 2, 3]), st.sampled_from(DAYS))
        optional["BYDAY"] |= which.map(lambda pair: f"{pair[0]}{pair[1]}")
    if freq != "WEEKLY":
        optional["BYMONTHDAY"] = numbers(-31, 31)
    if freq == "YEARLY":
        optional["BYYEARDAY"] = numbers(-366, 366)
    for name in draw(st.lists(st.sampled_from(sorted(optional)), max_size=2, unique=True)):
        parts[name] = draw(optional[name])
    # In the first week dateutil counts positions from the start, not from the week's first day.
    if len(parts) > 2 and freq != "WEEKLY" and draw(st.booleans()):
        parts["BYSETPOS"] = draw(numbers(-2, 2))
    if draw(st.integers(0, 3)) == 0:
        parts["COUNT"] = str(draw(st.integers(1, 30)))
    if draw(st.booleans()):
        parts["WKST"] = draw(st.sampled_from(DAYS))
    return ";".join(f"{name}={value}" for name, value in parts.items())


STARTS = st.datetimes(wall(2021, 1, 1), wall(2026, 12, 31)).map(lambda each: each.replace(microsecond=0))


def judged(rule: str, start: datetime, tz: str, count: int) -> list[datetime]:
    """The first instants, in order, by a walk from the start; a few more walls, for a gap mixes them up."""
    walls = itertools.islice(judge.rrulestr(rule, dtstart=start).xafter(start, inc=True), count + 300)
    limit = start + timedelta(days=1500)
    early = itertools.takewhile(lambda each: each <= limit, walls)
    instants = {each.replace(tzinfo=zone(tz)).astimezone(UTC) for each in early}
    return sorted(instants)[:count]


@settings(max_examples=150, deadline=None)
@given(rules(), STARTS, st.sampled_from(ZONES))
def test_it_agrees_with_a_walk_from_the_start(rule: str, start: datetime, tz: str) -> None:
    possible = _possible(rule, start)
    if not possible:
        return
    expected = judged(rule, start, tz, 12)
    trigger = RRule(rule, start, tz)
    before = start.replace(tzinfo=UTC) - timedelta(days=3)

    found = slots(trigger, before, len(expected))

    assert found == expected


def _possible(rule: str, start: datetime) -> bool:
    """Whether dateutil finds one soon: asked of a rule that has none, it would search for seconds."""
    try:
        RRule(rule, start)
        judge.rrulestr(rule, dtstart=start)
    except (InvalidArgument, ValueError):
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(rules(), STARTS, st.sampled_from(ZONES), st.integers(0, 2_000_000), st.integers(1, 3_000_000))
def test_the_answer_does_not_depend_on_where_one_starts_to_ask(
    rule: str, start: datetime, tz: str, minutes: int, step: int
) -> None:
    try:
        trigger = RRule(rule, start, tz)
    except InvalidArgument:
        return
    moment = start.replace(tzinfo=UTC) + timedelta(minutes=minutes)
    slot = trigger.next_after(moment)
    if slot is None:
        return

    between = moment + (slot - moment) * (step / 3_000_001)

    assert moment < slot
    assert trigger.next_after(between) == slot
    assert trigger.next_after(slot - SECOND) == slot
    following = trigger.next_after(slot)
    assert following is None or following > slot


@settings(max_examples=60, deadline=None)
@given(rules(), STARTS, st.sampled_from(ZONES))
def test_an_encoded_rule_is_read_back_equal(rule: str, start: datetime, tz: str) -> None:
    try:
        trigger = RRule(rule, start, tz, exdates=(start,), rdates=(start + SECOND,))
    except InvalidArgument:
        return

    assert decode(trigger.encode()) == trigger
    assert RRule(trigger.rule, start, tz).rule == trigger.rule


@pytest.mark.parametrize(
    ("rule", "start", "expected"),
    [
        ("FREQ=MONTHLY;BYDAY=1FR", (1997, 9, 5), [(1997, 9, 5), (1997, 10, 3), (1997, 11, 7)]),
        ("FREQ=MONTHLY;BYMONTHDAY=-3", (1997, 9, 28), [(1997, 9, 28), (1997, 10, 29), (1997, 11, 28)]),
        ("FREQ=YEARLY;BYDAY=20MO", (1997, 5, 19), [(1997, 5, 19), (1998, 5, 18), (1999, 5, 17)]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", (1997, 5, 12), [(1997, 5, 12), (1998, 5, 11)]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU", (1997, 8, 5), [(1997, 8, 5), (1997, 8, 10), (1997, 8, 19)]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU", (1997, 8, 5), [(1997, 8, 5), (1997, 8, 17)]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", (1997, 9, 29), [(1997, 9, 29), (1997, 10, 30)]),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", (1997, 9, 2), [(1998, 2, 13), (1998, 3, 13)]),
        ("FREQ=WEEKLY;BYDAY=MO,FR;BYSETPOS=1", (2026, 1, 7), [(2026, 1, 12), (2026, 1, 19)]),
    ],
)
def test_the_examples_of_the_standard(
    rule: str, start: tuple[int, int, int], expected: list[tuple[int, int, int]]
) -> None:
    found = slots(RRule(rule, wall(*start, 9), "America/New_York"), utc(1997, 1, 1), len(expected))

    assert [(each.year, each.month, each.day) for each in found] == expected


def test_a_skipped_time_is_read_with_the_offset_before_the_gap() -> None:
    trigger = RRule("FREQ=DAILY", wall(2026, 3, 28, 2, 30), BERLIN)

    assert slots(trigger, utc(2026, 3, 28, 12), 2) == [utc(2026, 3, 29, 1, 30), utc(2026, 3, 30, 0, 30)]
    assert trigger.shifted(utc(2026, 3, 29, 1, 30))
    assert not trigger.shifted(utc(2026, 3, 30, 0, 30))


def test_a_repeated_time_is_the_first() -> None:
    trigger = RRule("FREQ=DAILY", wall(2026, 10, 24, 2, 30), BERLIN)

    assert slots(trigger, utc(2026, 10, 24, 12), 2) == [utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)]


def test_times_that_a_gap_puts_out_of_order_come_in_order_and_each_instant_once() -> None:
    trigger = RRule("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,45", wall(2026, 3, 29), BERLIN)

    found = slots(trigger, utc(2026, 3, 29), 2)

    assert found == [utc(2026, 3, 29, 1), utc(2026, 3, 29, 1, 45)]


@pytest.mark.parametrize("until", ["20260103T080000Z", "20260103T090000"])
def test_until_is_the_last_instant_that_counts(until: str) -> None:
    trigger = RRule(f"FREQ=DAILY;UNTIL={until}", wall(2026, 1, 1, 9), BERLIN)

    assert slots(trigger, utc(2025, 1, 1), 9)[-1] == utc(2026, 1, 3, 8)
    assert trigger.next_after(utc(2026, 1, 3, 8)) is None


def test_excluded_dates_count_for_count_and_extra_dates_do_not() -> None:
    trigger = RRule(
        "FREQ=DAILY;COUNT=3", wall(2026, 1, 1, 9), BERLIN,
        exdates=(wall(2026, 1, 2, 9), utc(2027, 1, 1)), rdates=(wall(2026, 2, 1, 9), utc(2027, 1, 1)),
    )  # fmt: skip

    assert slots(trigger, utc(2025, 1, 1), 9) == [utc(2026, 1, 1, 8), utc(2026, 1, 3, 8), utc(2026, 2, 1, 8)]


def test_an_aware_start_is_read_in_the_zone_of_the_rule() -> None:
    assert RRule("FREQ=DAILY", utc(2026, 1, 1, 8), BERLIN) == RRule("freq=daily", wall(2026, 1, 1, 9), BERLIN)


def test_ways_to_write_the_same_rule_are_equal() -> None:
    first = RRule(
        "RRULE:INTERVAL=1;WKST=MO;BYDAY=TU,+1MO,1MO;FREQ=MONTHLY".replace("TU,", ""), wall(2026, 1, 1)
    )

    assert first.rule == "FREQ=MONTHLY;BYDAY=1MO"


def test_a_rule_that_has_only_excluded_instances_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one instant"):
        RRule("FREQ=DAILY;COUNT=1", wall(2026, 1, 1), exdates=(wall(2026, 1, 1),))


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("dtstart", {"dtstart": "2026-01-01"}),
        ("dtstart", {"dtstart": wall(1066, 10, 14)}),
        ("tz", {"tz": "Mars/Phobos"}),
        ("exdates", {"exdates": [wall(2026, 1, 1)] * 1001}),
        ("rdates", {"rdates": [wall(2026, 1, 1) + day * SECOND for day in range(100_000)]}),
        ("rdates", {"rdates": ["2026-01-01"]}),
        ("exdates", {"exdates": [None]}),
    ],
)
def test_other_arguments_are_checked(field: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        RRule("FREQ=DAILY", **({"dtstart": wall(2026, 1, 1)} | options))  # type: ignore[arg-type]

    assert refusal.value.field == field


def test_there_is_nothing_after_the_end_of_time() -> None:
    trigger = RRule("FREQ=MINUTELY", wall(2026, 1, 1), BERLIN)

    assert trigger.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert trigger.next_after(utc(9998, 12, 31, 23)) is None


def test_a_start_before_the_first_instant_of_time_is_no_trouble() -> None:
    trigger = RRule("FREQ=DAILY", wall(2026, 1, 1))

    assert trigger.next_after(datetime.min.replace(tzinfo=UTC) + timedelta(days=2)) == utc(2026, 1, 1)


def test_without_dateutil_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['dateutil'] = None\n"
        "from datetime import datetime\n"
        "from mainspring.triggers.rrule import RRule\n"
        "RRule('FREQ=DAILY', datetime(2026, 1, 1))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "mainspring[calendar]" in done.stderr
