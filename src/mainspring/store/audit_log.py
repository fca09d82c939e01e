"""The audit log: entries are appended one after the other, and never change. Each entry contains the digest
of the entry before.

An order that is one transaction has one entry, which is committed in that transaction: `Signature`. All other
entries are appended in transactions of their own: `AuditLog.append`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.audit_log import AuditEntry, AuditFilter, NewAuditEntry
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.rows import moment, reader
from mainspring.waiting import whole

T = TypeVar("T")

START = bytes(32)
"""The digest that comes before the first entry."""
MOST = 500
"""The number of entries in one transaction, at most."""
_LAST = 2**63 - 1
_KIND = b"mainspring act 1\n"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_entry = reader(AuditEntry, order=lambda row: row["order_id"])


_signature: ContextVar[Signature | None] = ContextVar("mainspring_signature", default=None)


class AuditLog:
    """Orders, refusals and ends of orders.

    Entries are committed one after the other, and each commit waits for the disk. Calls of one process that
    wait at the same time share a transaction, so they wait for the disk once. Other processes wait for the
    row of the last entry.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._turn = asyncio.Lock()

    async def append(self, entries: Sequence[NewAuditEntry], *, at: Stamp) -> list[AuditEntry]:
        """Append entries, in order. They are durable on return."""
        if not entries:
            return []
        mine = _Waiting(entries, at)
        self._waiting.append(mine)
        try:
            async with self._turn:
                if not mine.done.done():
                    await whole(self._append_with_others(mine))
        except asyncio.CancelledError:
            with suppress(ValueError):  # another call writes these entries already
                self._waiting.remove(mine)
            if mine.done.done() and not mine.done.cancelled():
                mine.done.exception()  # the caller was cancelled: asyncio must not log the error
            raise
        return await mine.done

    @reads
    async def find(self, which: AuditFilter) -> list[AuditEntry]:
        """Orders and refusals, newest first. The end of an order is a separate entry: see `ends`."""
        statement, params = _page(which)
        return [_entry(row) for row in await self._database.fetch(statement, **params)]

    @reads
    async def ends(self, order_ids: Sequence[int]) -> dict[int, AuditEntry]:
        """The entries about the ends of these orders, by order. If an order is missing, its end is not
        known."""
        found = await self._database.fetch("audit_log_ends", ids=list(order_ids))
        return {row["order_id"]: _entry(row) for row in found}

    @reads
    async def after(self, entry_id: int, *, limit: int) -> list[AuditEntry]:
        """Every entry after this one in the order of the chain, to check it."""
        found = await self._database.fetch("audit_log_after", after=entry_id, limit=limit)
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
            # The database refuses one of the calls. The other calls must not fail for this reason.
            for each in group:
                try:
                    await self._write([each])
                except StoreError as own:
                    _fail([each], own)

    async def _write(self, group: Sequence[_Waiting]) -> None:
        async def work(tx: Transaction) -> list[list[AuditEntry]]:
            return await _appended(tx, [(each.entries, each.at) for each in group])

        written = await self._database.within("append_audit_log", work)
        for each, chained in zip(group, written, strict=True):
            if not each.done.done():
                each.done.set_result(chained)


class Signature:
    """The entry of an order that one transaction carries out. The transaction writes this entry last: other
    orders wait for the row of the last entry until the transaction ends, and a transaction that has this row
    must not wait for another."""

    def __init__(self, entry: Callable[[Any], NewAuditEntry], at: Stamp) -> None:
        self._entry, self._at = entry, at
        self.written = False
        """Whether the last transaction wrote the entry."""
        self.committed = False
        """Whether that transaction is known to be committed."""

    async def write(self, tx: Transaction, answer: object) -> None:
        """Append the entry of an order with this answer."""
        await _appended(tx, [([self._entry(answer)], self._at)])
        self.written = True


@contextmanager
def signed_with(signature: Signature) -> Iterator[None]:
    """Inside it, the transaction of the order writes this entry."""
    token = _signature.set(signature)
    try:
        yield
    finally:
        _signature.reset(token)


def signature() -> Signature | None:
    """The entry that the transaction of an order has to write; None where there is no entry to write."""
    return _signature.get()


async def carried_out(
    database: Database,
    what: str,
    work: Callable[[Any], Coroutine[Any, Any, T]],
    *,
    nested: bool = False,
    outcome: Callable[[T], object] = lambda answer: answer,
) -> T:
    """Do the work of an order as `Database.within` does, with the order's entry in the same transaction.
    `outcome` gives the answer of the order. An answer of None, False, 0 or an empty list means that nothing
    was changed: then no entry is written."""
    entry = signature()
    if entry is None:
        return await database.within(what, work, nested=nested)

    async def signed(tx: Transaction) -> T:
        entry.written = False
        answer = await work(tx)
        if said := outcome(answer):
            await entry.write(tx, said)
        return answer

    answer = await database.within(what, signed, nested=nested)
    entry.committed = entry.written
    return answer


async def carried_out_alone(
    database: Database, statement: str, read: Callable[[Sequence[Row]], T], **params: object
) -> T:
    """The same for an order that is one statement; `read` makes the answer from the rows."""
    if signature() is None:
        return read(await database.fetch(statement, **params))

    async def work(tx: Transaction) -> T:
        return read(await tx.fetch(statement, **params))

    return await carried_out(database, statement, work)


def digest_of(previous: bytes, entry: AuditEntry) -> bytes:
    """The digest of an entry that comes after the digest `previous`. The text is a JSON array of all fields
    in the order of the class, so two different entries never have the same text."""
    written = msgspec.json.encode(
        (
            entry.id,
            (entry.at - _EPOCH) // _MICROSECOND,
            entry.phase.value,
            entry.action,
            entry.actor,
            entry.role,
            entry.via,
            entry.object,
            entry.details.hex(),
            entry.order,
            entry.address,
        )
    )
    return hashlib.sha256(_KIND + previous + written).digest()


class _Waiting:
    """A call that waits for its entries to be written."""

    def __init__(self, entries: Sequence[NewAuditEntry], at: Stamp) -> None:
        self.entries, self.at = entries, at
        self.done: asyncio.Future[list[AuditEntry]] = asyncio.get_running_loop().create_future()


async def _appended(
    tx: Transaction, groups: Sequence[tuple[Sequence[NewAuditEntry], Stamp]]
) -> list[list[AuditEntry]]:
    """Append these entries after the last entry."""
    written: list[list[AuditEntry]] = []
    [head] = await tx.fetch("lock_head")
    last, digest = head["id"], head["digest"]
    for entries, at in groups:
        written.append(_chained(last, digest, entries, at or moment(head["now"])))
        last, digest = written[-1][-1].id, written[-1][-1].digest
    await tx.each("append_audit_log", [_params(entry) for entries in written for entry in entries])
    await tx.fetch("move_head", id=last, digest=digest)
    return written


def _chained(last_id: int, digest: bytes, entries: Sequence[NewAuditEntry], at: datetime) -> list[AuditEntry]:
    """New entries with their numbers and digests, after the last entry."""
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
    """The statement that reads a page with the most selective index, and its parameters."""
    page: dict[str, object] = {"before": which.before or _LAST, "limit": which.limit}
    if which.object is not None:
        return "audit_log_of_object", {
            **page,
            "object": which.object,
            "actor": which.actor,
            "action": which.action,
        }
    if which.actor is not None:
        return "audit_log_of_actor", {**page, "actor": which.actor, "action": which.action}
    if which.action is not None:
        return "audit_log_of_action", {**page, "action": which.action}
    return "audit_log_page", page
