"""Calendars from dates, from the holidays of a country, and from other calendars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from mainspring.calendars.calendar import LONGEST_LABEL, Calendar
from mainspring.errors import InvalidArgument

MOST_YEARS = 200


def from_dates(
    name: str,
    dates: Mapping[date, str] | Iterable[date],
    *,
    version: int = 1,
    weekend: tuple[int, ...] = (5, 6),
    tz: str = "UTC",
) -> Calendar:
    """Holidays by hand, with labels or without."""
    holidays = dates if isinstance(dates, Mapping) else dict.fromkeys(dates, "")
    return Calendar(name, version, weekend, holidays, tz)


def from_country(
    name: str,
    country: str,
    *,
    years: Iterable[int],
    subdivision: str | None = None,
    version: int = 1,
    weekend: tuple[int, ...] | None = None,
    tz: str = "UTC",
) -> Calendar:
    """Public holidays of a country or one of its parts; its own weekend, if none is given.

    They come from the release of `holidays` at hand and are then fixed: a newer release is a new version.
    """
    wanted = checked_years(years)
    try:
        import holidays
    except ImportError:
        raise InvalidArgument(
            "calendar.country", country, "the extra: pip install 'mainspring[calendar]'"
        ) from None
    try:
        found = holidays.country_holidays(country, subdiv=subdivision, years=wanted)
    except (NotImplementedError, TypeError, AttributeError):
        place = country if subdivision is None else f"{country}, {subdivision}"
        expected = 'a country such as "DE", and a subdivision of it such as "BY"'
        raise InvalidArgument("calendar.country", place, expected) from None
    dates = {day: label[:LONGEST_LABEL] for day, label in found.items() if day.year in wanted}
    return Calendar(name, version, tuple(found.weekend) if weekend is None else weekend, dates, tz)


def merge(name: str, *calendars: Calendar, version: int = 1, tz: str | None = None) -> Calendar:
    """A calendar whose business days are those on which all of the given ones have one."""
    zones = {each.tz for each in calendars}
    if not calendars or (tz is None and len(zones) > 1):
        raise InvalidArgument("tz", sorted(zones), "calendars of one zone, or the zone of the new one")
    holidays: dict[date, str] = {}
    for calendar in calendars:
        for day, label in calendar.holidays.items():
            holidays[day] = _both(holidays.get(day, ""), label)
    weekend = {day for each in calendars for day in each.weekend}
    return Calendar(name, version, tuple(weekend), holidays, calendars[0].tz if tz is None else tz)


def checked_years(years: Iterable[int]) -> frozenset[int]:
    """The years, if they are years and not too many."""
    found: set[int] = set()
    for year in years:
        if type(year) is not int or not 1900 <= year <= 2200:
            raise InvalidArgument("calendar.years", year, "years from 1900 to 2200")
        found.add(year)
        if len(found) > MOST_YEARS:
            raise InvalidArgument("calendar.years", f"more than {MOST_YEARS}", f"at most {MOST_YEARS} years")
    if not found:
        raise InvalidArgument("calendar.years", (), "at least one year")
    return frozenset(found)


def _both(first: str, second: str) -> str:
    """One label for two; the order in which calendars are merged must not show."""
    labels = {label for label in (*first.split(" / "), *second.split(" / ")) if label}
    return " / ".join(sorted(labels))[:LONGEST_LABEL]
