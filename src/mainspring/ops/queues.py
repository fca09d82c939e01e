"""What operators ask and order of queues."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from mainspring.clock import Clock
from mainspring.declare.names import valid_name
from mainspring.model.fleet import Role
from mainspring.model.history import QueueDepth
from mainspring.model.queue import QueuePause
from mainspring.model.value import Value
from mainspring.ops.views import View, iso
from mainspring.store.ports import Store


class QueueInfo(Value, frozen=True, kw_only=True):
    """One queue as it stands."""

    name: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    oldest_ready_at: datetime | None = None
    workers: int = 0
    """Live workers that serve it."""
    pause: QueuePause | None = None
    about: bool = False
    """Too many to be counted: ready and delayed are estimates."""


class Queues:
    """Questions and orders about the queues of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def all(self, *, about: bool = False) -> list[QueueInfo]:
        """Every queue that has a job, a worker or a pause, by name; `about` for whoever cannot wait."""
        depths: dict[str, list[QueueDepth]] = defaultdict(list)
        for depth in await self._store.queues.depth(at=self._clock.stamp(), about=about):
            depths[depth.queue].append(depth)
        members = await self._store.processes.all(at=self._clock.stamp())
        workers = [each for each in members if each.alive and each.role is Role.WORKER]
        pauses = {each.queue: each for each in await self._store.queues.pauses()}
        names = {*depths, *pauses, *(queue for worker in workers for queue in worker.queues)}
        return [
            QueueInfo(
                name=name,
                ready=sum(each.ready for each in depths[name]),
                delayed=sum(each.delayed for each in depths[name]),
                running=sum(each.running for each in depths[name]),
                oldest_ready_at=min(
                    filter(None, (each.oldest_ready_at for each in depths[name])), default=None
                ),
                workers=sum(name in worker.queues for worker in workers),
                pause=pauses.get(name),
                about=any(each.about for each in depths[name]),
            )
            for name in sorted(names)
        ]

    async def pause(self, name: str, *, author: str, note: str | None = None) -> bool:
        """Claim nothing more from it; what runs goes on. False when it was paused already."""
        valid_name(name, "queue")
        return await self._store.queues.pause(name, author=author, note=note, at=self._clock.stamp())

    async def resume(self, name: str) -> bool:
        """Claim from it again; False when it was not paused."""
        valid_name(name, "queue")
        return await self._store.queues.resume(name)

    async def running(self, name: str) -> int:
        """How many of its jobs run now."""
        found = await self._store.queues.depth(at=self._clock.stamp())
        return sum(each.running for each in found if each.queue == name)


def queue_view(queue: QueueInfo) -> View:
    """One queue, for JSON."""
    return {
        "name": queue.name,
        "ready": queue.ready,
        "delayed": queue.delayed,
        "running": queue.running,
        "oldest_ready_at": iso(queue.oldest_ready_at),
        "workers": queue.workers,
        **({"about": True} if queue.about else {}),
        "paused_at": None if queue.pause is None else iso(queue.pause.paused_at),
        "paused_by": None if queue.pause is None else queue.pause.paused_by,
        "pause_note": None if queue.pause is None else queue.pause.note,
    }
