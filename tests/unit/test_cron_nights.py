"""Nights on which the clocks changed, written out by hand: what each policy makes of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring.triggers.cron import Cron
from mainspring.triggers.slots import upcoming_slots

# Zone, expression, an instant before the night, and the local slots that follow it under each rule.
GAPS = [
    ("Europe/Berlin", "30 2 * * *", "2026-03-27T12:00Z",
     {"shift": "03-28 02:30+01:00, 03-29 03:00+02:00, 03-30 02:30+02:00",
      "skip": "03-28 02:30+01:00, 03-30 02:30+02:00"}),
    ("Europe/Berlin", "*/15 2 * * *", "2026-03-28T02:00Z",
     {"shift": "03-29 03:00+02:00, 03-30 02:00+02:00, 03-30 02:15+02:00",
      "skip": "03-30 02:00+02:00, 03-30 02:15+02:00"}),
    ("Europe/Berlin", "0,30 2-3 * * *", "2026-03-28T12:00Z",
     {"shift": "03-29 03:00+02:00, 03-29 03:30+02:00, 03-30 02:00+02:00",
      "skip": "03-29 03:00+02:00, 03-29 03:30+02:00, 03-30 02:00+02:00"}),
    ("Europe/Berlin", "10 30 2 * * *", "2026-03-28T12:00Z",
     {"shift": "03-29 03:00+02:00, 03-30 02:30:10+02:00", "skip": "03-30 02:30:10+02:00"}),
    ("Europe/London", "0 1 * * *", "2026-03-28T12:00Z",
     {"shift": "03-29 02:00+01:00, 03-30 01:00+01:00", "skip": "03-30 01:00+01:00"}),
    ("America/New_York", "30 2 * * SUN", "2026-03-07T12:00Z",
     {"shift": "03-08 03:00-04:00, 03-15 02:30-04:00", "skip": "03-15 02:30-04:00"}),
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00Z",
     {"shift": "10-04 02:30+11:00, 10-05 02:15+11:00", "skip": "10-05 02:15+11:00"}),
    ("Australia/Lord_Howe", "45 2 * * *", "2026-10-03T00:00Z",
     {"shift": "10-04 02:45+11:00, 10-05 02:45+11:00", "skip": "10-04 02:45+11:00, 10-05 02:45+11:00"}),
    ("Africa/Cairo", "0 0 * * *", "2026-04-23T12:00Z",
     {"shift": "04-24 01:00+03:00, 04-25 00:00+03:00", "skip": "04-25 00:00+03:00"}),
    ("America/Santiago", "0 0 * * *", "2026-09-05T12:00Z",
     {"shift": "09-06 01:00-03:00, 09-07 00:00-03:00", "skip": "09-07 00:00-03:00"}),
    ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00Z",
     {"shift": "11-04 01:00-02:00, 11-05 00:00-02:00", "skip": "11-05 00:00-02:00"}),
    ("America/Havana", "30 0 * * *", "2024-03-09T12:00Z",
     {"shift": "03-10 01:00-04:00, 03-11 00:30-04:00", "skip": "03-11 00:30-04:00"}),
    ("America/Caracas", "45 2 * * *", "2016-04-30T12:00Z",
     {"shift": "05-01 03:00-04:00, 05-02 02:45-04:00", "skip": "05-02 02:45-04:00"}),
    ("Pacific/Apia", "0 8,20 * * *", "2011-12-29T20:00Z",
     {"shift": "12-29 20:00-10:00, 12-31 00:00+14:00, 12-31 08:00+14:00",
      "skip": "12-29 20:00-10:00, 12-31 08:00+14:00"}),
    ("Pacific/Apia", "0 12 30 12 *", "2011-12-29T00:00Z",
     {"shift": "12-31 00:00+14:00, 12-30 12:00+14:00", "skip": "12-30 12:00+14:00"}),
    ("Africa/Casablanca", "30 2 * * *", "2026-03-21T12:00Z",
     {"shift": "03-22 03:00+01:00, 03-23 02:30+01:00", "skip": "03-23 02:30+01:00"}),
    ("Asia/Kathmandu", "5 0 * * *", "1985-12-31T12:00Z",
     {"shift": "01-01 00:15+05:45, 01-02 00:05+05:45", "skip": "01-02 00:05+05:45"}),
    ("Asia/Tehran", "30 0 * * *", "2022-03-21T12:00Z",
     {"shift": "03-22 01:00+04:30, 03-23 00:30+04:30", "skip": "03-23 00:30+04:30"}),
    ("Asia/Pyongyang", "45 23 * * *", "2018-05-04T00:00Z",
     {"shift": "05-05 00:00+09:00, 05-05 23:45+09:00", "skip": "05-05 23:45+09:00"}),
    ("Antarctica/Troll", "30 1,2 * * *", "2026-03-28T12:00Z",
     {"shift": "03-29 03:00+02:00, 03-30 01:30+02:00", "skip": "03-30 01:30+02:00"}),
    ("Asia/Kolkata", "30 2 * * *", "2026-03-28T12:00Z",
     {"shift": "03-29 02:30+05:30, 03-30 02:30+05:30", "skip": "03-29 02:30+05:30, 03-30 02:30+05:30"}),
]  # fmt: skip
FOLDS = [
    ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z",
     {"first": "10-25 02:30+02:00, 10-26 02:30+01:00",
      "second": "10-25 02:30+01:00, 10-26 02:30+01:00",
      "both": "10-25 02:30+02:00, 10-25 02:30+01:00, 10-26 02:30+01:00"}),
    ("Europe/Berlin", "*/30 2 * * *", "2026-10-24T12:00Z",
     {"first": "10-25 02:00+02:00, 10-25 02:30+02:00, 10-26 02:00+01:00",
      "second": "10-25 02:00+01:00, 10-25 02:30+01:00, 10-26 02:00+01:00",
      "both": "10-25 02:00+02:00, 10-25 02:30+02:00, 10-25 02:00+01:00, 10-25 02:30+01:00"}),
    ("Europe/Berlin", "5 0 2 * * *", "2026-10-24T12:00Z",
     {"first": "10-25 02:00:05+02:00, 10-26 02:00:05+01:00",
      "second": "10-25 02:00:05+01:00, 10-26 02:00:05+01:00",
      "both": "10-25 02:00:05+02:00, 10-25 02:00:05+01:00, 10-26 02:00:05+01:00"}),
    ("Europe/London", "0 1,2 * * *", "2026-10-24T12:00Z",
     {"first": "10-25 01:00+01:00, 10-25 02:00+00:00, 10-26 01:00+00:00",
      "second": "10-25 01:00+00:00, 10-25 02:00+00:00, 10-26 01:00+00:00",
      "both": "10-25 01:00+01:00, 10-25 01:00+00:00, 10-25 02:00+00:00"}),
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00Z",
     {"first": "11-01 01:30-04:00, 11-02 01:30-05:00",
      "second": "11-01 01:30-05:00, 11-02 01:30-05:00",
      "both": "11-01 01:30-04:00, 11-01 01:30-05:00, 11-02 01:30-05:00"}),
    ("Australia/Lord_Howe", "0,45 1 * * *", "2026-04-04T12:00Z",
     {"first": "04-05 01:00+11:00, 04-05 01:45+11:00, 04-06 01:00+10:30",
      "second": "04-05 01:00+11:00, 04-05 01:45+10:30, 04-06 01:00+10:30",
      "both": "04-05 01:00+11:00, 04-05 01:45+11:00, 04-05 01:45+10:30, 04-06 01:00+10:30"}),
    ("Africa/Cairo", "30 23 * * *", "2026-10-29T12:00Z",
     {"first": "10-29 23:30+03:00, 10-30 23:30+02:00",
      "second": "10-29 23:30+02:00, 10-30 23:30+02:00",
      "both": "10-29 23:30+03:00, 10-29 23:30+02:00, 10-30 23:30+02:00"}),
    ("America/Santiago", "0 0,23 * * *", "2026-04-04T12:00Z",
     {"first": "04-04 23:00-03:00, 04-05 00:00-04:00, 04-05 23:00-04:00",
      "second": "04-04 23:00-04:00, 04-05 00:00-04:00, 04-05 23:00-04:00",
      "both": "04-04 23:00-03:00, 04-04 23:00-04:00, 04-05 00:00-04:00"}),
    ("America/Sao_Paulo", "59 23 * * *", "2018-02-17T12:00Z",
     {"first": "02-17 23:59-02:00, 02-18 23:59-03:00",
      "second": "02-17 23:59-03:00, 02-18 23:59-03:00",
      "both": "02-17 23:59-02:00, 02-17 23:59-03:00, 02-18 23:59-03:00"}),
    ("America/Havana", "0 0 * * *", "2024-11-02T12:00Z",
     {"first": "11-03 00:00-04:00, 11-04 00:00-05:00",
      "second": "11-03 00:00-05:00, 11-04 00:00-05:00",
      "both": "11-03 00:00-04:00, 11-03 00:00-05:00, 11-04 00:00-05:00"}),
    ("Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00Z",
     {"first": "02-15 02:30+01:00, 02-16 02:30+00:00",
      "second": "02-15 02:30+00:00, 02-16 02:30+00:00",
      "both": "02-15 02:30+01:00, 02-15 02:30+00:00, 02-16 02:30+00:00"}),
    ("Asia/Tehran", "15 23 * * *", "2022-09-21T12:00Z",
     {"first": "09-21 23:15+04:30, 09-22 23:15+03:30",
      "second": "09-21 23:15+03:30, 09-22 23:15+03:30",
      "both": "09-21 23:15+04:30, 09-21 23:15+03:30, 09-22 23:15+03:30"}),
    ("Asia/Kolkata", "30 23 * * *", "1945-10-14T12:00Z",
     {"first": "10-14 23:30+06:30, 10-15 23:30+05:30",
      "second": "10-14 23:30+05:30, 10-15 23:30+05:30",
      "both": "10-14 23:30+06:30, 10-14 23:30+05:30, 10-15 23:30+05:30"}),
    ("Pacific/Chatham", "0 3 * * *", "2026-04-04T00:00Z",
     {"first": "04-05 03:00+13:45, 04-06 03:00+12:45",
      "second": "04-05 03:00+12:45, 04-06 03:00+12:45",
      "both": "04-05 03:00+13:45, 04-05 03:00+12:45, 04-06 03:00+12:45"}),
]  # fmt: skip
# An hour field that starts with a star follows real time, whatever the policies.
STARRED = [
    ("Europe/Berlin", "*/30 * * * *", "2026-03-29T00:10Z",
     "03-29 01:30+01:00, 03-29 03:00+02:00, 03-29 03:30+02:00"),
    ("Europe/Berlin", "*/30 * * * *", "2026-10-25T00:10Z",
     "10-25 02:30+02:00, 10-25 02:00+01:00, 10-25 02:30+01:00, 10-25 03:00+01:00"),
    ("Europe/Berlin", "0 */2 * * *", "2026-03-28T22:30Z", "03-29 00:00+01:00, 03-29 04:00+02:00"),
    ("Europe/Berlin", "0 */2 * * *", "2026-10-24T23:00Z",
     "10-25 02:00+02:00, 10-25 02:00+01:00, 10-25 04:00+01:00"),
    ("Europe/Berlin", "30 0 * * * *", "2026-10-24T23:30Z", "10-25 02:00:30+02:00, 10-25 02:00:30+01:00"),
    ("America/New_York", "0 */2 * * *", "2026-03-08T04:30Z", "03-08 00:00-05:00, 03-08 04:00-04:00"),
    ("Australia/Lord_Howe", "0 */2 * * *", "2026-04-04T13:30Z",
     "04-05 02:00+10:30, 04-05 04:00+10:30"),
    ("Australia/Lord_Howe", "*/20 * * * *", "2026-04-04T14:30Z",
     "04-05 01:40+11:00, 04-05 01:40+10:30, 04-05 02:00+10:30"),
    ("Australia/Lord_Howe", "0 * * * *", "2026-10-03T14:00Z", "10-04 01:00+10:30, 10-04 03:00+11:00"),
    ("Africa/Cairo", "0 * * * *", "2026-04-23T20:30Z", "04-23 23:00+02:00, 04-24 01:00+03:00"),
    ("Pacific/Apia", "0 */12 * * *", "2011-12-29T21:00Z",
     "12-29 12:00-10:00, 12-31 00:00+14:00, 12-31 12:00+14:00"),
    ("Asia/Kathmandu", "*/10 * * * *", "1985-12-31T18:15Z", "12-31 23:50+05:30, 01-01 00:20+05:45"),
]  # fmt: skip


def slots(cron: Cron, after: str, count: int) -> str:
    found = upcoming_slots(cron, datetime.fromisoformat(after), count, cron.tz)
    return ", ".join(f"{fire.local:%m-%d} {short(fire.local)}" for fire in found)


def short(local: datetime) -> str:
    return local.isoformat("T", "seconds" if local.second else "minutes").partition("T")[2]


def cases(nights: list) -> list:
    return [(*night[:3], policy, slots) for night in nights for policy, slots in night[3].items()]


@pytest.mark.parametrize(("tz", "expression", "after", "gap", "expected"), cases(GAPS))
@pytest.mark.parametrize("fold", ["first", "second", "both"])
def test_a_gap_is_treated_as_its_policy_says(
    tz: str, expression: str, after: str, gap: str, fold: str, expected: str
) -> None:
    assert slots(Cron(expression, tz, gap, fold), after, expected.count(",") + 1) == expected


@pytest.mark.parametrize(("tz", "expression", "after", "fold", "expected"), cases(FOLDS))
@pytest.mark.parametrize("gap", ["shift", "skip"])
def test_a_fold_is_treated_as_its_policy_says(
    tz: str, expression: str, after: str, gap: str, fold: str, expected: str
) -> None:
    assert slots(Cron(expression, tz, gap, fold), after, expected.count(",") + 1) == expected


@pytest.mark.parametrize(("tz", "expression", "after", "expected"), STARRED)
@pytest.mark.parametrize("gap", ["shift", "skip"])
@pytest.mark.parametrize("fold", ["first", "second", "both"])
def test_a_starred_hour_follows_real_time_under_every_policy(
    tz: str, expression: str, after: str, gap: str, fold: str, expected: str
) -> None:
    assert slots(Cron(expression, tz, gap, fold), after, expected.count(",") + 1) == expected


@pytest.mark.parametrize(
    ("tz", "expression", "after", "gap", "fold", "notes"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-27T12:00Z", "shift", "first", [None, "gap: shifted", None]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-27T12:00Z", "skip", "first", [None, None]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00Z", "shift", "first", ["gap: shifted", None]),
        ("Europe/Berlin", "0 3 * * *", "2026-03-28T12:00Z", "shift", "first", [None, None]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z", "shift", "first", ["fold: first", None]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z", "shift", "second", ["fold: second", None]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z", "skip", "both", ["fold: first", "fold: second"]),
        ("Europe/Berlin", "0 * * * *", "2026-03-29T00:30Z", "shift", "first", [None, None]),
        ("Europe/Berlin", "0 * * * *", "2026-10-24T23:30Z", "skip", "first", ["fold: first", "fold: second"]),
        ("Pacific/Apia", "0 8 * * *", "2011-12-29T20:00Z", "shift", "first", ["gap: shifted", None]),
        ("UTC", "30 2 * * *", "2026-03-27T12:00Z", "shift", "first", [None, None]),
    ],
)  # fmt: skip
def test_a_preview_marks_the_odd_nights(
    tz: str, expression: str, after: str, gap: str, fold: str, notes: list[str | None]
) -> None:
    cron = Cron(expression, tz, gap, fold)

    found = upcoming_slots(cron, datetime.fromisoformat(after), len(notes), tz)

    assert [fire.note for fire in found] == notes
    assert all(fire.at.tzinfo is UTC and fire.at == fire.local.astimezone(UTC) for fire in found)
