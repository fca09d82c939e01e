"""Limits: the limit keys, the jobs that hold them, and the jobs that wait for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from mainspring.model.limit import Admission, LimitKey, LimitKeyInfo
from mainspring.store.admitting import MOST_LINES, read, states_of
from mainspring.store.database import Database, Stamp, Transaction, reads


class Admitter(Protocol):
    """Admits jobs that wait for their limits. Each dialect does this in its own way, for speed."""

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        """As Limits.admit."""


class Places(Protocol):
    """Where jobs wait: the priority levels of queues, and the lines of limits. A new place is written before
    the jobs or schedules, in a separate transaction, because other processes may write the same place at that
    moment, and must not wait for each other."""

    async def lines(self, limit_keys: Iterable[tuple[LimitKey, ...]]) -> list[int | None]:
        """The line in which jobs wait for these limits; None for jobs without limits."""

    async def priority_levels(self, places: Collection[tuple[str, str, int]]) -> None:
        """Make sure that claims look for jobs of these queues, tasks and priorities."""


class Limits:
    """Limit keys that jobs with limits must pass."""

    def __init__(self, database: Database, admitter: Admitter) -> None:
        self._database, self._admitter = database, admitter

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        """Admit, in one transaction, the jobs for which their limits have room. One pass at a time runs in
        all processes. An admitted job can be claimed. Its place is free again when the job ends in any way,
        or waits for its limits again before a retry. `after` comes from the answer of the pass before."""
        return await self._admitter.admit(after=after, at=at)

    @reads
    async def keys(
        self,
        *,
        name: str | None = None,
        key: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
        holders: int,
    ) -> list[LimitKeyInfo]:
        """Limit keys by name and key, after the given limit key, each with the first `holders` of its
        admitted jobs."""
        after_name, after_key = after or ("", "")  # no name is empty, so all limit keys come after this

        async def work(tx: Transaction) -> list[LimitKeyInfo]:
            found = await tx.fetch(
                "all_limit_keys", name=name, key=key, after_name=after_name, after_key=after_key, limit=limit
            )
            return await _infos(tx, [row["id"] for row in found], holders)

        return await self._database.reading("keys", work)

    @reads
    async def keys_of(self, job_id: int, *, holders: int) -> list[LimitKeyInfo]:
        """The limit keys of one live job; an empty list for a job without limits."""

        async def work(tx: Transaction) -> list[LimitKeyInfo]:
            found = await tx.fetch("limit_keys_of_job", id=job_id)
            return await _infos(tx, read(found[0]["limit_keys"]), holders) if found else []

        return await self._database.reading("keys_of", work)


async def _infos(tx: Transaction, limit_key_ids: Sequence[int], most: int) -> list[LimitKeyInfo]:
    found = states_of(await tx.fetch("limit_keys", ids=list(limit_key_ids)))
    held: dict[int, list[int]] = defaultdict(list)
    for row in await tx.fetch("limit_key_holders", limit_key_ids=list(limit_key_ids), most=most):
        held[row["limit_key_id"]].append(row["job_id"])
    rows = await tx.fetch("limit_sets_of_keys", limit_key_ids=list(limit_key_ids))
    lines = {row["id"]: read(row["limit_keys"]) for row in rows}
    waiting: dict[int, int] = defaultdict(int)
    for row in await tx.fetch("count_waiting", limit_set_ids=sorted(lines), most=MOST_LINES):
        for limit_key_id in lines[row["limit_set_id"]]:
            waiting[limit_key_id] += row["waiting"]
    return [
        LimitKeyInfo(
            id=limit_key_id,
            limit_key=found[limit_key_id].limit_key,
            used=max(
                len(held[limit_key_id]), found[limit_key_id].used if len(held[limit_key_id]) == most else 0
            ),
            waiting=waiting[limit_key_id],
            holders=tuple(held[limit_key_id]),
        )
        for limit_key_id in limit_key_ids
    ]
