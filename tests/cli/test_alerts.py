"""Alerts from the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from mainspring.clock import SystemClock
from mainspring.model.alert import AlertChange, AlertMove, NewNote, NoteEnd, NoteKind, Rule, Severity, Trouble
from mainspring.store.opener import open_store
from tests.cli.conftest import Answer

Call = Callable[..., Answer]


def test_rules_are_listed_with_their_thresholds(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mainspring.toml").write_text('[alerts]\noff = ["failed"]\nmissed_after = "2m"\n')

    listed = {each["rule"]: each for each in call("alerts", "rules", "--json").data}

    assert set(listed) == set(Rule)
    assert listed["missed"]["thresholds"] == {"alerts.missed_after": "2m"}
    assert (listed["missed"]["on"], listed["failed"]["on"]) == (True, False)
    assert "missed          on   alerts.missed_after 2m" in call("alerts", "rules").out


def test_what_is_wrong_is_listed_shown_and_acknowledged(call: Call) -> None:
    call("db", "migrate")
    asyncio.run(_write("sqlite:///mainspring.db"))

    listed = call("alerts", "list", "--open", "--rule", "failed", "--json")
    shown = call("alerts", "show", "1", "--json").data
    acked, again = call("alerts", "ack", "1", "--by", "ann"), call("alerts", "ack", "1")
    table = call("alerts", "list")

    assert [(each["id"], each["subject"], each["state"]) for each in listed.data] == [(1, "send", "open")]
    [note] = shown["notes"]
    assert (note["target"], note["state"], note["problem"]) == ("https://h/***", "waiting", "down")
    assert acked.out == "alert 1 acknowledged\n"
    assert again.out == "alert 1 is over or was acknowledged already; nothing was done\n"
    assert "job 7 died" in table.out
    assert table.err == "https://h/*** did not accept the last message: down\n"
    assert "acknowledged  by ann at" in call("alerts", "show", "1").out
    assert call("alerts", "list", "--closed", "--json").data == []
    assert (call("alerts", "show", "9").code, call("alerts", "ack", "9").code) == (1, 1)
    assert call("alerts", "show", "x").code == 2


def test_a_test_reaches_each_target_or_says_why_not(call: Call) -> None:
    call("db", "migrate")
    fine = call("alerts", "test", "--json")
    private = call("alerts", "test", "--to", "http://127.0.0.1/hunter2")

    assert fine.code == 0
    assert [(each["target"], each["kind"], each["delivered"]) for each in fine.data] == [
        ("log", "opened", True),
        ("log", "recovered", True),
    ]
    assert private.code == 2
    assert "alerts.to: expected a host that is not private" in private.err
    assert "hunter2" not in private.err + private.out


async def _write(url: str) -> None:
    """An open alert, of which a target would not hear."""
    clock = SystemClock()
    store = open_store(url, clock=clock)
    now = clock.now()
    trouble = Trouble(
        rule=Rule.FAILED, subject="send", severity=Severity.WARNING, since=now, sentence="job 7 died"
    )
    note = NewNote(kind=NoteKind.OPENED, target="k", shown="https://h/***", due_at=now)
    opened = AlertChange(uid=1, trouble=trouble, move=AlertMove.OPENED, notes=(note,))
    await store.alerts.change([opened], at=now)
    [due] = await store.alerts.due_notes(limit=1, at=now)
    await store.alerts.begin_notes([due.id], batch="b", lasts=due.due_at - now, at=now)
    end = NoteEnd(note_ids=(due.id,), batch="b", problem="down", again_in=due.due_at - now)
    await store.alerts.end_notes(end, at=now)
    await store.close()
