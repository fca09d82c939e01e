"""What both dialects keep of a request's answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from mainspring.errors import KeyReused
from mainspring.model.job import Answered, Inserted, RequestKey

KEPT = timedelta(days=2)
"""How long an answer is remembered: whoever asks again does so within a day."""
_decode = msgspec.json.Decoder(tuple[tuple[int, bool, bool], ...]).decode


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
