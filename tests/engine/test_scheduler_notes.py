"""What a scheduler writes beside a slot: nights on which the clocks change; and its gauge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring.model.schedule import NewSchedule, Slot
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.store import Store
from mainspring.telemetry.events import LagMeasured, Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.triggers.cron import Cron
from tests.engine.kit import HOUR, SECOND, Heard

NIGHTLY = Cron("30 2 * * *", "Europe/Berlin")


def _nightly(clock: ManualClock) -> Any:
    first = NIGHTLY.next_after(clock.now())
    assert first is not None
    return NewSchedule(
        name="s",
        task="t",
        trigger=NIGHTLY.encode(),
        payload=b"{}",
        next_at=first,
        following_at=NIGHTLY.next_after(first),
    )


async def _ledger(store: Store, clock: ManualClock, day: datetime) -> list[Slot]:
    """The ledger of a nightly schedule after three days of hours, oldest slot first."""
    clock.advance(day - clock.now())
    await store.schedules.put([_nightly(clock)], at=clock.stamp())
    scheduler = Scheduler(store, clock, Telemetry(), poll=SECOND, chunk=100)
    for _ in range(72):
        clock.advance(HOUR / 2)
        await scheduler.tick()
        clock.advance(HOUR / 2)
        await scheduler.tick()
    return (await store.slots.of("s", limit=10))[::-1]


def test_a_slot_that_the_clocks_moved_says_so(store: Any, clock: ManualClock, run: Any) -> None:
    rows = run(_ledger(store, clock, datetime(2031, 3, 28, 12, tzinfo=UTC)))

    assert [(row.slot_at, row.note) for row in rows] == [
        (datetime(2031, 3, 29, 1, 30, tzinfo=UTC), None),
        (datetime(2031, 3, 30, 1, 0, tzinfo=UTC), "gap: shifted"),
        (datetime(2031, 3, 31, 0, 30, tzinfo=UTC), None),
    ]


def test_a_slot_whose_local_time_comes_twice_says_which_it_is(
    store: Any, clock: ManualClock, run: Any
) -> None:
    rows = run(_ledger(store, clock, datetime(2031, 10, 24, 12, tzinfo=UTC)))

    assert [(row.slot_at, row.note) for row in rows] == [
        (datetime(2031, 10, 25, 0, 30, tzinfo=UTC), None),
        (datetime(2031, 10, 26, 0, 30, tzinfo=UTC), "fold: first"),
        (datetime(2031, 10, 27, 1, 30, tzinfo=UTC), None),
    ]


def test_every_pass_sets_the_gauge_of_lag(store: Any, clock: ManualClock, run: Any) -> None:
    heard = Heard()

    async def story() -> None:
        new = _nightly(clock)
        await store.schedules.put([new], at=clock.stamp())
        scheduler = Scheduler(store, clock, Telemetry(heard), poll=SECOND, chunk=100)
        await scheduler.tick()
        clock.advance(new.next_at - clock.now() + timedelta(seconds=7))
        await scheduler.tick()

    run(story())
    gauges = [event for event in heard.events if isinstance(event, LagMeasured)]
    assert [(event.lag, event.due) for event in gauges] == [
        (timedelta(), 0),
        (timedelta(seconds=7), 1),
    ]
