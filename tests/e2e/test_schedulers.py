"""Several schedulers, killed one after another."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.model.job import JobState
from mainspring.model.schedule import Disposition, Slot
from tests.e2e.target import SCHEDULES
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

SECOND = timedelta(seconds=1)
SLOTS = 26
BETWEEN_KILLS = 6


def test_every_slot_happens_once_while_schedulers_are_killed_in_turn(site: Site) -> None:
    site.worker("worker")
    schedulers = [site.scheduler(f"scheduler-{number}") for number in range(3)]
    successors = []
    for number, victim in enumerate(schedulers, start=1):
        until(lambda reach=number * BETWEEN_KILLS: len(_ledger(site, SCHEDULES[0])) >= reach, "slots to fire")
        victim.kill()
        successors.append(site.scheduler(f"successor-{number}"))
    until(lambda: all(len(_ledger(site, name)) >= SLOTS for name in SCHEDULES), f"{SLOTS} slots of each")
    for last in successors:
        last.kill()
    until(lambda: site.live() == 0, "all jobs to end")

    ledger = {name: _ledger(site, name) for name in SCHEDULES}
    for name, slots in ledger.items():
        instants = [slot.slot_at for slot in slots]
        every_second = [instants[0] + n * SECOND for n in range(len(instants))]
        assert instants == every_second, f"{name}: a gap or a double"
        assert all(slot.since is None for slot in slots), f"{name}: slots were coalesced"
        assert {slot.disposition for slot in slots} == {Disposition.FIRED}
        assert site.states([slot.job_id for slot in slots if slot.job_id]) == {JobState.SUCCEEDED}
    written = Counter((name, slot.slot_at) for name, slots in ledger.items() for slot in slots)
    happened = Counter(
        (start.schedule, datetime.fromisoformat(start.slot).astimezone(UTC))
        for start in site.effects.of("start")
        if start.slot
    )
    assert happened == written
    assert set(happened.values()) == {1}
    assert happened.total() > 200


def _ledger(site: Site, schedule: str) -> list[Slot]:
    slots: list[Slot] = site.ask(site.store.slots.of(schedule, limit=1000))
    return slots[::-1]
