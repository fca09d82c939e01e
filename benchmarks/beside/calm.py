"""One worker with little to do and then with more: storing one by one, pickup, what idleness costs, and the
highest rate that is held."""

from __future__ import annotations

import time

from benchmarks import processes
from benchmarks.beside.run import ONE_BY_ONE, Run
from benchmarks.beside.session import START_SECONDS, Failed, Session, session
from benchmarks.figure import Measured, percentile
from benchmarks.known import System
from benchmarks.marks import tally, waits_ms

APART = 0.05
IDLE_SECONDS = 3.0
GRACE = 1.0
"""Seconds after the end of a feed within which its last job has to have begun."""


def one_by_one(run: Run, system: System) -> None:
    """Jobs stored per second by one client that waits for each."""
    size = run.size.one_by_one

    def body() -> tuple[Measured, str]:
        with session(system) as opened:
            run.lulls.wait()
            return {ONE_BY_ONE.format(size): size / opened.call("enqueue", "one", size)["seconds"]}, ""

    run.measure(system, ONE_BY_ONE.format(size), body)


def pickup(run: Run, system: System) -> None:
    """Milliseconds from the moment at which a job is to be sent to its handler's first line, on a worker with
    nothing else to do; and what that worker takes while there is nothing at all."""

    def body() -> tuple[Measured, str]:
        with session(system) as opened:
            _warm(opened)
            found: dict[str, float] = {"idle worker, MB": processes.memory_mb(opened.pids)}
            before = opened.spent()
            time.sleep(IDLE_SECONDS)
            idle = [(b - a) / IDLE_SECONDS * 100 for a, b in zip(before, opened.spent(), strict=True)]
            found["idle worker, % of a core"] = idle[0]
            if opened.server.pids:
                found["server of an idle worker, % of a core"] = idle[1]
            opened.forget()
            run.lulls.wait()
            opened.call("feed", 1 / APART, run.size.pickups * APART)
            opened.until_marks(run.size.pickups, 10)
            waits = waits_ms(opened.marks())
            if not waits:
                raise Failed(opened.ended() or "no job ran")
            found |= {f"pickup p{each}, ms": percentile(waits, each) for each in (50, 99)}
            ran = tally(opened.marks(), run.size.pickups)
            told = f"{ran.once} of {ran.expected} jobs ran within 10 s" if ran.lost else ""
            return found, told

    run.measure(system, "pickup", body)


def sustained(run: Run, system: System) -> None:
    """One worker, and a client that stores jobs at a fixed rate: how long they wait, and the highest rate
    whose backlog was worked off within a second of its end."""

    def body() -> tuple[Measured, str]:
        found: dict[str, float] = {"highest rate held, jobs/s": 0}
        note = ""
        with session(system) as opened:
            _warm(opened)
            for rate in run.size.rates:
                run.lulls.wait()
                held, waits, why = _fed(opened, rate, run.size.seconds)
                if not held:
                    note = f"{rate:,}/s: {why}"
                    break
                found["highest rate held, jobs/s"] = rate
                for each in (50, 95, 99):
                    found[f"wait at {rate:,} jobs/s p{each}, ms"] = percentile(waits, each)
        return found, note

    run.measure(system, "sustained", body)


def _fed(opened: Session, rate: int, seconds: float) -> tuple[bool, list[float], str]:
    """Whether it held the rate, how long jobs waited, and what is to be said."""
    opened.forget()
    wanted = round(rate * seconds)
    sent = int(opened.call("feed", rate, seconds)["sent"])
    opened.until_marks(sent, 3 * GRACE)
    marks = opened.marks()
    ran, waits = tally(marks, wanted), waits_ms(marks)
    if sent < wanted:
        return False, waits, f"the client sent {sent:,} of {wanted:,}"
    end = max((mark.sent_at for mark in marks), default=0.0)
    late = sum(mark.at > end + GRACE for mark in marks) + ran.lost
    if late:
        return False, waits, f"{late:,} of {wanted:,} had not begun a second after the end"
    return True, waits, f"{ran.doubled} ran twice" if ran.doubled else ""


def _warm(opened: Session) -> None:
    """A worker that has run a job, with nothing left to do."""
    opened.start("worker", 1)
    opened.call("enqueue", "one", 10)
    if not opened.until_marks(10, START_SECONDS):
        raise Failed(opened.ended() or f"10 jobs did not run within {START_SECONDS:.0f} s")
