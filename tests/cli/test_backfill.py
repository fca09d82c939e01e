"""Backfills from the command line, on both stores, with a real scheduler and worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from mainspring.clock import SystemClock
from tests.cli.conftest import Shell
from tests.support.processes import until

HOUR = timedelta(hours=1)


def test_slots_of_the_past_are_listed_and_run(shell: Shell, started: Callable[..., Any], run: Any) -> None:
    shell("schedules", "apply", "-A", "shop.py")
    now = SystemClock().now().replace(microsecond=0)
    asked = ("backfill", "greetings", "--from", (now - 21 * 24 * HOUR).isoformat(), "--to", now.isoformat())

    dry = shell(*asked, "--dry-run", "--json").data
    assert dry["backfill"] is None
    weekdays = len(dry["slots"])
    assert weekdays >= 14
    assert {each["why"] for each in dry["slots"]} == {"the ledger has no row for it"}
    assert shell("backfills", "list", "--json").data == []

    begun = shell(*asked, "--max-active", "5", "--by", "bob")
    assert begun.code == 0, begun.err
    assert f"backfill 1 of greetings: {weekdays} to run, 0 left alone, 5 at a time" in begun.err

    started("dev", "shop.py")

    until(lambda: shell("backfills", "show", "1", "--json").data["state"] == "done", "the backfill's end")
    shown = shell("backfills", "show", "1", "--json").data
    assert (shown["made"], shown["live"], shown["author"]) == (weekdays, 0, "bob")
    ledger = shell("schedules", "show", "greetings", "--json").data["slots"]
    assert {each["disposition"] for each in ledger} == {"backfilled"}
    assert shell("verify").code == 0
    again = shell(*asked)
    assert again.code == 0
    assert "there is nothing to run" in again.err


def test_mistakes_are_named(shell: Shell) -> None:
    shell("schedules", "apply", "-A", "shop.py")

    backwards = shell(
        "backfill", "greetings", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"
    )
    ahead = shell("backfill", "greetings", "--from", "2026-01-02T00:00:00Z", "--to", "2099-01-01T00:00:00Z")
    nobody = shell("backfill", "nobody", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z")
    cancel = shell("backfills", "cancel", "9")

    assert (backwards.code, ahead.code) == (2, 2)
    assert "to: expected a moment after from" in backwards.err
    assert "to: expected a moment that is past" in ahead.err
    assert nobody.code == cancel.code == 1
    assert "schedule: there is none with the name 'nobody'" in nobody.err
    assert "backfill: there is none with the id 9" in cancel.err
