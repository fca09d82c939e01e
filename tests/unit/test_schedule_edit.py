"""Stored triggers and policies as options, and the same with some options said anew."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Overlap
from mainspring.tasks.schedule import changed_policies, changed_when, options_of
from mainspring.tasks.schedule_options import PolicyOptions, TriggerOptions
from mainspring.triggers.calendars import from_dates
from mainspring.triggers.codec import decode

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
DAYS = from_dates("de", [date(2026, 12, 25)], tz=BERLIN)
MORNING = datetime(2026, 1, 5, 9)  # noqa: DTZ001  a wall time has no zone

CRON = {"cron": "30 2 * * *", "tz": BERLIN, "gap": "skip", "fold": "both"}
RULE = {"rrule": "FREQ=DAILY", "dtstart": MORNING, "tz": BERLIN, "exdates": [datetime(2026, 7, 1, 9)]}  # noqa: DTZ001
EVERY = {"every": "90m", "anchor": datetime(2026, 1, 1, 0, 5, tzinfo=UTC)}
BOUNDS = {"start": START, "end": END}
HOLIDAYS = {"calendar": DAYS, "on_holiday": "next"}


@pytest.mark.parametrize("around", [{}, BOUNDS, {"start": START}, HOLIDAYS, BOUNDS | HOLIDAYS])
@pytest.mark.parametrize(
    "kind", [CRON, {"cron": "H H * * *"}, RULE, EVERY, {"every": 3600}, {"at": [END - timedelta(days=7)]}]
)
def test_a_trigger_is_made_of_the_options_it_is_read_as(kind: Any, around: Any) -> None:
    trigger = TriggerOptions(**kind, **around).trigger("nightly")
    stored = decode(trigger.encode(), {("de", 1): DAYS})

    assert options_of(stored).trigger("another name") == trigger


def changed(stored: dict[str, Any], **said: Any) -> TriggerOptions:
    trigger = TriggerOptions(**stored).trigger("nightly")
    return options_of(changed_when(options_of(trigger), said).trigger("nightly"))


def test_one_option_changes_and_the_others_stay() -> None:
    assert changed(CRON | BOUNDS, tz="UTC") == TriggerOptions(**(CRON | BOUNDS | {"tz": "UTC"}))
    assert changed(CRON, cron="0 3 * * *") == TriggerOptions(**(CRON | {"cron": "0 3 * * *"}))
    assert changed(EVERY, every="3h").anchor == datetime(1970, 1, 1, 0, 5, tzinfo=UTC)
    assert changed(BOUNDS | CRON, end=None) == TriggerOptions(**CRON, start=START)
    assert changed(RULE, rrule="FREQ=WEEKLY").exdates == (datetime(2026, 7, 1, 7, tzinfo=UTC),)


def test_another_kind_keeps_what_both_kinds_know() -> None:
    assert changed(CRON | BOUNDS | HOLIDAYS, every="1h") == TriggerOptions(
        every=timedelta(hours=1), **BOUNDS, **HOLIDAYS
    )
    assert changed(CRON, rrule="FREQ=DAILY", dtstart=MORNING).tz == BERLIN
    assert changed(EVERY, cron="@daily").tz == "UTC"
    assert changed(RULE, at=[END]) == TriggerOptions(at=(END,))


def test_a_rule_that_moves_to_another_zone_takes_its_exceptions_with_it() -> None:
    moved = changed(RULE, tz=NEW_YORK)

    assert (moved.dtstart, moved.exdates) == (MORNING, (datetime(2026, 7, 1, 13, tzinfo=UTC),))


def test_without_its_calendar_a_holiday_means_nothing() -> None:
    assert changed(CRON | HOLIDAYS, calendar=None) == TriggerOptions(**CRON)
    assert changed(CRON | HOLIDAYS, on_holiday=None).on_holiday == "skip"


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"anchor": START}, "anchor"),
        ({"every": "1h", "tz": BERLIN}, "tz"),
        ({"every": "1h", "at": [END]}, "schedule"),
        ({"cron": "@daily", "every": "1h"}, "schedule"),
        ({"cron": None}, "schedule"),
        ({"rrule": "FREQ=DAILY"}, "dtstart"),
        ({"on_holiday": "next"}, "on_holiday"),
        ({"end": START - timedelta(days=1), "start": START}, "end"),
    ],
)
def test_what_does_not_fit_together_is_refused(said: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        changed(CRON, **said)

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("stored", "said", "overlap", "limit"),
    [
        ({"allow": 3}, {}, Overlap.ALLOW, 3),
        ({"allow": 3}, {"allow": 5}, Overlap.ALLOW, 5),
        ({"allow": 3}, {"overlap": "allow"}, Overlap.ALLOW, 3),
        ({"allow": 3}, {"overlap": "replace"}, Overlap.REPLACE, 1),
        ({"allow": 3}, {"allow": None}, Overlap.SKIP, 1),
        ({"overlap": "queue_one"}, {"allow": 2}, Overlap.ALLOW, 2),
        ({"overlap": "queue_one"}, {"misfire": "all"}, Overlap.QUEUE_ONE, 1),
        ({"overlap": "queue_one"}, {"overlap": None}, Overlap.SKIP, 1),
    ],
)
def test_overlap_and_allow_are_one_policy(stored: Any, said: Any, overlap: Overlap, limit: int) -> None:
    found = changed_policies("s", PolicyOptions(**stored).policies("s"), said)

    assert (found.overlap, found.overlap_limit) == (overlap, limit)


def test_a_place_in_a_window_is_kept_until_a_window_is_said() -> None:
    stored = PolicyOptions(window="1h", jitter="5s", max_fires=7).policies("s")

    assert changed_policies("s", stored, {}) == stored
    assert changed_policies("s", stored, {"jitter": None}).offset == stored.offset != timedelta()
    assert changed_policies("s", stored, {"window": None}).offset == timedelta()
    assert changed_policies("s", stored, {"max_fires": None}).max_fires is None
