"""How the whole stands, in one look at the store, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.clock import Clock
from mainspring.duration import written
from mainspring.model.fleet import Role
from mainspring.model.history import DeadFilter
from mainspring.model.value import Value
from mainspring.ops.queues import QueueInfo, Queues, queue_view
from mainspring.ops.views import View, iso
from mainspring.store.ports import Store

COUNTED = 1000
"""Dead letters and triggers are counted up to here."""
WAITED_LONG = timedelta(minutes=5)
OVERDUE = timedelta(minutes=1)
GROWTH = timedelta(hours=1)


class Status(Value, frozen=True, kw_only=True):
    """One look."""

    at: datetime
    """By the store's clock."""
    workers: int
    schedulers: int
    queues: tuple[QueueInfo, ...]
    overdue: int
    """Triggers that should have fired more than a minute ago; counted up to a bound."""
    lag: timedelta
    """How late the latest trigger is."""
    dead: int
    """Dead letters; counted up to a bound."""
    dead_lately: int
    """Those of the last hour."""


class Kind(StrEnum):
    """What can be wrong."""

    NO_SCHEDULER = "no_scheduler"
    OVERDUE = "overdue"
    NO_WORKER = "no_worker"
    WAITING = "waiting"
    DEAD = "dead"


class Trouble(Value, frozen=True, kw_only=True):
    """One thing that is wrong, in a sentence."""

    kind: Kind
    subject: str
    sentence: str


async def look(store: Store, clock: Clock) -> Status:
    """Ask the store. Every question is bounded, but for the depth of the queues."""
    at = clock.stamp()
    now, due = await store.due_specs(limit=COUNTED, at=at)
    members = [each for each in await store.members(at=at) if each.alive]
    return Status(
        at=now,
        workers=sum(each.role is Role.WORKER for each in members),
        schedulers=sum(each.role is Role.SCHEDULER for each in members),
        queues=tuple(await Queues(store, clock).all()),
        overdue=sum(now - each.next_at > OVERDUE for each in due),
        lag=max(now - due[0].next_at, timedelta()) if due else timedelta(),
        dead=await store.count_dead(DeadFilter(limit=COUNTED)),
        dead_lately=await store.count_dead(DeadFilter(died_from=now - GROWTH, limit=COUNTED)),
    )


def troubles(status: Status) -> list[Trouble]:
    """What is wrong, the worst first."""
    return [*_schedules(status), *_queues(status), *_dead(status)]


def _schedules(status: Status) -> list[Trouble]:
    if not status.overdue:
        return []
    many = _bounded(status.overdue)
    late = f"{many} triggers are overdue, the latest by {short(status.lag)}"
    if not status.schedulers:
        return [
            Trouble(kind=Kind.NO_SCHEDULER, subject="scheduler", sentence=f"no scheduler is alive; {late}")
        ]
    return [Trouble(kind=Kind.OVERDUE, subject="scheduler", sentence=late)]


def _queues(status: Status) -> list[Trouble]:
    found = []
    for queue in status.queues:
        if not queue.ready or queue.pause is not None:
            continue
        if not queue.workers:
            sentence = f"queue {queue.name}: {queue.ready} jobs are ready and no worker serves it"
            found.append(Trouble(kind=Kind.NO_WORKER, subject=queue.name, sentence=sentence))
        elif (waited := age(queue, status.at)) > WAITED_LONG:
            sentence = f"queue {queue.name}: a job has been ready for {short(waited)}"
            found.append(Trouble(kind=Kind.WAITING, subject=queue.name, sentence=sentence))
    return found


def _dead(status: Status) -> list[Trouble]:
    if not status.dead_lately:
        return []
    sentence = (
        f"{_bounded(status.dead_lately)} jobs died within {written(GROWTH)}; see `mainspring dead list`"
    )
    return [Trouble(kind=Kind.DEAD, subject="dead", sentence=sentence)]


def age(queue: QueueInfo, now: datetime) -> timedelta:
    """How long the oldest ready job has waited."""
    return timedelta() if queue.oldest_ready_at is None else max(now - queue.oldest_ready_at, timedelta())


def status_view(status: Status, found: Sequence[Trouble]) -> View:
    """The whole, for JSON."""
    return {
        "at": iso(status.at),
        "ok": not found,
        "troubles": [
            {"kind": each.kind, "subject": each.subject, "sentence": each.sentence} for each in found
        ],
        "workers": status.workers,
        "schedulers": status.schedulers,
        "lag_seconds": status.lag.total_seconds(),
        "overdue": status.overdue,
        "dead": status.dead,
        "dead_last_hour": status.dead_lately,
        "queues": [
            {**queue_view(queue), "oldest_ready_seconds": age(queue, status.at).total_seconds()}
            for queue in status.queues
        ],
    }


def short(length: timedelta) -> str:
    """A length of time, to the second."""
    return written(timedelta(seconds=int(length.total_seconds())))


def _bounded(count: int) -> str:
    return f"at least {count}" if count >= COUNTED else str(count)
