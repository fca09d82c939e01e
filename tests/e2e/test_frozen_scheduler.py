"""One of two schedulers is frozen: it holds nothing, and the other needs nobody's lease to end first."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import datetime, timedelta

import pytest

from mainspring.model.job import JobFilter
from mainspring.model.schedule import Disposition, Slot
from tests.e2e.target import SCHEDULES
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

SECOND = timedelta(seconds=1)
POLL = SECOND
"""The longest a scheduler sleeps, if nothing else is set."""
EACH = 5
OPTIONS = ["--lease", "3s", "--heartbeat", "1s"]


def test_slots_go_on_within_one_poll_whichever_scheduler_is_frozen(site: Site) -> None:
    first, second = site.scheduler("first", *OPTIONS), site.scheduler("second", *OPTIONS)
    until(lambda: len(_ledger(site)) >= 2, "slots to fire")

    # Each longer than the lease of the frozen one, so that it is given up meanwhile; then the other way.
    _fires_alone(site, frozen=first, other=second)
    until(lambda: first.joined(times=2), "the first to rejoin")
    _fires_alone(site, frozen=second, other=first)
    until(lambda: second.joined(times=2), "the second to rejoin")
    last = _ledger(site)[-1].slot_at
    until(lambda: _ledger(site)[-1].slot_at >= last + 2 * SECOND, "slots with both")
    for process in (first, second):
        process.kill()

    rows = {name: _ledger(site, name) for name in SCHEDULES}
    for name, slots in rows.items():
        instants = [slot.slot_at for slot in slots]
        assert instants == [instants[0] + n * SECOND for n in range(len(instants))], f"{name}: gap or double"
        assert {(slot.disposition, slot.since) for slot in slots} == {(Disposition.FIRED, None)}
    made = Counter(
        (job.schedule_id, job.slot_at)
        for job in site.ask(site.store.jobs.find(JobFilter(limit=100_000), at=None))
    )
    assert set(made.values()) == {1}
    assert made.total() == sum(len(slots) for slots in rows.values())


def _fires_alone(site: Site, *, frozen: Process, other: Process) -> None:
    stood_at = site.freeze(frozen)
    said = frozen.log
    rows = until(lambda: _alone(site, stood_at), f"{EACH} slots by {other.name} alone")
    late = [row.decided_at - row.slot_at for row in rows]
    assert max(late) <= POLL, f"{other.name}: {late}"
    # A slot is in the ledger before it is told.
    until(
        lambda: all(other.says(f"slot {row.slot_at.isoformat()}: ") for row in rows),
        f"{other.name} to say so",
    )
    assert frozen.log == said
    frozen.signal(signal.SIGCONT)


def _alone(site: Site, since: datetime) -> list[Slot]:
    """Rows of slots that came while one was frozen, once there are enough of them and none is missing."""
    rows = [row for row in _ledger(site) if row.slot_at > since]
    return rows if len(rows) >= EACH else []


def _ledger(site: Site, schedule: str = SCHEDULES[0]) -> list[Slot]:
    slots: list[Slot] = site.ask(site.store.slots.of(schedule, limit=1000))
    return slots[::-1]
