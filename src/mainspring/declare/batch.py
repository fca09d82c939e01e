"""Jobs handed over together, checked before anything is opened for them."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.errors import InvalidArgument
from mainspring.model.job import NewJob

_EXPECTED = "jobs made by task.job(…), as in app.enqueue_many([invoice.job(1), invoice.job(2)])"


def batch(jobs: Iterable[NewJob]) -> list[NewJob]:
    """The jobs as a list, each of them one."""
    if not isinstance(jobs, Iterable):
        raise InvalidArgument("jobs", jobs, f"a list of {_EXPECTED}")
    listed = list(jobs)
    for each in listed:
        if not isinstance(each, NewJob):
            raise InvalidArgument("jobs", each, _EXPECTED)
    return listed


def plain(jobs: list[NewJob]) -> list[NewJob]:
    """Jobs that a caller's own transaction can carry: a row each, and nothing beside it."""
    for job in jobs:
        more = (("key", job.unique), ("limits", job.gates), ("expires", job.expires or job.expires_at))
        for name, value in more:
            if value:
                raise InvalidArgument("tx", f"a job with {name}", "jobs without key, limits and expires")
    return jobs
