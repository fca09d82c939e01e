"""The audit log for operators: the orders of actors, and the check of the chain of entries."""

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
    """One order. `end` is the entry that has its result. If the order was one transaction, `end` is `entry`.
    Any other order has a second entry, which is written when the end is known."""

    entry: AuditEntry
    end: AuditEntry | None

    @property
    def outcome(self) -> str:
        """done, failed or refused. It is in doubt while no end is recorded: the order is still running, its
        process died, or the answer of the store was lost."""
        if self.entry.phase is AuditPhase.REFUSED:
            return self.entry.phase.value
        return IN_DOUBT if self.end is None else self.end.phase.value

    @property
    def asked(self) -> object:
        """The arguments of the order."""
        said = _read(self.entry.details)
        if self.end is not self.entry or not isinstance(said, dict):
            return said
        return {name: value for name, value in said.items() if name != RESULT}

    @property
    def result(self) -> object:
        """The result of the order; None while it is not known."""
        if self.end is None:
            return None
        said = _read(self.end.details)
        return said.get(RESULT) if self.end is self.entry and isinstance(said, dict) else said


class Verified(Value, frozen=True, kw_only=True):
    """The result of a check of the chain: the number of correct entries, and the first wrong one."""

    entries: int
    """Correct entries, counted from the first."""
    head: bytes
    """The digest of the last correct entry. A copy elsewhere can prove later that no entry was changed."""
    bad_id: int | None = None
    why: str = ""

    @property
    def sound(self) -> bool:
        return self.bad_id is None


class AuditLog(Noun):
    """Questions about the audit log of one store."""

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
        """Read the whole chain, page by page. `known` is the id and the digest of an entry from an earlier
        check. Without `known`, this check accepts a log that was rewritten from its first entry on."""
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
        """Of an order, with its end if the end is known."""
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
    """The result of a check of the chain, as programs read it."""

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
    except msgspec.DecodeError:  # no store wrote this entry: it is shown, and `verify` reports it
        return details.decode("utf-8", "replace")


def _fault(entry: AuditEntry, last: int, digest: bytes) -> str:
    if entry.id != last + 1:
        return "it is missing"
    if entry.digest != digest_of(digest, entry):
        return "it was changed, or one before it was taken out"
    return ""
