"""Business calendars: named, versioned values. Nothing here reads a clock or a store."""

from __future__ import annotations

from mainspring.calendars.build import from_country, from_dates, merge
from mainspring.calendars.calendar import Calendar
from mainspring.calendars.codec import decode_calendar
from mainspring.calendars.ical import from_ical

__all__ = ["Calendar", "decode_calendar", "from_country", "from_dates", "from_ical", "merge"]
