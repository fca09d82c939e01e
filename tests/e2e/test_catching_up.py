"""After an outage every missed slot runs, one after another, also when the scheduler is killed meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mainspring.model.schedule import Disposition, Slot
from tests.e2e.caught_target import app
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

TARGET = Path(__file__).with_name("caught_target.py")
SLOTS = 32
OPTIONS = ["--lease", "3s", "--heartbeat", "1s"]


@pytest.mark.parametrize("down", [timedelta(), timedelta(days=400)], ids=["since this month", "400 days"])
def test_a_monthly_job_runs_after_any_outage(site: Site, down: timedelta) -> None:
    now: datetime = site.ask(site.store.now(at=None))
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    _declare(site, "monthly", at=min(month, now - down) - timedelta(hours=1))
    site.start("scheduler", "scheduler", *OPTIONS, target=TARGET)
    site.start("worker", "worker", *OPTIONS, target=TARGET)

    until(
        lambda: site.effects.of("end", jobs=[row.job_id or 0 for row in _ledger(site, "monthly")]),
        "the newest missed slot to run",
    )

    [slot] = _ledger(site, "monthly")
    assert (slot.disposition, slot.slot_at) == (Disposition.FIRED, month)


def test_a_scheduler_killed_while_it_catches_up_costs_no_slot_and_no_order(site: Site) -> None:
    now: datetime = site.ask(site.store.now(at=None))
    began = now.replace(second=0, microsecond=0) - SLOTS * timedelta(minutes=1)
    _declare(site, "minutely", at=began)
    site.start("worker", "worker", *OPTIONS, target=TARGET)
    for number in range(3):
        scheduler = site.start("scheduler", f"scheduler-{number}", *OPTIONS, target=TARGET)
        until(lambda number=number: len(site.effects.of("end")) >= 5 * (number + 1), "some to run")
        scheduler.kill()
    site.start("scheduler", "last", *OPTIONS, target=TARGET)
    until(lambda: len(site.effects.of("end")) >= SLOTS, "all of them to run")

    rows = _ledger(site, "minutely")[:SLOTS]
    assert [row.slot_at for row in rows] == [began + n * timedelta(minutes=1) for n in range(1, SLOTS + 1)]
    assert {(row.disposition, row.since) for row in rows} == {(Disposition.FIRED, None)}
    lines = [each for each in site.effects.all() if each.event in ("start", "end")][: 2 * SLOTS]
    assert [each.event for each in lines] == ["start", "end"] * SLOTS, "one after another"
    assert [each.job for each in lines[::2]] == [row.job_id for row in rows], "oldest first"


def _declare(site: Site, name: str, *, at: datetime) -> None:
    """As an app did at that moment; nobody has looked at it since."""
    site.ask(site.store.schedules.put([app._registry.schedules[name].new_schedule(at)], at=at))


def _ledger(site: Site, name: str) -> list[Slot]:
    slots: list[Slot] = site.ask(site.store.slots.of(name, limit=1000))
    return slots[::-1]
