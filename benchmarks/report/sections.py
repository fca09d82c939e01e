"""What the page compares, and in which order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A measure, under a short name."""

    head: str
    measure: str
    more: bool = False
    """More of it is better; else less is."""


@dataclass(frozen=True)
class Section:
    title: str
    columns: tuple[Column, ...]
    picture: str = ""
    """The name of its file, if it has one."""
    drawn: tuple[int, ...] = ()
    """Which columns are in it."""


def more(head: str, measure: str) -> Column:
    return Column(head, measure, more=True)


def less(head: str, measure: str) -> Column:
    return Column(head, measure)


SECTIONS = (
    Section(
        "Storing jobs, per second",
        (
            more("one by one", "enqueue 2,000 one by one, jobs/s"),
            more("in bulk", "enqueue 20,000 in bulk, jobs/s"),
        ),
        "enqueue",
        (0, 1),
    ),
    Section(
        "Draining no-ops, per second",
        (
            more("20,000, 1 process", "drain 20,000 with 1 worker process, jobs/s"),
            more("2 processes", "drain 20,000 with 2 worker processes, jobs/s"),
            more("200,000, 1 process", "drain 200,000 with 1 worker process, jobs/s"),
            more("2 processes", "drain 200,000 with 2 worker processes, jobs/s"),
            more("1,000,000, 1 process", "drain 1,000,000 with 1 worker process, jobs/s"),
            more("2 processes", "drain 1,000,000 with 2 worker processes, jobs/s"),
        ),
        "drain",
        (0, 1),
    ),
    Section(
        "Kinds of handlers, drain of 20,000, per second",
        tuple(
            more(kind, f"drain 20,000 with {kind} handlers, jobs/s") for kind in ("async", "sync", "isolated")
        ),
    ),
    Section(
        "Pickup by an idle worker, ms",
        (less("p50", "pickup p50, ms"), less("p99", "pickup p99, ms")),
        "pickup",
        (0, 1),
    ),
    Section(
        "Insert and run at a fixed rate",
        (
            more("highest rate held, jobs/s", "highest rate held, jobs/s"),
            *(
                less(f"wait at {rate}/s {which}, ms", f"wait at {rate} jobs/s {which}, ms")
                for rate in ("250", "1,000", "4,000", "15,000", "25,000")
                for which in ("p50", "p99")
            ),
        ),
    ),
    Section(
        "Schedules due on the same minute",
        (
            less("1,000: late p50, ms", "lateness to the handler of 1,000 schedules p50, ms"),
            less("p99", "lateness to the handler of 1,000 schedules p99, ms"),
            less("missed", "1,000 schedules: missed"),
            less("10,000: late p50, ms", "lateness to the handler of 10,000 schedules p50, ms"),
            less("p99", "lateness to the handler of 10,000 schedules p99, ms"),
            less("missed", "10,000 schedules: missed"),
            less("two schedulers: doubled, of 200", "two schedulers, 100 schedules: doubled"),
        ),
        "lateness",
        (1, 4),
    ),
    Section(
        "kill -9 of a worker with jobs in hand",
        (
            less("held", "kill -9 of a worker: held"),
            less("all had run again after, s", "kill -9 of a worker: all had run again after, s"),
            less("not run again", "kill -9 of a worker: not run again"),
        ),
    ),
    Section(
        "What it takes",
        (
            less("idle worker, MB", "idle worker, MB"),
            less("after 20,000 jobs, MB", "worker after 20,000 jobs, MB"),
            less("idle worker, % of a core", "idle worker, % of a core"),
            less("its server", "server of an idle worker, % of a core"),
            less("worker CPU, µs a job", "drain 20,000 with 1 worker process, jobs/s: worker CPU µs a job"),
            less("server CPU", "drain 20,000 with 1 worker process, jobs/s: server CPU µs a job"),
            less("WAL, bytes a job", "WAL per job of 20,000, bytes"),
            less("commits a job", "commits per job of 20,000"),
            less("dead rows a job", "dead rows per job of 20,000"),
        ),
    ),
)

COMPARED = tuple(
    column
    for section in SECTIONS[:6]
    for column in section.columns
    if column.head not in ("missed", "two schedulers: doubled, of 200")
)
