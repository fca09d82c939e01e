"""Orders: every method that changes something writes an audit entry in the name of its actor.

An order that is one transaction of the store has one entry in the audit log, which is committed in that
transaction: the method passes the call of the store to `carried_out`. Any other order has an entry that is
committed before it begins, and another one when its end is known: `@order(…, several=True)`.

Every noun of `Admin` is written once, with methods that are awaited. `blocking` makes their
blocking forms.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
import pwd
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import msgspec

from mainspring.admin.redact import CUT, DEEPEST, MOST_NODES, Redaction
from mainspring.admin.views import iso
from mainspring.clock import Clock
from mainspring.config import Settings
from mainspring.duration import format_duration
from mainspring.entropy import Entropy
from mainspring.errors import AnswerLost, MainspringError, StoreError, UsageError
from mainspring.model.access import AccessRole, Actor
from mainspring.model.audit_log import AuditEntry, AuditPhase, NewAuditEntry
from mainspring.store.audit_log import AuditLog, Signature, signed_with
from mainspring.store.database import Stamp
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry
from mainspring.telemetry.traces import Tracer
from mainspring.waiting import whole

MOST_ITEMS = 1000
"""The most items of a list in an audit entry."""
MOST_BITS = 1024
"""The most bits of an integer in an audit entry."""
LARGEST_DETAILS = 64 * 1024
RESULT = "result"
"""The field of an entry's details that has the result, if the order is one transaction."""
LONGEST, LONGEST_MESSAGE = 200, 1000
_log = logging.getLogger("mainspring.audit_log")
N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
K = TypeVar("K", int, str)
Method = Callable[Concatenate[N, P], Coroutine[Any, Any, R]]
_under_way: ContextVar[OneTransaction | None] = ContextVar("mainspring_order", default=None)


class Blocking(Protocol):
    """Runs a coroutine for a caller that cannot await it."""

    def call(self, work: Callable[[], Coroutine[Any, Any, R]], *, instead: str) -> R:
        """Run it to its end; `instead` is what to write on an event loop."""


class Ending:
    """The result of an order for the audit log. The code that carries out the order sets it."""

    def __init__(self) -> None:
        self.details: object = {}


class OneTransaction(Ending):
    """The result of an order that is one transaction of the store."""

    def __init__(self, entry: Callable[[AuditPhase, object], NewAuditEntry], at: Stamp) -> None:
        super().__init__()
        self._entry, self._at = entry, at
        self.result: Callable[[Any], object] = lambda answer: {}
        """Makes the recorded result from the answer of the order."""
        self.committed = False
        """Whether the store has committed the order with its entry."""

    async def carried_out(
        self, call: Awaitable[S], answer: Callable[[S], R], said: Callable[[S], object] | None
    ) -> R:
        """The answer of the order, once the store has carried it out."""

        def result(found: S) -> object:
            return self.result(answer(found)) if said is None else plain(said(found))

        signature = Signature(lambda found: self._entry(AuditPhase.DONE, result(found)), self._at)
        try:
            with signed_with(signature):
                found = await call
            self.committed = signature.written
        except BaseException:
            self.committed = signature.committed
            raise
        return answer(found)


def order(
    action: str,
    *,
    about: Callable[..., object] | None = None,
    result: Callable[[Any], object] | None = None,
    several: bool | Callable[..., bool] = False,
) -> Callable[[Method[N, P, R]], Method[N, P, R]]:
    """A method that changes something: each call has an audit entry with this action. The object of the entry
    is the first argument, or the answer of `about` for the arguments. All other arguments are its details,
    except those that are None, False or empty. `result` makes the recorded result from the answer. A dry run
    changes nothing and is not recorded.

    The method is one transaction, which it passes to `carried_out`. Otherwise `several` is true, always or
    for these arguments: several transactions, or something outside the store. An enqueue is `several` too:
    programs enqueue at a high rate, and separate entries can share a transaction."""

    def decorate(method: Method[N, P, R]) -> Method[N, P, R]:
        signature = inspect.signature(method)
        named = (each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD)
        options = next(named, "")

        @functools.wraps(method)
        async def ordered(self: N, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.get("dry_run"):
                return await method(self, *args, **kwargs)
            given = dict(list(signature.bind(self, *args, **kwargs).arguments.items())[1:])
            given |= given.pop(options, {})
            is_several = several(**given) if callable(several) else several
            said, details = _asked(given, about)
            if is_several:
                async with self._context.recorded(action, object=said, details=details) as ending:
                    answer = await method(self, *args, **kwargs)
                    ending.details = on_record(answer)
                return answer
            async with self._context.recorded_at_once(action, object=said, details=details) as at_once:
                at_once.result = on_record
                answer = await method(self, *args, **kwargs)
                at_once.details = on_record(answer)
            return answer

        def on_record(answer: R) -> object:
            return {} if result is None else plain(result(answer))

        ordered.action = action  # type: ignore[attr-defined]
        ordered.several = several  # type: ignore[attr-defined]
        return ordered

    return decorate


def blocking(method: Method[N, P, R]) -> Callable[Concatenate[N, P], R]:
    """The blocking form of an awaited method: it returns when the method has ended."""
    instead = method.__name__

    @functools.wraps(method)
    def call(self: N, /, *args: P.args, **kwargs: P.kwargs) -> R:
        portal = self._context.blocking
        if portal is None:
            raise UsageError(f"this Admin belongs to an event loop; use `await {instead}()` instead")
        return portal.call(lambda: method(self, *args, **kwargs), instead=f"await {instead}()")

    call.__name__ = instead.removeprefix("a")
    call.__qualname__ = call.__qualname__.removesuffix(instead) + call.__name__
    return call


@overload
async def carried_out(call: Awaitable[S], *, said: Callable[[S], object] | None = None) -> S: ...
@overload
async def carried_out(
    call: Awaitable[S], answer: Callable[[S], R], *, said: Callable[[S], object] | None = None
) -> R: ...
async def carried_out(
    call: Awaitable[Any],
    answer: Callable[[Any], Any] = lambda found: found,
    *,
    said: Callable[[Any], object] | None = None,
) -> Any:
    """Carry out the current order by this call of the store, whose transaction also writes the entry.
    `answer` makes the answer of the order from the answer of the store. `said` makes the recorded result;
    without `said` the order's `result` makes it. Both may be called within the transaction."""
    order = _under_way.get()
    return answer(await call) if order is None else await order.carried_out(call, answer, said)


def action_of(method: object) -> str:
    """The action in the audit entries of an order."""
    action: str = method.action  # type: ignore[attr-defined]
    return action


class Noun:
    """Questions and orders about one noun."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    async def _store(self) -> Store:
        return await self._context.store()

    @property
    def _clock(self) -> Clock:
        return self._context.clock

    @property
    def _stamp(self) -> Stamp:
        return self._context.clock.stamp()

    @property
    def _author(self) -> str:
        return self._context.actor.name


class AdminContext:
    """One actor, and everything that its questions and orders need."""

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        *,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
        actor: Actor,
        redaction: Redaction,
        registry: Registry | None = None,
        tracer: Tracer | None = None,
        address: str = "",
        blocking: Blocking | None = None,
        unprepared: Callable[[], Awaitable[Store]] | None = None,
    ) -> None:
        self.store = store
        self.unprepared = unprepared or store
        """The store with any schema: `store` may refuse a schema that is not current."""
        self.clock, self.entropy, self.settings = clock, entropy, settings
        self.actor, self.address = actor, address
        self.registry = registry
        """The declarations of the app; None if no app was named."""
        self.redaction = redaction
        self.tracer = tracer
        self.blocking = blocking

    async def recorder(self) -> Recorder:
        """The writer of the audit log."""
        return Recorder((await self.store()).audit_log, self.clock, self.redaction)

    @asynccontextmanager
    async def recorded(
        self, action: str, *, object: object = "", details: object = None
    ) -> AsyncIterator[Ending]:
        """The body carries out an order of the actor after its entry is written."""
        recorder = await self.recorder()
        async with recorder.recorded(
            self.actor, action, object=object, details=details, address=self.address
        ) as ending:
            yield ending

    @asynccontextmanager
    async def recorded_at_once(
        self, action: str, *, object: object = "", details: object = None
    ) -> AsyncIterator[OneTransaction]:
        """The body carries out an order of the actor that is one transaction of the store."""
        recorder = await self.recorder()
        async with recorder.recorded_at_once(
            self.actor, action, object=object, details=details, address=self.address
        ) as ending:
            yield ending


class Recorder:
    """Writes the audit log of one store."""

    def __init__(self, log: AuditLog, clock: Clock, redaction: Redaction | None = None) -> None:
        self._log, self._clock = log, clock
        self._redaction = redaction or Redaction()

    @asynccontextmanager
    async def recorded(
        self, actor: Actor, action: str, *, object: object = "", details: object = None, address: str = ""
    ) -> AsyncIterator[Ending]:
        """For an order that is more than one transaction, or that does something outside the store. The body
        carries out the order after its entry is on disk. If the entry cannot be written, the body does not
        run. An error of the body is recorded as the failure. If the body is cancelled, or an answer of the
        store was lost, the outcome is not known and no end is written: the order stays in doubt."""
        order = self._entry(AuditPhase.ORDERED, actor, action, object, details, address)
        [entry] = await self._append(order)
        ending = Ending()
        try:
            yield ending
        except AnswerLost:
            raise
        except Exception as error:
            await self._end(entry, AuditPhase.FAILED, _what(error))
            raise
        await self._end(entry, AuditPhase.DONE, ending.details)

    @asynccontextmanager
    async def recorded_at_once(
        self, actor: Actor, action: str, *, object: object = "", details: object = None, address: str = ""
    ) -> AsyncIterator[OneTransaction]:
        """For an order that is one transaction of the store. The body passes the call of the store to
        `carried_out`: the transaction commits the change and its entry, or neither. An order that changes
        nothing, and an error of the body, are recorded afterwards. If the body is cancelled, or the answer of
        the store was lost, the log has the entry if the order was carried out, and no entry if it was not."""
        asked = self._entry(AuditPhase.ORDERED, actor, action, object, details, address)

        def entry(phase: AuditPhase, result: Any) -> NewAuditEntry:
            about = asked.details.removesuffix(b"}") + (b"" if asked.details == b"{}" else b",")
            details = b'%s"%s":%s}' % (about, RESULT.encode(), self._redaction.details(result))
            return msgspec.structs.replace(asked, phase=phase, details=details)

        order = OneTransaction(entry, self._clock.stamp())
        token = _under_way.set(order)
        try:
            yield order
        except AnswerLost:
            raise
        except Exception as error:
            if not order.committed:
                await self._append_last(entry(AuditPhase.FAILED, _what(error)))
            raise
        finally:
            _under_way.reset(token)
        if not order.committed:
            await self._append_last(entry(AuditPhase.DONE, order.details))

    async def refused(
        self, actor: Actor, action: str, *, object: object = "", details: object = None, address: str = ""
    ) -> None:
        """Record an order that the actor may not give."""
        await self._append(self._entry(AuditPhase.REFUSED, actor, action, object, details, address))

    def _entry(
        self, phase: AuditPhase, actor: Actor, action: str, of: object, details: object, address: str
    ) -> NewAuditEntry:
        about: dict[str, object] = {} if details is None else {"asked": details}
        if actor.token_id is not None:
            about["token_id"] = actor.token_id
        if actor.session_id is not None:
            about["session_id"] = actor.session_id
        return NewAuditEntry(
            phase=phase,
            action=action,
            actor=_clean(actor.name),
            role=actor.role.value,
            via=actor.via,
            object=_clean(self._redaction.text(str(of))),
            details=self._redaction.details(about),
            address=_clean(address),
        )

    async def _append(self, entry: NewAuditEntry) -> list[AuditEntry]:
        return await whole(self._log.append([entry], at=self._clock.stamp()))

    async def _end(self, order: AuditEntry, phase: AuditPhase, details: object) -> None:
        end = NewAuditEntry(
            phase=phase,
            action=order.action,
            actor=order.actor,
            role=order.role,
            via=order.via,
            object=order.object,
            details=self._redaction.details(details),
            order=order.id,
            address=order.address,
        )
        await self._append_last(end)

    async def _append_last(self, end: NewAuditEntry) -> None:
        try:
            await self._append(end)
        except StoreError as error:
            # The order is done, or has failed, also without this entry: the caller gets its answer or error.
            number = "" if end.order is None else f" {end.order}"
            _log.error("order%s (%s): its end is not on record: %s", number, end.action, error)


def one_or_more(given: K | Sequence[K]) -> list[K]:
    """The given id or name, or several, as a list without repetitions."""
    if isinstance(given, str | int):
        return [given]
    return list(dict.fromkeys(given))


def login_name() -> str:
    """The name of the user in the operating system, not in the environment."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run under a number that has no name
        return f"uid {number}"


def local_actor(name: str | None = None, *, via: str) -> Actor:
    """The actor of a command or a program on this machine. Its user has the password of the database, so the
    actor may do everything."""
    return Actor(name=name or login_name(), role=AccessRole.ADMIN, via=via)


def plain(value: object) -> object:
    """A value in the form of the audit log. This function accepts every value; the order checks values."""
    return _Copy().of(value, 0)


def _asked(given: dict[str, Any], about: Callable[..., object] | None) -> tuple[object, object]:
    if about is not None:
        said = about(**given)
    else:
        first = next(iter(given), "")
        said = given.get(first, "")
        if isinstance(said, str | int) and not isinstance(said, bool):
            del given[first]
        else:
            one_line = isinstance(said, Sequence | Set) and all(isinstance(each, str | int) for each in said)
            said = " ".join(map(str, said)) if one_line else ""
    details = {
        name: plain(each) for name, each in given.items() if not _is_empty(each) and not callable(each)
    }
    length = len(json.dumps(details))
    return said, details if length <= LARGEST_DETAILS else f"[{length} bytes]"


def _is_empty(value: object) -> bool:
    return value is None or value is False or (isinstance(value, Sequence | Set | Mapping) and not value)


def _what(error: Exception) -> dict[str, object]:
    """Our own errors with their message. The text of other errors may contain data of a client."""
    what: dict[str, object] = {"error": type(error).__name__}
    if isinstance(error, MainspringError):
        what["message"] = str(error)[:LONGEST_MESSAGE]
    elif isinstance(code := getattr(error, "code", None), str):
        what["code"] = code
    return what


def _clean(text: str) -> str:
    """One line of text that every database accepts."""
    text = _encodable(text[:LONGEST])
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def _encodable(text: str) -> str:
    """Without lone surrogates, which no client can read."""
    return text.encode("utf-8", "replace").decode()


class _Copy:
    """Copies one value, with a bounded number of nodes."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def of(self, value: object, depth: int) -> object:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return CUT
        match value:
            case None | bool():
                return value
            case Enum():
                return value.value
            case str():
                return _encodable(value)
            case float():
                return value if isfinite(value) else str(value)
            case int():
                return value if value.bit_length() <= MOST_BITS else f"[{value.bit_length()} bits]"
            case bytes() | bytearray() | memoryview():
                return f"[{len(value)} bytes]"
            case datetime():
                return iso(value)
            case timedelta():
                return format_duration(value)
            case _:
                return self._of_many(value, depth + 1)

    def _of_many(self, value: object, depth: int) -> object:
        match value:
            case msgspec.Struct():
                fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
                return {name: self.of(each, depth) for name, each in fields if not _is_empty(each)}
            case Mapping():
                return {
                    _encodable(str(name)): self.of(each, depth)
                    for name, each in islice(value.items(), MOST_ITEMS)
                }
            case Sequence() | Set():
                listed = [self.of(each, depth) for each in islice(value, MOST_ITEMS)]
                return listed if len(value) <= MOST_ITEMS else [*listed, f"[{len(value)} in all]"]
            case _:
                return f"[{type(value).__name__}]"
