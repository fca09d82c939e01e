"""The schema, the settings and the doctor."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import timedelta

import asyncpg

from mainspring.clock import SystemClock
from mainspring.model.process import NewProcess, Role
from mainspring.store.opener import open_store
from tests.cli.conftest import Shell


def test_migrate_can_be_repeated(bare_shell: Shell, empty_database_url: str) -> None:
    first = bare_shell("db", "migrate", "--database-url", empty_database_url)
    second = bare_shell("db", "migrate", "--database-url", empty_database_url, "--json")

    assert (first.code, first.err) == (0, "the schema is up to date\n")
    assert (second.code, second.data) == (0, {"applied": []})
    assert bare_shell("db", "verify", "--database-url", empty_database_url).code == 0


def test_the_printed_sql_makes_a_schema_that_verifies_on_postgresql(
    bare_shell: Shell, new_database: Callable[..., str]
) -> None:
    url = new_database(migrated=False)
    sql = bare_shell("db", "sql", "--database-url", url)

    asyncio.run(_execute(url, sql.out))

    assert bare_shell("db", "verify", "--database-url", url).code == 0
    assert bare_shell("enqueue", "-A", "shop", "greet", "--database-url", url).code == 0
    assert bare_shell("worker", "shop", "--burst", "--database-url", url).code == 0


def test_the_printed_sql_makes_a_schema_that_verifies_on_sqlite(bare_shell: Shell) -> None:
    sql = bare_shell("db", "sql")
    connection = sqlite3.connect(bare_shell.folder / "mainspring.db")
    connection.executescript(sql.out)
    connection.close()

    assert bare_shell("db", "migrate", "--json").data == {"applied": []}
    assert bare_shell("db", "verify").code == 0
    versions = [step["version"] for step in bare_shell("db", "sql", "--dialect", "sqlite", "--json").data]
    assert versions == list(range(1, len(versions) + 1))


def test_config_show_names_every_origin_and_masks_the_password(bare_shell: Shell) -> None:
    bare_shell.write("mainspring.toml", '[worker]\nqueues = ["mail", "web"]\n')
    url = "postgresql://u:hunter2@host/name"

    answer = bare_shell(
        "config", "show", "-A", "shop", "--database-url", url, "--json", MAINSPRING_WORKER_LEASE="30s"
    )

    assert "hunter2" not in answer.out
    assert answer.data["database.url"] == {
        "value": "postgresql://u:***@host/name",
        "origin": "--database-url",
    }
    assert answer.data["worker.lease"] == {"value": "30s", "origin": "MAINSPRING_WORKER_LEASE"}
    assert answer.data["worker.queues"] == {"value": ["mail", "web"], "origin": "mainspring.toml:2"}
    assert answer.data["log.level"] == {"value": "info", "origin": "default"}
    assert "hunter2" not in bare_shell("config", "show", "--database-url", url).out


def test_the_doctor_fails_while_ready_jobs_have_no_worker(shell: Shell) -> None:
    assert shell("doctor").code == 0
    shell("enqueue", "-A", "shop", "greet")

    answer = shell("doctor", "--json")

    assert answer.code == 1
    [failed] = [each for each in answer.data if each["level"] == "fail"]
    assert failed["name"] == "queues"
    assert "no live worker serves" in failed["sentence"]


async def _execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def test_a_clone_is_given_an_id_of_its_own(bare_shell: Shell, empty_database_url: str) -> None:
    there = ("--database-url", empty_database_url)
    bare_shell("db", "migrate", *there)
    before = bare_shell("db", "verify", "--json", *there).data["id"]

    unasked = bare_shell("db", "new-id", *there)
    assert (unasked.code, "--yes: expected" in unasked.err) == (2, True)
    assert bare_shell("db", "verify", "--json", *there).data["id"] == before

    done = bare_shell("db", "new-id", "--yes", "--note", "staging", "--json", *there)

    assert (done.code, done.data["was"]) == (0, before)
    assert done.data["id"] != before and len(done.data["id"]) == len(before)
    assert done.data["id"] in bare_shell("db", "verify", *there).err
    assert done.data["id"] in bare_shell("doctor", *there).out
    [action] = [
        each
        for each in bare_shell("audit-log", "list", "--json", *there).data
        if each["action"] == "db.new_id"
    ]
    assert (action["outcome"], action["details"]["asked"]["note"]) == ("done", "staging")


def test_the_id_is_not_changed_while_processes_are_alive(bare_shell: Shell, empty_database_url: str) -> None:
    there = ("--database-url", empty_database_url)
    bare_shell("db", "migrate", *there)
    asyncio.run(_join(empty_database_url))

    refused = bare_shell("db", "new-id", "--yes", *there)

    assert refused.code == 2
    assert "processes of this database are alive (somebody)" in refused.err
    assert bare_shell("db", "new-id", "--yes", "--force", *there).code == 0


async def _join(url: str) -> None:
    store = open_store(url, clock=SystemClock())
    member = NewProcess(id=1, role=Role.WORKER, name="somebody")
    await store.processes.join(member, lease=timedelta(minutes=1), at=None)
    await store.close()
