"""Business calendars: dates, countries, merges, and their text."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.calendars import Calendar, decode_calendar, from_country, from_dates, merge

XMAS = {date(2026, 12, 25): "Christmas", date(2026, 12, 26): "Boxing Day"}
DAY = timedelta(days=1)
CALENDARS = st.builds(
    Calendar,
    st.just("c"),
    st.integers(1, 9),
    st.lists(st.integers(0, 6), max_size=6).map(tuple),
    st.dictionaries(st.dates(date(2026, 1, 1), date(2026, 3, 1)), st.sampled_from(["a", "Ä\u2028"[:1]])),
    st.sampled_from(["UTC", "Europe/Berlin"]),
)


def test_weekends_and_holidays_are_no_business_days() -> None:
    calendar = from_dates("de", XMAS)

    assert calendar.is_business_day(date(2026, 12, 24))
    assert not calendar.is_business_day(date(2026, 12, 25))
    assert not calendar.is_business_day(date(2026, 12, 27))
    assert calendar.next_business_day(date(2026, 12, 25)) == date(2026, 12, 28)
    assert calendar.previous_business_day(date(2026, 12, 27)) == date(2026, 12, 24)
    assert calendar.next_business_day(date(2026, 12, 24)) == date(2026, 12, 24)


@given(CALENDARS, st.dates(date(2025, 12, 1), date(2026, 4, 1)))
def test_the_next_business_day_is_the_first_one_found_by_walking(calendar: Calendar, day: date) -> None:
    following, previous = calendar.next_business_day(day), calendar.previous_business_day(day)

    assert calendar.is_business_day(following)
    assert calendar.is_business_day(previous)
    between = [previous + n * DAY for n in range((following - previous).days + 1)]
    assert [each for each in between if calendar.is_business_day(each)] in ([day], [previous, following])


@given(CALENDARS)
def test_an_encoded_calendar_is_read_back_equal(calendar: Calendar) -> None:
    assert decode_calendar(calendar.encode()) == calendar
    assert hash(decode_calendar(calendar.encode())) == hash(calendar)


def test_the_order_of_holidays_does_not_show() -> None:
    turned = dict(reversed(XMAS.items()))

    assert from_dates("de", turned).encode() == from_dates("de", XMAS).encode()


def test_a_calendar_cannot_be_changed() -> None:
    given_dates = dict(XMAS)
    calendar = from_dates("de", given_dates)

    given_dates.clear()

    assert dict(calendar.holidays) == XMAS
    with pytest.raises(TypeError):
        calendar.holidays[date(2026, 1, 1)] = "New Year"  # type: ignore[index]


def test_a_search_beyond_a_year_says_so() -> None:
    closed = from_dates("closed", [date(2026, 1, 1) + n * DAY for n in range(400)])

    with pytest.raises(InvalidArgument, match="a business day within 366 days after 2026-01-02"):
        closed.next_business_day(date(2026, 1, 2))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": "a b"}, "calendar.name"),
        ({"name": ""}, "calendar.name"),
        ({"version": 0}, "calendar.version"),
        ({"version": True}, "calendar.version"),
        ({"weekend": (0, 1, 2, 3, 4, 5, 6)}, "calendar.weekend"),
        ({"weekend": (7,)}, "calendar.weekend"),
        ({"holidays": {datetime(2026, 1, 1, tzinfo=UTC): "x"}}, "calendar.holidays"),
        ({"holidays": {date(2026, 1, 1): "x" * 201}}, "calendar.holidays"),
        ({"holidays": {date(1, 1, 1) + n * DAY: "" for n in range(10_001)}}, "calendar.holidays"),
        ({"tz": "Mars/Phobos"}, "tz"),
    ],
)
def test_what_is_no_calendar_is_refused(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Calendar(**({"name": "de"} | options))  # type: ignore[arg-type]

    assert refusal.value.field == field


@pytest.mark.parametrize("text", ["", "{}", '{"name":"de"}', "[]", "null"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="calendar"):
        decode_calendar(text)


def test_the_holidays_of_a_country_and_its_parts() -> None:
    bavaria = from_country("de-by", "DE", subdivision="BY", years=range(2026, 2028), tz="Europe/Berlin")
    germany = from_country("de", "DE", years=[2026])

    assert date(2026, 1, 6) in bavaria.holidays
    assert date(2026, 1, 6) not in germany.holidays
    assert {day.year for day in bavaria.holidays} == {2026, 2027}
    assert bavaria.weekend == (5, 6)


def test_a_country_brings_its_own_weekend_unless_told() -> None:
    assert from_country("il", "IL", years=[2026]).weekend == (4, 5)
    assert from_country("il", "IL", years=[2026], weekend=(5,)).weekend == (5,)


@pytest.mark.parametrize(
    ("country", "subdivision", "years", "field"),
    [
        ("XX", None, [2026], "calendar.country"),
        ("", None, [2026], "calendar.country"),
        ("DE", "ZZ", [2026], "calendar.country"),
        ("DE", None, [], "calendar.years"),
        ("DE", None, [20260], "calendar.years"),
        ("DE", None, range(1900, 2190), "calendar.years"),
    ],
)
def test_unknown_places_and_years_are_refused(
    country: str, subdivision: str | None, years: list[int], field: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        from_country("x", country, subdivision=subdivision, years=years)

    assert refusal.value.field == field


def test_without_the_library_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['holidays'] = None\n"
        "from mainspring.triggers.calendars import from_country\n"
        "from_country('de', 'DE', years=[2026])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "mainspring[calendar]" in done.stderr


def test_a_merge_has_the_business_days_that_all_have() -> None:
    one = from_dates("one", {date(2026, 1, 1): "New Year", date(2026, 1, 6): "Epiphany"})
    two = from_dates("two", {date(2026, 1, 1): "Neujahr"}, weekend=(4, 5))

    both = merge("both", one, two, version=3)

    assert both == merge("both", two, one, version=3)
    assert both.weekend == (4, 5, 6)
    assert both.holidays[date(2026, 1, 1)] == "Neujahr / New Year"
    assert date(2026, 1, 6) in both.holidays


def test_a_merge_over_zones_must_be_told_which() -> None:
    one, two = from_dates("one", []), from_dates("two", [], tz="Europe/Berlin")

    with pytest.raises(InvalidArgument, match="tz"):
        merge("both", one, two)

    assert merge("both", one, two, tz="Europe/Paris").tz == "Europe/Paris"
    with pytest.raises(InvalidArgument, match="tz"):
        merge("none")
