"""Readers of SQLite rows, and parameters as SQLite keeps them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import overload

import msgspec

from mainspring.model.job import Claim, Failure

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_failure = msgspec.json.Decoder(Failure)
_failures = msgspec.json.Decoder(tuple[Failure, ...])


_AS_THEY_ARE = frozenset({int, str, bytes, float, bool, type(None)})


@overload
def micros(value: datetime) -> int: ...
@overload
def micros(value: datetime | None) -> int | None: ...
def micros(value: datetime | None) -> int | None:
    """A moment as the database keeps it."""
    return None if value is None else (value - EPOCH) // MICROSECOND


def all_bound(values: Mapping[str, object]) -> dict[str, object]:
    """Parameters as the database keeps them."""
    return {name: value if type(value) in _AS_THEY_ARE else bound(value) for name, value in values.items()}


def bound(value: object) -> object:
    """A parameter as the database keeps it."""
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, list | tuple | set | frozenset):
        return listed(value)
    return value


def span(value: timedelta) -> int:
    """A length of time as the database keeps it."""
    return value // MICROSECOND


def maybe_span(value: timedelta | None) -> int | None:
    """A length of time that may be missing, as the database keeps it."""
    return None if value is None else span(value)


def maybe_length(value: int | None) -> timedelta | None:
    """A length of time that may be missing, out of the database."""
    return None if value is None else length(value)


def length(value: int) -> timedelta:
    """A length of time out of the database."""
    return timedelta(microseconds=value)


def moment(value: int) -> datetime:
    """A moment out of the database."""
    return EPOCH + timedelta(microseconds=value)


def maybe_moment(value: int | None) -> datetime | None:
    """A moment that may be missing."""
    return None if value is None else moment(value)


def listed(values: Iterable[object]) -> str:
    """A list for json_each()."""
    return msgspec.json.encode(list(values)).decode()


def maybe_listed(values: Iterable[object]) -> str | None:
    """The same, and NULL for an empty one."""
    found = listed(values)
    return None if found == "[]" else found


def by_id(values: Mapping[int, object]) -> str:
    """An object for json_each(), whose keys are ids."""
    return msgspec.json.encode(values).decode()


def written(failure: Failure) -> str:
    """A failure as a run keeps it."""
    return msgspec.json.encode(failure).decode()


def noted(failure: Failure, now: int) -> str:
    """The same with its moment, for a statement that adds the attempt."""
    return written(msgspec.structs.replace(failure, at=moment(now)))


def errors(text: str | None) -> tuple[Failure, ...]:
    """The errors kept with a job."""
    return () if text is None else _failures.decode(text)


def to_claim(row: sqlite3.Row, worker_id: int, database_id: str) -> Claim:
    """A claimed row."""
    (
        job_id,
        fence,
        queue,
        task,
        payload,
        failures,
        max_attempts,
        run_at,
        enqueued_at,
        schedule_id,
        slot_at,
        limit_set_id,
        crashes,
        expires_in,
        workflow_id,
        trace,
        waited,
        previous_at,
    ) = row
    due = moment(run_at)
    return Claim(
        job_id=job_id,
        worker_id=worker_id,
        fence=fence,
        task=task,
        queue=queue,
        payload=payload,
        failures=failures,
        max_attempts=max_attempts,
        run_at=due,
        enqueued_at=due if enqueued_at == run_at else moment(enqueued_at),  # the same for most
        schedule_id=schedule_id,
        slot_at=maybe_moment(slot_at),
        limited=limit_set_id is not None,
        crashes=crashes,
        expires_in=None if expires_in is None else length(expires_in),
        workflow_id=workflow_id,
        trace=trace,
        waited=length(waited),
        previous_at=None if previous_at is None else moment(previous_at),
        database_id=database_id,
    )
