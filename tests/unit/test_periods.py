"""What a slot stands for: the slot before it, and the missed ones that were combined into it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.tasks.schedule_options import TriggerOptions
from mainspring.triggers.calendars import from_dates
from mainspring.triggers.slots import MOST_COUNTED, count_slots, period, previous

DAY, HOUR, MINUTE, SECOND = (timedelta(seconds=n) for n in (86400, 3600, 60, 1))
BERLIN = ZoneInfo("Europe/Berlin")
WORKDAYS = from_dates("work", [])


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def trigger(**options: Any) -> Any:
    return TriggerOptions(**options).trigger("s")


@pytest.mark.parametrize(
    ("options", "slot", "before"),
    [
        ({"every": "1h"}, "2030-01-01T12:00", "2030-01-01T11:00"),
        ({"cron": "0 3 * * *"}, "2030-01-02T03:00", "2030-01-01T03:00"),
        ({"cron": "0 3 * * 1"}, "2030-01-07T03:00", "2029-12-31T03:00"),
        ({"cron": "0 0 1 * *"}, "2030-03-01T00:00", "2030-02-01T00:00"),
        ({"cron": "0 0 29 2 *"}, "2028-02-29T00:00", "2024-02-29T00:00"),
        ({"cron": "*/5 9-17 * * *"}, "2030-01-02T09:00", "2030-01-01T17:55"),
        # The night on which the clocks are turned back has 25 hours.
        ({"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "2030-10-28T02:00", "2030-10-27T02:00"),
        ({"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "2030-10-27T02:00", "2030-10-26T01:00"),
    ],
)
def test_the_slot_before(options: dict[str, Any], slot: str, before: str) -> None:
    assert previous(trigger(**options), at(slot)) == at(before)


def test_the_first_slot_of_all_has_none_before_it() -> None:
    first = at("2030-01-01T00:00")

    assert previous(trigger(every="1h", start=first), first) is None
    assert previous(trigger(at=[first, first + DAY]), first) is None
    assert previous(trigger(at=[first, first + DAY]), first + DAY) == first


def test_a_slot_that_a_calendar_leaves_out_does_not_count() -> None:
    daily = trigger(cron="0 3 * * *", calendar=WORKDAYS, on_holiday="skip")
    monday, friday = at("2030-01-07T03:00"), at("2030-01-04T03:00")

    assert previous(daily, monday) == friday
    often = trigger(cron="* * * * *", calendar=WORKDAYS, on_holiday="skip")
    assert previous(often, at("2030-01-07T00:00")) == at("2030-01-04T23:59")


@given(st.integers(1, 100_000), st.integers(0, 10**9))
def test_of_an_interval_any_number_is_counted(seconds: int, more: int) -> None:
    rule, first = trigger(every=timedelta(seconds=seconds)), at("2030-01-01T00:00")
    slot = rule.next_after(first)
    end = slot + timedelta(seconds=more)

    count, at_least = count_slots(rule, slot, end)
    assert (count, at_least) == (-(-more // seconds), False)


def test_of_a_calendar_so_many_are_counted_and_no_more() -> None:
    every_minute, first = trigger(cron="* * * * *"), at("2030-01-01T00:00")

    assert count_slots(every_minute, first, first + 90 * MINUTE) == (90, False)
    assert count_slots(every_minute, first, first + MOST_COUNTED * MINUTE) == (MOST_COUNTED, False)
    assert count_slots(every_minute, first, first + 365 * DAY) == (MOST_COUNTED, True)


def test_a_period_reaches_back_to_the_slot_before_the_first_missed_one() -> None:
    hourly, slot = trigger(every="1h"), at("2030-01-01T12:00")

    found = period(hourly, slot, since=slot - 3 * HOUR)

    assert (found.start, found.end) == (slot - 4 * HOUR, slot)
    assert (found.previous, found.since, found.missed) == (slot - HOUR, slot - 3 * HOUR, 3)


def test_slots_before_a_schedule_was_made_are_not_what_it_missed() -> None:
    hourly, slot = trigger(every="1h"), at("2030-01-01T12:00")

    found = period(hourly, slot, since=slot - 90 * MINUTE)  # it was made between two slots

    assert (found.since, found.missed, found.start) == (slot - HOUR, 1, slot - 2 * HOUR)
    assert period(hourly, slot, since=slot - 30 * MINUTE).since is None


def triggers() -> st.SearchStrategy[Any]:
    return st.sampled_from(
        [
            {"every": "90s"},
            {"cron": "*/7 * * * *"},
            {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
            {"cron": "0 */2 * * *", "tz": "America/New_York"},
            {"cron": "15 9 * * 1-5", "tz": "Europe/Berlin"},
            {"cron": "0 0 31 * *"},
            {"cron": "0 9 * * *", "calendar": WORKDAYS, "on_holiday": "next"},
        ]
    ).map(lambda options: trigger(**options))


@given(triggers(), st.datetimes(datetime(2026, 1, 1), datetime(2031, 1, 1)))  # noqa: DTZ001
def test_nothing_lies_between_a_slot_and_the_one_before_it(rule: Any, moment: datetime) -> None:
    slot = rule.next_after(moment.replace(tzinfo=UTC))

    before = previous(rule, slot)

    assert before is not None and before < slot
    assert rule.next_after(before) == slot
