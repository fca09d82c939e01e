"""Schedules that share a minute: how late they fire, whether one is missed, and whether two schedulers fire
twice."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Sequence

from benchmarks.beside.run import TROUBLE, Run
from benchmarks.beside.session import Failed, Session, Unsupported, session
from benchmarks.figure import Measured, percentile
from benchmarks.known import System
from benchmarks.marks import EARLY, count, firings
from benchmarks.peers.mark import TICKED

PERIOD = 60
WATCH_SECONDS = 30.0
"""After a slot: what has not fired by then is missed."""
LEAD_SECONDS, LONG_LEAD_SECONDS = 15.0, 25.0
"""Between the start of the processes and the slot; some take long to read many schedules."""
HOPELESS_MS = 5_000.0
"""Who is so late with fewer is not asked for more: a minute of a run is precious."""


def lateness(run: Run, system: System) -> None:
    """All due on the same minute, with one scheduler and one worker: from the slot to the handler."""
    if not run.has(system, "schedules", "minute"):
        return
    for schedules in sorted(run.size.schedules):
        name = f"{schedules:,} schedules on one minute"
        run.measure(system, name, functools.partial(_late, system, schedules))
        late = run.book.value(system.key, f"lateness to the handler of {schedules:,} schedules p99, ms")
        if late is None or late > HOPELESS_MS:
            break


def _late(system: System, schedules: int) -> tuple[Measured, str]:
    lead = LEAD_SECONDS if schedules < 5000 else LONG_LEAD_SECONDS
    with session(system, PEER_SCHEDULES=schedules, PEER_PERIOD=PERIOD) as opened:
        time.sleep(-(time.time() + lead) % PERIOD)
        slot = round(time.time() + lead)
        _started(opened, 1)
        time.sleep(max(slot - EARLY - time.time(), 0))
        early = count(opened.log)
        opened.until_marks(early + schedules, WATCH_SECONDS)
        # A second one of the same slot would come with the first.
        opened.until_marks(early + schedules + 1, 1)
        ticks = [mark for mark in opened.marks() if mark.kind == TICKED]
        found = firings(ticks, schedules, [slot])
        name = f"lateness to the handler of {schedules:,} schedules"
        told: dict[str, float] = {
            f"{schedules:,} schedules: missed": found.missed,
            f"{schedules:,} schedules: doubled": found.doubled,
        }
        if found.late:
            told |= {f"{name} p{each}, ms": percentile(found.late, each) * 1000 for each in (50, 99)}
            told[f"{name} max, ms"] = found.late[-1] * 1000
        elif opened.ended():
            raise Failed(opened.ended())
        note = f"{found.missed:,} of {schedules:,} had not fired after {WATCH_SECONDS:.0f} s"
        return told, note if found.missed else ""


def doubles(run: Run, systems: Sequence[System]) -> None:
    """Two schedulers and two workers of everybody at the same time, over two minutes: these are counts, which
    a busy machine does not change."""
    size = run.size.doubles
    workload = f"two schedulers, {size:,} schedules"
    with contextlib.ExitStack() as stack:
        opened: list[tuple[System, Session]] = []
        for system in systems:
            if not run.has(system, "schedules", "minute"):
                continue
            try:
                entered = stack.enter_context(session(system, PEER_SCHEDULES=size, PEER_PERIOD=PERIOD))
                _started(entered, 2)
                opened.append((system, entered))
            except (Unsupported, *TROUBLE) as why:
                run.failed(system, workload, why)
        first = (time.time() + LEAD_SECONDS) // PERIOD * PERIOD + PERIOD
        slots = [first, first + PERIOD]
        time.sleep(max(slots[-1] + WATCH_SECONDS / 2 - time.time(), 0))
        for system, entered in opened:
            ticks = [mark for mark in entered.marks() if mark.kind == TICKED]
            found = firings(ticks, size, slots)
            told = {f"{workload}: doubled": found.doubled, f"{workload}: missed": found.missed}
            note = f"of {size * len(slots):,}" + (
                f"; {entered.ended()}" if not ticks and entered.ended() else ""
            )
            run.tell(system, workload, told, note)


def _started(opened: Session, each: int) -> None:
    for number in range(1, each + 1):
        opened.start("worker", number)
        # Where workers fire schedules there is no such process: it says so and ends.
        opened.start("scheduler", number)
