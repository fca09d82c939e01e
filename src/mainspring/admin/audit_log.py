"""The audit log as operators read it: what actors ordered, and whether the chain of its entries holds."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

import msgspec

from mainspring.admin.order import RESULT, Noun, blocking
from mainspring.errors import InvalidArgument
from mainspring.model.audit_log import AuditEntry, AuditFilter, AuditPhase
from mainspring.model.value import Value
from mainspring.store.audit_log import START, digest_of

IN_DOUBT = "in doubt"
_ENDED = (AuditPhase.DONE, AuditPhase.FAILED)
LARGEST_PAGE = 1000
EVERYTHING = AuditFilter()


class RecordedOrder(Value, frozen=True, kw_only=True):
    """One order. `end` is the entry that says how it ended: of an order that was one transaction the same as
    `entry`, of any other order an entry of its own, once the end is known."""

    entry: AuditEntry
    end: AuditEntry | None

    @property
    def outcome(self) -> str:
        """done, failed or refused; in doubt while the end is not on record: the order is being carried out,
        or the process died over it, or the answer of the store was lost."""
        if self.entry.phase is AuditPhase.REFUSED:
            return self.entry.phase.value
        return IN_DOUBT if self.end is None else self.end.phase.value

    @property
    def asked(self) -> object:
        """What was ordered."""
        said = _read(self.entry.details)
        if self.end is not self.entry or not isinstance(said, dict):
            return said
        return {name: value for name, value in said.items() if name != RESULT}

    @property
    def result(self) -> object:
        """What came of it; None while that is not known."""
        if self.end is None:
            return None
        said = _read(self.end.details)
        return said.get(RESULT) if self.end is self.entry and isinstance(said, dict) else said


class Verified(Value, frozen=True, kw_only=True):
    """Whether the chain holds up to its head, and the first entry that does not."""

    entries: int
    """How many hold, from the first on."""
    head: bytes
    """The digest of the last of them: kept elsewhere, it proves later that none of them was changed."""
    bad_id: int | None = None
    why: str = ""

    @property
    def sound(self) -> bool:
        return self.bad_id is None


class AuditLog(Noun):
    """What actors ordered, and whether the record of it is whole."""

    async def afind(self, which: AuditFilter = EVERYTHING) -> list[RecordedOrder]:
        """Orders, newest first, each with its end."""
        if not 1 <= which.limit <= LARGEST_PAGE:
            raise InvalidArgument("limit", which.limit, f"a whole number from 1 to {LARGEST_PAGE}")
        log = (await self._store()).audit_log
        entries = await log.find(which)
        orders = [each.id for each in entries if each.phase is AuditPhase.ORDERED]
        ends = await log.ends(orders) if orders else {}
        return [
            RecordedOrder(entry=each, end=each if each.phase in _ENDED else ends.get(each.id))
            for each in entries
        ]

    async def averify(self, *, known: tuple[int, bytes] | None = None, page: int = LARGEST_PAGE) -> Verified:
        """Read the whole chain, a page at a time. `known` is the id and the digest of an entry, from an
        earlier check: without it, a log that was written anew from the first entry on looks like any
        other."""
        log = (await self._store()).audit_log
        head_id, head = await log.head()
        last, digest = 0, START
        while entries := await log.after(last, limit=page):
            for entry in entries:
                why = _fault(entry, last, digest)
                if not why and (entry.id, entry.digest) != (head_id, head) and entry.id == head_id:
                    why = "it is not the entry that was appended last"
                if not why and known is not None and entry.id == known[0] and entry.digest != known[1]:
                    why = "its digest is not the one that was known"
                if why:
                    return Verified(entries=last, head=digest, bad_id=last + 1, why=why)
                last, digest = entry.id, entry.digest
        if last < max(head_id, known[0] if known else 0):
            return Verified(entries=last, head=digest, bad_id=last + 1, why="it is missing")
        if last > (await log.head())[0]:
            return Verified(entries=last, head=digest, bad_id=last, why="it was not appended by a store")
        return Verified(entries=last, head=digest)

    find = blocking(afind)
    verify = blocking(averify)


class AuditEntryView(Value, frozen=True, kw_only=True):
    """An order as programs read it."""

    id: int
    at: datetime
    action: str
    actor: str
    role: str
    via: str
    object: str
    address: str
    outcome: str
    details: Any
    ended_at: datetime | None
    result: Any

    @classmethod
    def of(cls, action: RecordedOrder) -> Self:
        """Of an order, with its end where that is known."""
        entry, end = action.entry, action.end
        return cls(
            id=entry.id,
            at=entry.at,
            action=entry.action,
            actor=entry.actor,
            role=entry.role,
            via=entry.via,
            object=entry.object,
            address=entry.address,
            outcome=action.outcome,
            details=action.asked,
            ended_at=None if end is None else end.at,
            result=action.result,
        )


class VerifiedView(Value, frozen=True, kw_only=True):
    """What a check of the chain found."""

    sound: bool
    entries: int
    head: str
    bad_id: int | None
    why: str | None

    @classmethod
    def of(cls, found: Verified) -> Self:
        """Of a check; `head` is the number of entries and the last digest."""
        return cls(
            sound=found.sound,
            entries=found.entries,
            head=f"{found.entries}:{found.head.hex()}",
            bad_id=found.bad_id,
            why=found.why or None,
        )


def _read(details: bytes) -> object:
    try:
        return msgspec.json.decode(details)
    except msgspec.DecodeError:  # not written by a store: it is shown, and `verify` says so
        return details.decode("utf-8", "replace")


def _fault(entry: AuditEntry, last: int, digest: bytes) -> str:
    if entry.id != last + 1:
        return "it is missing"
    if entry.digest != digest_of(digest, entry):
        return "it was changed, or one before it was taken out"
    return ""
