"""A peer's program on a fresh server: its commands, its processes and the marks they leave."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import marks, processes
from benchmarks.environment import PEERS, program
from benchmarks.known import OURS, System
from benchmarks.marks import Mark
from benchmarks.servers import Running, server

CALL_SECONDS = 120.0
START_SECONDS = 30.0
NOWHERE = {"postgresql": "postgresql://nobody@localhost/nothing", "redis": "redis://localhost", "sqlite": ""}
LOOK = 0.05
"""Seconds between two looks at the size of the log, which costs next to nothing."""


class Failed(Exception):
    """It was given its time, and there is no figure; the message says why."""


class Unsupported(Exception):
    """The peer has no such thing."""


def command(system: System) -> list[str]:
    """How its program is started; ours runs where we run."""
    if system.peer is OURS:
        return [sys.executable, str(PEERS / "mainspring_jobs.py")]
    return program(system.peer.name)


def about(system: System) -> dict[str, Any]:
    """What it says of itself on such a server, which it does not ask."""
    env = os.environ | {"PEER_URL": NOWHERE[system.server]}
    return {**_called([*command(system), "about"], env, CALL_SECONDS)}


class Session:
    """One peer, one server, any number of its processes."""

    def __init__(self, system: System, running: Running, folder: Path, env: dict[str, str]) -> None:
        self.system, self.server = system, running
        self.log = folder / "marks"
        self._command = command(system)
        self._output = folder / "output"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._env = {
            **os.environ,
            "PEER_URL": running.url,
            "PEER_LOG": str(self.log),
            "PYTHONWARNINGS": "ignore",
            **env,
        }

    def call(self, *arguments: object, limit: float = CALL_SECONDS) -> dict[str, Any]:
        """Run one command to its end and read what it printed."""
        return _called([*self._command, *map(str, arguments)], self._env, limit)

    def start(self, *arguments: object) -> subprocess.Popen[bytes]:
        """One that runs until it is killed."""
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                [*self._command, *map(str, arguments)],
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def kill(self, *started: subprocess.Popen[bytes]) -> None:
        """At once, with all below them: nothing of theirs is needed any more, or that is what is measured."""
        gone = started or tuple(self._processes)
        processes.kill(each.pid for each in gone)
        for each in gone:
            each.wait()
            self._processes.remove(each)

    def ended(self) -> str:
        """What a process that ended by itself said last; nothing when all are there. One that ended well had
        nothing to do: a scheduler where workers fire schedules."""
        gone = [each for each in self._processes if each.poll()]
        return f"a process ended with {gone[0].returncode}: {self._last_words()}" if gone else ""

    def until(self, condition: Callable[[], bool], within: float) -> bool:
        """Look until it is so; whether it was, before time was up or all processes were gone."""
        give_up = time.monotonic() + within
        while not condition():
            alive = any(each.poll() is None for each in self._processes)
            if time.monotonic() > give_up or not alive:
                return condition()
            time.sleep(LOOK)
        return True

    def until_marks(self, count: int, within: float) -> bool:
        return self.until(lambda: marks.count(self.log) >= count, within)

    def marks(self) -> list[Mark]:
        return marks.read(self.log)

    def forget(self) -> None:
        """Marks so far; whoever writes them appends, so the next ones stand at the beginning."""
        if self.log.exists():
            os.truncate(self.log, 0)

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in self._processes]

    def spent(self) -> tuple[float, float]:
        """Processor seconds so far: of the peer's processes, and of the server's."""
        return processes.cpu_seconds(self.pids), processes.cpu_seconds(self.server.pids)

    def pending(self) -> int:
        return int(self.call("pending")["pending"])

    def _last_words(self) -> str:
        lines = self._output.read_text(errors="replace").strip().splitlines() if self._output.exists() else []
        return lines[-1][:200] if lines else "it said nothing"


@contextlib.contextmanager
def session(system: System, **env: object) -> Iterator[Session]:
    """Prepared, on a server that was empty before."""
    with tempfile.TemporaryDirectory(prefix="mainspring-bench-") as folder, server(system.server) as running:
        opened = Session(system, running, Path(folder), {name: str(value) for name, value in env.items()})
        opened.call("prepare")
        try:
            yield opened
        finally:
            opened.kill()


def _called(words: list[str], env: dict[str, str], limit: float) -> dict[str, Any]:
    name = " ".join(words[2:])
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as problem:
        raise Failed(f"{name}: not done within {limit:,.0f} s") from problem
    if done.returncode:
        print(f"{' '.join(words)}: {done.stderr}", file=sys.stderr)
        raise Failed(f"{name}: {(done.stderr.strip().splitlines() or ['it ended'])[-1][:200]}")
    lines = done.stdout.strip().splitlines()
    try:
        told: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    except json.JSONDecodeError as problem:
        raise Failed(f"{name}: it printed {lines[-1][:100]!r}") from problem
    if "unsupported" in told:
        raise Unsupported(told["unsupported"])
    return told
