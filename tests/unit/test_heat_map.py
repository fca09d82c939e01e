"""The load of the coming days, the nights on which clocks change, and who makes the busiest minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.admin.simulation.heat_map import LEVELS, heat_map, level, nights, steps, zones_of
from mainspring.model.schedule import NewSchedule
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from mainspring.triggers.trigger import Bounded, Trigger

NOW = datetime(2026, 3, 27, 9, 20, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def _new(name: str, trigger: Trigger | str, **fields: Any) -> NewSchedule:
    text = trigger if isinstance(trigger, str) else trigger.encode()
    return NewSchedule(name=name, task="t", trigger=text, payload=b"{}", **fields)


def test_every_job_is_in_the_cell_of_its_hour() -> None:
    burst = [_new(f"t{n}", Cron("0 3 * * *", "Asia/Tokyo")) for n in range(20)]
    found = heat_map([_new("hourly", Every(HOUR)), *burst], NOW, 3)

    assert found.total == 3 * (24 + 20)
    assert [day.jobs for day in found.days] == [44, 44, 44]
    six_pm = found.days[1].cells[18]
    assert (six_pm.at, six_pm.jobs, six_pm.busiest) == (NOW.replace(hour=18, minute=0) + DAY, 21, 21)
    assert six_pm.level == LEVELS
    assert six_pm.sentence == "Sat 28 Mar 18:00Z: 21 jobs, at most 21 in a minute"
    assert found.days[1].cells[17].level == 1


def test_what_is_over_is_marked() -> None:
    found = heat_map([_new("hourly", Every(HOUR))], NOW, 2)

    assert [cell.past for cell in found.days[0].cells].index(False) == 9
    assert not any(cell.past for cell in found.days[1].cells)


def test_the_busiest_minute_names_who_makes_it_and_what_a_window_would_do() -> None:
    burst = [_new(f"t{n:03}", Cron("0 3 * * *", "UTC")) for n in range(300)]
    found = heat_map(burst, NOW, 1)

    [first] = found.bursts
    assert (first.minute, first.jobs, first.share) == (NOW.replace(hour=3, minute=0), 300, 100)
    assert [part.name for part in first.first] == ["t000", "t001", "t002", "t003"]
    assert first.more == 296
    assert found.peak == 300
    assert 20 <= found.spread_peak <= 40


def test_a_trigger_that_cannot_be_read_is_counted_and_left_out() -> None:
    found = heat_map([_new("moon", '{"moon":"full"}'), _new("hourly", Every(HOUR))], NOW, 1)

    assert (found.schedules, found.unread, found.total) == (1, 1, 24)


def test_nothing_at_all() -> None:
    found = heat_map([], NOW, 14)

    assert (found.total, found.steps, found.bursts, found.peak, found.spread_peak) == (0, (), (), 0, 0)
    assert {cell.level for day in found.days for cell in day.cells} == {0}


@pytest.mark.parametrize("most", [1, 2, 3, 7, 26, 1000, 128_565])
def test_shades_rise_with_the_jobs_and_end_with_the_busiest_hour(most: int) -> None:
    shades = steps(most)

    assert shades[-1] == most
    assert list(shades) == sorted(set(shades))
    assert level(most, shades) == LEVELS
    found = [level(jobs, shades) for jobs in range(most + 1)]
    assert found == sorted(found)
    assert found[0] == 0 < found[1]


def test_the_night_on_which_clocks_go_forward_is_on_the_map() -> None:
    found = heat_map([_new("b", Cron("30 2 * * *", "Europe/Berlin"))], NOW, 5)

    [night] = found.nights
    cell = found.days[2].cells[1]
    assert cell.nights == (night,)
    assert night.at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert night.forward
    said = "Europe/Berlin: clocks change at 02:00, and times from 02:00 to 03:00 are skipped"
    assert night.sentence == said
    assert said in cell.sentence


def test_zones_that_change_alike_are_told_together_and_back_is_told_apart() -> None:
    start = datetime(2026, 10, 20, tzinfo=UTC)
    [europe, america] = nights(
        ["UTC", "Europe/Paris", "America/New_York", "Europe/Berlin", "Asia/Tokyo"], start, start + 14 * DAY
    )

    assert europe.zones == ("Europe/Berlin", "Europe/Paris")
    assert europe.at == datetime(2026, 10, 25, 1, tzinfo=UTC)
    assert not europe.forward
    assert europe.sentence.endswith("clocks change at 03:00, and times from 02:00 to 03:00 come twice")
    assert america.at == datetime(2026, 11, 1, 6, tzinfo=UTC)


def test_the_zones_of_a_trigger_within_a_trigger() -> None:
    cron = Cron("30 2 * * *", "Europe/Berlin")

    assert zones_of(Bounded(cron, NOW, None)) == {"Europe/Berlin"}
    assert zones_of(Every(HOUR)) == set()
