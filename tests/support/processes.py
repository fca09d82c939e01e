"""Real processes on one database: started, signalled, waited for and always ended; and what their
handlers wrote into a log outside the store."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.process import ProcessInfo
from mainspring.model.run import Run, Verdict
from mainspring.store.store import Store

T = TypeVar("T")

EFFECT_LOG = "EFFECT_LOG"
"""The variable that tells handlers where to write."""
PATIENCE = 40.0
"""How long a condition may take to come true on a busy machine; no promise is measured by it."""
_LOOK_EVERY = 0.02
_ROOT = str(Path(__file__).parents[2])


def until(condition: Callable[[], T], what: str, within: float = PATIENCE) -> T:
    """Look until the answer is true, and give it; or fail with what was waited for."""
    deadline = time.monotonic() + within
    while True:
        if answer := condition():
            return answer
        assert time.monotonic() < deadline, f"waited {within:g} s for {what}"
        time.sleep(_LOOK_EVERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One line of a handler's. `at` is the machine's monotonic clock, the same for all processes."""

    event: str
    at: float
    job: int
    attempt: int
    fence: int
    pid: int
    worker: int
    """The worker's process: the same, but for runs in its children."""
    schedule: str | None
    slot: str | None


class Effects:
    """The log that handlers append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: list[Effect] = []
        self._offset = 0

    def all(self) -> list[Effect]:
        """Every whole line so far, in the order of writing."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._offset)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._offset += len(whole + newline)
            self._read += [Effect(**json.loads(line)) for line in whole.splitlines()]
        return list(self._read)

    def of(self, event: str, *, by: Process | None = None, jobs: Sequence[int] | None = None) -> list[Effect]:
        """Lines of one kind, of one process, about these jobs."""
        return [
            each
            for each in self.all()
            if each.event == event
            and (by is None or each.worker == by.pid)
            and (jobs is None or each.job in jobs)
        ]

    def jobs(self, event: str, *, by: Process | None = None) -> set[int]:
        """Which jobs have such a line."""
        return {each.job for each in self.of(event, by=by)}


class Process:
    """One `python -m mainspring …`."""

    def __init__(self, name: str, command: Sequence[str], *, folder: Path, env: dict[str, str]) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=env,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text(errors="replace")

    @property
    def lives(self) -> bool:
        return self._popen.poll() is None

    def signal(self, number: signal.Signals) -> float:
        """Send a signal; answer when."""
        at = time.monotonic()
        self._popen.send_signal(number)
        return at

    def freeze(self) -> None:
        """SIGSTOP, and wait until it stands: the signal is sent at once and obeyed a moment later, and in
        that moment it may still take a lock."""
        self.signal(signal.SIGSTOP)
        until(lambda: _is_stopped(self.pid), f"{self.name} to stop")

    def kill(self) -> float:
        """SIGKILL, and wait for the end; answer when it was sent."""
        at = self.signal(signal.SIGKILL)
        self._popen.wait()
        return at

    def exit_code(self, within: float = PATIENCE) -> int:
        """Wait for its end."""
        try:
            return self._popen.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {within:g} s") from None

    def says(self, text: str, *, times: int = 1) -> bool:
        """Whether it has written this into its log, so many times at least."""
        return self.log.count(text) >= times

    def met_a_defect(self) -> bool:
        """Whether a loop met an error that nobody foresaw. What a driver says of its own is none."""
        return re.search(r" error +\w[\w ]*: unexpected \w+; again in ", self.log) is not None

    def joined(self, *, times: int = 1) -> bool:
        """Whether it has a lease, for the so-manieth time."""
        assert self.lives, f"{self.name} ended with {self._popen.returncode}"
        return self.says(" started (process ", times=times)

    def end(self) -> None:
        """Whatever state it is in. Its session may hold children, which go with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()


def _is_stopped(pid: int) -> bool:
    """Whether every thread of it stands."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():  # no such folder on this system: ask for the process
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
        return state.startswith("T")
    try:
        stats = [(task / "stat").read_text() for task in tasks.iterdir()]
    except FileNotFoundError:
        return False  # a thread ended while we looked
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def _is_locked(file: Path) -> bool:
    with contextlib.closing(sqlite3.connect(file, timeout=0.5)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


class Site:
    """One database, the processes on it, and the log their handlers write."""

    def __init__(
        self, url: str, store: Store, *, folder: Path, target: Path, run: Callable[[Any], Any]
    ) -> None:
        self.url = url
        self.store = store
        self.effects = Effects(folder / "effects.jsonl")
        self._folder = folder
        self._target = target
        self._run = run
        self._processes: list[Process] = []

    def worker(self, name: str, *options: str, joined: bool = True) -> Process:
        """A worker, which has its lease unless the test does not want to wait for it."""
        return self.start("worker", name, *options, joined=joined)

    def scheduler(self, name: str, *options: str) -> Process:
        return self.start("scheduler", name, *options)

    def start(
        self, role: str, name: str, *options: str, target: Path | None = None, joined: bool = True
    ) -> Process:
        """`python -m mainspring ROLE TARGET …`."""
        command = [sys.executable, "-m", "mainspring", role, str(target or self._target), "--name", name]
        command += ["--database-url", self.url, *options]
        process = self._launch(name, command)
        if joined:
            until(process.joined, f"{name} to join")
        return process

    def server(self, name: str, *options: str) -> Process:
        """`python -m mainspring server …`, at a free port."""
        command = [sys.executable, "-m", "mainspring", "server", "--port", "0", "--database-url", self.url]
        return self._launch(name, [*command, *options])

    def script(self, path: Path, name: str, *arguments: str) -> Process:
        """`python PATH URL …`: a program of a user's own, on this database."""
        return self._launch(name, [sys.executable, str(path), self.url, *arguments])

    def _launch(self, name: str, command: Sequence[str]) -> Process:
        ours = ("MAINSPRING_", "DATABASE_URL", "PYTEST_")
        env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        # Targets may use each other's helpers.
        path = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), _ROOT]))
        env |= {EFFECT_LOG: str(self.effects.path), "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
        process = Process(name, command, folder=self._folder, env=env)
        self._processes.append(process)
        return process

    def freeze(self, process: Process, *files: Path) -> datetime:
        """Stop it where it holds no lock of an SQLite file; answer a moment, by the store's clock, after
        which it surely stood. Stopped inside a transaction, it would keep that file's one write lock:
        there is no server that could take it away."""
        ours = [Path(self.url.removeprefix("sqlite:///"))] if self.url.startswith("sqlite:") else []

        def stands() -> bool:
            process.freeze()
            if not any(_is_locked(file) for file in [*ours, *files]):
                return True
            process.signal(signal.SIGCONT)
            return False

        until(stands, f"{process.name} to stand between two transactions")
        now: datetime = self._run(self.store.now(at=None))
        return now

    def put(self, jobs: Sequence[NewJob]) -> list[int]:
        """Enqueue; answer the ids."""
        ids: list[int] = self._run(self.store.queue.insert(jobs, at=None))
        return ids

    def job(self, job_id: int) -> Job:
        job: Job | None = self._run(self.store.jobs.get(job_id, at=None))
        assert job is not None, f"job {job_id} is lost"
        return job

    def verdicts(self, job_id: int) -> list[Verdict]:
        """How its runs ended, oldest first."""
        runs: list[Run] = self._run(self.store.runs.of(job_id))
        return [each.verdict for each in runs]

    def states(self, ids: Sequence[int]) -> set[JobState]:
        return {self.job(job_id).state for job_id in ids}

    def live(self) -> int:
        """Jobs that are not final."""
        return sum(
            each.ready + each.delayed + each.running for each in self._run(self.store.queues.depth(at=None))
        )

    def member(self, process: Process) -> ProcessInfo:
        """Its latest place in the fleet."""
        found = [each for each in self._run(self.store.processes.all(at=None)) if each.name == process.name]
        assert found, f"{process.name} is not in the fleet"
        return found[-1]

    def ask(self, call: Any) -> Any:
        """One call of the store."""
        return self._run(call)

    def after_a_beat(self, process: Process) -> ProcessInfo:
        """Wait for its next heartbeat: the moment when its lease lasts longest."""
        first = self.member(process).lease_until

        def renewed() -> ProcessInfo | None:
            member = self.member(process)
            return member if member.lease_until > first else None

        return until(renewed, f"a heartbeat of {process.name}")

    def end(self) -> None:
        """End every process and show what they said; pytest prints it when the test has failed."""
        for process in self._processes:
            process.end()
        for process in self._processes:
            sys.stdout.write(f"----- {process.name} (pid {process.pid})\n{process.log}\n")
        if self.effects.path.exists():
            sys.stdout.write(f"----- effects\n{self.effects.path.read_text()}\n")
