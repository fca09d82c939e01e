"""`schedules create`, `edit` and `revert` as real commands, on both stores, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Answer, Shell

NIGHTLY = (
    "schedules",
    "create",
    "nightly",
    "--task",
    "greet",
    "--cron",
    "30 2 * * *",
    "--tz",
    "Europe/Berlin",
)


def one_line(answer: Answer) -> str:
    assert (answer.code, answer.out) == (2, ""), answer
    assert answer.err.startswith("Error: ")
    assert len(answer.err.splitlines()) == 1
    return answer.err


def test_a_schedule_is_made_changed_and_told_about(shell: Shell) -> None:
    made = shell(*NIGHTLY, "--kwargs", '{"name": "Ada"}', "--note", "trial", "--by", "ann", "-A", "shop")
    changed = shell("schedules", "edit", "nightly", "--tz", "UTC", "--priority", "7", "--by", "bob", "--json")
    again = shell("schedules", "edit", "nightly", "--priority", "7")
    listed = shell("schedules", "show", "nightly", "--json").data
    history = shell("schedules", "history", "nightly", "--json").data

    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("schedule nightly created, version 1\ntask ")
    assert 'kwargs    {"name": "Ada"}' in made.out
    assert made.out.count(" 02:30:00 CE") + made.out.count(" 03:00:00 CEST") == 3
    assert [(each["field"], each["was"], each["now"]) for each in changed.data["differences"]] == [
        ("tz", "Europe/Berlin", "UTC"),
        ("priority", 0, 7),
    ]
    assert [each["local"][11:] for each in changed.data["fires"]] == ["02:30:00+00:00"] * 3
    assert (again.code, again.out.splitlines()[0]) == (
        0,
        "schedule nightly is so already, at version 2; nothing was changed",
    )
    assert (listed["priority"], listed["edited"], listed["kwargs"]) == (7, True, {"name": "Ada"})
    assert [(each["change"], each["author"], each["note"]) for each in history] == [
        ("created", "ann", "trial"),
        ("changed", "bob", None),
    ]


def test_a_dry_run_writes_nothing(shell: Shell) -> None:
    told = shell(*NIGHTLY, "--dry-run")

    assert told.code == 0
    assert told.out.startswith("schedule nightly would be created; nothing was written\n")
    assert "no app was named" in told.err
    assert shell("schedules", "list", "--json").data == []


def test_an_edit_shows_was_and_now(shell: Shell) -> None:
    shell(*NIGHTLY, "--end", "2040-01-01T00:00:00Z")

    told = shell("schedules", "edit", "nightly", "--every", "90m", "--clear", "end", "--dry-run")
    done = shell("schedules", "edit", "nightly", "--every", "5400", "--clear", "end")

    rows = [line.split() for line in done.out.splitlines()]
    assert done.out.splitlines()[0] == "schedule nightly changed, version 2"
    assert ["every", "-", "1h30m"] in rows
    assert ["end", "2040-01-01T00:00:00+00:00", "-"] in rows
    assert told.out.splitlines()[1:] == done.out.splitlines()[1:]
    assert shell("schedules", "show", "nightly", "--json").data["trigger"] == {"every": 5400.0}


def test_what_code_declares_is_left_aside_until_it_is_handed_back(shell: Shell) -> None:
    shell("schedules", "apply", "-A", "shop")
    shell("schedules", "edit", "greetings", "--cron", "0 10 * * 1-5")

    planned = shell("schedules", "plan", "-A", "shop")
    handed = shell("schedules", "revert", "greetings", "--note", "trial over")
    again = shell("schedules", "revert", "greetings")
    applied = shell("schedules", "apply", "-A", "shop", "--json").data

    assert "edited at run time, so it stays (`schedules revert greetings` lets code have it)" in planned.out
    assert handed.out == "schedule greetings reverted\n"
    assert again.out == "schedule greetings is code's already; nothing was done\n"
    assert [each["action"] for each in applied] == ["change"]
    assert shell("schedules", "show", "greetings", "--json").data["trigger"]["cron"] == "0 9 * * 1-5"


def test_an_edit_of_what_has_moved_on_is_refused(shell: Shell) -> None:
    shell(*NIGHTLY)
    shell("schedules", "edit", "nightly", "--priority", "1")

    refused = shell("schedules", "edit", "nightly", "--priority", "2", "--if-version", "1")

    assert (refused.code, refused.out) == (1, "")
    assert "it is at version 2, and not at 1; nothing was written" in refused.err


def test_a_rule_with_its_exceptions_is_made(shell: Shell) -> None:
    rule = ["--rrule", "FREQ=DAILY", "--dtstart", "2026-01-05T09:00", "--tz", "Europe/Berlin"]

    made = shell(
        "schedules", "create", "s", "--task", "greet", *rule, "--exdate", "2026-07-01T09:00", "--json"
    ).data
    moved = shell("schedules", "edit", "s", "--clear", "exdates", "--json").data

    assert made["schedule"]["dtstart"] == "2026-01-05T09:00:00"
    assert made["schedule"]["exdates"] == ["2026-07-01T07:00:00+00:00"]
    assert [each["field"] for each in moved["differences"]] == ["exdates"]


def test_a_taken_name_and_a_missing_one_are_refused(shell: Shell) -> None:
    shell(*NIGHTLY)

    taken = shell(*NIGHTLY)
    missing = shell("schedules", "edit", "nosuch", "--priority", "1")

    assert "edit changes one that is there" in one_line(taken)
    assert (missing.code, "there is none with the name 'nosuch'" in missing.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "soon"), "every: expected a duration"),
        (("--every", "0"), "every: expected from 1s"),
        (("--every", "1h", "--tz", "UTC2"), "tz: expected none"),
        (("--every", "1h", "--cron", "@daily"), "schedule: expected exactly one of"),
        ((), "schedule: expected exactly one of"),
        (("--cron", "99 * * * *"), "cron: expected"),
        (("--cron", "@daily", "--tz", "Mars"), "tz: expected an IANA time zone"),
        (("--cron", "@daily", "--gap", "x"), "gap: expected one of shift, skip, got 'x'"),
        (("--rrule", "FREQ=DAILY"), "dtstart: expected"),
        (("--at", "noon"), "at: expected an instant"),
        (("--cron", "@daily", "--calendar", "de"), "calendar: expected none, for no calendar is on record"),
        (("--cron", "@daily", "--args", "{"), "--args: expected a JSON array"),
        (("--cron", "@daily", "--kwargs", "[1]"), "--kwargs: expected a JSON object"),
        (("--cron", "@daily", "--args", "[1, 2, 3]", "-A", "shop"), "greet: expected at most"),
        (("--cron", "@daily", "--queue", "-x"), "schedule.queue: expected"),
        (("--cron", "@daily", "--priority", "1000"), "schedule.priority: expected"),
        (("--cron", "@daily", "--priority", "high"), "--priority"),
        (("--cron", "@daily", "--attempts", "0"), "schedule.attempts: expected"),
        (("--cron", "@daily", "--overlap", "allow"), "schedule.allow: expected how many"),
        (("--cron", "@daily", "--misfire", ""), "schedule.misfire: expected one of"),
        (("--cron", "@daily", "--start", "2026-01-01"), "start: expected an instant"),
        (("--cron", "@daily", "--note", " "), "--note"),
        (("--cron", "@daily", "--max-fires", "0"), "schedule.max_fires: expected"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    call: Callable[..., Answer], words: tuple[str, ...], said: str
) -> None:
    call("db", "migrate")

    answer = call("schedules", "create", "s", "--task", "greet", *words)

    assert said in one_line(answer)
    assert call("schedules", "list", "--json").data == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "a b", "--task", "greet", "--cron", "@daily"), "schedule.name: expected 1 to 200"),
        (("create", "s", "--task", "a b", "--cron", "@daily"), "schedule.task: expected 1 to 200"),
        (("create", "s", "--task", "nosuch", "--cron", "@daily", "-A", "shop"), "no task named 'nosuch'"),
        (("create", "s", "--cron", "@daily"), "--task"),
        (("edit", "s", "--clear", "task"), "--clear"),
        (("edit", "s", "--clear", "end", "--end", "2026-01-01T00:00:00Z"), "--clear end"),
        (("edit", "s", "--if-version", "0"), "--if-version"),
        (("edit",), "NAME"),
        (("revert",), "NAME"),
    ],
)
def test_wrong_names_and_orders_are_wrong_usage(call: Any, words: tuple[str, ...], said: str) -> None:
    call("db", "migrate")

    assert said in one_line(call("schedules", *words))
