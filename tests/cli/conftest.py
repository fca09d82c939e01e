"""The command line, called in this process or started as one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import zygote

SHOP = """
from __future__ import annotations

from mainspring import Context, Mainspring, Retry

app = Mainspring()


@app.task
async def greet(ctx: Context, name: str = "world") -> str:
    return f"hello {name}"


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task(retry=Retry(attempts=1))
def broken() -> None:
    raise ValueError("boom \\x1b[31m\\nsecond line")


app.schedule("greetings", greet, cron="0 9 * * 1-5", tz="Europe/Berlin")
"""
FINISHES_WITHIN = 60


@dataclass(frozen=True)
class Answer:
    """How a process ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """A folder with an app in it, and the words to run there."""

    folder: Path
    environment: dict[str, str]

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def __call__(self, *words: str, **environment: str) -> Answer:
        """Run `mainspring WORDS` to its end."""
        told = {**self.environment, **environment}
        if zygote.fits(told):
            return Answer(*zygote.run(words, cwd=self.folder, environment=told, within=FINISHES_WITHIN))
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=told,
            capture_output=True,
            text=True,
            timeout=FINISHES_WITHIN,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `mainspring WORDS` and leave it running."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "mainspring", *words]


@pytest.fixture
def bare_shell(tmp_path: Path) -> Shell:
    """No database is named: it is a file in the folder."""
    hidden = ("MAINSPRING_", "DATABASE_URL", "NO_COLOR", "COLUMNS")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    shell = Shell(tmp_path, clean)
    shell.write("shop.py", SHOP)
    return shell


@pytest.fixture
def call(bare_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """The command line in this process, for what needs no process of its own; no database is named."""
    from mainspring.cli.main import cli

    monkeypatch.chdir(bare_shell.folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    for name in set(os.environ) - set(bare_shell.environment):
        monkeypatch.delenv(name)

    def invoke(*words: str) -> Answer:
        result = CliRunner().invoke(cli, words)
        return Answer(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def shell(bare_shell: Shell, database_url: str) -> Shell:
    """Runs the test once per backend, on a migrated database."""
    return Shell(bare_shell.folder, {**bare_shell.environment, "MAINSPRING_DATABASE_URL": database_url})


@pytest.fixture
def started(shell: Shell) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start processes that are gone when the test ends."""
    running: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        running.append(shell.start(*words))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()
