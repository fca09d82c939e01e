"""Numbers for the names of queues and tasks, and the priority levels that exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mainspring.model.job import NewJob
from mainspring.store.postgres.connection import Database, Transaction


class Names:
    """A cache of names: a written name keeps its number, unless a failover loses it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue_ids: dict[str, int] = {}
        self._task_ids: dict[str, int] = {}
        self._queues: dict[int, str] = {}
        self._tasks: dict[int, str] = {}
        self._lanes: set[tuple[int, int]] = set()
        self._read_in = database.lives.count
        """The life in which all names were read. In another life they are read again. The old
        names stay until then, because a call under way may need them."""
        for known in (self._queue_ids, self._task_ids, self._lanes):
            database.lives.on_change(known.clear)

    async def queue_ids(self, names: Iterable[str]) -> list[int]:
        """Numbers of these queues. New names are written."""
        return await self._ids("queues", self._queue_ids, self._queues, list(names))

    async def task_ids(self, names: Iterable[str]) -> list[int]:
        """Numbers of these tasks. New names are written."""
        return await self._ids("tasks", self._task_ids, self._tasks, list(names))

    async def ensure_priority_levels(self, lanes: set[tuple[int, int]]) -> None:
        """Make sure a claim will look at these (queue, priority) pairs."""
        missing = sorted(lanes - self._lanes)
        if missing:
            await self._database.fetch(
                "add_priority_levels", queue_ids=[q for q, _ in missing], priorities=[p for _, p in missing]
            )
            self._lanes.update(missing)

    def place(self, job: NewJob) -> tuple[int, int] | None:
        """The numbers of the queue and the task of a job, if they and its priority level are cached."""
        queue_id, task_id = self._queue_ids.get(job.queue), self._task_ids.get(job.task)
        if queue_id is None or task_id is None or (queue_id, job.priority) not in self._lanes:
            return None
        return queue_id, task_id

    async def learn(
        self, queue_ids: Iterable[int], task_ids: Iterable[int], *, within: Transaction | None = None
    ) -> None:
        """Make sure that the names of these numbers are cached; other processes may have written them. A
        caller in a transaction passes it as `within`, because a wait for a second session might never end."""
        if self._is_old or not (
            self._queues.keys() >= set(queue_ids) and self._tasks.keys() >= set(task_ids)
        ):
            await self.refresh(within=within)

    async def know(
        self, queues: Iterable[str], tasks: Iterable[str], *, within: Transaction | None = None
    ) -> None:
        """Make sure that the numbers of these names, which are on record, are cached."""
        if self._is_old or not (
            self._queue_ids.keys() >= set(queues) and self._task_ids.keys() >= set(tasks)
        ):
            await self.refresh(within=within)

    async def refresh(self, *, within: Transaction | None = None) -> None:
        """Read every name on record."""
        life = self._database.lives.count
        for row in await (within or self._database).fetch("all_names"):
            known = (
                (self._queue_ids, self._queues) if row["kind"] == "queue" else (self._task_ids, self._tasks)
            )
            known[0][row["name"]] = row["id"]
            known[1][row["id"]] = row["name"]
        self._read_in = life

    def queue(self, queue_id: int) -> str:
        """The name of a cached number."""
        return self._queues[queue_id]

    def task(self, task_id: int) -> str:
        """The name of a cached number."""
        return self._tasks[task_id]

    def known_queue(self, name: str | None) -> int | None:
        """The number of a queue, or None when there is no such queue."""
        return None if name is None else self._queue_ids.get(name)

    def known_task(self, name: str | None) -> int | None:
        """The number of a task, or None when there is no such task."""
        return None if name is None else self._task_ids.get(name)

    @property
    def _is_old(self) -> bool:
        return self._read_in != self._database.lives.count

    async def _ids(
        self, table: str, ids: dict[str, int], names: dict[int, str], wanted: Sequence[str]
    ) -> list[int]:
        found = {name: ids[name] for name in wanted if name in ids}
        missing = sorted(set(wanted) - found.keys())
        if missing:
            rows = await self._database.fetch(table, names=missing)
            if len(rows) < len(missing):
                await self._database.fetch(f"add_{table}", names=missing)
                rows = await self._database.fetch(table, names=missing)
            for row in rows:
                found[row["name"]] = ids[row["name"]] = row["id"]
                names[row["id"]] = row["name"]
        return [found[name] for name in wanted]
