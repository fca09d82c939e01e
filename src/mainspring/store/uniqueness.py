"""What both dialects decide about keys that are taken, and what they keep of the answer to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from mainspring.errors import DuplicateJob, KeyReused
from mainspring.model.job import Answered, Inserted, Key, NewJob, OnDuplicate, RequestKey, Scope
from mainspring.model.value import Value

KEPT = timedelta(days=2)
"""How long an answer is remembered: whoever asks again does so within a day."""
_decode = msgspec.json.Decoder(tuple[tuple[int, bool, bool], ...]).decode


class Holder(Value, frozen=True, kw_only=True):
    """Who has a key."""

    job_id: int
    until: datetime | None
    """With Scope.PERIOD: how long it keeps it, whatever becomes of the job."""


class Decision(Value, frozen=True, kw_only=True):
    """What is to be written for a batch, and what is answered."""

    answers: tuple[Inserted, ...]
    """One for each job, in order."""
    make: tuple[int, ...]
    """Places of the jobs that are to be inserted, under the id of their answer."""
    replace: tuple[int, ...]
    """Places of the jobs whose arguments the job of their answer takes over."""


def decide(
    jobs: Sequence[NewJob],
    ids: Sequence[int],
    holders: Mapping[bytes, Holder],
    live: Mapping[int, bool],
    now: datetime,
) -> Decision:
    """`ids` are reserved, one for each job. `holders` are those of the keys, locked; `live` tells of the
    jobs they name that have not ended whether they run."""
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
                replace[other] = place  # the last one wins
    return Decision(answers=tuple(answers), make=tuple(make), replace=tuple(replace.values()))


def written(jobs: Sequence[Inserted]) -> bytes:
    """An answer as it is kept: a row may stand for thousands of jobs."""
    return msgspec.json.encode([(each.job_id, each.created, each.replaced) for each in jobs])


def recalled(request: RequestKey, digest: bytes, answer: bytes) -> Answered:
    """The answer that is on record, if it is one to this request."""
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
    """The job that keeps this one out, if any."""
    if key.digest in taken:
        return taken[key.digest]  # an earlier one of the same batch
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
