"""Command lines, settings and surroundings that have broken others: one line, the right exit code.

Each case goes by its id. Where an option has another name here, or there is no such thing, the table says
what is tried instead, and why.
"""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from mainspring.admin.health.doctor import Check, Level, examine
from mainspring.cli.main import cli
from mainspring.cli.options import Whole, login_name
from mainspring.clock import SystemClock
from mainspring.config import exposed_secret
from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.store.opener import open_store
from tests.cli.conftest import Answer, Shell
from tests.support.budget import within_cpu, within_memory

CASES = json.loads((Path(__file__).parents[1] / "data/bad_inputs_cli.json").read_text(encoding="utf-8"))
# Loading an app and opening a file cost more than a parse; what the bad value adds to it must not.
CPU_SECONDS = 1.0
MEMORY = 5 * 1024 * 1024
BACKOFF = """
from mainspring import Mainspring, Retry

app = Mainspring()


@app.task(retry=Retry(attempts=3, base=0, cap=-1))
def wrong() -> None: ...
"""


def cases(group: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES[group]]


def refused(answer: Answer, case: dict[str, Any]) -> None:
    """In one line on stderr, which names what was wrong and nothing that is secret."""
    assert (answer.code, answer.out) == (case.get("code", 2), ""), answer.err
    *_, said = answer.err.splitlines()
    assert said.startswith("Error: ")
    assert case["says"] in said
    assert case.get("at", "") in said
    assert case.get("hides", "hunter2") not in answer.err
    assert said.isprintable()
    assert len(said) < 600
    assert "Traceback" not in answer.err or "raised while it was loaded" in said


@pytest.mark.parametrize("case", cases("cli"))
def test_a_command_line_is_refused(case: dict[str, Any], call: Callable[..., Answer]) -> None:
    with within_cpu(CPU_SECONDS):
        answer = call(*case["words"])

    refused(answer, case)


@pytest.mark.parametrize("case", cases("config"))
def test_a_settings_file_is_refused(
    case: dict[str, Any], call: Callable[..., Answer], bare_shell: Shell
) -> None:
    bare_shell.write("given.toml", case["file"])

    refused(call("config", "show", "--config", "given.toml"), case)
    bare_shell.write("mainspring.toml", case["file"])
    with within_memory(MEMORY):
        assert call("jobs", "list").code == 2
    assert not list(bare_shell.folder.glob("*.db"))


@pytest.mark.parametrize("case", cases("code"))
def test_what_code_declares_is_refused(
    case: dict[str, Any], call: Callable[..., Answer], bare_shell: Shell
) -> None:
    bare_shell.write("backoff.py", BACKOFF)
    bare_shell.write("mainspring.toml", "")
    assert call("db", "migrate").code == 0

    answer = call(*case["words"])

    assert (answer.code, answer.out) == (2, "")
    assert case["says"] in answer.err


def test_config_023_what_is_no_file_is_not_read(call: Callable[..., Answer], bare_shell: Shell) -> None:
    os.mkfifo(bare_shell.folder / "pipe")
    with (bare_shell.folder / "huge").open("wb") as file:
        file.truncate(10 * 1024**3)

    for name in ("pipe", "huge"):
        answer = call("config", "show", "--config", name)
        assert (answer.code, answer.out) == (2, "")
        assert "expected a file of at most 1 MiB" in answer.err
    assert call("config", "show", "--config", ".").code == 2


@pytest.mark.parametrize(
    "text",
    [
        "[database]\nurl = 'postgresql://u:hunter2@h/db'\n",
        "[access]\noidc_client_secret = 'hunter2-hunter2-hunter2'\n",
        "[alerts]\nto = ['mailtos://u:hunter2@example.com']\n",
    ],
)
def test_config_018_a_secret_that_everybody_may_read_is_told(
    text: str, call: Callable[..., Answer], bare_shell: Shell
) -> None:
    bare_shell.write("mainspring.toml", text)
    file = bare_shell.folder / "mainspring.toml"
    file.chmod(0o644)

    told = call("config", "show")

    assert told.code == 0
    assert told.err.startswith("Warning: every user of this machine may read ")
    assert "(mainspring.toml:2): chmod 600 mainspring.toml" in told.err
    assert "hunter2" not in told.err
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert call("config", "show").err == ""
    file.write_text("[database]\nurl = 'postgresql://u@h/db'\n", encoding="utf-8")
    file.chmod(0o644)
    assert exposed_secret(None, bare_shell.folder) is None


def test_config_037_a_byte_order_mark_is_ignored(call: Callable[..., Answer], bare_shell: Shell) -> None:
    bare_shell.write("mainspring.toml", "\ufeff[worker]\nconcurrency = 3\n")

    shown = call("config", "show", "--json").data

    assert shown["worker.concurrency"] == {"value": 3, "origin": "mainspring.toml:2"}


def test_config_027_the_zone_of_the_machine_is_not_asked(
    call: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("next", "0 9 * * *", "--after", "2026-01-01T00:00:00Z", "--json")
    before = call(*asked).data
    monkeypatch.setenv("TZ", "garbage/nowhere")

    assert call(*asked).data == before


def test_config_041_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999)

    assert login_name() == "uid 3999999"


class TenYearsAhead(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(days=3650)


def test_config_045_the_databases_clock_decides_and_the_doctor_tells(postgres_url: str, run: Any) -> None:
    """Nobody leads: a process whose clock is wrong does what is due by the database's."""
    clock = TenYearsAhead()
    store = open_store(postgres_url, clock=clock)

    async def asked() -> tuple[datetime, list[Check], list[int]]:
        later = SystemClock().now() + timedelta(days=1)
        await store.queue.insert([NewJob(task="t", payload=b"{}", run_at=later)], at=clock.stamp())
        await store.processes.join(
            NewProcess(id=1, role=Role.WORKER, name="w"), lease=timedelta(hours=1), at=clock.stamp()
        )
        claims = await store.queue.claim(1, queues=["default"], tasks=["t"], limit=1, at=clock.stamp())
        now, checks = await store.now(at=clock.stamp()), await examine(store, clock)
        await store.close()
        return now, checks, [each.job_id for each in claims]

    now, checks, claimed = run(asked())

    assert clock.now() - now > timedelta(days=3640)
    assert claimed == []
    [told] = [each for each in checks if each.name == "clock"]
    assert told.level is Level.WARN


ELSEWHERE = {
    "config-038": ("test_http.py", "test_a_proxy_in_the_environment_is_not_asked"),
    "config-039": ("test_shell.py", "test_it_sees_none_of_the_workers_surroundings"),
    "config-040": ("test_shell.py", "test_what_cannot_be_meant_is_refused_when_it_is_declared"),
}


@pytest.mark.parametrize(("file", "name"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_is_tested_elsewhere_is_there(file: str, name: str) -> None:
    text = (Path(__file__).parents[1] / "targets" / file).read_text(encoding="utf-8")

    assert f"def {name}(" in text


def test_cli_038_two_that_migrate_at_once_both_succeed(bare_shell: Shell) -> None:
    both = [bare_shell.start("db", "migrate") for _ in range(2)]
    said = [each.communicate(timeout=60)[0] for each in both]

    assert [each.returncode for each in both] == [0, 0]
    applied = [line for text in said for line in text.splitlines() if line.startswith("applied")]
    assert len(applied) == len(set(applied))


def test_cli_039_a_reader_who_leaves_is_no_mistake(bare_shell: Shell) -> None:
    listed = bare_shell.start("next", "* * * * *", "-n", "1000")
    assert listed.stdout is not None
    assert listed.stderr is not None
    listed.stdout.readline()
    listed.stdout.close()

    assert listed.wait(timeout=60) in (0, 141)
    assert listed.stderr.read() == ""
    listed.stderr.close()


def test_cli_040_what_a_terminal_would_obey_is_shown_as_escapes(call: Callable[..., Answer]) -> None:
    call("enqueue", "-A", "shop.py", "greet", "name=\x1b[2Jgone")

    shown, data = call("jobs", "show", "1"), call("jobs", "show", "1", "--json")

    assert "\x1b" not in shown.out + data.out
    assert "\\u001b[2Jgone" in shown.out
    assert data.data["kwargs"] == {"name": "\x1b[2Jgone"}


def test_cli_044_a_long_argument_is_kept_and_a_longer_one_refused(call: Callable[..., Answer]) -> None:
    long, longer = "x" * 200_000, "x" * 300_000

    assert call("enqueue", "-A", "shop.py", "greet", f"name={long}").code == 0
    refusal = call("enqueue", "-A", "shop.py", "greet", f"name={longer}")

    assert call("jobs", "show", "1", "--json").data["kwargs"] == {"name": long}
    assert (refusal.code, refusal.out) == (2, "")
    assert len(refusal.err) < 600


def test_cli_041_port_0_takes_a_free_one_and_says_which(bare_shell: Shell) -> None:
    bare_shell("db", "migrate")
    server = bare_shell.start("server", "--port", "0")
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.startswith("Mainspring listens at http://127.0.0.1:")
        assert not said.strip().endswith(":0")
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0


def test_config_042_043_044_046_odd_surroundings_do_not_stop_a_worker(
    bare_shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Few files, a plain C locale, no home, and a folder that nothing is written to; two of the same name."""
    empty = tmp_path_factory.mktemp("elsewhere")
    database = f"sqlite:///{bare_shell.folder / 'jobs.db'}"
    surroundings = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "MAINSPRING_DATABASE_URL": database,
        "MAINSPRING_WORKER_NAME": "same",
    }

    def run(*words: str | bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "mainspring", *words],
            cwd=empty,
            env=surroundings,
            capture_output=True,
            timeout=60,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        )

    shop = str(bare_shell.folder / "shop.py")
    put = run("enqueue", "-A", shop, "greet", "name=Zoë".encode())
    workers = [run("worker", shop, "--burst") for _ in range(2)]
    shown = run("jobs", "show", "1")

    assert put.returncode == 0, put.stderr
    assert [each.returncode for each in workers] == [0, 0], workers[0].stderr
    assert b"warning only 64 files may be open at once (ulimit -n)" in workers[0].stderr
    ids = {each.stderr.decode().split("(process ")[1].split(")")[0] for each in workers}
    assert len(ids) == 2, "the name of the machine or the process is no identity"
    assert "hello Zoë" in shown.stdout.decode()
    assert list(empty.iterdir()) == []


def leaves(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, by the words that lead to it."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from leaves(inner, *words, name)
    else:
        yield words, command


ALL = dict(leaves(cli))
BYTES = "\udcff"
"""What Python makes of a byte that is no UTF-8."""


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_bytes_that_are_no_text_are_an_error_line(
    words: tuple[str, ...], call: Callable[..., Answer]
) -> None:
    """As an argument and in an option, of every command."""
    own = [each.opts[0] for each in ALL[words].params if isinstance(each, click.Option) and not each.is_flag]
    for more in ((BYTES,), *((option, f"x{BYTES}") for option in own), (f"--x={BYTES}",)):
        answer = call(*words, *more)
        assert (answer.code, answer.out) == (2, "")
        [said] = answer.err.splitlines()
        assert said.startswith("Error: argument")
        assert said.isprintable()


def test_bytes_that_are_no_text_are_an_error_line_of_a_real_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mainspring", "schedules", "pause", b"\xff"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"Error: argument 3: expected text in UTF-8, got '\\udcff'\n"


def test_every_number_of_every_command_is_read_by_ours() -> None:
    """`int()` takes 1_000, +5 and the digits of every script; so do click's own types."""
    numbers = (click.types.IntParamType, click.types.FloatParamType)
    found = {
        (" ".join(words), each.name): each.type
        for words, command in ALL.items()
        for each in command.params
        if isinstance(each.type, numbers)
    }
    assert len(found) > 30
    for place, kind in found.items():
        assert isinstance(kind, Whole), place
        for odd in ("1_000", "+5", "\uff15", "\u0665", " 5", "0x5", "\u00b2"):
            with pytest.raises(click.BadParameter):
                kind.convert(odd, None, None)


@pytest.mark.parametrize("odd", ["1_0", "+5", "\uff15", "\u0665"])
def test_numbers_are_in_the_digits_0_to_9(odd: str, call: Callable[..., Answer]) -> None:
    """Wherever a command line has one: numbers, lengths of time, rules, settings."""
    for words in (
        ("jobs", "list", "--limit", odd),
        ("jobs", "show", odd),
        ("next", "* * * * *", "--count", odd),
        ("next", f"{odd} * * * *"),
        ("next", f"*/{odd} * * * *"),
        ("next", "--every", f"{odd}s"),
        ("next", "--rrule", f"FREQ=DAILY;INTERVAL={odd}"),
        ("next", "--rrule", f"FREQ=DAILY;COUNT={odd}"),
        ("simulate", "--from", f"2030-01-{odd}T00:00:00+00:00"),
        ("tokens", "create", "x", "--role", "viewer", "--expires", f"{odd}d"),
        ("dead", "replay", "--all", "--rate", f"{odd}/s"),
    ):
        answer = call(*words)
        assert (answer.code, answer.out) == (2, ""), words
        assert answer.err.startswith("Error: ")


@pytest.mark.parametrize(
    "words",
    [
        ("worker", "shop.py", "--name", ""),
        ("worker", "shop.py", "-n", " "),
        ("scheduler", "shop.py", "--name", ""),
        ("sessions", "end", "--name", ""),
        ("workflows", "list", "--name", ""),
        ("limits", "list", "--name", " "),
        ("next", "H * * * *", "--name", ""),
        ("tokens", "create", "", "--role", "viewer"),
    ],
    ids=" ".join,
)
def test_an_empty_name_is_refused(words: tuple[str, ...], call: Callable[..., Answer]) -> None:
    """It often comes of a variable that was not set, and would mean everybody, or a name of our making."""
    assert call("db", "migrate").code == 0

    answer = call(*words)

    assert (answer.code, answer.out) == (2, "")
    assert "expected" in answer.err
    assert "name" in answer.err
