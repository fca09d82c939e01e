"""`simulate` and `audit` at the command line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.model.schedule import NewSchedule, Overlap
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.opener import open_store
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.triggers.cron import Cron
from tests.cli.conftest import Answer

Call = Callable[..., Answer]
MONDAY = ("--from", "2030-01-07T00:00:00Z", "--to", "2030-01-09T00:00:00Z")
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def test_an_apps_schedules_are_simulated_without_a_database(call: Call, tmp_path: Path) -> None:
    answer = call("simulate", "-A", "shop.py", *MONDAY)

    assert answer.code == 0
    assert answer.out.splitlines() == [
        "SLOT                  SCHEDULE   FATE   NOTE",
        "2030-01-07 08:00:00Z  greetings  fired  -",
        "2030-01-08 08:00:00Z  greetings  fired  -",
    ]
    assert "note: overlap is left out" in answer.err
    assert answer.err.splitlines()[-1] == "2 slots: 2 fired"
    assert not list(tmp_path.glob("*.db"))


def test_an_outage_and_json(call: Call) -> None:
    outage = "2030-01-07T07:00:00Z..2030-01-08T08:30:00Z"
    answer = call("simulate", "-A", "shop.py", *MONDAY, "--outage", outage, "--json")

    assert [(each["fate"], each["into"], each["late_seconds"]) for each in answer.data["slots"]] == [
        ("coalesced", "2030-01-08T08:00:00+00:00", 88200),
        ("fired", None, 1800),
    ]
    assert answer.data["cut"] is False


def test_the_list_is_cut(call: Call) -> None:
    answer = call("simulate", "-A", "shop.py", *MONDAY, "--limit", "1")

    assert "note: cut after 1 slots, at 2030-01-07 08:00:00Z" in answer.err


def test_a_load_is_shown_as_bars(call: Call) -> None:
    answer = call("simulate", "-A", "shop.py", *MONDAY, "--load")

    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "2 jobs in 2 busy minutes; at most 1 in a minute"
    assert f"2030-01-07 08:00:00Z  {'#' * 40}  1  greetings" in lines
    assert f"08:00  {'#' * 40}  1" in lines
    data = call("simulate", "-A", "shop.py", *MONDAY, "--load", "--json").data
    assert (data["total"], data["window"]["peak"], len(data["by_hour"])) == (2, 1, 24)
    assert data["peaks"][0]["schedules"] == [{"name": "greetings", "jobs": 1}]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--from", "2030-01-09T00:00:00Z", "--to", "2030-01-07T00:00:00Z"), 2, "after --from"),
        ((*MONDAY, "--outage", "yesterday"), 2, "two moments with .. between them"),
        ((*MONDAY, "--outage", "2030-01-07T00:00:00Z..2030-01-06T00:00:00Z"), 2, "after the start"),
        ((*MONDAY, "--load", "--assume-duration", "5m"), 2, "without --load"),
        ((*MONDAY, "--schedule", "nobody"), 1, "nobody"),
    ],
)
def test_mistakes_are_refused(call: Call, words: tuple[str, ...], code: int, said: str) -> None:
    answer = call("simulate", "-A", "shop.py", *words)

    assert (answer.code, said in answer.err) == (code, True), answer.err


@pytest.fixture
def lived(bare_shell: Any, run: Any) -> Path:
    """A file with half an hour of slots, up to now."""
    path: Path = bare_shell.folder / "lived.db"
    now = SystemClock().now()
    clock = ManualClock((now - 30 * MINUTE).replace(second=0, microsecond=0))

    async def live() -> None:
        store = open_store(f"sqlite:///{path}", clock=clock)
        await store.migrate()
        trigger = Cron("* * * * *", "UTC")
        first = trigger.next_after(clock.now())
        assert first is not None
        await store.schedules.put(
            [
                NewSchedule(
                    name="s",
                    task="t",
                    trigger=trigger.encode(),
                    payload=b"{}",
                    overlap=Overlap.QUEUE_ALL,
                    next_at=first,
                    following_at=trigger.next_after(first),
                )
            ],
            at=clock.stamp(),
        )
        scheduler = Scheduler(store, clock, Telemetry(), poll=SECOND, chunk=10)
        while clock.now() < now:
            clock.advance(MINUTE)
            await scheduler.tick()
        await store.close()

    run(live())
    return path


def test_a_ledger_without_faults_is_accounted_for(call: Call, lived: Path) -> None:
    answer = call("verify", "--database-url", f"sqlite:///{lived}")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.endswith(" slots of 1 schedule, all accounted for\n")


def test_a_stored_schedule_is_simulated(call: Call, lived: Path) -> None:
    answer = call("simulate", "--database-url", f"sqlite:///{lived}", *MONDAY, "--load", "--json")

    assert answer.data["total"] == 2 * 24 * 60


def test_a_fault_is_found_and_is_a_failure(call: Call, lived: Path) -> None:
    with sqlite3.connect(lived) as connection:
        [(slot,)] = connection.execute("SELECT slot_at FROM slots ORDER BY slot_at LIMIT 1 OFFSET 4")
        connection.execute("DELETE FROM slots WHERE slot_at = ?", (slot,))
    connection.close()

    answer = call("verify", "--database-url", f"sqlite:///{lived}")
    as_json = call("verify", "--database-url", f"sqlite:///{lived}", "--json")

    assert (answer.code, as_json.code) == (1, 1)
    assert answer.out.splitlines()[0].split() == ["FINDING", "SCHEDULE", "SLOT", "SLOTS", "DETAIL"]
    assert answer.out.splitlines()[1].startswith("missed   s         20")
    assert answer.out.splitlines()[-1].endswith(" slots of 1 schedule: 1 missed")
    [finding] = as_json.data["findings"]
    assert (finding["kind"], finding["schedule"], finding["count"]) == ("missed", "s", 1)
    assert json.loads(as_json.out)["ok"] is False


def test_a_late_slot_is_a_failure_only_if_we_are_strict(call: Call, lived: Path) -> None:
    with sqlite3.connect(lived) as connection:
        connection.execute(
            "UPDATE slots SET decided_at = decided_at + 90000000"
            " WHERE slot_at = (SELECT min(slot_at) FROM slots)"
        )
    connection.close()
    url = f"sqlite:///{lived}"

    plain, strict = call("verify", "--database-url", url), call("verify", "--database-url", url, "--strict")

    assert (plain.code, strict.code) == (0, 1)
    assert plain.out.endswith("all accounted for; 1 decided late\n")
    assert strict.out.endswith(": 1 late\n")
    assert call("verify", "--database-url", url, "--strict", "--late", "2m").code == 0


def test_an_unknown_schedule_is_refused(call: Call, lived: Path) -> None:
    answer = call("verify", "--database-url", f"sqlite:///{lived}", "--schedule", "nobody")

    assert (answer.code, "nobody" in answer.err) == (1, True)


def test_both_stores_answer(shell: Any) -> None:
    answer = shell("verify")

    assert (answer.code, answer.out) == (0, "0 slots of 0 schedules, all accounted for\n")
    assert shell("simulate", *MONDAY).err.splitlines()[0] == "no slots"
