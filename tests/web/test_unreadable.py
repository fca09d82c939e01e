"""Rows that cannot be read: every page and every list answers without them, and says so."""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import Any

import asyncpg
import pytest

from tests.support.door import House
from tests.support.planting import Soil

LISTS = [
    *("/api/v1/jobs", "/api/v1/jobs?state=ready", "/api/v1/jobs?state=running", "/api/v1/jobs?state=dead"),
    *("/api/v1/jobs?state=delayed", "/api/v1/jobs?state=succeeded", "/api/v1/dead", "/api/v1/dead/groups"),
    *("/api/v1/schedules", "/api/v1/schedules/nightly", "/api/v1/schedules/nightly/slots"),
    *("/api/v1/schedules/nightly/versions", "/api/v1/queues", "/api/v1/limits", "/api/v1/processes"),
    *("/api/v1/leases", "/api/v1/doctor", "/api/v1/ledger/verify", "/api/v1/alerts", "/api/v1/backfills"),
    *("/api/v1/status", "/api/v1/stats", "/api/v1/workflows", "/api/v1/jobs/1/runs", "/api/v1/jobs/5"),
]
PAGES = [
    *("/", "/part", "/jobs", "/jobs/part", "/jobs/1", "/jobs/5", "/dead", "/dead/part", "/dead/letters"),
    *("/schedules", "/schedules/-/summary", "/schedules/-/list", "/schedules/-/heat", "/schedules/nightly"),
    *("/schedules/nightly/-/part", "/queues", "/queues/part", "/workers", "/workers/part", "/workflows"),
    *("/workflows/-/part", "/workflows/5", "/health", "/health/-/part", "/audit"),
]

MOMENTS = {
    "postgres": ["-infinity", "infinity", "4713-01-01 00:00:00+00 BC", "294276-01-01 00:00:00+00"],
    "sqlite": [-(2**63), 2**63 - 1, -694_000_000_000_000_000, 9_200_000_000_000_000_000],
}
ALERT = {
    "uid": 1,
    "rule": "store",
    "subject": "x",
    "severity": "warning",
    "sentence": "x",
    "repeats": 0,
}
SLOT = {"schedule_id": 1, "disposition": 0}
LEASE = {"token": 1, "holder_id": 1, "holder": "x"}


Plant = tuple[str, str | None, dict[str, Any], dict[str, Any]]
"""Table, key, a row unless one is copied, and what is wrong with it."""
TOGETHER = 6
"""Rows that are planted between two looks at everything."""


def now(soil: Soil) -> Any:
    return "2030-01-01 00:00:00+00" if soil.postgres else 1_893_456_000_000_000


def moments(soil: Soil) -> list[Plant]:
    """Moments that are none."""
    moment = now(soil)
    wrong: list[Plant] = []
    slot = {**SLOT, "slot_at": moment, "decided_at": moment}
    alert = {**ALERT, "since": moment, "seen_at": moment, "opened_at": moment}
    lease = {**LEASE, "expires_at": moment, "acquired_at": moment}
    for bad in MOMENTS["postgres" if soil.postgres else "sqlite"]:
        for table, key, base, columns in (
            (
                "jobs",
                "id",
                {},
                ("run_at", "enqueued_at", "claimed_at", "slot_at", "expires_at", "previous_at"),
            ),
            ("dead_jobs", "id", {}, ("died_at", "enqueued_at", "slot_at", "expires_at")),
            ("processes", "id", {}, ("started_at", "lease_until")),
            ("runs", "job_id", {}, ("finished_at", "enqueued_at", "started_at", "run_at", "slot_at")),
            ("schedule_versions", "version", {}, ("changed_at",)),
            ("slots", None, slot, ("slot_at", "decided_at", "since")),
            ("alerts", "id", alert, ("since", "opened_at", "seen_at")),
            ("workflows", "id", {}, ("started_at",)),
            ("leases", "name", lease, ("expires_at", "acquired_at")),
            ("specs", "id", {}, ("next_at", "following_at", "last_at")),
            ("schedules", "id", {}, ("active_from", "paused_at")),
        ):
            for column in columns:
                more: dict[str, Any] = {}
                if table == "schedules":
                    more = {"name": f"bad-{len(wrong)}"}
                if table == "specs":
                    more = {"trigger": f"bad-{len(wrong)}"}
                if table == "leases":
                    more = {"name": f"bad-{len(wrong)}"}
                if table == "slots" and column != "slot_at":
                    more = {
                        "slot_at": f"2030-01-01 00:00:00.{len(wrong):06}+00" if soil.postgres else len(wrong)
                    }
                if table == "alerts":
                    more = {"subject": f"bad-{len(wrong)}"}
                wrong.append((table, None if table == "leases" else key, base, {**more, column: bad}))
    return wrong


def words(soil: Soil) -> list[Plant]:
    """Numbers, words and documents that nobody knows."""
    wrong: list[Plant] = []
    slot = {**SLOT, "decided_at": now(soil)}
    alert = {**ALERT, "since": now(soil), "seen_at": now(soil), "opened_at": now(soil)}
    limit_key = {"name": "bad", "burst": 1, "tokens": 0, "concurrency": 1}
    for place, bad in enumerate(MOMENTS["postgres" if soil.postgres else "sqlite"]):
        wrong.append(("limit_keys", "id", limit_key, {"key": f"{place}", "refilled_at": bad}))
    wrong += [
        ("limit_keys", "id", limit_key, {"key": "nan", "tokens": "NaN" if soil.postgres else 1e300}),
        ("workflow_steps", "id", {}, {"state": 77}),
        ("workflow_steps", "id", {}, {"error": broken(soil, [1])}),
        ("processes", "id", {}, {"role": "queen"}),
        ("alerts", "id", alert, {"rule": "weather", "subject": "y"}),
        ("alerts", "id", alert, {"severity": "meh", "subject": "z"}),
        ("schedules", "id", {}, {"name": "bad-word", "misfire": "never"}),
        ("schedules", "id", {}, {"name": "bad-overlap", "overlap": "maybe"}),
        ("workflows", "id", {}, {"state": 77}),
        ("runs", "job_id", {}, {"verdict": 77}),
        ("slots", None, slot, {"slot_at": now(soil), "disposition": 77}),
        ("jobs", "id", {}, {"errors": broken(soil, "x")}),
        ("jobs", "id", {}, {"errors": broken(soil, [1])}),
        ("dead_jobs", "id", {}, {"errors": broken(soil, {"a": 1})}),
        ("dead_jobs", "id", {}, {"errors": broken(soil, [{"type": 1}])}),
        ("schedule_versions", "version", {}, {"definition": "{"}),
        ("definitions", "id", {}, {"name": "bad", "definition": "{"}),
    ]
    if not soil.postgres:
        wrong += [
            ("jobs", "id", {}, {"errors": "{"}),
            ("jobs", "id", {}, {"queue": b"\xff\xfe"}),
            ("jobs", "id", {}, {"task": b"\xff\xfe"}),
            ("processes", "id", {}, {"queues": "{"}),
            ("processes", "id", {}, {"name": b"\xff\xfe"}),
            ("processes", "id", {}, {"holding": "nonsense"}),
            ("schedules", "id", {}, {"name": b"\xff\xfe"}),
            ("jobs", "id", {}, {"failures": 2**63 - 1}),
        ]
    return wrong


def broken(soil: Soil, value: Any) -> Any:
    return value if soil.postgres else json.dumps(value)


def test_pages_and_lists_answer_without_rows_that_cannot_be_read(
    house: House, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    soil = Soil(database_url)
    fine = {each: house.ask("GET", each).status_code for each in (*LISTS, *PAGES)}
    assert set(fine.values()) == {200}, fine
    failures = []
    with caplog.at_level(logging.WARNING, "mainspring"):
        bad = [*moments(soil), *words(soil)]
        for start in range(0, len(bad), TOGETHER):
            for table, key, base, wrong in bad[start : start + TOGETHER]:
                soil.plant(table, key, base, **wrong)
            for each in (*LISTS, *PAGES):
                answer = house.ask("GET", each)
                if answer.status_code != 200:
                    failures.append((bad[start : start + TOGETHER], each, answer.status_code))
    assert failures == []
    aside = {table for (table,) in soil.rows("SELECT kind FROM unreadable_rows")}
    assert {"jobs", "dead_jobs", "processes", "runs", "specs", "schedules", "workflows", "alerts"} <= aside
    assert " of jobs cannot be read" in caplog.text
    assert {job["id"] for job in house.get("/jobs?limit=100").json()["items"]} >= {3, 4, 5}
    [check] = [each for each in house.get("/doctor").json()["items"] if each["name"] == "rows"]
    assert check["level"] == "warn" and "were moved into unreadable_rows" in check["sentence"]


def test_nothing_of_ours_is_set_aside(house: House, database_url: str) -> None:
    async def set_aside() -> Any:
        store = await house.app._store()
        return await store.health.set_aside()

    assert house.run(set_aside) == []


def test_constraints_refuse_such_rows(house: House, database_url: str) -> None:
    soil = Soil(database_url, open_up=False)
    early = "-infinity" if soil.postgres else -(2**63)
    for table, key, wrong in (
        ("jobs", "id", {"run_at": early}),
        ("jobs", "id", {"enqueued_at": early}),
        ("jobs", "id", {"fence": 2**31 - 1}),
        ("jobs", "id", {"max_attempts": 0}),
        ("processes", "id", {"lease_until": early}),
        ("specs", "id", {"trigger": "x", "next_at": early}),
        ("schedules", "id", {"name": "x", "active_from": early}),
        ("schedules", "id", {"name": "y", "misfire": "never"}),
        ("workflows", "id", {"state": 77}),
    ):
        with pytest.raises((asyncpg.CheckViolationError, sqlite3.IntegrityError)):
            soil.plant(table, key, {}, **wrong)
