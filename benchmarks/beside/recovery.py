"""A worker is killed with jobs in hand, and another one starts at once: when have they run again?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.beside.run import TROUBLE, Run
from benchmarks.beside.session import START_SECONDS, Failed, Session, Unsupported, session
from benchmarks.figure import Measured
from benchmarks.known import System
from benchmarks.peers.mark import BEGAN, ENDED

WORKLOAD = "kill -9 of a worker"
LOOK_SECONDS = 0.5
TAKES_SECONDS = 0.8
"""From the first job's beginning to the kill, for those that run fewer than all at once: a job takes one."""


@dataclass(frozen=True)
class Watched:
    system: System
    opened: Session
    killed_at: float
    held: frozenset[int]
    """Begun and not ended when the worker was killed."""

    def again(self) -> dict[int, float]:
        """When those it held have ended after all."""
        ends = [mark for mark in self.opened.marks() if mark.kind == ENDED and mark.at > self.killed_at]
        return {mark.number: mark.at for mark in ends if mark.number in self.held}


def recovery(run: Run, systems: Sequence[System]) -> None:
    """One after the other is killed; then all are watched at the same time, for most of it is waiting."""
    with contextlib.ExitStack() as stack:
        watched: list[Watched] = []
        for system in systems:
            try:
                opened = stack.enter_context(session(system))
                watched.append(_killed(system, opened, run.size.held))
            except (Unsupported, *TROUBLE) as why:
                run.failed(system, WORKLOAD, why)
        while any(_open(each, run.size.watch) for each in watched):
            time.sleep(LOOK_SECONDS)
        for each in watched:
            run.tell(each.system, WORKLOAD, *_told(each, run.size.watch))


def _killed(system: System, opened: Session, jobs: int) -> Watched:
    opened.call("hold", jobs)
    worker = opened.start("worker", 1)
    if not opened.until_marks(1, START_SECONDS):
        raise Failed(opened.ended() or "no job began")
    opened.until_marks(jobs, TAKES_SECONDS)
    opened.kill(worker)
    killed_at, marks = time.time(), opened.marks()
    opened.start("worker", 2)
    ended = {mark.number for mark in marks if mark.kind == ENDED}
    held = {mark.number for mark in marks if mark.kind == BEGAN} - ended
    return Watched(system, opened, killed_at, frozenset(held))


def _open(each: Watched, limit: float) -> bool:
    return len(each.again()) < len(each.held) and time.time() < each.killed_at + limit


def _told(each: Watched, limit: float) -> tuple[Measured, str]:
    again = each.again()
    lost = len(each.held) - len(again)
    told: dict[str, float] = {f"{WORKLOAD}: held": len(each.held), f"{WORKLOAD}: not run again": lost}
    if again and not lost:
        told[f"{WORKLOAD}: all had run again after, s"] = max(again.values()) - each.killed_at
    return told, f"{lost} of {len(each.held)} had not run again after {limit:.0f} s" if lost else ""
