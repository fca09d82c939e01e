"""What was ordered, put on record before it is done and once more when its end is known."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, InvalidArgument, MainspringError, StoreError
from mainspring.model.access import Actor
from mainspring.model.audit_log import AuditEntry, AuditFilter, AuditPhase, NewAuditEntry
from mainspring.model.value import Value
from mainspring.ops.access.redact import Redaction
from mainspring.ops.views import View, iso
from mainspring.store.audit_log import START, digest_of
from mainspring.store.ports import Store
from mainspring.waiting import whole

IN_DOUBT = "in doubt"
LARGEST_PAGE = 1000
LONGEST, LONGEST_MESSAGE = 200, 1000
_log = logging.getLogger("mainspring.acts")


class Told(Value, frozen=True, kw_only=True):
    """One act: the entry that began it and, once known, the one that tells its end."""

    entry: AuditEntry
    end: AuditEntry | None

    @property
    def outcome(self) -> str:
        """done, failed, refused; in doubt while nothing tells its end: it is under way, or whoever carried
        it out died over it or could not learn what came of it."""
        if self.entry.phase is not AuditPhase.ORDERED:
            return self.entry.phase.value
        return IN_DOUBT if self.end is None else self.end.phase.value


class Verified(Value, frozen=True, kw_only=True):
    """Whether the chain holds, up to its head, and which entry is the first that does not."""

    entries: int
    """How many hold, from the first on."""
    head: bytes
    """The digest of the last of them: kept elsewhere, it proves later that none of them was changed."""
    bad_id: int | None = None
    why: str = ""

    @property
    def sound(self) -> bool:
        return self.bad_id is None


class Ending:
    """What came of an act, for whoever carries it out to say. Whatever is said is redacted."""

    def __init__(self, order: AuditEntry) -> None:
        self.order = order
        self.details: object = {}
        self.failed = False
        """For those who answer a failure instead of raising it."""


class Acts:
    """The audit log of one store."""

    def __init__(
        self, store: Store, clock: Clock, redaction: Redaction | None = None, *, page: int = LARGEST_PAGE
    ) -> None:
        self._log, self._clock, self._page = store.audit_log, clock, page
        self._redaction = redaction or Redaction()

    @asynccontextmanager
    async def recorded(
        self, actor: Actor, act: str, *, target: object = "", details: object = None, address: str = ""
    ) -> AsyncIterator[Ending]:
        """The body carries out the act, after the order is on the disk: if that cannot be, it does not run.
        What it raises is on record as its failure. When it is cut short, or an answer of the store was lost,
        nobody knows, and no end is written: the act stays in doubt."""
        order = self._entry(AuditPhase.ORDERED, actor, act, target, details, address)
        [entry] = await self._append(order)
        ending = Ending(entry)
        try:
            yield ending
        except AnswerLost:
            raise
        except Exception as error:
            await self._end(entry, AuditPhase.FAILED, _what(error))
            raise
        await self._end(entry, AuditPhase.FAILED if ending.failed else AuditPhase.DONE, ending.details)

    async def refused(
        self, actor: Actor, act: str, *, target: object = "", details: object = None, address: str = ""
    ) -> None:
        """Somebody asked for what they may not."""
        await self._append(self._entry(AuditPhase.REFUSED, actor, act, target, details, address))

    async def find(self, which: AuditFilter) -> list[Told]:
        """Acts, newest first, each with its end."""
        if not 1 <= which.limit <= LARGEST_PAGE:
            raise InvalidArgument("limit", which.limit, f"a whole number from 1 to {LARGEST_PAGE}")
        entries = await self._log.find(which)
        orders = [each.id for each in entries if each.phase is AuditPhase.ORDERED]
        ends = await self._log.ends(orders) if orders else {}
        return [Told(entry=each, end=ends.get(each.id)) for each in entries]

    async def verify(self, *, known: tuple[int, bytes] | None = None) -> Verified:
        """Walk the whole chain. `known` is the id and the digest of an entry, as an earlier check told it:
        without one, a log that somebody wrote anew from the first entry on looks like any other."""
        head_id, head = await self._log.head()
        last, digest = 0, START
        while page := await self._log.after(last, limit=self._page):
            for entry in page:
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
        if last > (await self._log.head())[0]:
            return Verified(entries=last, head=digest, bad_id=last, why="it was not appended by a store")
        return Verified(entries=last, head=digest)

    def _entry(
        self, phase: AuditPhase, actor: Actor, act: str, target: object, details: object, address: str
    ) -> NewAuditEntry:
        about: dict[str, object] = {} if details is None else {"asked": details}
        if actor.token_id is not None:
            about["token_id"] = actor.token_id
        if actor.session_id is not None:
            about["session_id"] = actor.session_id
        return NewAuditEntry(
            phase=phase,
            act=act,
            actor=_clean(actor.name),
            role=actor.role.value,
            via=actor.via,
            target=_clean(self._redaction.text(str(target))),
            details=self._redaction.details(about),
            address=_clean(address),
        )

    async def _append(self, entry: NewAuditEntry) -> list[AuditEntry]:
        return await whole(self._log.append([entry], at=self._clock.stamp()))

    async def _end(self, order: AuditEntry, phase: AuditPhase, details: object) -> None:
        end = NewAuditEntry(
            phase=phase,
            act=order.act,
            actor=order.actor,
            role=order.role,
            via=order.via,
            target=order.target,
            details=self._redaction.details(details),
            order=order.id,
            address=order.address,
        )
        try:
            await self._append(end)
        except StoreError as error:
            # The act is done, or has failed, whatever the log says: its caller must hear that and not this.
            _log.error("act %d (%s): its end is not on record: %s", order.id, order.act, error)


def _what(error: Exception) -> dict[str, object]:
    """Our own errors say what they mean; what others say may hold whatever somebody sent."""
    what: dict[str, object] = {"error": type(error).__name__}
    if isinstance(error, MainspringError):
        what["message"] = str(error)[:LONGEST_MESSAGE]
    elif isinstance(code := getattr(error, "code", None), str):
        what["code"] = code
    return what


def _fault(entry: AuditEntry, last: int, digest: bytes) -> str:
    if entry.id != last + 1:
        return "it is missing"
    if entry.digest != digest_of(digest, entry):
        return "it was changed, or one before it was taken out"
    return ""


def _clean(text: str) -> str:
    """One line that every database takes."""
    text = text[:LONGEST].encode("utf-8", "replace").decode()
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def act_view(told: Told) -> View:
    """An act as programs read it."""
    entry, end = told.entry, told.end
    return {
        "id": entry.id,
        "at": iso(entry.at),
        "act": entry.act,
        "actor": entry.actor,
        "role": entry.role,
        "via": entry.via,
        "target": entry.target,
        "address": entry.address,
        "outcome": told.outcome,
        "details": _read(entry.details),
        "ended_at": None if end is None else iso(end.at),
        "result": None if end is None else _read(end.details),
    }


def _read(details: bytes) -> object:
    try:
        return msgspec.json.decode(details)
    except msgspec.DecodeError:  # written by somebody else: it is shown, and `verify` says the rest
        return details.decode("utf-8", "replace")


def verified_view(told: Verified) -> View:
    """What a check of the chain found, as programs read it."""
    return {
        "sound": told.sound,
        "entries": told.entries,
        "head": f"{told.entries}:{told.head.hex()}",
        "bad_id": told.bad_id,
        "why": told.why or None,
    }
