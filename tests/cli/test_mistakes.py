"""What people get wrong: one line on stderr, the right exit code, never our traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Answer, Shell

Call = Callable[..., Answer]

NEEDS_A_SCHEMA = ["jobs list", "worker shop --burst", "scheduler shop", "enqueue -A shop greet", "db verify"]
UNREACHABLE = "postgresql://somebody:secret@127.0.0.1:1/x"


def assert_refused(answer: Answer, code: int, *words: str) -> None:
    assert answer.code == code, answer
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert len(answer.err.splitlines()) == 1, answer.err
    assert answer.err.startswith("Error: ")
    for word in words:
        assert word in answer.err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("enqueue -A shop nosuch", "no task named 'nosuch'"),
        ("enqueue -A shop greet --args {", "--args: expected a JSON array"),
        ("enqueue -A shop greet --args 3", "--args: expected a JSON array"),
        ("enqueue -A shop greet --kwargs [1]", "--kwargs: expected a JSON object"),
        ("enqueue -A shop greet name", "KEY=VALUE"),
        ("enqueue -A shop greet =x", "KEY=VALUE"),
        ("enqueue -A shop greet name=1 name=2", "KEY=VALUE"),
        ("enqueue -A shop greet nmae=x", "nmae"),
        ("enqueue -A shop add a=1", "add.b"),
        ("enqueue -A shop greet --priority 1000", "priority"),
        ("enqueue -A shop greet --queue -x", "queue"),
        ("enqueue -A shop greet --delay inf", "--delay"),
        ("enqueue -A shop greet --delay -5s", "--delay"),
        ("enqueue -A shop greet --at 2026-02-30", "--at"),
        ("enqueue -A shop greet --at now", "--at"),
        ("enqueue -A shop greet --at 2026-02-01T10:00", "offset"),
        ("enqueue -A shop greet --delay 1s --at 2026-02-01T10:00Z", "delay"),
        ("enqueue", "Missing argument"),
        ("enqueue greet", "Missing app"),
        ("worker", "Missing app"),
        ("worker nosuch", "no module named nosuch"),
        ("worker nosuch.module:app", "no module named nosuch"),
        ("worker nosuch.py", "no such file"),
        ("worker shop:nosuch", "has no nosuch; apps there: app"),
        ("worker shop:SECRET", "has no SECRET"),
        ("worker shop:__name__", "not a Mainspring app"),
        ("worker ../../etc/passwd", "expected"),
        ("worker shop -c 0", "worker.concurrency"),
        ("worker shop -c -1", "worker.concurrency"),
        ("worker shop -t x", "--threads"),
        ("worker shop -q ,", "worker.queues"),
        ("worker shop --lease 0", "worker.lease"),
        ("worker shop --lease 5 --heartbeat 5", "worker.heartbeat"),
        ("worker shop --log-level loud", "--log-level"),
        ("worker shop --config .", "--config"),
        ("worker shop --nosuch", "No such option"),
        ("nosuch", "No such command"),
        ("jobs list --state finished", "--state"),
        ("jobs list --limit 0", "--limit"),
        ("jobs show one", "ID"),
        ("jobs show 0", "ID"),
        ("jobs show 9223372036854775808", "ID"),
        ("jobs cancel", "ID"),
        ("dead replay", "expected ids"),
        ("dead replay 1 --all", "expected ids"),
        ("dead purge --all", "--yes"),
        ("schedules next x --count -1", "--count"),
        ("schedules next x --count 1e9", "--count"),
        ("db sql --dialect mysql", "--dialect"),
        ("jobs list --database-url mysql://x", "database.url"),
        ("jobs list --database-url=", "database.url"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(call: Call, line: str, words: str) -> None:
    assert_refused(call(*line.split()), 2, words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jobs show 999", "999"),
        ("jobs cancel 999", "999"),
        ("jobs retry 999", "999"),
        ("dead show 999", "999"),
        ("dead replay 999", "999"),
        ("dead purge 999 --yes", "999"),
        ("schedules show nosuch", "nosuch"),
        ("schedules next nosuch", "nosuch"),
    ],
)
def test_what_is_not_there_exits_one(call: Call, database_url: str, line: str, words: str) -> None:
    assert_refused(call(*line.split(), "--database-url", database_url), 1, words)


@pytest.mark.parametrize("line", [*NEEDS_A_SCHEMA, "db migrate"])
def test_an_unreachable_store_exits_three_and_keeps_the_password(bare_shell: Shell, line: str) -> None:
    answer = bare_shell(*line.split(), "--database-url", UNREACHABLE)

    assert_refused(answer, 3)
    assert "secret" not in answer.err


def test_a_doctor_who_cannot_reach_the_store_says_so_and_exits_three(bare_shell: Shell) -> None:
    answer = bare_shell("doctor", "--database-url", UNREACHABLE, "--json")

    assert answer.code == 3
    assert [each["name"] for each in answer.data if each["level"] == "fail"] == ["database"]
    assert "secret" not in answer.out + answer.err


def test_a_database_without_a_schema_exits_one_with_advice(
    bare_shell: Shell, new_database: Callable[..., str]
) -> None:
    url = new_database(migrated=False)

    for line in NEEDS_A_SCHEMA:
        answer = bare_shell(*line.split(), "--database-url", url)
        assert_refused(answer, 1, "mainspring db migrate")


def test_an_app_that_raises_is_shown_with_its_own_frames_only(bare_shell: Shell) -> None:
    bare_shell.write("faulty.py", "def inner():\n    return 1 / 0\n\n\ninner()\n")

    answer = bare_shell("worker", "faulty")

    assert answer.code == 2
    assert answer.err.count('File "') == 2
    assert "ZeroDivisionError: division by zero" in answer.err
    assert answer.err.endswith("Error: app: 'faulty' raised while it was loaded\n")
    assert "mainspring/cli" not in answer.err


def test_a_refused_declaration_is_shown_where_the_user_wrote_it(bare_shell: Shell) -> None:
    bare_shell.write(
        "wrong.py", "from mainspring import Mainspring\n\napp = Mainspring()\napp.task(name='a b')(print)\n"
    )

    answer = bare_shell("worker", "wrong.py")

    assert answer.code == 2
    assert answer.err.count('File "') == 1
    assert "line 4" in answer.err
    assert "task.name: expected" in answer.err


def test_a_reader_who_leaves_early_is_no_error(shell: Shell) -> None:
    for _ in range(3):
        shell("enqueue", "-A", "shop", "greet")
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        shell.command("jobs", "list"),
        cwd=shell.folder,
        env=shell.environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (141, "")


def test_help_loads_no_driver_and_no_engine(bare_shell: Shell) -> None:
    script = (
        "import sys\n"
        "from mainspring.cli.main import cli\n"
        "try:\n"
        "    cli(['--help'])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "heavy = {'asyncpg', 'sqlite3', 'uvloop', 'mainspring.worker', 'mainspring.scheduler'}\n"
        "heavy |= {'mainspring.alerts', 'mainspring.client', 'mainspring.process'}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "enqueue" in done.stdout


def test_the_version_is_printed(bare_shell: Shell) -> None:
    from mainspring import __version__

    assert bare_shell("-V").out == f"mainspring {__version__}\n"
