"""Every exception the package raises on purpose, sorted by who must act.

MainspringError
├── UsageError             fix the call, the code or the settings; retrying cannot help
│   ├── InvalidConfig      a setting: field, value, what is allowed
│   ├── InvalidArgument    an argument of a call: the same three facts
│   ├── UnknownTask        no task of that name is declared here
│   └── TargetNotFound     `module:attr` or a file that holds no app
├── NotFound               no such job, schedule or dead letter
├── StoreError             the database said no
│   ├── StoreUnavailable   it did not take the call: wait, then try again
│   ├── AnswerLost         it may have taken the call: find out, never guess
│   ├── SchemaMismatch     it is not at the version this code needs: migrate
│   └── StoreFull          no room on its disk
├── ClaimLost              the job is, or may by now be, another run's: what was not committed is dropped
├── LeaseHeld              somebody else has it: wait, or leave it to them
└── LeaseLost              it is, or may by now be, somebody else's: drop the result
"""

from __future__ import annotations

from datetime import datetime

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

    def __init__(self, field: str, got: object, expected: str) -> None:
        super().__init__(f"{field}: expected {expected}, got {shown(got)}")
        self.field, self.got, self.expected = field, got, expected


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


class StoreError(MainspringError):
    """The database said no."""


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


class ClaimLost(MainspringError):
    """A job that is no longer this run's: its transaction was rolled back."""

    def __init__(self, job_id: int, fence: int, what: str) -> None:
        super().__init__(f"job {job_id}, claim {fence}: {what}; the job is another run's by now")
        self.job_id, self.fence = job_id, fence


class LeaseHeld(MainspringError):
    """A lease that somebody else has, and kept for as long as we would wait."""

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
    """A value as it may appear in a message: escaped, and cut when long."""
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
