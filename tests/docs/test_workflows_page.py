"""The tutorial of workflows, word for word, with a worker killed in the middle, and what comes of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Process, until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/workflows.md").read_text(encoding="utf-8")
TUTORIAL = PAGE.split("## Tutorial: kill a worker")[1].split("\n## ")[0]
COMMANDS = re.findall(r"^    (mainspring .+|kill .+)$", TUTORIAL.replace(" ID ", " 1 "), flags=re.MULTILINE)
PARTS = 12


class Reader:
    """Somebody who follows the page, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")},
            "MAINSPRING_DATABASE_URL": f"sqlite:///{folder / 'mainspring.db'}",
            "PYTHONPATH": str(ROOT / "src"),
        }
        self.workers: list[Process] = []

    def types(self, command: str) -> str:
        """Run a command of the page and answer what it printed."""
        words = [sys.executable, "-m", *command.split()]
        done = subprocess.run(words, cwd=ROOT, env=self._env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def worker(self, command: str) -> Process:
        """The same for one that goes on."""
        words = [sys.executable, "-m", *command.split()]
        name = f"worker-{len(self.workers) + 1}"
        # What the page says works from the clone's own folder, wherever the log goes.
        words[-1] = str(ROOT / words[-1])
        self.workers.append(Process(name, words, folder=self._folder, env=self._env))
        return self.workers[-1]

    def ended(self) -> set[str]:
        """Parts that somebody has said to have done."""
        return {part for worker in self.workers for part in re.findall(r"has done (\S+)", worker.log)}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    somebody = Reader(tmp_path)
    yield somebody
    for worker in somebody.workers:
        worker.end()


def test_a_reader_can_break_it_and_watch_it_resume(reader: Reader) -> None:
    work, enqueue, listing, show, kill, *_ = COMMANDS
    assert kill == "kill -9 PID"
    first = reader.worker(work)
    until(lambda: first.says("started"), "the worker is up")
    # The parts of the page take two seconds each; nobody learns more from waiting that long.
    assert "workflow:nightly-load" in reader.types(f"{enqueue} seconds=0.5")
    until(lambda: 3 <= len(reader.ended()) < PARTS, "some parts have ended")
    first.kill()  # before anything is listed: on a busy machine a command takes as long as all that is left
    before = reader.ended()
    assert "nightly-load" in reader.types(listing)
    assert re.search(r"state +running", reader.types(show))

    second = reader.worker(work)
    until(lambda: second.says("notify:"), "the workflow went on")
    until(lambda: "succeeded" in reader.types(listing), "the workflow has ended")
    shown = reader.types(show)

    assert f"{PARTS} items: {PARTS} succeeded" in shown
    assert second.log.count("load: process") == 1
    assert f"adds up {PARTS} parts" in second.log
    # What was accepted is not run again: only what the dead worker had in hand may be, three at most.
    again = before & set(re.findall(r"begins (\S+)", second.log))
    assert len(again) <= 3
    assert len(reader.ended()) == PARTS


def test_the_page_has_the_commands_that_the_test_types() -> None:
    assert COMMANDS[0].startswith("mainspring worker ")
    assert COMMANDS[1].startswith("mainspring enqueue ")
    assert COMMANDS.count(COMMANDS[3]) == 3
