"""Orders for several things at once, and the app before or after -A."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Answer, Shell

Call = Callable[..., Answer]


def audit_log(call: Call) -> list[tuple[str, str | None]]:
    return [(each["action"], each["object"]) for each in call("audit-log", "list", "--json").data[::-1]]


def test_each_is_ordered_once_and_on_record(call: Call) -> None:
    call("db", "migrate")

    paused = call("queues", "pause", "mail", "bulk", "mail", "--note", "full")
    again = call("queues", "resume", "mail", "bulk", "quiet", "--json")

    assert paused.out == "queue mail paused\nqueue bulk paused\n"
    assert again.data == [
        {"name": "mail", "changed": True},
        {"name": "bulk", "changed": True},
        {"name": "quiet", "changed": False},
    ]
    assert audit_log(call)[1:] == [
        ("queues.pause", "mail"),
        ("queues.pause", "bulk"),
        ("queues.resume", "mail"),
        ("queues.resume", "bulk"),
        ("queues.resume", "quiet"),
    ]


def test_what_does_not_exist_stops_none_of_the_others(call: Call) -> None:
    call("db", "migrate")
    for name in ("ada", "bob"):
        call("tokens", "create", name, "--role", "viewer")

    revoked = call("tokens", "revoke", "1", "9", "2")
    alone = call("tokens", "revoke", "9")

    assert (revoked.code, revoked.out) == (1, "token 1 revoked\ntoken 2 revoked\n")
    assert revoked.err == "Error: token: there is none with the id 9\n"
    assert (alone.code, alone.err) == (1, revoked.err)


@pytest.mark.parametrize("line", ["tokens revoke", "alerts ack", "backfills cancel", "workflows pause"])
def test_at_least_one_is_named(call: Call, line: str) -> None:
    answer = call(*line.split())

    assert (answer.code, "Missing argument" in answer.err) == (2, True)


@pytest.mark.parametrize("words", [("shop",), ("-A", "shop"), ("shop", "-A", "shop")])
def test_a_command_that_starts_an_app_takes_it_in_both_places(shell: Shell, words: Any) -> None:
    assert shell("worker", *words, "--burst").code == 0


def test_two_apps_are_refused(shell: Shell) -> None:
    answer = shell("worker", "shop", "-A", "other", "--burst")

    assert (answer.code, "APP and -A: expected one app" in answer.err) == (2, True)
    assert shell("worker", "shop", "--burst", MAINSPRING_APP="other").code == 0


def test_simulate_reads_the_app_or_the_database(shell: Shell) -> None:
    period = ("--from", "2030-01-07T00:00:00Z", "--to", "2030-01-08T00:00:00Z")
    shell.write(
        "runs.py", "from mainspring import Mainspring\n\napp = Mainspring()\n\n\n@app.task\ndef run(): ...\n"
    )
    shell("schedules", "create", "mine", "--task", "run", "--every", "6h", "-A", "runs")

    assert shell("simulate", "-A", "runs", *period).err.startswith("no slots")
    assert "mine" in shell("simulate", "-A", "runs", "--stored", *period).out
    assert "mine" in shell("simulate", *period).out
