"""Calendars from iCalendar text."""

from __future__ import annotations

import time
from datetime import date

import pytest

from mainspring.errors import InvalidArgument
from mainspring.triggers.calendars import from_ical

YEARS = range(2026, 2029)


def ical(*events: str) -> str:
    body = "".join(f"BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n" for event in events)
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{body}END:VCALENDAR\r\n"


def dates(*events: str) -> list[str]:
    return [day.isoformat() for day in from_ical("c", ical(*events), years=YEARS).holidays]


def test_an_all_day_event_is_a_holiday_with_its_summary() -> None:
    text = ical("DTSTART;VALUE=DATE:20261225\r\nSUMMARY;LANGUAGE=en:Christ\r\n mas\\, first\r\n  day")

    calendar = from_ical("de", text, years=YEARS, version=2, weekend=(6,), tz="Europe/Berlin")

    assert dict(calendar.holidays) == {date(2026, 12, 25): "Christmas, first day"}
    assert (calendar.name, calendar.version, calendar.weekend, calendar.tz) == (
        "de",
        2,
        (6,),
        "Europe/Berlin",
    )


@pytest.mark.parametrize(
    "end", ["DTEND;VALUE=DATE:20261227", "DURATION:P2D", 'DTEND;X-A="a:b";VALUE=DATE:20261227']
)
def test_the_end_is_the_day_after(end: str) -> None:
    assert dates(f"DTSTART;VALUE=DATE:20261225\r\n{end}") == ["2026-12-25", "2026-12-26"]


def test_an_end_that_is_the_start_is_one_day() -> None:
    assert dates("DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261225") == ["2026-12-25"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=YEARLY", ["2026-12-25", "2027-12-25", "2028-12-25"]),
        ("FREQ=YEARLY;UNTIL=20271225", ["2026-12-25", "2027-12-25"]),
        ("FREQ=YEARLY;COUNT=13", ["2026-12-25", "2027-12-25"]),
        ("FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO", ["2026-05-25", "2027-05-31", "2028-05-29"]),
    ],
)
def test_yearly_rules_are_written_out_in_the_given_years(rule: str, expected: list[str]) -> None:
    assert dates(f"DTSTART;VALUE=DATE:20151225\nRRULE:{rule}") == expected


def test_excluded_dates_and_cancelled_events_are_left_out() -> None:
    yearly = "DTSTART;VALUE=DATE:20151225\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20261225,20281225"

    assert dates(yearly, "DTSTART:20270101\nSTATUS:CANCELLED") == ["2027-12-25"]


def test_an_event_over_new_year_counts_for_both_years() -> None:
    event = "DTSTART;VALUE=DATE:20201231\nDTEND;VALUE=DATE:20210102\nRRULE:FREQ=YEARLY"

    assert dates(event)[:2] == ["2026-01-01", "2026-12-31"]


def test_what_is_in_an_alarm_or_outside_events_does_not_count() -> None:
    alarm = "DTSTART:20270101\nBEGIN:VALARM\nDURATION:PT15M\nEND:VALARM"

    assert dates(alarm) == ["2027-01-01"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "BEGIN:VCALENDAR"),
        ("hello", 1, "NAME:value"),
        ("SUMMARY:x", 1, "BEGIN:VCALENDAR"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101", 3, "END:VEVENT"),
        ("BEGIN:VCALENDAR\nEND:VEVENT", 2, "the END"),
        (ical("DTSTART:20260101T090000Z"), 4, "a date without a time"),
        (ical("DTSTART:20260230"), 4, "a date without a time"),
        (ical("DTSTART:２０２６０１０１"), 4, "a date without a time"),
        (ical("SUMMARY:x"), 3, "DTSTART"),
        (ical("DTSTART:20260101\nDTSTART:20260102"), 5, "DTSTART once"),
        (ical("DTSTART:20260102\nDTEND:20260101"), 5, "1 to 366 whole days"),
        (ical("DTSTART:20260102\nDTEND:20280101"), 5, "1 to 366 whole days"),
        (ical("DTSTART:20260102\nDURATION:PT1H"), 5, "1 to 366 whole days"),
        (ical("DTSTART:20260102\nRRULE:FREQ=DAILY"), 5, "FREQ=YEARLY"),
        (ical("DTSTART:20260102\nRRULE:FREQ=YEARLY;X=1"), 5, "parts such as"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(InvalidArgument, match=f"line {line}: ") as refusal:
        from_ical("c", text, years=YEARS)

    assert says in str(refusal.value)


def test_a_text_that_is_too_big_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at most 1000000 bytes"):
        from_ical("c", "ä" * 500_001, years=YEARS)


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN:VCALENDAR\n" + "\n x" * 300_000,
        "BEGIN:VCALENDAR\nSUMMARY;" + '"' * 900_000,
        "BEGIN:X\n" * 120_000,
        ical(*["DTSTART:20260101\nRRULE:FREQ=YEARLY"] * 1001),
        ical(*[f"DTSTART:{2000 + n}0101\nDURATION:P366D\nRRULE:FREQ=YEARLY;BYDAY=MO" for n in range(100)]),
    ],
    ids=["folds", "quotes", "nesting", "rules", "dates"],
)
def test_hostile_text_is_refused_soon(text: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidArgument):
        from_ical("c", text, years=range(2000, 2200))

    assert time.process_time() - began < 2
