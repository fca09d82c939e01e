"""Drains: jobs are there before the workers start."""

from __future__ import annotations

import functools
import time

from benchmarks import processes
from benchmarks.beside.ledger import Ledger, analyze, ledger
from benchmarks.beside.run import IN_BULK, Run
from benchmarks.beside.session import START_SECONDS, Failed, Session, session
from benchmarks.figure import Measured
from benchmarks.known import System
from benchmarks.marks import count, per_second, tally, together

LARGE_ABOVE, LARGEST_ABOVE = 5000, 10_000
STILL_SECONDS = 5.0
"""Without a mark for so long, no more are expected."""

SETTLED_SECONDS = 3.0

NAME = "drain {:,} with {} worker {}, jobs/s"


def name_of(jobs: int, workers: int) -> str:
    return NAME.format(jobs, workers, "process" if workers == 1 else "processes")


def drains(run: Run, system: System) -> None:
    """With one and two processes; larger ones for those that are fast enough for them to end."""
    size = run.size
    for workers in (1, 2):
        name = name_of(size.drain, workers)
        run.measure(system, name, functools.partial(_drain, run, system, size.drain, workers, name))
    for jobs, above, crews, wanted in (
        (size.large, LARGE_ABOVE, (1, 2), True),
        (size.largest, LARGEST_ABOVE, (1, 2), run.all),
    ):
        rate = run.book.value(system.key, name_of(size.drain, 1))
        for workers in crews if wanted and rate is not None and rate > above else ():
            name = name_of(jobs, workers)
            run.measure(system, name, functools.partial(_drain, run, system, jobs, workers, name))


def handlers(run: Run, system: System) -> None:
    """The same drain with each kind of handler it has; that of its usual kind has been measured already."""
    usual = run.about[system.key].get("handlers", ("",))[0]
    for kind in ("async", "sync", "isolated"):
        name = f"drain {run.size.drain:,} with {kind} handlers, jobs/s"
        known = run.book.value(system.key, name_of(run.size.drain, 1))
        if kind == usual and known is not None:
            run.tell(system, name, {name: known})
        elif run.has(system, "handlers", kind):
            body = functools.partial(_drain, run, system, run.size.drain, 1, name, handler=kind)
            run.measure(system, name, body)


def _drain(
    run: Run, system: System, jobs: int, workers: int, name: str, handler: str = ""
) -> tuple[Measured, str]:
    there = run.affordable(system, jobs)
    with session(system, **({"PEER_HANDLER": handler} if handler else {})) as opened:
        plain = not handler and workers == 1
        durable = opened.server.kind == "postgresql"
        began = ledger(opened.server.url) if durable else None
        stored = opened.call("enqueue", "bulk" if run.bulk(system) else "one", there)["seconds"]
        filled = _filled(opened.server.url) if durable else None
        run.lulls.wait()
        took = _worked(opened, there, workers, run.size.cap * (jobs / run.size.drain) ** 0.5)
        marks = opened.marks()
        rate = per_second([mark.at for mark in marks])
        if rate is None:
            raise Failed(opened.ended() or f"{len(marks)} of {there:,} jobs ran")
        found: dict[str, float] = {name: rate}
        whole = len(marks) >= there
        if workers > 1 and (both := together(marks, workers)) is not None:
            found[f"{name}, since all were at work"] = both
        if plain:
            if run.bulk(system):
                found[IN_BULK.format(jobs)] = there / stored
            found |= {f"{name}: {each}": value for each, value in took.items()}
            found[f"worker after {jobs:,} jobs, MB"] = processes.memory_mb(opened.pids)
        left = _left(opened) if whole else None
        note = _note(opened, there, jobs, left)
        if plain and began is not None and filled is not None:
            opened.kill()
            found |= _books(began, filled, ledger(opened.server.url), there, len(marks), jobs)
        return found, note


def _filled(url: str) -> Ledger:
    found = ledger(url)
    analyze(url)
    return found


def _left(opened: Session) -> int:
    """What is still pending when all have run; those that settle many at once need a moment."""
    give_up = time.monotonic() + SETTLED_SECONDS
    while (left := opened.pending()) and time.monotonic() < give_up:
        pass
    return left


def _worked(opened: Session, jobs: int, workers: int, cap: float) -> dict[str, float]:
    """Until all are done, or it has had its time; what each job took of the processors meanwhile."""
    for number in range(1, workers + 1):
        opened.start("worker", number)
    if not opened.until_marks(1, START_SECONDS):
        raise Failed(opened.ended() or f"no job ran within {START_SECONDS:.0f} s")
    first, before = count(opened.log), opened.spent()
    give_up, seen, moved = time.monotonic() + cap, first, time.monotonic()

    def over() -> bool:
        nonlocal seen, moved
        now, there = time.monotonic(), count(opened.log)
        if there > seen:
            seen, moved = there, now
        return there >= jobs or now > give_up or now - moved > STILL_SECONDS

    opened.until(over, cap + STILL_SECONDS + 1)
    after, done = opened.spent(), count(opened.log) - first
    if done < 100:
        return {}
    mine, servers = ((late - early) / done * 1e6 for early, late in zip(before, after, strict=True))
    found = {"worker CPU µs a job": mine}
    return found | {"server CPU µs a job": servers} if opened.server.pids else found


def _books(began: Ledger, filled: Ledger, done: Ledger, stored: int, ran: int, jobs: int) -> Measured:
    return {
        f"WAL per job of {jobs:,}, bytes": (filled.wal - began.wal) / stored + (done.wal - filled.wal) / ran,
        f"commits per job of {jobs:,}": (filled.commits - began.commits) / stored
        + (done.commits - filled.commits) / ran,
        f"dead rows per job of {jobs:,}": done.dead_rows / ran,
    }


def _note(opened: Session, there: int, wanted: int, left: int | None) -> str:
    ran = tally(opened.marks(), there)
    parts = []
    if there < wanted:
        parts.append(f"{there:,} jobs were there: storing more takes too long")
    if ran.lost and left is None:
        parts.append(f"{ran.once:,} of {there:,} in the time there was")
    elif ran.lost:
        parts.append(f"{ran.lost:,} lost")
    if ran.doubled:
        parts.append(f"{ran.doubled:,} ran twice")
    if left:
        parts.append(f"{left:,} still pending when all had run")
    return "; ".join(parts)
