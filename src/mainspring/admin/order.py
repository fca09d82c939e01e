"""Orders: what changes something is on record, in the name of the actor who ordered it.

Every noun of `Admin` is written once, with methods that are awaited. Their blocking twins are made by
`blocking`.
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
from datetime import datetime, timedelta
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

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
from mainspring.store.audit_log import AuditLog
from mainspring.store.database import Stamp
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry
from mainspring.telemetry.traces import Tracer
from mainspring.waiting import whole

MOST_ITEMS = 1000
"""Of a list, as many are put on record."""
MOST_BITS = 1024
"""Of a whole number."""
LARGEST_DETAILS = 64 * 1024
LONGEST, LONGEST_MESSAGE = 200, 1000
_log = logging.getLogger("mainspring.audit_log")

N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K", int, str)
Method = Callable[Concatenate[N, P], Coroutine[Any, Any, R]]


class Blocking(Protocol):
    """Runs a coroutine for a caller that cannot await it."""

    def call(self, work: Callable[[], Coroutine[Any, Any, R]], *, instead: str) -> R:
        """Run it to its end; `instead` is what to write on an event loop."""


class Ending:
    """What came of an order, as the code that carries it out says. It is redacted."""

    def __init__(self, order: AuditEntry) -> None:
        self.order = order
        self.details: object = {}


class Recorder:
    """Writes the audit log of one store."""

    def __init__(self, log: AuditLog, clock: Clock, redaction: Redaction | None = None) -> None:
        self._log, self._clock = log, clock
        self._redaction = redaction or Redaction()

    @asynccontextmanager
    async def recorded(
        self, actor: Actor, act: str, *, target: object = "", details: object = None, address: str = ""
    ) -> AsyncIterator[Ending]:
        """The body carries out the order once the order is on disk; where it cannot be written, the body does
        not run. An error of the body is on record as the failure. Where the body is cancelled, or an answer
        of the store was lost, the outcome is not known and no end is written: the order stays in doubt."""
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
        await self._end(entry, AuditPhase.DONE, ending.details)

    async def refused(
        self, actor: Actor, act: str, *, target: object = "", details: object = None, address: str = ""
    ) -> None:
        """An actor asked for what it may not do."""
        await self._append(self._entry(AuditPhase.REFUSED, actor, act, target, details, address))

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
            # The order is done, or has failed, whatever the log says: the caller must hear that and not this.
            _log.error("order %d (%s): its end is not on record: %s", order.id, order.act, error)


class AdminContext:
    """One actor, and what the questions and orders of this actor need."""

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
        """The store with the schema that it has: `store` may refuse one that is not current."""
        self.clock, self.entropy, self.settings = clock, entropy, settings
        self.actor, self.address = actor, address
        self.registry = registry
        """What the app declares; None where no app was named."""
        self.redaction = redaction
        self.tracer = tracer
        self.blocking = blocking

    async def recorder(self) -> Recorder:
        """The audit log, to be written to."""
        return Recorder((await self.store()).audit_log, self.clock, self.redaction)

    @asynccontextmanager
    async def recorded(
        self, act: str, *, object: object = "", details: object = None
    ) -> AsyncIterator[Ending]:
        """The body carries out an order of the actor, once the order is on record."""
        recorder = await self.recorder()
        async with recorder.recorded(
            self.actor, act, target=object, details=details, address=self.address
        ) as ending:
            yield ending


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


def order(
    act: str, *, about: Callable[..., object] | None = None, result: Callable[[Any], object] | None = None
) -> Callable[[Method[N, P, R]], Method[N, P, R]]:
    """A method that changes something: its call is on record as this act before it begins, and its end after
    it. The object of the act is the first argument, or what `about` says of the arguments; all other
    arguments are its details, without what is None, False or empty. `result` says what the end tells of the
    answer. A dry run changes nothing and is not recorded."""

    def decorate(method: Method[N, P, R]) -> Method[N, P, R]:
        signature = inspect.signature(method)
        named = (each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD)
        options = next(named, "")

        @functools.wraps(method)
        async def carried_out(self: N, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.get("dry_run"):
                return await method(self, *args, **kwargs)
            given = dict(list(signature.bind(self, *args, **kwargs).arguments.items())[1:])
            given |= given.pop(options, {})
            said, details = _asked(given, about)
            async with self._context.recorded(act, object=said, details=details) as ending:
                answer = await method(self, *args, **kwargs)
                ending.details = {} if result is None else plain(result(answer))
            return answer

        carried_out.act = act  # type: ignore[attr-defined]
        return carried_out

    return decorate


def act_of(method: object) -> str:
    """The act that an order is on record as."""
    act: str = method.act  # type: ignore[attr-defined]
    return act


def blocking(method: Method[N, P, R]) -> Callable[Concatenate[N, P], R]:
    """The twin of a method that is awaited: it blocks until the method has ended."""
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


def one_or_more(given: K | Sequence[K]) -> list[K]:
    """What was given, an id or a name or several, as a list without repetitions."""
    if isinstance(given, str | int):
        return [given]
    return list(dict.fromkeys(given))


def login_name() -> str:
    """The user as the operating system knows it, whatever the environment says."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run under a number that has no name
        return f"uid {number}"


def local_actor(name: str | None = None, *, via: str) -> Actor:
    """The actor of orders given on this machine, by a command or by a program's own code. Its user has the
    password of the database, and so may do everything."""
    return Actor(name=name or login_name(), role=AccessRole.ADMIN, via=via)


def plain(value: object) -> object:
    """A value as the audit log keeps it. None is refused here: what cannot be stored, the order refuses."""
    return _Copy().of(value, 0)


class _Copy:
    """Of one value, with as many nodes as may be on record."""

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
                return value
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
                return {str(name): self.of(each, depth) for name, each in islice(value.items(), MOST_ITEMS)}
            case Sequence() | Set():
                listed = [self.of(each, depth) for each in islice(value, MOST_ITEMS)]
                return listed if len(value) <= MOST_ITEMS else [*listed, f"[{len(value)} in all]"]
            case _:
                return f"[{type(value).__name__}]"


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
    """Our own errors say what they mean; what others say may hold whatever somebody sent."""
    what: dict[str, object] = {"error": type(error).__name__}
    if isinstance(error, MainspringError):
        what["message"] = str(error)[:LONGEST_MESSAGE]
    elif isinstance(code := getattr(error, "code", None), str):
        what["code"] = code
    return what


def _clean(text: str) -> str:
    """One line that every database takes."""
    text = text[:LONGEST].encode("utf-8", "replace").decode()
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
