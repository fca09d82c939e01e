"""Every exception that the package raises on purpose.

MainspringError
├── UsageError             fix the call, the code or the settings; retrying cannot help
│   ├── InvalidConfig      a setting: field, value, what is allowed
│   ├── InvalidArgument    an argument of a call: the same three facts
│   │   └── InvalidWorkflow  a graph of steps: the field names the workflow and the step
│   ├── UnknownTask        no task of that name is declared here
│   └── TargetNotFound     `module:attr` or a file that holds no app
├── NotFound               no such job, schedule or dead letter
├── DuplicateJob           its key is taken: the job that has it is named
├── KeyReused              the key of a request stands for another one: use a new key
├── Outdated               it was changed since it was read: read it again, then decide
├── JobFailed              the job that was waited for is dead
├── JobCancelled           the job that was waited for was cancelled
├── WaitTimeout            it has not ended in the time given; it goes on (a TimeoutError too)
├── EventTimeout           what a handler waited for did not come in time (a TimeoutError too)
├── ResultGone             it succeeded, but its result is no longer kept
├── StoreError             the database refused the call, or did not answer
│   ├── StoreUnavailable   it did not take the call: wait, then try again
│   ├── AnswerLost         it may have carried out the call: look it up, never guess
│   ├── SchemaMismatch     it is not at the version this code needs: migrate
│   ├── StoreFull          no room on its disk
│   └── Unreadable         a record that this version does not understand: use the one that wrote it
├── TargetError            a call, a command or a message did not come through
│   ├── TargetRefused      and never will: its job dies at once
│   ├── TargetUnavailable  this time: its job is tried again, not before `retry_after`
│   └── TargetInDoubt      or it may have: tried again only where that is harmless
├── ClaimLost              the job is, or may by now be, another run's: what was not committed is dropped
├── LeaseHeld              another holder has it: wait, or leave the work to that holder
└── LeaseLost              another holder has it, or may have it: drop the result
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import cast

_SHOWN = 120


class MainspringError(Exception):
    """Root of the tree; catch this to catch everything we raise on purpose."""


class UsageError(MainspringError):
    """The caller's code, call or settings are wrong."""


class InvalidConfig(UsageError):
    """A setting that cannot be accepted."""

    def __init__(self, field: str, got: object, expected: str, *, origin: str = "") -> None:
        where = f" ({origin})" if origin else ""
        super().__init__(f"{field}: expected {expected}, got {shown(got)}{where}")
        self.field, self.got, self.expected, self.origin = field, got, expected, origin


class InvalidArgument(UsageError):
    """An argument that cannot be accepted."""

    permanent = True
    """A job that ends with it is not tried again: the same arguments would be refused again."""

    def __init__(self, field: str, got: object, expected: str) -> None:
        super().__init__(f"{field}: expected {expected}, got {shown(got)}")
        self.field, self.got, self.expected = field, got, expected


class InvalidWorkflow(InvalidArgument):
    """A workflow that cannot be run as it is declared."""


class MoreThanOwn(InvalidArgument):
    """An actor tried to give more rights than it has."""


class UnknownTask(UsageError):
    """A task name that nothing in this process declares."""

    def __init__(self, name: str, known: tuple[str, ...] = ()) -> None:
        listed = f"; declared here: {', '.join(sorted(known))}" if known else ""
        super().__init__(f"task: no task named {shown(name)} is declared{listed}")
        self.name = name


class TargetNotFound(UsageError):
    """A `module:attr` or file path that does not lead to an app."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"app: {shown(target)}: {reason}")
        self.target = target


class NotFound(MainspringError):
    """A row that is not there."""

    def __init__(self, kind: str, name: object) -> None:
        by = "id" if isinstance(name, int) else "name"
        super().__init__(f"{kind}: there is none with the {by} {shown(name)}")
        self.kind, self.name = kind, name


class DuplicateJob(MainspringError):
    """A job whose key another job has; nothing was written."""

    def __init__(self, task: str, key: str, job_id: int, why: str = "") -> None:
        reason = f", and {why}" if why else ""
        super().__init__(f"key: {shown(key)} of task {task} is taken by job {job_id}{reason}")
        self.task, self.key, self.job_id = task, key, job_id


class KeyReused(MainspringError):
    """A request whose key its caller has used for something else; nothing was written."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key: {shown(key)} was used for another request; use a new one")
        self.key = key


class Outdated(MainspringError):
    """A row that is not what it was when the caller read it; nothing was written."""

    def __init__(self, kind: str, name: str, since: str) -> None:
        super().__init__(f"{kind} {shown(name)}: {since}; nothing was written, so look at it again")
        self.kind, self.name = kind, name


class JobFailed(MainspringError):
    """The job that was waited for is a dead letter; the error of its last run is in the message."""

    def __init__(
        self, job_id: int, *, reason: str = "failed", type: str = "", message: str = "", traceback: str = ""
    ) -> None:
        said = f": {type}: {message}" if type else ""
        super().__init__(f"job {job_id} is dead ({reason}){said}")
        self.job_id, self.reason = job_id, reason
        self.type, self.message, self.traceback = type, message, traceback


class JobCancelled(MainspringError):
    """The job that was waited for was cancelled."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"job {job_id} was cancelled")
        self.job_id = job_id


class WaitTimeout(MainspringError, TimeoutError):
    """A job has not ended in the time its caller would wait. The job goes on."""

    def __init__(self, job_id: int, seconds: float) -> None:
        super().__init__(f"job {job_id} has not ended within {seconds:g} s; it goes on")
        self.job_id, self.seconds = job_id, seconds


class EventTimeout(MainspringError, TimeoutError):
    """The event that a handler waited for did not come in time. That is on record: the same wait ends the
    same way in every later run, so a job that does not catch this is not tried again."""

    permanent = True

    def __init__(self, name: str, job_id: int) -> None:
        super().__init__(f"event {shown(name)} did not come in time for job {job_id}")
        self.name, self.job_id = name, job_id


class ResultGone(MainspringError):
    """A job that succeeded so long ago that its result was dropped (retention.results)."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"job {job_id} succeeded, but its result is no longer kept")
        self.job_id = job_id


class StoreError(MainspringError):
    """The database refused the call, or did not answer."""


class StoreUnavailable(StoreError):
    """The call had no effect; trying again later is right."""


class AnswerLost(StoreError):
    """The connection broke after the call was sent: it may or may not have happened."""

    def __init__(self, what: str, *, ids: tuple[int, ...] = (), session: object = None) -> None:
        shown_ids = f" (ids {ids[0]}..{ids[-1]})" if ids else ""
        super().__init__(f"{what}{shown_ids}: the answer was lost; it may or may not have happened")
        self.what, self.ids = what, ids
        self.session = session
        """The database session that was at it, as its adapter names it."""


class SchemaMismatch(StoreError):
    """The store's schema is not the one this code needs."""

    def __init__(self, found: int, needed: int, detail: str = "") -> None:
        advice = "use the version of mainspring that migrated it"
        if found != needed:
            advice = "run `mainspring db migrate`" if found < needed else "upgrade mainspring"
        extra = f": {detail}" if detail else ""
        super().__init__(f"store schema is at version {found}, this code needs {needed}{extra}; {advice}")
        self.found, self.needed = found, needed


class StoreFull(StoreError):
    """The store's disk is full; nothing was written."""


class Unreadable(StoreError):
    """A record that this version does not understand: a newer one wrote it, or it was damaged."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: this version cannot read it ({reason}); use the one that wrote it")
        self.what, self.reason = what, reason


class TargetError(MainspringError):
    """What a target did with a job. A worker reads the two attributes from any exception."""

    def __init__(
        self, message: str, *, permanent: bool = False, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        """Whether another attempt would be in vain, or do harm."""
        self.retry_after = retry_after
        """How long the target asked us to wait; None leaves it to the task's retry policy."""


class TargetRefused(TargetError):
    """The target, or our own guard, will not have it, however often it is asked."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)


class TargetUnavailable(TargetError):
    """It did not happen; another attempt may succeed."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message, retry_after=retry_after)


class TargetInDoubt(TargetError):
    """It was sent and no answer came: it may or may not have happened."""

    def __init__(self, message: str, *, harmless: bool) -> None:
        end = "" if harmless else "; not tried again, for a second time could do harm"
        super().__init__(f"{message}: it may or may not have happened{end}", permanent=not harmless)


class ClaimLost(MainspringError):
    """A job that is no longer this run's: its transaction was rolled back."""

    def __init__(self, job_id: int, fence: int, what: str) -> None:
        super().__init__(f"job {job_id}, claim {fence}: {what}; the job is another run's by now")
        self.job_id, self.fence = job_id, fence


class LeaseHeld(MainspringError):
    """A lease that another holder has, and kept for as long as the caller would wait."""

    def __init__(self, name: str, holder: str, until: datetime) -> None:
        moment = until.isoformat(timespec="milliseconds")
        super().__init__(f"lease {shown(name)}: held by {shown(holder)} until {moment}, unless renewed")
        self.name, self.holder, self.until = name, holder, until


class LeaseLost(MainspringError):
    """A lease that is no longer surely ours."""

    def __init__(self, name: str, token: int, reason: str) -> None:
        super().__init__(f"lease {shown(name)}, token {token}: lost, {reason}")
        self.name, self.token, self.reason = name, token, reason


def shown(value: object) -> str:
    """A value as it may appear in a message: escaped, and cut when long, before and not after it is
    written out: the value may be anything, and of any size."""
    try:
        room = iter(range(_SHOWN))
        text = ascii(value[: _SHOWN + 1]) if isinstance(value, str) else repr(_cut(value, room))
    except Exception:  # noqa: BLE001  repr() of a user's object is the user's code
        text = f"<{type(value).__name__}>"
    if len(text) <= _SHOWN:
        return text
    size = f" ({len(value)} characters)" if isinstance(value, str) else ""
    return f"{text[:_SHOWN]}…{size}"


def _cut(value: object, room: Iterator[int]) -> object:
    """The same value, or as much of it as there is room for."""
    kind = type(value)
    if next(room, None) is None:
        return ...
    if kind is int and cast("int", value).bit_length() > 4 * _SHOWN:
        return _Words(f"an integer of {cast('int', value).bit_length()} bits")
    if kind in (str, bytes, bytearray):
        return cast("str", value)[: _SHOWN + 1]
    if kind is dict:
        items = islice(cast("dict[object, object]", value).items(), _SHOWN)
        return {_cut(key, room): _cut(item, room) for key, item in items}
    if kind in (list, tuple, set, frozenset):
        make = cast("Callable[[Iterable[object]], object]", kind)
        return make(_cut(item, room) for item in islice(cast("Iterable[object]", value), _SHOWN))
    return value


class _Words(str):
    """Words that stand for a value: they are not quoted."""

    __slots__ = ()
    __repr__ = str.__str__
