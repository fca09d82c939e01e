"""Rows that cannot be read: the conditions that a row must meet.

Constraints refuse such rows, but there are other causes: older data, a constraint that was dropped, a damaged
file. One such row must not stop a queue, a pass or a page. So the row is moved, completely, into
`unreadable_rows`, and callers go on without it. The conditions are the same for both dialects: they are
written once, here, and each dialect makes its statements from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from mainspring.model.alert import NoteKind, NoteState, Severity
from mainspring.model.alert import Rule as AlertRule
from mainspring.model.job import Failure
from mainspring.model.process import Role
from mainspring.model.schedule import Change, Misfire, Overlap, Reprocess, Schedule, Skipped
from mainspring.model.workflow import Definition
from mainspring.store.codes import DISPOSITION, STEP, VERDICT, WORKFLOW

FIRST, LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""The range of moments with which Python can compute, with some room for zones and leases."""
LONGEST = timedelta(days=3_660_000)
INT, SMALL = 2**31 - 2, 2**15 - 2
"""The largest numbers that can still be increased by one."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_Micros = Annotated[
    int, msgspec.Meta(ge=(FIRST - _EPOCH) // timedelta.resolution, le=(LAST - _EPOCH) // timedelta.resolution)
]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions for the rows of one table, for columns that the store computes with or decodes."""

    key: tuple[str, ...]
    moments: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[int, int]] = {}
    fractions: tuple[str, ...] = ()
    words: Mapping[str, Sequence[object]] = {}
    named: tuple[str, ...] = ()
    """Columns in which PostgreSQL has the number of a queue or a task, and SQLite has its name."""
    rows: Mapping[str, str] = {}
    """Columns that name a row of another table."""
    failure: str = ""
    failures: str = ""
    documents: Mapping[str, str] = {}
    """Columns of JSON, and their kind in `DOCUMENTS`."""
    lists: Mapping[str, str] = {}
    """The same for columns that are JSON on SQLite only, or that have another kind there."""


_COUNTS = {"fence": (0, INT), "failures": (0, SMALL), "crashes": (0, SMALL), "max_attempts": (1, SMALL)}
TABLES: Mapping[str, Table] = {
    "processes": Table(
        key=("id",),
        moments=("started_at", "lease_until"),
        lengths=("skew", "lease"),
        words={"role": tuple(Role)},
        lists={"queues": "names", "tasks": "names", "holding": "numbers"},
    ),
    "lost_processes": Table(key=("id",), moments=("lost_at",), words={"role": tuple(Role)}),
    "jobs": Table(
        key=("id",),
        moments=("run_at", "enqueued_at", "claimed_at", "slot_at", "due_at", "expires_at", "previous_at"),
        numbers=_COUNTS,
        named=("queue", "task"),
        failures="errors",
    ),
    "dead_jobs": Table(
        key=("id",),
        moments=("run_at", "enqueued_at", "died_at", "slot_at", "expires_at"),
        numbers=_COUNTS,
        named=("queue", "task"),
        failures="errors",
    ),
    "specs": Table(key=("id",), moments=("next_at", "following_at", "last_at"), lengths=("catch_up",)),
    "firings": Table(
        key=("spec_id", "slot_at"),
        moments=("slot_at", "since", "previous_at"),
        documents={"combined": "moments"},
        lists={"combined": "micros"},
    ),
    "schedules": Table(
        key=("id",),
        moments=("active_from", "paused_at", "last_paused_at", "last_resumed_at"),
        lengths=(
            "catch_up",
            "offset_by",
            "jitter",
            "expires_after",
            "expect_start_within",
            "expect_finish_by",
        ),
        numbers={
            "max_attempts": (1, SMALL),
            "version": (0, INT),
            "overlap_limit": (0, INT),
            "skips": (0, INT),
        },
        words={"misfire": tuple(Misfire), "overlap": tuple(Overlap)},
        named=("queue", "task"),
        rows={"spec_id": "specs"},
    ),
    "schedule_versions": Table(
        key=("schedule_id", "version"),
        moments=("changed_at",),
        words={"change": tuple(Change)},
        documents={"definition": "schedule"},
    ),
    "slots": Table(
        key=("schedule_id", "slot_at"),
        moments=("slot_at", "decided_at", "since"),
        words={"disposition": tuple(DISPOSITION), "reason": tuple(Skipped)},
    ),
    "runs": Table(
        key=("job_id", "fence"),
        moments=("finished_at", "started_at", "enqueued_at", "run_at", "slot_at"),
        numbers={"failures": (0, SMALL)},
        words={"verdict": tuple(VERDICT)},
        named=("queue", "task"),
        failure="error",
    ),
    "run_logs": Table(key=("job_id", "fence"), moments=("finished_at",)),
    "limit_keys": Table(
        key=("id",),
        moments=("refilled_at",),
        lengths=("period",),
        numbers={
            "concurrency": (0, INT),
            "rate": (0, INT),
            "burst": (0, INT),
            "open_window": (0, INT),
        },
        fractions=("tokens",),
    ),
    "leases": Table(key=("name",), moments=("expires_at", "acquired_at"), numbers={"token": (0, 2**63 - 2)}),
    "backfills": Table(
        key=("id",),
        moments=("start_at", "end_at", "created_at", "ended_at"),
        words={"reprocess": tuple(Reprocess)},
    ),
    "definitions": Table(key=("id",), moments=("created_at",), documents={"definition": "definition"}),
    "workflows": Table(
        key=("id",),
        moments=("started_at", "ended_at", "paused_at"),
        words={"state": tuple(WORKFLOW)},
        lists={"step_ids": "numbers"},
    ),
    "workflow_steps": Table(
        key=("id",), moments=("ended_at",), words={"state": tuple(STEP)}, failure="error"
    ),
    "alerts": Table(
        key=("id",),
        moments=(
            "since",
            "seen_at",
            "opened_at",
            "clearing_at",
            "closed_at",
            "repeated_at",
            "acked_at",
        ),
        words={"rule": tuple(AlertRule), "severity": tuple(Severity)},
    ),
    "alert_notes": Table(
        key=("id",),
        moments=("due_at", "created_at", "ended_at"),
        numbers={"tries": (0, INT)},
        words={"kind": tuple(NoteKind), "state": tuple(NoteState)},
    ),
    "progress": Table(key=("job_id",), moments=("at",), fractions=("fraction",)),
    "queue_pauses": Table(key=("queue",), moments=("paused_at",)),
    "stats": Table(
        key=("task", "queue"),
        moments=("at",),
        lists={"counts": "numbers", "waits": "numbers", "tooks": "numbers"},
    ),
}
"""The order matters: a schedule whose spec was moved is moved too."""

DOCUMENTS: Mapping[str, Callable[[bytes | str], object]] = {
    "failure": msgspec.json.Decoder(Failure).decode,
    "failures": msgspec.json.Decoder(tuple[Failure, ...]).decode,
    "schedule": msgspec.json.Decoder(Schedule).decode,
    "definition": msgspec.json.Decoder(Definition).decode,
    "names": msgspec.json.Decoder(tuple[str, ...]).decode,
    "numbers": msgspec.json.Decoder(tuple[int, ...]).decode,
    "moments": msgspec.json.Decoder(tuple[_Moment, ...]).decode,
    "micros": msgspec.json.Decoder(tuple[_Micros, ...]).decode,
}


def holds(kind: str, text: bytes | str | None) -> bool:
    """Whether a text can be decoded as this kind of document."""
    if text is None:
        return True
    try:
        DOCUMENTS[kind](text)
    except (ValueError, msgspec.MsgspecError):
        return False
    return True


def quoted(words: Sequence[object]) -> str:
    """Fixed words as a list in SQL."""
    return ", ".join(f"'{word}'" for word in words)
