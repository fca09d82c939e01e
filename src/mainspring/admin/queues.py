"""Queues and limits: their waiting jobs; pause, resume and drain queues."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, Self

from msgspec import UNSET, UnsetType

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.duration import Duration, duration, format_duration
from mainspring.model.limit import LimitKey, LimitKeyInfo
from mainspring.model.process import Role
from mainspring.model.queue import QueueDepth, QueuePause
from mainspring.model.value import Value
from mainspring.store.database import Stamp
from mainspring.store.store import Store
from mainspring.tasks.checks import valid_name
from mainspring.waiting import pause as wait

LOOK_EVERY = timedelta(milliseconds=200)
HOLDERS = 20


class QueueInfo(Value, frozen=True, kw_only=True):
    """The current state of one queue."""

    name: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    oldest_ready_at: datetime | None = None
    workers: int = 0
    """Live workers that serve the queue."""
    pause: QueuePause | None = None
    about: bool = False
    """True if there are too many jobs to count: ready and delayed are estimates."""


class Queues(Noun):
    """Queues of one store."""

    async def aall(self, *, about: bool = False) -> list[QueueInfo]:
        """Every queue that has a job, a worker or a pause, by name; with `about`, long queues are
        estimated."""
        return await every_queue(await self._store(), about=about, at=self._stamp)

    async def adepth(self, *, about: bool = False) -> list[QueueDepth]:
        """Live jobs by queue and task; with `about`, long queues are estimated."""
        return await (await self._store()).queues.depth(at=self._stamp, about=about)

    async def arunning(self, name: str) -> int:
        """The number of running jobs of a queue."""
        return sum(each.running for each in await self.adepth() if each.queue == name)

    @order("queues.pause", result=lambda changed: {"changed": changed})
    async def apause(self, name: str, *, note: str | None = None) -> bool:
        """Stop claims from a queue; running jobs continue. False if the queue was already paused."""
        valid_name(name, "queue")
        store = await self._store()
        return await carried_out(store.queues.pause(name, author=self._author, note=note, at=self._stamp))

    @order("queues.resume", result=lambda changed: {"changed": changed})
    async def aresume(self, name: str) -> bool:
        """End the pause of a queue. False if the queue was not paused."""
        valid_name(name, "queue")
        return await carried_out((await self._store()).queues.resume(name))

    @order("queues.drain", result=lambda left: {"running": left}, several=True)
    async def adrain(self, name: str, *, within: Duration, note: str | None = None) -> int:
        """Pause a queue and wait until none of its jobs runs; answer how many still run at the end."""
        valid_name(name, "queue")
        longest, store = duration(within, "within", least=timedelta()), await self._store()
        await store.queues.pause(name, author=self._author, note=note, at=self._stamp)
        until = self._clock.monotonic() + longest.total_seconds()
        while (left := await self.arunning(name)) and self._clock.monotonic() < until:
            await wait(LOOK_EVERY)
        return left

    all = blocking(aall)
    depth = blocking(adepth)
    running = blocking(arunning)
    pause = blocking(apause)
    resume = blocking(aresume)
    drain = blocking(adrain)


class Limits(Noun):
    """Limits that jobs wait for."""

    async def afind(
        self, *, name: str | None = None, key: str | None = None, limit: int = 100, holders: int = HOLDERS
    ) -> list[LimitKeyInfo]:
        """Limit keys in order of name and key, each with the first jobs that hold its places."""
        return await (await self._store()).limits.keys(name=name, key=key, limit=limit, holders=holders)

    find = blocking(afind)


async def every_queue(store: Store, *, about: bool, at: Stamp) -> list[QueueInfo]:
    """Every queue that has a job, a worker or a pause, by name; with `about`, long queues are estimated."""
    depths: dict[str, list[QueueDepth]] = defaultdict(list)
    for depth in await store.queues.depth(at=at, about=about):
        depths[depth.queue].append(depth)
    processes = await store.processes.all(at=at)
    workers = [each for each in processes if each.alive and each.role is Role.WORKER]
    pauses = {each.queue: each for each in await store.queues.pauses()}
    names = {*depths, *pauses, *(queue for worker in workers for queue in worker.queues)}
    return [
        QueueInfo(
            name=name,
            ready=sum(each.ready for each in depths[name]),
            delayed=sum(each.delayed for each in depths[name]),
            running=sum(each.running for each in depths[name]),
            oldest_ready_at=min(filter(None, (each.oldest_ready_at for each in depths[name])), default=None),
            workers=sum(name in worker.queues for worker in workers),
            pause=pauses.get(name),
            about=any(each.about for each in depths[name]),
        )
        for name in sorted(names)
    ]


class QueueView(Value, frozen=True, kw_only=True):
    """The current state of one queue, as programs read it."""

    name: str
    ready: int
    delayed: int
    running: int
    oldest_ready_at: datetime | None
    workers: int
    about: bool | UnsetType = UNSET
    """Present if there are too many jobs to count: ready and delayed are estimates."""
    paused_at: datetime | None
    paused_by: str | None
    pause_note: str | None

    @classmethod
    def of(cls, queue: QueueInfo, **more: Any) -> Self:
        """Of a queue; `more` are the fields that a larger answer adds."""
        pause = queue.pause
        return cls(
            name=queue.name,
            ready=queue.ready,
            delayed=queue.delayed,
            running=queue.running,
            oldest_ready_at=queue.oldest_ready_at,
            workers=queue.workers,
            about=queue.about or UNSET,
            paused_at=None if pause is None else pause.paused_at,
            paused_by=None if pause is None else pause.paused_by,
            pause_note=None if pause is None else pause.note,
            **more,
        )


def limit_key_in_words(limit_key: LimitKey) -> str:
    """The numbers of a limit as text."""
    parts = []
    if limit_key.concurrency is not None:
        parts.append(f"{limit_key.concurrency} at once")
    if limit_key.rate is not None and limit_key.period is not None:
        parts.append(f"{limit_key.rate} in {format_duration(limit_key.period)}, {limit_key.burst} together")
    if limit_key.window is not None:
        parts.append("in turn")
    return ", ".join(parts)


def limit_key_name(limit_key: LimitKey) -> str:
    """The name of a limit, with its key if it has one."""
    return f"{limit_key.name}={limit_key.key}" if limit_key.key else limit_key.name


class LimitView(Value, frozen=True, kw_only=True):
    """The current state of one limit, as programs read it."""

    name: str
    key: str | None
    concurrency: int | None
    rate: float | None
    per: float | None
    burst: int | None
    fair: bool
    used: int
    waiting: int
    holders: tuple[int, ...]

    @classmethod
    def of(cls, info: LimitKeyInfo) -> Self:
        """Of a limit; `per` is in seconds."""
        limit_key = info.limit_key
        return cls(
            name=limit_key.name,
            key=limit_key.key or None,
            concurrency=limit_key.concurrency,
            rate=limit_key.rate,
            per=None if limit_key.period is None else limit_key.period.total_seconds(),
            burst=limit_key.burst if limit_key.rate is not None else None,
            fair=limit_key.window is not None,
            used=info.used,
            waiting=info.waiting,
            holders=info.holders,
        )


def in_the_way(infos: list[LimitKeyInfo]) -> str:
    """The limits that a job waits for, and the jobs that hold their places, as text."""
    full = [each for each in infos if _is_full(each)] or infos
    return "; ".join(
        f"{limit_key_name(each.limit_key)} ({limit_key_in_words(each.limit_key)}{_held(each)})"
        for each in full
    )


def _is_full(info: LimitKeyInfo) -> bool:
    return info.limit_key.concurrency is not None and info.used >= info.limit_key.concurrency


def _held(info: LimitKeyInfo) -> str:
    if not info.holders:
        return ""
    listed = ", ".join(map(str, info.holders))
    more = "" if info.used <= len(info.holders) else " and others"
    return f", held by {'job' if len(info.holders) == 1 else 'jobs'} {listed}{more}"
