"""What `enqueue` gives back."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, cast

from mainspring.duration import Duration
from mainspring.errors import UsageError
from mainspring.model.value import Value

R_co = TypeVar("R_co", covariant=True)


class Results(Protocol):
    """Waits for jobs; the app provides it."""

    def result(self, job_id: int, *, timeout: Duration | None = None) -> object:
        """Block until the job has ended; answer what it returned, or raise what became of it."""

    async def aresult(self, job_id: int, *, timeout: Duration | None = None) -> object:  # noqa: ASYNC109 - as users say it
        """The same on an event loop."""


class JobHandle(Value, Generic[R_co], frozen=True, kw_only=True, gc=False):
    """Names one job in the store; it holds no connection and can be kept or sent anywhere."""

    # gc=False: a batch makes a handle for each job, and for its app the collector would visit them all.
    id: int
    task: str = ""
    """Empty, as the queue is, for a handle made from an id alone."""
    queue: str = ""
    created: bool = True
    """False when a job with the same key stands for it."""
    results: Results | None = None
    """Who waits for it: the app it came from. A handle that was sent elsewhere has none."""

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
