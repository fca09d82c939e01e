"""`schedules plan` and `schedules apply` as real commands, on both stores."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock

BEFORE = """
from mainspring import Mainspring
app = Mainspring()

@app.task
def work(n: int) -> None: ...

app.schedule("kept", work, every="1h", args=[1])
app.schedule("changed", work, every="1h", args=[1])
app.schedule("gone", work, every="1h", args=[1])
"""
AFTER = BEFORE.replace('"gone"', '"new"').replace(
    '"changed", work, every="1h", args=[1]', '"changed", work, every="2h", args=[2]'
)


@pytest.fixture
def mainspring(tmp_path: Path, database_url: str) -> Any:
    def call(*words: str) -> Any:
        command = [sys.executable, "-m", "mainspring", *words, "--database-url", database_url]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran

    (tmp_path / "before.py").write_text(BEFORE, encoding="utf-8")
    (tmp_path / "after.py").write_text(AFTER, encoding="utf-8")
    return call


def actions(ran: Any) -> dict[str, str]:
    return {each["name"]: each["action"] for each in json.loads(ran.stdout)}


def names(mainspring: Any) -> list[str]:
    return [each["name"] for each in json.loads(mainspring("schedules", "list", "--json").stdout)]


def test_a_plan_tells_and_writes_nothing(mainspring: Any) -> None:
    told = mainspring("schedules", "plan", "-A", "before.py", "--json")

    assert actions(told) == {"kept": "add", "changed": "add", "gone": "add"}
    assert len(json.loads(told.stdout)[0]["next_fires"]) == 3
    assert names(mainspring) == []


def test_apply_writes_and_prunes_only_when_asked(mainspring: Any) -> None:
    mainspring("schedules", "apply", "-A", "before.py")
    told = mainspring("schedules", "plan", "-A", "after.py", "--json")
    left = mainspring("schedules", "apply", "-A", "after.py")
    assert "gone; --prune deletes them" in left.stderr
    assert names(mainspring) == ["changed", "gone", "kept", "new"]
    mainspring("schedules", "apply", "-A", "after.py", "--prune")

    assert actions(told) == {"changed": "change", "gone": "remove", "kept": "same", "new": "add"}
    [changed] = [each for each in json.loads(told.stdout) if each["name"] == "changed"]
    assert [each["field"] for each in changed["differences"]] == ["trigger", "args", "max_attempts"]
    assert names(mainspring) == ["changed", "kept", "new"]
    again = mainspring("schedules", "plan", "-A", "after.py", "--json")
    assert set(actions(again).values()) == {"same"}


def test_pruning_says_how_many_due_slots_it_drops(
    mainspring: Any, database_url: str, run: Any, clock: ManualClock
) -> None:
    """Missed slots that share a row, slots with a row each, one that is paused, and one with nothing due."""
    last = SystemClock().now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    began, half, end = (
        last - timedelta(hours=4, minutes=45),
        timedelta(minutes=30),
        last + timedelta(seconds=1),
    )
    app = Mainspring()

    @app.task
    def work() -> None: ...

    app.schedule("latest", work, every="1h", start=began, end=end)
    app.schedule("one", work, every="1h", start=last - half, end=end)
    app.schedule("all", work, every="30m", start=began, end=end, misfire="all")
    app.schedule("paused", work, every="1h", start=began, end=end)
    app.schedule("later", work, every="1h", start=end + timedelta(days=1))

    async def declare() -> None:
        store = open_store(database_url, clock=clock)
        await store.schedules.put(
            [each.new_schedule(began) for each in app._registry.schedules.values()], at=began
        )
        await store.schedules.pause(["paused"], author="ann", note=None, at=began)
        await store.close()

    run(declare())
    told = mainspring("schedules", "apply", "-A", "before.py", "--prune")

    why = "due and not yet decided when the schedule was deleted; no job was made"
    assert sorted(line for line in told.stderr.splitlines() if line.startswith("Warning: ")) == [
        f"Warning: all: 10 slots were {why}",
        f"Warning: latest: 5 slots were {why}",
        f"Warning: one: 1 slot was {why}",
    ]
    assert names(mainspring) == ["changed", "gone", "kept"]
    assert json.loads(mainspring("jobs", "list", "--json").stdout) == []
    again = mainspring("schedules", "apply", "-A", "before.py", "--prune")
    assert "Warning" not in again.stderr


def test_a_paused_schedule_stays_paused_through_an_apply(mainspring: Any) -> None:
    mainspring("schedules", "apply", "-A", "before.py")
    mainspring("schedules", "pause", "changed", "--by", "ada", "--note", "audit")
    mainspring("schedules", "apply", "-A", "after.py")

    listed = json.loads(mainspring("schedules", "list", "--json").stdout)
    [changed] = [each for each in listed if each["name"] == "changed"]
    assert changed["paused_by"] == "ada"


def test_of_very_many_schedules_a_plan_lists_some_and_counts_the_rest(
    tmp_path: Path, mainspring: Any
) -> None:
    many = BEFORE + '\nfor n in range(150):\n    app.schedule(f"tenant-{n:03}", work, every="1h", args=[n])\n'
    (tmp_path / "many.py").write_text(many, encoding="utf-8")
    mainspring("schedules", "apply", "-A", "many.py")
    (tmp_path / "none.py").write_text(AFTER.partition("app.schedule")[0], encoding="utf-8")
    (tmp_path / "again.py").write_text(
        many.replace('"changed", work, every="1h"', '"changed", work, every="2h"'), encoding="utf-8"
    )

    told = mainspring("schedules", "plan", "-A", "again.py")
    left = mainspring("schedules", "apply", "-A", "none.py")

    lines = told.stdout.splitlines()
    assert len(lines) == 101  # with its heading
    assert lines[1].split()[:2] == ["change", "changed"]
    assert told.stderr == "153 schedules in all: change 1, same 152; --json lists each\n"
    assert "changed, gone, kept, tenant-000" in left.stderr
    assert "tenant-016 and 133 more; --prune deletes them" in left.stderr
    mainspring("schedules", "apply", "-A", "none.py", "--prune")
    assert names(mainspring) == []
