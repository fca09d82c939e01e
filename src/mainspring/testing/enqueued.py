"""Jobs that wait, as a test sees them, and what is said when the one that was looked for is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from mainspring.errors import shown
from mainspring.model.job import Job
from mainspring.model.value import Value
from mainspring.tasks.payload import decode

LISTED = 20


class Enqueued(Value, frozen=True, kw_only=True):
    """One job that waits in its queue: due, or not before `run_at`."""

    id: int
    task: str
    args: list[object]
    kwargs: dict[str, object]
    queue: str
    priority: int
    run_at: datetime
    failures: int
    """Above zero for a job that waits to be tried again."""


def enqueued(job: Job) -> Enqueued:
    """A stored job, with its arguments read."""
    args, kwargs = decode(job.payload)
    return Enqueued(
        id=job.id,
        task=job.task,
        args=args,
        kwargs=kwargs,
        queue=job.queue,
        priority=job.priority,
        run_at=job.run_at,
        failures=job.failures,
    )


class Wanted(Value, frozen=True, kw_only=True):
    """What a test looks for. What it does not name may be anything."""

    task: str
    args: Sequence[object] | None = None
    kwargs: Mapping[str, object] | None = None
    queue: str | None = None
    run_at: datetime | None = None

    def named(self) -> dict[str, object]:
        """What is looked for besides the task."""
        wanted: dict[str, object] = {
            "args": None if self.args is None else list(self.args),
            "kwargs": None if self.kwargs is None else dict(self.kwargs),
            "queue": self.queue,
            "run_at": self.run_at,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def differences(self, job: Enqueued) -> list[str]:
        """The fields in which this job of the same task is another one."""
        return [name for name, value in self.named().items() if getattr(job, name) != value]


def complaint(wanted: Wanted, count: int | None, jobs: Sequence[Enqueued], ended: int) -> str:
    """Why the jobs that wait are not those that were looked for, with the closest first."""
    asked = ", ".join(f"{name}={_value(value)}" for name, value in wanted.named().items())
    number = "at least one job" if count is None else f"exactly {count} {'job' if count == 1 else 'jobs'}"
    own = sorted(
        (job for job in jobs if job.task == wanted.task), key=lambda job: len(wanted.differences(job))
    )
    lines = [
        f"expected {number} of {wanted.task} to wait{f' with {asked}' if asked else ''}, "
        f"found {sum(not wanted.differences(job) for job in own)}"
    ]
    lines += _listed(f"jobs of {wanted.task} that wait: {len(own)}", (_line(wanted, job) for job in own))
    others: dict[str, int] = {}
    for job in jobs:
        if job.task != wanted.task:
            others[job.task] = others.get(job.task, 0) + 1
    if others:
        listed = ", ".join(f"{task} ({number})" for task, number in sorted(others.items()))
        lines.append(f"  jobs of other tasks: {listed}")
    if ended:
        lines.append(f"  runs of {wanted.task} that have ended: {ended}")
    return "\n".join(lines)


def _listed(title: str, lines: Iterable[str]) -> list[str]:
    every = list(lines)
    rest = [f"    … and {len(every) - LISTED} more"] if len(every) > LISTED else []
    return [f"  {title}", *every[:LISTED], *rest]


def _line(wanted: Wanted, job: Enqueued) -> str:
    differing = wanted.differences(job)
    fields = {"args": job.args, "kwargs": job.kwargs, "queue": job.queue, "run_at": job.run_at}
    told = ", ".join(f"{name}={_value(value)}" for name, value in fields.items())
    why = f"; other: {', '.join(differing)}" if differing else "; as wanted"
    return f"    job {job.id}: {told}{why}"


def _value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else shown(value)
