"""How jobs get from a task into a store, and the handles that come back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from mainspring.duration import Duration
from mainspring.errors import InvalidArgument, UsageError
from mainspring.model.checkpoint import EVERYBODY, Event
from mainspring.model.job import NewJob
from mainspring.model.value import Value
from mainspring.tasks.checks import valid_name
from mainspring.tasks.payload import LARGEST_PAYLOAD, encode_value

_EXPECTED = "jobs made by task.job(…), as in app.enqueue_many([invoice.job(1), invoice.job(2)])"
R_co = TypeVar("R_co", covariant=True)


class Sender(Protocol):
    """Enqueues jobs, all or none; they are stored when it returns. With `tx`, a connection of the caller,
    they are part of its transaction."""

    def enqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> list[JobHandle[Any]]:
        """Block until they are stored; handles in order."""

    async def aenqueue_many(
        self, jobs: Sequence[NewJob], *, tx: object | None = None
    ) -> list[JobHandle[Any]]:
        """The same on an event loop."""


def checked_batch(jobs: Iterable[NewJob]) -> list[NewJob]:
    """The jobs as a list; InvalidArgument if one of them is no job."""
    if not isinstance(jobs, Iterable):
        raise InvalidArgument("jobs", jobs, f"a list of {_EXPECTED}")
    listed = list(jobs)
    for each in listed:
        if not isinstance(each, NewJob):
            raise InvalidArgument("jobs", each, _EXPECTED)
    return listed


def without_options(jobs: list[NewJob]) -> list[NewJob]:
    """Jobs that the transaction of a caller can insert: one row each, so without key, limits and deadline."""
    for job in jobs:
        more = (("key", job.unique), ("limits", job.limit_keys), ("expires", job.expires or job.expires_at))
        for name, value in more:
            if value:
                raise InvalidArgument("tx", f"a job with {name}", "jobs without key, limits and expires")
    return jobs


class Results(Protocol):
    """Waits for the results of jobs; the app provides it."""

    def result(self, job_id: int, *, timeout: Duration | None = None) -> object:
        """Block until the job has ended; return its result, or raise the error that says how it ended."""

    async def aresult(self, job_id: int, *, timeout: Duration | None = None) -> object:  # noqa: ASYNC109 - as users say it
        """The same on an event loop."""


class JobHandle(Value, Generic[R_co], frozen=True, kw_only=True, gc=False):
    """Refers to one job in the store; it has no connection, and can be stored or sent."""

    # gc=False: a batch makes a handle for each job, and for its app the collector would visit them all.
    id: int
    task: str = ""
    """Empty, as the queue is, for a handle made from an id alone."""
    queue: str = ""
    created: bool = True
    """False if a job with the same key exists already, which this refers to."""
    results: Results | None = None
    """The app that it came from, which waits for it. A handle that was sent elsewhere has none."""

    def result(self, timeout: Duration | None = None) -> R_co:
        """Block until the job has ended, at most `timeout`, and return what its handler returned.
        Raises JobFailed, JobCancelled, WaitTimeout, ResultGone, or NotFound."""
        return cast("R_co", self._results().result(self.id, timeout=timeout))

    async def aresult(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 - as users say it
        """`await job.aresult()`: the same on an event loop."""
        return cast("R_co", await self._results().aresult(self.id, timeout=timeout))

    def _results(self) -> Results:
        if self.results is None:
            raise UsageError(f"{self} has no app to wait with; ask app.job({self.id})")
        return self.results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and self._named() == other._named()

    def __hash__(self) -> int:
        return hash(self._named())

    def __repr__(self) -> str:
        return f"JobHandle(id={self.id!r}, task={self.task!r}, queue={self.queue!r})"

    def __str__(self) -> str:
        return f"job {self.id} ({self.task} in {self.queue})" if self.task else f"job {self.id}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _handle, self._named()

    def _named(self) -> tuple[int, str, str]:
        return self.id, self.task, self.queue


def _handle(job_id: int, task: str, queue: str) -> JobHandle[Any]:
    return JobHandle(id=job_id, task=task, queue=queue)


def new_event(name: str, payload: object, job: JobHandle[Any] | int | None) -> Event:
    """An event for one job, or for all that wait for it; InvalidArgument says what is wrong."""
    return Event(
        name=valid_name(name, "name"),
        payload=encode_value(payload, "payload", LARGEST_PAYLOAD),
        job_id=EVERYBODY
        if job is None
        else valid_job_id(job.id if isinstance(job, JobHandle) else job, "job"),
    )


def valid_job_id(job_id: int, field: str) -> int:
    """The id itself, or InvalidArgument naming the field."""
    if isinstance(job_id, bool) or not isinstance(job_id, int) or not 0 < job_id < 2**63:
        raise InvalidArgument(field, job_id, "the id of a job, a whole number from 1")
    return job_id
