"""From wall times to instants: the corners that no cron expression reaches easily."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from mainspring.triggers.zones import Fold, Gap, Walls, zone

SECOND = timedelta(seconds=1)
TURN = datetime(2026, 10, 25, 1, tzinfo=UTC)  # Berlin: 03:00 summer time becomes 02:00


def daily(at: time):
    """The next wall time that reads `at`."""

    def wall_after(wall: datetime) -> datetime:
        today = datetime.combine(wall, at)
        return today if today > wall else today + timedelta(days=1)

    return wall_after


def every_second_from_two_to_three(wall: datetime) -> datetime:
    found = wall.replace(microsecond=0) + SECOND
    while found.hour != 2:
        found = (found + timedelta(hours=1)).replace(minute=0, second=0)
    return found


def local(moment: datetime, tz: str) -> str:
    return moment.astimezone(zone(tz)).isoformat()


def test_a_gap_may_end_in_the_middle_of_a_minute() -> None:
    walls = Walls(zone("Africa/Monrovia"), Gap.SHIFT, Fold.FIRST)

    slot = walls.after(datetime(1972, 1, 6, 12, tzinfo=UTC), daily(time(0, 30)))

    assert local(slot, "Africa/Monrovia") == "1972-01-07T00:44:30+00:00"


@pytest.mark.parametrize(
    ("fold", "minutes_from_turn", "expected"),
    [
        (Fold.FIRST, -31, "2026-10-25T02:30:00+02:00"),
        (Fold.FIRST, -30, "2026-10-26T02:30:00+01:00"),
        (Fold.FIRST, -10, "2026-10-26T02:30:00+01:00"),
        (Fold.FIRST, 0, "2026-10-26T02:30:00+01:00"),
        (Fold.FIRST, 29, "2026-10-26T02:30:00+01:00"),
        (Fold.SECOND, -31, "2026-10-25T02:30:00+01:00"),
        (Fold.SECOND, -10, "2026-10-25T02:30:00+01:00"),
        (Fold.SECOND, 29, "2026-10-25T02:30:00+01:00"),
        (Fold.SECOND, 30, "2026-10-26T02:30:00+01:00"),
        (Fold.BOTH, -31, "2026-10-25T02:30:00+02:00"),
        (Fold.BOTH, -30, "2026-10-25T02:30:00+01:00"),
        (Fold.BOTH, 0, "2026-10-25T02:30:00+01:00"),
        (Fold.BOTH, 30, "2026-10-26T02:30:00+01:00"),
    ],
)
def test_from_inside_a_fold_the_slot_is_the_one_still_to_come(
    fold: Fold, minutes_from_turn: int, expected: str
) -> None:
    walls = Walls(zone("Europe/Berlin"), Gap.SHIFT, fold)

    slot = walls.after(TURN + timedelta(minutes=minutes_from_turn), daily(time(2, 30)))

    assert local(slot, "Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("fold", "after", "expected"),
    [
        (Fold.SECOND, TURN - timedelta(hours=2), TURN),
        (Fold.FIRST, TURN - SECOND, TURN + timedelta(hours=24)),
        (Fold.BOTH, TURN - SECOND, TURN),
    ],
)
def test_an_unwanted_pass_is_left_in_one_step(fold: Fold, after: datetime, expected: datetime) -> None:
    asked = 0

    def counted(wall: datetime) -> datetime:
        nonlocal asked
        asked += 1
        return every_second_from_two_to_three(wall)

    assert Walls(zone("Europe/Berlin"), Gap.SHIFT, fold).after(after, counted) == expected
    assert asked <= 4


@pytest.mark.parametrize(("gap", "shifted"), [(Gap.SHIFT, True), (Gap.SKIP, False)])
def test_only_a_slot_that_took_a_skipped_time_counts_as_shifted(gap: Gap, shifted: bool) -> None:
    walls = Walls(zone("Europe/Berlin"), gap, Fold.FIRST)
    gap_end = datetime(2026, 3, 29, 1, tzinfo=UTC)

    assert walls.shifted(gap_end, daily(time(2, 30))) is shifted
    assert not walls.shifted(gap_end, daily(time(3, 0)))
    assert not walls.shifted(gap_end + timedelta(days=1), daily(time(2, 30)))
