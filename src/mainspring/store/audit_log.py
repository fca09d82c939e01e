"""The audit log: entries are appended one after the other, each tied to the one before, and never change."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.audit_log import AuditEntry, AuditFilter, NewAuditEntry
from mainspring.store.database import Database, Stamp, Transaction
from mainspring.store.reads import reads
from mainspring.store.rows import moment, reader
from mainspring.waiting import whole

START = bytes(32)
"""The digest that the first entry is tied to."""
MOST = 500
"""Entries in one transaction."""
_LAST = 2**63 - 1
_KIND = b"mainspring act 1\n"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_entry = reader(AuditEntry, order=lambda row: row["order_id"])


class AuditLog:
    """Orders, refusals and how orders ended.

    Entries follow one another, so their commits do too, and each commit waits for the disk. Calls of one
    process that wait at the same time share a transaction: one wait for the disk for all of them. Other
    processes wait for the row of the last entry.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._turn = asyncio.Lock()

    async def append(self, entries: Sequence[NewAuditEntry], *, at: Stamp) -> list[AuditEntry]:
        """Append entries, in order. Durable on return."""
        if not entries:
            return []
        mine = _Waiting(entries, at)
        self._waiting.append(mine)
        try:
            async with self._turn:
                if not mine.done.done():
                    await whole(self._append_with_others(mine))
        except asyncio.CancelledError:
            with suppress(ValueError):  # another call has written it already
                self._waiting.remove(mine)
            if mine.done.done() and not mine.done.cancelled():
                mine.done.exception()  # nobody awaits it any more: asyncio must not log it
            raise
        return await mine.done

    @reads
    async def find(self, which: AuditFilter) -> list[AuditEntry]:
        """Orders and refusals, newest first. How an order ended is an entry of its own: `ends`."""
        statement, params = _page(which)
        return [_entry(row) for row in await self._database.fetch(statement, **params)]

    @reads
    async def ends(self, order_ids: Sequence[int]) -> dict[int, AuditEntry]:
        """The entries that say how these orders ended, by order. The end of a missing one is not known."""
        found = await self._database.fetch("act_ends", ids=list(order_ids))
        return {row["order_id"]: _entry(row) for row in found}

    @reads
    async def after(self, entry_id: int, *, limit: int) -> list[AuditEntry]:
        """Every entry after this one in the order of the chain, to check it."""
        found = await self._database.fetch("acts_after", after=entry_id, limit=limit)
        return [_entry(row) for row in found]

    @reads
    async def head(self) -> tuple[int, bytes]:
        """The id and the digest of the last entry; 0 and zeros before the first."""
        [row] = await self._database.fetch("head")
        return row["id"], row["digest"]

    async def _append_with_others(self, mine: _Waiting) -> None:
        self._waiting.remove(mine)
        group, count = [mine], len(mine.entries)
        while self._waiting and count + len(self._waiting[0].entries) <= MOST:
            group.append(self._waiting.pop(0))
            count += len(group[-1].entries)
        try:
            await self._write(group)
        except (StoreUnavailable, AnswerLost) as error:
            _fail(group, error)
        except StoreError as error:
            if len(group) == 1:
                _fail(group, error)
                return
            # The database refuses one of them, and the others must not fail for it.
            for each in group:
                try:
                    await self._write([each])
                except StoreError as own:
                    _fail([each], own)

    async def _write(self, group: Sequence[_Waiting]) -> None:
        async def work(tx: Transaction) -> list[list[AuditEntry]]:
            written: list[list[AuditEntry]] = []
            [head] = await tx.fetch("lock_head")
            last, digest = head["id"], head["digest"]
            for each in group:
                written.append(_chained(last, digest, each.entries, each.at or moment(head["now"])))
                last, digest = written[-1][-1].id, written[-1][-1].digest
            await tx.each("append_acts", [_params(entry) for entries in written for entry in entries])
            await tx.fetch("move_head", id=last, digest=digest)
            return written

        written = await self._database.within("append_acts", work)
        for each, chained in zip(group, written, strict=True):
            if not each.done.done():
                each.done.set_result(chained)


class _Waiting:
    """A call that waits for its entries to be written."""

    def __init__(self, entries: Sequence[NewAuditEntry], at: Stamp) -> None:
        self.entries, self.at = entries, at
        self.done: asyncio.Future[list[AuditEntry]] = asyncio.get_running_loop().create_future()


def digest_of(previous: bytes, entry: AuditEntry) -> bytes:
    """What an entry's digest must be after this one. A JSON array of all its fields, in the order of the
    class, is the one way to write it: no two entries read the same."""
    written = msgspec.json.encode(
        (
            entry.id,
            (entry.at - _EPOCH) // _MICROSECOND,
            entry.phase.value,
            entry.act,
            entry.actor,
            entry.role,
            entry.via,
            entry.target,
            entry.details.hex(),
            entry.order,
            entry.address,
        )
    )
    return hashlib.sha256(_KIND + previous + written).digest()


def _chained(last_id: int, digest: bytes, entries: Sequence[NewAuditEntry], at: datetime) -> list[AuditEntry]:
    """New entries as they follow the last one."""
    chained: list[AuditEntry] = []
    for number, new in enumerate(entries, start=last_id + 1):
        loose = AuditEntry(id=number, at=at, digest=b"", **msgspec.structs.asdict(new))
        digest = digest_of(digest, loose)
        chained.append(msgspec.structs.replace(loose, digest=digest))
    return chained


def _fail(group: Sequence[_Waiting], error: StoreError) -> None:
    for each in group:
        if not each.done.done():
            each.done.set_exception(error)


def _params(entry: AuditEntry) -> dict[str, object]:
    params = msgspec.structs.asdict(entry)
    params["order_id"] = params.pop("order")
    return {**params, "phase": entry.phase.value}


def _page(which: AuditFilter) -> tuple[str, dict[str, object]]:
    """The statement that answers a page by its narrowest index, and its parameters."""
    page: dict[str, object] = {"before": which.before or _LAST, "limit": which.limit}
    if which.target is not None:
        return "acts_of_target", {**page, "target": which.target, "actor": which.actor, "act": which.act}
    if which.actor is not None:
        return "acts_of_actor", {**page, "actor": which.actor, "act": which.act}
    if which.act is not None:
        return "acts_of_kind", {**page, "act": which.act}
    return "acts_page", page
