"""Schedules from the command line, on both stores: paused, triggered, skipped, deleted, explained."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.model.schedule import NewSchedule
from mainspring.store.opener import open_store
from mainspring.triggers.intervals import Every
from tests.cli.conftest import Shell
from tests.support.desk import DAY, HOUR, MINUTE

# Half an hour from now, so that no slot comes while a test runs.
HOURLY = Every(HOUR, SystemClock().now().replace(microsecond=0) + 30 * MINUTE)


@pytest.fixture
def hourly(database_url: str, run: Any) -> Iterator[Any]:
    """A schedule named `hourly`, and the store that holds it."""
    clock = SystemClock()
    store = open_store(database_url, clock=clock)
    now = clock.now()
    hourly = NewSchedule(
        name="hourly",
        task="greet",
        trigger=HOURLY.encode(),
        payload=b'{"args":[],"kwargs":{}}',
        next_at=HOURLY.next_after(now),
        following_at=HOURLY.next_after(now + HOUR),
    )
    try:
        run(store.schedules.put([hourly], at=None))
        yield store
    finally:
        run(store.close())


def test_a_schedule_is_paused_and_resumed_and_its_history_tells(shell: Shell, hourly: Any) -> None:
    paused = shell("schedules", "pause", "hourly", "--note", "db move", "--by", "bob")
    again = shell("schedules", "pause", "hourly")
    shown = shell("schedules", "show", "hourly")
    resumed = shell("schedules", "resume", "hourly", "--json")
    history = shell("schedules", "history", "hourly", "--json").data

    assert (paused.code, paused.out) == (0, "schedule hourly paused\n")
    assert (again.code, again.out) == (0, "schedule hourly is paused already, by bob; nothing was done\n")
    assert "pause note     db move" in shown.out
    assert resumed.data == [{"name": "hourly", "effect": "resumed", "why": ""}]
    login = pwd.getpwuid(os.getuid()).pw_name
    assert [(each["change"], each["author"], each["note"]) for each in history] == [
        ("created", "code", None),
        ("paused", "bob", "db move"),
        ("resumed", login, None),
    ]
    assert "VERSION" in shell("schedules", "history", "hourly").out


def test_a_triggered_schedule_prints_its_job_and_why_tells_about_it(shell: Shell, hourly: Any) -> None:
    [triggered] = shell("schedules", "trigger", "hourly", "--json").data
    why = shell("why", "job", str(triggered["job_id"]))

    assert triggered["task"] == "greet"
    assert why.out.startswith(f"Job {triggered['job_id']} is ready, but no live worker serves queue default")
    assert shell("worker", "shop", "--burst").code == 0
    assert shell("why", "job", str(triggered["job_id"]), "--json").data["because"] == "succeeded"


def test_skips_are_counted_and_foretold(shell: Shell, hourly: Any) -> None:
    shell("schedules", "skip", "hourly", "--count", "2")
    skipped = shell("schedules", "skip", "hourly")
    both = shell("why", "schedule", "hourly", "--json").data

    assert skipped.out == "schedule hourly: its next 3 slots will be skipped\n"
    assert both["last"]["because"] == "no_slot_yet"
    assert (both["next"]["because"], both["next"]["hindrance"]) == (
        "will_be_skipped",
        "somebody asked for it",
    )


def test_deleting_needs_a_yes_and_leaves_the_history(shell: Shell, hourly: Any) -> None:
    asked = shell("schedules", "delete", "hourly")
    deleted = shell("schedules", "delete", "hourly", "--yes", "--by", "bob")
    why = shell("why", "schedule", "hourly")

    assert (asked.code, deleted.code) == (2, 0)
    assert deleted.out == "schedule hourly deleted\n"
    assert shell("schedules", "list", "--json").data == []
    assert shell("schedules", "history", "hourly", "--json").data[-1]["change"] == "deleted"
    assert "It was deleted by bob at " in why.out


def test_a_moment_is_explained_in_a_sentence(shell: Shell, hourly: Any) -> None:
    now = SystemClock().now()
    slot = HOURLY.next_after(now + HOUR)
    assert slot is not None

    coming = shell("why", "schedule", "hourly", "--at", slot.isoformat())
    between = shell("why", "schedule", "hourly", "--at", (slot + MINUTE).isoformat(), "--json").data
    before = shell("why", "schedule", "hourly", "--at", (now - DAY).isoformat())

    assert "is still to come, in 1h" in coming.out
    assert between["because"] == "not_a_slot"
    assert between["nearest"] == [slot.isoformat(), (slot + HOUR).isoformat()]
    assert "is before it was created" in before.out


@pytest.mark.parametrize(
    "words",
    [
        "schedules pause nosuch",
        "schedules resume nosuch",
        "schedules trigger nosuch",
        "schedules skip nosuch",
        "schedules delete nosuch --yes",
        "schedules history nosuch",
        "why schedule nosuch",
        "why schedule nosuch --at 2030-01-01T00:00:00Z",
        "why job 999999",
    ],
)
def test_what_is_not_there_is_refused(call: Any, words: str) -> None:
    call("db", "migrate")

    answer = call(*words.split())

    assert (answer.code, answer.out) == (1, "")
    assert "there is none with the" in answer.err


@pytest.mark.parametrize(
    "words",
    [
        ("schedules", "pause"),
        ("schedules", "pause", "x", "--by", " "),
        ("schedules", "pause", "x", "--note", "a\x1bb"),
        ("schedules", "skip", "x", "--count", "0"),
        ("why", "schedule", "x", "--at", "noon"),
        ("why", "job", "0"),
    ],
)
def test_wrong_words_are_wrong_usage(call: Any, words: tuple[str, ...]) -> None:
    assert call(*words).code == 2
