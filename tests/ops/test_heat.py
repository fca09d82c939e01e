"""The heat of the days to come is the load that the simulator counts, from groups instead of schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.model.pages import HerdSize
from mainspring.model.schedule import NewSchedule
from mainspring.ops.heat import Heater, heat_of
from mainspring.ops.load import load
from mainspring.ops.simulate import Horizon
from mainspring.trigger.cron import Cron
from tests.support.desk import MINUTE, SECOND

START = datetime(2030, 3, 29, 10, 30, tzinfo=UTC)
HORIZON = Horizon(start=START, end=START + timedelta(days=4))  # a night on which clocks change is in it
GROUPS = [
    (Cron("*/20 * * * *").encode(), timedelta(), 3),
    (Cron("30 2 * * *", "Europe/Berlin").encode(), 90 * SECOND, 2),
    (Cron("30 2 * * *", "Europe/Berlin").encode(), 90 * MINUTE, 5),
]


def test_heat_is_the_load_of_every_single_schedule():
    schedules = [
        NewSchedule(name=f"{n}-{offset}-{trigger}", task="t", trigger=trigger, payload=b"", offset=offset)
        for trigger, offset, count in GROUPS
        for n in range(count)
    ]
    sizes = [HerdSize(trigger=t, catch_up=None, offset=offset, count=n) for t, offset, n in GROUPS]

    found = heat_of([*sizes, HerdSize(trigger="?", catch_up=None, offset=SECOND, count=9)], HORIZON)
    summed = load(schedules, HORIZON)

    assert sum(each.jobs for each in found.hours) == summed.total
    assert max(each.busiest for each in found.hours) == summed.peaks[0].jobs
    assert found.hours[0].at == START.replace(minute=0)
    assert found.unread == 9


def test_heat_is_made_aside_and_remembered(desk):
    desk.schedule(trigger=Cron("0 * * * *").encode())
    heater = Heater(desk.store, desk.clock, days=1)

    async def asked():
        found = None
        while found is None:
            found = await heater.heat()
        return found, await heater.heat()

    first, again = desk.run(asked())

    assert first is again
    assert sum(each.jobs for each in first.hours) == 24
