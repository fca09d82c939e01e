"""Runs a peer's program: a fresh server, warm worker processes, and a client process that measures."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.environment import environment
from benchmarks.noise import Noise
from benchmarks.servers import postgres, redis
from benchmarks.workflows.figure import Figure, Taken
from benchmarks.workflows.known import Peer, Workload

START_SECONDS = 120.0
SERVERS = {"postgresql": postgres, "redis": redis}


class Failed(Exception):
    """It was given its time, and has no figure."""


class Fleet:
    """A peer's server and workers, and its client on call."""

    def __init__(self, peer: Peer, python: Path, url: str, log: Path) -> None:
        self._program = [str(python), str(Path(__file__).parent / "peers" / f"{peer.name}_flows.py")]
        self._env = {**os.environ, "PEER_URL": url, "PYTHONWARNINGS": "ignore"}
        self._log = log

    @contextlib.contextmanager
    def workers(self, count: int) -> Iterator[None]:
        self._call("prepare", limit=START_SECONDS)
        with self._log.open("wb") as log:
            processes = [
                subprocess.Popen(
                    [*self._program, "worker", str(number)], env=self._env, stdout=log, stderr=log
                )
                for number in range(count)
            ]
        try:
            self._call("ready", str(count), limit=START_SECONDS)
            yield
            alive = sum(each.poll() is None for each in processes)
            assert alive == count, f"{alive} workers left:\n{self._log.read_text(errors='replace')}"
        finally:
            for process in processes:
                process.kill()  # nothing of theirs is needed any more, and the server is thrown away
            for process in processes:
                process.wait()

    def measure(self, workload: str, size: int, limit: float) -> Taken:
        noise = Noise()
        answer = json.loads(self._call("drive", workload, str(size), limit=limit).splitlines()[-1])
        return Taken(ended=answer["ended"], seen=answer["seen"], others=noise.others)

    def _call(self, *arguments: str, limit: float) -> str:
        try:
            done = subprocess.run(
                [*self._program, *arguments], env=self._env, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired as problem:
            raise Failed(f"not done within {limit:,.0f} s") from problem
        if done.returncode:
            log = self._log.read_text(errors="replace") if self._log.exists() else ""
            print(f"{' '.join(arguments)}: {done.stderr}\n{log}", file=sys.stderr)
            raise Failed((done.stderr.strip().splitlines() or ["it ended"])[-1])
        return done.stdout


@contextlib.contextmanager
def fleet(peer: Peer, processes: int) -> Iterator[Fleet]:
    """On a server that was empty before."""
    python = environment(peer.name)
    with tempfile.TemporaryDirectory() as folder, SERVERS[peer.server]() as url:
        found = Fleet(peer, python, url, Path(folder) / "workers.log")
        with found.workers(processes):
            yield found


def sizes(full: int) -> list[int]:
    """Small ones first: who cannot do those is not asked for more."""
    return sorted({max(full // 100, 1), max(full // 10, 1), full})


def measured(
    peer: Peer, workload: Workload, full: int, processes: int, repeat: int, limit: float
) -> list[Figure]:
    """A figure for each size: the full one a few times, each on a fresh server, the smaller ones once."""
    taken: dict[int, list[Taken]] = {}
    failures: dict[int, str] = {}
    for turn in range(repeat):
        with fleet(peer, processes) as running:
            for size in sizes(full) if turn == 0 else [full]:
                found = taken.setdefault(size, [])
                try:
                    found.append(running.measure(workload.name, size, limit))
                except Failed as problem:
                    failures[size] = str(problem)
                    break
        if failures:
            break
    return [
        Figure(
            peer.label,
            workload.name,
            processes,
            size,
            workload.steps(size),
            tuple(each),
            failures.get(size, ""),
        )
        for size, each in taken.items()
    ]
