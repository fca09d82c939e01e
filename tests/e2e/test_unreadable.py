"""Rows that cannot be read, under real workers and schedulers: they are set aside, and everything goes on."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from mainspring.model.job import JobState
from tests.e2e.target import SCHEDULES, work
from tests.support.planting import Soil
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e


def test_queue_schedules_and_alerts_go_on_beside_rows_that_cannot_be_read(
    site: Site, database_url: str
) -> None:
    first = site.scheduler("first")
    until(
        lambda: site.effects.of("start") or site.ask(site.store.slots.due_specs(limit=1, at=None))[1] or True,
        "it",
    )
    until(lambda: len(site.ask(site.store.schedules.names())) == len(SCHEDULES), "the schedules")
    first.signal(signal.SIGTERM)
    assert first.exit_code() == 0
    [pattern] = site.put([work.job(0.0)])
    soil = Soil(database_url)
    early, late = ("-infinity", "294276-01-01+00") if soil.postgres else (-(2**63), 2**63 - 1)
    due = "2001-01-01+00" if soil.postgres else 978307200000000
    bad: list[tuple[str, str | None, dict[str, Any]]] = [
        ("jobs", "id", {"run_at": early}),
        ("jobs", "id", {"run_at": due, "enqueued_at": late}),
        ("jobs", "id", {"run_at": due, "enqueued_at": early}),
        ("jobs", "id", {"run_at": due, "expires_at": early}),
        ("jobs", "id", {"run_at": due, "fence": 2**31 - 1 if soil.postgres else 2**63 - 1}),
        ("specs", "id", {"trigger": "broken", "next_at": due}),
        ("specs", "id", {"trigger": "b1", "next_at": early}),
        ("specs", "id", {"trigger": "b2", "next_at": due, "following_at": late, "planned": True}),
        ("schedules", "id", {"name": "b3", "misfire": "never"}),
        ("schedules", "id", {"name": "b4", "active_from": late}),
    ]
    for table, key, wrong in bad:
        soil.plant(table, key, {}, **wrong)
    soil.plant("jobs", "id", {}, run_at=due, payload="\\x7b" if soil.postgres else b"{")

    worker = site.worker("worker", "-c", "2")
    scheduler = site.scheduler("scheduler")
    ids = [pattern, *site.put([work.job(0.01)] * 20)]
    until(lambda: all(site.job(each).state is JobState.SUCCEEDED for each in ids), "the other jobs to end")
    until(
        lambda: {each.schedule for each in site.effects.of("end")} >= set(SCHEDULES), "every schedule to fire"
    )

    until(lambda: site.job(900_011).state is JobState.DEAD, "the one whose arguments are no JSON to die")
    aside = soil.rows("SELECT kind, ref FROM unreadable_rows")
    # The one whose deadline has passed becomes a dead letter before a process meets it. Constraints of
    # SQLite refuse the dead letter too (those of PostgreSQL are taken away here): it is set aside as a job.
    kinds = sorted(kind for kind, _ in aside)
    expired = "dead_jobs" if soil.postgres else "jobs"
    assert kinds == sorted([expired, *["jobs"] * 4, *["schedules"] * 2, *["specs"] * 2])
    assert {int(ref) for _, ref in aside} > set(range(900_001, 900_006))
    for kind, ref in aside:
        line = f"row {ref} of {kind} cannot be read"
        assert worker.says(line) + scheduler.says(line) == 1
    assert {(row.table, row.key) for row in site.ask(site.store.health.look()).unreadable} == set(aside)
