"""Whatever a command changes is on record; whatever only looks leaves nothing."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import click

from mainspring.admin.order import login_name
from mainspring.cli.main import cli
from tests.cli.conftest import Answer, Shell

SHOP = """
from mainspring import Mainspring, Retry

app = Mainspring()


@app.task
def greet(name: str = "world", password: str = "") -> str:
    return name


@app.task(retry=Retry(attempts=1))
def broken() -> None:
    raise ValueError


flow = app.workflow("flow")
flow.step(broken)


app.schedule("greetings", greet, every="1h")
"""
READING = {
    *("config show", "doctor", "check", "next", "simulate", "verify", "db verify", "db sql"),
    *(
        "why job",
        "why schedule",
        "jobs list",
        "jobs show",
        "jobs logs",
        "dead list",
        "dead groups",
        "dead show",
    ),
    *("workflows list", "workflows show", "workflows graph", "queues list", "limits list", "processes list"),
    *("schedules list", "schedules show", "schedules next", "schedules history", "schedules plan"),
    *(
        "backfills list",
        "backfills show",
        "tokens list",
        "sessions list",
        "audit-log list",
        "audit-log verify",
    ),
    *("alerts list", "alerts show", "alerts rules", "status", "completion"),
    "top",  # orders that are given in it are on record: test_top.py
}
#: They do what others ordered; what they do is on record in the jobs and the ledger.
PROCESSES = {"dev", "worker", "scheduler", "server"}
#: Words that change something, in an order in which each can.
CHANGING = [
    ("enqueue", "enqueue -A shop greet password=hunter2"),
    ("jobs reschedule", "jobs reschedule {waiting} --delay 2h"),
    ("jobs edit", "jobs edit {waiting} --priority 3"),
    ("jobs retry", "jobs retry {waiting}"),
    ("jobs cancel", "jobs cancel {waiting}"),
    ("dead edit", "dead edit {dead} --args [1]"),
    ("dead replay", "dead replay {dead}"),
    ("dead purge", "dead purge {dead_too} --yes"),
    ("events send", "events send paid"),
    ("workflows fork", "workflows fork {failed} --from broken"),
    ("workflows retry", "workflows retry {failed}"),
    ("workflows pause", "workflows pause {failed}"),
    ("workflows resume", "workflows resume {failed}"),
    ("workflows cancel", "workflows cancel {failed}"),
    ("queues pause", "queues pause quiet"),
    ("queues resume", "queues resume quiet"),
    ("queues drain", "queues drain quiet"),
    ("schedules create", "schedules create mine --task greet --every 1h"),
    ("schedules apply", "schedules apply -A shop"),
    ("schedules edit", "schedules edit greetings --priority 3"),
    ("schedules revert", "schedules revert greetings"),
    ("schedules pause", "schedules pause greetings"),
    ("schedules resume", "schedules resume greetings"),
    ("schedules trigger", "schedules trigger greetings"),
    ("schedules skip", "schedules skip greetings --count 1"),
    ("schedules go-on", "schedules go-on mine"),
    ("backfill", "backfill mine --from 2026-01-01T00:00:00Z --to 2026-01-01T02:00:00Z"),
    ("backfills cancel", "backfills cancel 1"),
    ("schedules delete", "schedules delete greetings --yes"),
    ("tokens create", "tokens create ci --role viewer --scope jobs --expires 90d"),
    ("tokens revoke", "tokens revoke 1"),
    ("sessions end", "sessions end --name ada"),
    ("alerts ack", "alerts ack {alert}"),
    ("alerts test", "alerts test"),
    ("db new-id", "db new-id --yes --note clone"),
]
NAMES = {
    "enqueue": "jobs.enqueue",
    "backfill": "backfills.start",
    "schedules revert": "schedules.revert",
    "schedules go-on": "backfills.go_on",
    "db new-id": "db.new_id",
}


def leaves(group: click.Group, *path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield " ".join((*path, name))


def on_record(call: Callable[..., Answer]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("audit-log", "list", "--json", "--limit", "1000").data
    return found[::-1]


def test_every_command_is_known_to_read_or_to_change():
    # One that is new: does it change something? Then say with which words, and the test below tries them.
    known = {*READING, *PROCESSES, *(command for command, _ in CHANGING), "db migrate"}
    assert set(leaves(cli)) == known


def leave_out(shell: Shell, name: str) -> None:
    """A missed slot that the circuit breaker left out."""
    slot = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    with sqlite3.connect(shell.folder / "mainspring.db") as database:
        database.execute(
            """INSERT INTO slots (schedule_id, slot_at, decided_at, disposition, reason)
               SELECT id, ?, ?, 1, 'breaker' FROM schedules WHERE name = ?""",
            (slot, slot, name),
        )
    database.close()


def test_every_command_that_changes_something_is_on_record(bare_shell: Shell, call: Callable[..., Answer]):
    bare_shell.write("shop.py", SHOP)
    applied = call("db", "migrate", "--json").data["applied"]

    def put(*words: str) -> str:
        return str(call("enqueue", "-A", "shop", *words, "--json").data["id"])

    ids = {"dead": put("broken"), "dead_too": put("broken"), "failed": put("workflow:flow")}
    assert bare_shell("worker", "shop", "--burst").code == 0
    ids["waiting"] = put("greet", "--delay", "1h")
    with sqlite3.connect(bare_shell.folder / "mainspring.db") as database:
        columns = "uid, rule, subject, severity, sentence, since, seen_at, opened_at"
        opened = f"INSERT INTO alerts ({columns}) VALUES (1, 'failed', 'x', 'warning', '', 0, 0, 0)"
        ids["alert"] = str(database.execute(opened).lastrowid)
    database.close()
    seen = len(on_record(call))
    for command, text in CHANGING:
        words = text.format(**ids)
        if command == "schedules go-on":
            leave_out(bare_shell, "mine")
        done = call(*words.split())
        assert done.code == 0, (words, done.err)
        new = on_record(call)[seen:]
        assert [each["action"] for each in new] == [NAMES.get(command, command.replace(" ", "."))], words
        assert (new[0]["outcome"], new[0]["actor"], new[0]["via"]) == ("done", login_name(), "cli"), words
        seen += 1
    assert "hunter2" not in json.dumps(on_record(call))
    [first, *_] = on_record(call)
    assert (first["action"], first["result"]) == ("db.migrate", {"applied": applied})
    checked = call("audit-log", "verify", "--json").data
    # `db migrate`, `queues drain`, `schedules apply`, `alerts test` and five enqueues have two entries each.
    assert (checked["sound"], checked["entries"]) == (True, seen + 9)
    assert call("audit-log", "verify", "--known", checked["head"]).code == 0


def test_what_fails_is_on_record_and_what_only_looks_is_not(bare_shell: Shell, call: Callable[..., Answer]):
    assert call("db", "migrate").code == 0
    before = on_record(call)
    for words in (
        "jobs list",
        "queues list",
        "doctor",
        "schedules plan shop",
        "tokens list",
    ):
        call(*words.split())
    assert on_record(call) == before

    assert call("jobs", "cancel", "99").code == 1

    [*_, last] = on_record(call)
    assert (last["action"], last["object"], last["outcome"]) == ("jobs.cancel", "99", "failed")
    assert last["result"]["error"] == "NotFound"
    with sqlite3.connect(bare_shell.folder / "mainspring.db") as database:
        database.execute(
            "CREATE TRIGGER no BEFORE INSERT ON queue_pauses BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    database.close()

    assert call("queues", "pause", "default").code == 1

    [*_, last] = on_record(call)
    assert (last["action"], last["outcome"], last["result"]["error"]) == (
        "queues.pause",
        "failed",
        "StoreError",
    )


def test_a_changed_log_is_told_of(bare_shell: Shell, call: Callable[..., Answer]):
    call("db", "migrate")
    call("queues", "pause", "default")
    with sqlite3.connect(bare_shell.folder / "mainspring.db") as database:
        database.execute("DROP TRIGGER audit_log_stand")
        database.execute("UPDATE audit_log SET actor = 'nobody' WHERE id = 3")
    database.close()

    told = call("audit-log", "verify")

    assert told.code == 1
    assert told.err.startswith("entry 3: it was changed")
    assert call("audit-log", "verify", "--known", "x").code == 2


def test_a_token_is_shown_once(call: Callable[..., Answer]):
    call("db", "migrate")
    made = call("tokens", "create", "ci", "--role", "operator", "--expires", "90d", "--by", "ada")
    secret = made.out.strip()

    assert secret.startswith("ms_")
    assert "token 1 for ci, operator, until 2" in made.err
    listed = call("tokens", "list", "--json").data
    assert (listed[0]["name"], listed[0]["author"], listed[0]["alive"]) == ("ci", "ada", True)
    with open("mainspring.db", "rb") as file:
        assert secret.encode() not in file.read()
    assert call("tokens", "revoke", "1").out == "token 1 revoked\n"
    assert call("tokens", "revoke", "1").out == "token 1 had ended already; nothing was done\n"
    assert call("tokens", "revoke", "2").code == 1
    assert call("tokens", "create", "ci", "--role", "king").code == 2
    assert call("tokens", "create", "a\nb", "--role", "viewer").code == 2
    assert call("tokens", "create", "ci", "--role", "viewer", "--expires", "1s").code == 2
    assert call("sessions", "end").code == 2


def test_who_is_named_by_an_option_is_the_actor_and_the_address_tells_who_typed(call: Callable[..., Answer]):
    call("db", "migrate")
    call("queues", "pause", "default", "--by", "bob")

    [*_, last] = on_record(call)

    assert (last["actor"], last["address"]) == ("bob", f"{login_name()}@{os.uname().nodename}")
    [queue] = call("queues", "list", "--json").data
    assert queue["paused_by"] == "bob"


def test_a_token_for_programs_is_called_secret_as_by_http(call: Callable[..., Answer]):
    call("db", "migrate")

    made = call("tokens", "create", "ci", "--role", "viewer", "--json").data

    assert made["secret"].startswith("ms_")
    assert "token" not in made
    [*_, last] = on_record(call)
    assert (last["action"], last["result"]) == ("tokens.create", {"token_id": made["id"]})
