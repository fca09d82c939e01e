"""What a newcomer tries first: the wrong folder, no database yet, half a command."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Shell
from tests.cli.test_mistakes import UNREACHABLE, assert_refused

Call = Callable[..., Answer]

READS = [
    "db verify", "jobs list", "jobs show 1", "jobs cancel 1", "jobs retry 1", "dead list", "dead show 1",
    "dead replay --all", "dead purge --all --yes", "schedules list", "schedules show x", "doctor",
]  # fmt: skip
CHARGE = """
from __future__ import annotations

from mainspring import Mainspring

app = Mainspring()


@app.task
def charge(card: str, note: str | None = None, cents: int = 0, extra: object = None) -> None: ...
"""


@pytest.mark.parametrize("line", READS)
def test_a_command_that_reads_makes_no_file(call: Call, bare_shell: Shell, line: str) -> None:
    answer = call(*line.split())

    assert_refused(
        answer, 3, "database: no file at", "mainspring.db (default)", "`mainspring db migrate` makes it"
    )
    assert not (bare_shell.folder / "mainspring.db").exists()


@pytest.mark.parametrize("line", ["db verify", "jobs list", "schedules list"])
def test_a_command_that_reads_migrates_no_file(call: Call, bare_shell: Shell, line: str) -> None:
    path = bare_shell.folder / "mainspring.db"
    path.touch()

    assert_refused(call(*line.split()), 1, "version 0", "mainspring db migrate")
    assert path.stat().st_size == 0


def test_migrate_names_what_it_applied(call: Call, bare_shell: Shell, empty_database_url: str) -> None:
    first = call("db", "migrate", "--database-url", empty_database_url)
    second = call("db", "migrate", "--database-url", empty_database_url)

    assert first.out.startswith("applied 0001_")
    assert (second.out, second.err) == ("", "the schema is up to date\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("jobs list", "no live jobs in sqlite:///mainspring.db; --state succeeded shows ended ones\n"),
        ("jobs list --state dead", "no dead jobs in sqlite:///mainspring.db\n"),
        ("dead list", "no dead letters in sqlite:///mainspring.db\n"),
    ],
)
def test_an_empty_answer_names_the_database(call: Call, line: str, said: str) -> None:
    call("db", "migrate")

    assert call(*line.split()) == Answer(0, "", said)


@pytest.mark.parametrize("words", [[], ["jobs"], ["db"], ["dead"], ["schedules"], ["config"]])
def test_a_group_alone_prints_its_help_as_a_page(call: Call, words: list[str]) -> None:
    answer = call(*words)

    page = (answer.out + answer.err).splitlines()
    assert page[0].startswith("Usage: ")
    assert "Commands:" in page
    assert "Error" not in answer.out + answer.err


@pytest.mark.parametrize("line", ["enqueue -A shop greet", "jobs list", "doctor"])
def test_a_database_in_memory_is_of_no_use_to_a_command_that_ends(call: Call, line: str) -> None:
    answer = call(*line.split(), "--database-url", "sqlite://:memory:")

    assert_refused(answer, 2, "gone when this command ends", "from --database-url")


def test_a_file_that_cannot_be_made_is_told_with_the_reason(call: Call, bare_shell: Shell) -> None:
    taken = bare_shell.folder / "folder"
    taken.mkdir()

    missing = call("db", "migrate", "--database-url", f"sqlite:///{taken}/none/x.db")
    unable = call("db", "migrate", "--database-url", f"sqlite:///{bare_shell.folder}/shop.py/x.db")

    assert_refused(missing, 3, "does not exist")
    assert_refused(unable, 3, "Not a directory")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which no file can be made")
def test_a_folder_that_exists_is_not_said_to_be_missing(call: Call) -> None:
    answer = call("db", "migrate", "--database-url", "sqlite:////proc/x.db")

    assert_refused(answer, 3, "'/proc/x.db' cannot be made (")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jobs show abc", "expected the number of a job, such as 42, got 'abc'"),
        ("enqueue -A shop greet --delay 1s --at 2026-02-01T10:00Z", "--delay and --at: expected one of them"),
        ("dead replay", "expected ids such as 7 9, or --all, or a filter such as --task NAME"),
        ("worker", "MAINSPRING_APP=billing.py"),
        ("enqueue greet", "MAINSPRING_APP=billing.py"),
    ],
)
def test_a_refusal_says_what_to_type(call: Call, line: str, words: str) -> None:
    assert_refused(call(*line.split()), 2, words)


def test_what_is_not_there_is_named_by_what_was_given(call: Call) -> None:
    call("db", "migrate")

    assert_refused(call("jobs", "show", "99999"), 1, "job: there is none with the id 99999")
    assert_refused(call("schedules", "show", "x"), 1, "schedule: there is none with the name 'x'")


def test_an_unreachable_database_is_named_with_its_origin(call: Call) -> None:
    place = "the database is postgresql://somebody:***@127.0.0.1:1/x (from --database-url)"

    for line in ("jobs list", "enqueue -A shop greet", "db migrate"):
        assert_refused(call(*line.split(), "--database-url", UNREACHABLE), 3, place)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("card=4242", '"card":"4242"'),
        ('card="x"', r'"card":"\"x\""'),
        ("card=1 note=7", '"note":"7"'),
        ("card=1 note=null", '"note":null'),
        ("card=1 cents=7", '"cents":7'),
        ("card=1 extra=[1]", '"extra":[1]'),
        ("card=1 extra=plain", '"extra":"plain"'),
    ],
)
def test_values_follow_the_annotation(bare_shell: Shell, typed: str, stored: str) -> None:
    bare_shell.write("till.py", CHARGE)

    answer = bare_shell("enqueue", "-A", "till.py", "charge", *typed.split())

    assert answer.code == 0, answer
    connection = sqlite3.connect(bare_shell.folder / "mainspring.db")
    [(payload,)] = connection.execute("SELECT payload FROM jobs").fetchall()
    connection.close()
    assert stored in (payload.decode() if isinstance(payload, bytes) else payload)
