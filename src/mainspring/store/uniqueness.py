"""Unique keys: the decision about a batch of jobs with keys, and the recorded answer to a request. This part
has no SQL, and both dialects share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from mainspring.errors import DuplicateJob, KeyReused
from mainspring.model.job import Answered, Inserted, Key, NewJob, OnDuplicate, RequestKey, Scope
from mainspring.model.value import Value

KEPT = timedelta(days=2)
"""How long an answer is kept: a caller repeats its request within a day."""
_decode = msgspec.json.Decoder(tuple[tuple[int, bool, bool], ...]).decode


class Holder(Value, frozen=True, kw_only=True):
    """The job that has a key."""

    job_id: int
    until: datetime | None
    """With Scope.PERIOD: the end of the period in which the job keeps the key, also if the job has ended."""


class Decision(Value, frozen=True, kw_only=True):
    """The writes and the answers for a batch."""

    answers: tuple[Inserted, ...]
    """One answer for each job, in order."""
    make: tuple[int, ...]
    """Places of the jobs to be inserted, under the id in their answer."""
    replace: tuple[int, ...]
    """Places of the jobs whose arguments replace those of the job in their answer."""


def decide(
    jobs: Sequence[NewJob],
    ids: Sequence[int],
    holders: Mapping[bytes, Holder],
    live: Mapping[int, bool],
    now: datetime,
) -> Decision:
    """Decide about a batch. `ids` are reserved, one for each job. `holders` are the locked holders of the
    keys. `live` has the holders that have not ended, and whether they run."""
    answers: list[Inserted] = []
    make: list[int] = []
    replace: dict[int, int] = {}
    taken: dict[bytes, int] = {}
    for place, (job, job_id) in enumerate(zip(jobs, ids, strict=True)):
        if job.unique is None:
            make.append(place)
            answers.append(Inserted(job_id=job_id))
            continue
        other = _standing(job.unique, taken, holders, live, now)
        if other is None or other == job_id:
            make.append(place)
            answers.append(Inserted(job_id=job_id))
            taken[job.unique.digest] = job_id
        else:
            answers.append(_duplicate(job.task, job.unique, other, running=live.get(other, False)))
            if answers[-1].replaced:
                replace[other] = place  # the last job of the batch counts
    return Decision(answers=tuple(answers), make=tuple(make), replace=tuple(replace.values()))


def written(jobs: Sequence[Inserted]) -> bytes:
    """An answer, as the store keeps it. It is short, because one row may have the ids of thousands of
    jobs."""
    return msgspec.json.encode([(each.job_id, each.created, each.replaced) for each in jobs])


def recalled(request: RequestKey, digest: bytes, answer: bytes) -> Answered:
    """The recorded answer, if it belongs to this request."""
    if digest != request.digest:
        raise KeyReused(request.key)
    found = _decode(answer)
    jobs = tuple(Inserted(job_id=job_id, created=made, replaced=new) for job_id, made, new in found)
    return Answered(jobs=jobs, again=True)


def _standing(
    key: Key,
    taken: Mapping[bytes, int],
    holders: Mapping[bytes, Holder],
    live: Mapping[int, bool],
    now: datetime,
) -> int | None:
    """The job that has the key, if there is one."""
    if key.digest in taken:
        return taken[key.digest]  # an earlier job of the same batch
    holder = holders[key.digest]
    match key.scope:
        case Scope.QUEUED:
            stands = live.get(holder.job_id) is False
        case Scope.FINISHED:
            stands = holder.job_id in live
        case Scope.PERIOD:
            stands = holder.until is not None and holder.until > now
    return holder.job_id if stands else None


def _duplicate(task: str, key: Key, other: int, *, running: bool) -> Inserted:
    match key.on_duplicate:
        case OnDuplicate.RETURN:
            return Inserted(job_id=other, created=False)
        case OnDuplicate.ERROR:
            raise DuplicateJob(task, key.name, other)
        case OnDuplicate.REPLACE:
            if running:
                raise DuplicateJob(task, key.name, other, "it runs already")
            return Inserted(job_id=other, created=False, replaced=True)
