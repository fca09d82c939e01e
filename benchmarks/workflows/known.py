"""Who is measured beside us, with what, and what its figures stand for."""

from __future__ import annotations

from dataclasses import dataclass

LENGTH = 10
"""Of a chain."""


@dataclass(frozen=True)
class Workload:
    """As a peer's program names it."""

    name: str
    chained: bool = False

    def steps(self, size: int) -> int:
        return size * LENGTH if self.chained else size


@dataclass(frozen=True)
class Peer:
    """A system that is not ours."""

    name: str
    """Of its environment, too."""
    label: str
    server: str
    workloads: tuple[Workload, ...]
    terms: str
    """How durable it is, and what is unlike ours."""


DBOS = Peer(
    name="dbos",
    label="DBOS, PostgreSQL",
    server="postgresql",
    workloads=(
        Workload("fan-out of queued children"),
        Workload("chains of steps in one process", chained=True),
        Workload("chains of queued children", chained=True),
    ),
    terms=(
        "As durable as ours: PostgreSQL with fsync, at least one commit for each step. The fan-out is the "
        "one its documentation shows: a workflow enqueues every child on a queue, then reads every result, "
        "and each of these is recorded; any worker may run a child. A chain of its steps is one function in "
        "one process that records each step as it goes: less than ours does, since no other worker can take "
        "the next step. In a chain of queued children every step may run on any worker, as with ours. 100 "
        "workflows at once in a process; queues and results are polled every 50 ms (their default is 1 s)."
    ),
)

CELERY = Peer(
    name="celery",
    label="Celery, Valkey",
    server="redis",
    workloads=(Workload("chord over a group"), Workload("chains", chained=True)),
    terms=(
        "Less durable than ours: the server's append-only file is synced once a second, so a power cut "
        "loses up to a second of steps, and a message is acknowledged before it runs (Celery's default), so "
        "a killed worker loses those it holds. Every step is a message that any worker may take. A chord's "
        "members are written down by the client before it starts; ours come from a step's result. One task "
        "at once in a process (solo pool), 100 messages prefetched, results in the same server."
    ),
)

KNOWN = (DBOS, CELERY)
