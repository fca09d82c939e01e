"""The frames of `mainspring top`: queues, running jobs, next slots and failures, in one bounded read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Self

from mainspring.admin.health.troubles import TroubleView, facts
from mainspring.admin.queues import QueueInfo, QueueView, every_queue
from mainspring.admin.redact import Redaction
from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.model.alert import Trouble
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.job import JobState, RunningJob
from mainspring.model.process import Role
from mainspring.model.run import FailedRun, Verdict
from mainspring.model.schedule import ComingFire
from mainspring.model.value import Value
from mainspring.rules.troubles import troubles as judged
from mainspring.store.store import Store

ROWS = 100
"""The most rows of each kind."""
AMONG = 1000
"""The number of newest runs that are searched for failures."""
DEAD_COUNTED = 1000


class Failing(Value, frozen=True, kw_only=True):
    """A run that failed, and the current state of its job."""

    run: FailedRun
    now: JobState | None
    """None if the job is no longer stored."""


class Frame(Value, frozen=True, kw_only=True):
    """One frame: everything that the screen shows at once."""

    at: datetime
    """By the store's clock."""
    lag: timedelta
    """How long the oldest slot without a decision is overdue."""
    workers: int
    schedulers: int
    dead: int
    """Dead letters, counted up to DEAD_COUNTED."""
    wrong: tuple[Trouble, ...]
    """The worst first."""
    queues: tuple[QueueInfo, ...]
    running: tuple[RunningJob, ...]
    """Held longest first."""
    names: Mapping[int, str]
    """Of the workers, by id."""
    coming: tuple[ComingFire, ...]
    failures: tuple[Failing, ...]
    """Latest first."""


async def look(
    store: Store,
    clock: Clock,
    *,
    alerts: AlertsConfig | None = None,
    rows: int = ROWS,
    redaction: Redaction | None = None,
) -> Frame:
    """Read one frame, without secrets. The cost depends on the shown rows, not on the tables."""
    config = alerts or AlertsConfig()
    seen = await facts(store, config, clock)
    alive = [each for each in seen.processes if each.alive]
    schedulers = sum(each.role is Role.SCHEDULER for each in alive)
    frame = Frame(
        at=seen.now,
        lag=timedelta() if seen.behind_since is None else max(seen.now - seen.behind_since, timedelta()),
        workers=len(alive) - schedulers,
        schedulers=schedulers,
        dead=await store.dead_letters.count(DeadFilter(limit=DEAD_COUNTED)),
        wrong=tuple(judged(seen, config)),
        queues=tuple(await every_queue(store, about=True, at=clock.stamp())),
        running=tuple(await store.jobs.running(limit=rows)),
        names={each.id: each.name for each in seen.processes},
        coming=tuple(await store.slots.coming(limit=rows)),
        failures=await _failures(store, clock, rows),
    )
    return (redaction or Redaction()).within(frame)


def worker_name(frame: Frame, job: RunningJob) -> str:
    """The name of the process that runs a job, or its id."""
    return frame.names.get(job.worker_id) or f"{job.worker_id:x}"


class RunningView(Value, frozen=True, kw_only=True):
    """A job that runs, and the process that runs it."""

    id: int
    task: str
    queue: str
    attempt: int
    max_attempts: int
    worker_id: str
    worker: str
    claimed_at: datetime
    fraction: float | None
    note: str | None

    @classmethod
    def of(cls, frame: Frame, job: RunningJob) -> Self:
        """Of a job of this frame."""
        return cls(
            id=job.id,
            task=job.task,
            queue=job.queue,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            worker_id=f"{job.worker_id:x}",
            worker=worker_name(frame, job),
            claimed_at=job.claimed_at,
            fraction=job.fraction,
            note=job.note or None,
        )


class FailingView(Value, frozen=True, kw_only=True):
    """A run that failed, and the current state of its job."""

    job_id: int
    task: str
    queue: str
    attempt: int
    verdict: Verdict
    finished_at: datetime
    state: JobState | None
    error: str | None
    message: str

    @classmethod
    def of(cls, failing: Failing) -> Self:
        """Of a run that failed."""
        run = failing.run
        return cls(
            job_id=run.job_id,
            task=run.task,
            queue=run.queue,
            attempt=run.attempt,
            verdict=run.verdict,
            finished_at=run.finished_at,
            state=failing.now,
            error=run.error or None,
            message=run.message,
        )


class FrameView(Value, frozen=True, kw_only=True):
    """One frame, as programs read it."""

    at: datetime
    lag_seconds: float
    workers: int
    schedulers: int
    dead: int
    wrong: tuple[TroubleView, ...]
    queues: tuple[QueueView, ...]
    running: tuple[RunningView, ...]
    coming: tuple[ComingFire, ...]
    failures: tuple[FailingView, ...]

    @classmethod
    def of(cls, frame: Frame) -> Self:
        """Of one frame."""
        return cls(
            at=frame.at,
            lag_seconds=frame.lag.total_seconds(),
            workers=frame.workers,
            schedulers=frame.schedulers,
            dead=frame.dead,
            wrong=tuple(TroubleView.of(each) for each in frame.wrong),
            queues=tuple(QueueView.of(each) for each in frame.queues),
            running=tuple(RunningView.of(frame, each) for each in frame.running),
            coming=frame.coming,
            failures=tuple(FailingView.of(each) for each in frame.failures),
        )


async def _failures(store: Store, clock: Clock, rows: int) -> tuple[Failing, ...]:
    """Runs that failed lately, and dead letters of any age if there are too few such runs."""
    runs = await store.runs.failed(among=AMONG, limit=rows)
    told = {each.job_id for each in runs if each.verdict is Verdict.DEAD}
    letters = [each for each in await store.dead_letters.find(DeadFilter(limit=rows)) if each.id not in told]
    found = sorted([*runs, *map(_last_run, letters)], key=lambda run: run.finished_at, reverse=True)[:rows]
    states = (
        await store.jobs.states(sorted({each.job_id for each in found}), at=clock.stamp()) if found else {}
    )
    return tuple(Failing(run=each, now=states.get(each.job_id)) for each in found)


def _last_run(letter: DeadJob) -> FailedRun:
    last = letter.errors[-1] if letter.errors else None
    return FailedRun(
        job_id=letter.id,
        fence=letter.fence,
        task=letter.task,
        queue=letter.queue,
        attempt=max(letter.failures, 1),
        verdict=Verdict.DEAD,
        finished_at=letter.died_at,
        error="" if last is None else last.type,
        message=letter.reason if last is None else last.message,
    )
