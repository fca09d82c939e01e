"""What can be ordered from a line of `top`: a question that only yes answers, then the usual command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mainspring.admin.admin import Admin
from mainspring.admin.jobs import Done, Effect
from mainspring.admin.schedules.orders import ScheduleEffect
from mainspring.cli.top_panes import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Asked for, not yet agreed to."""

    question: str
    carry_out: Callable[[Admin], Awaitable[str]]
    """Answers what is to be shown."""


def order(key: str, pane: str, line: Line) -> Order | str:
    """What a key means on a line, or why it means nothing there."""
    match key:
        case "p" if pane == "coming" and line.schedule is not None:
            return _pause_schedule(line.schedule, line.paused)
        case "p" if line.queue is not None:
            return _pause_queue(line.queue, line.paused and pane == "queues")
        case "r" if line.job_id is not None and pane == "failures":
            return _retry(line.job_id, line.cells[2])
        case "c" if line.job_id is not None:
            return _cancel(line.job_id, running=pane == "running")
        case "t" if line.schedule is not None:
            return _trigger(line.schedule)
    return _NEEDS[key]


_NEEDS = {
    "p": "p pauses or resumes the queue of a line, or a schedule: choose one first",
    "r": "r retries the job of a failure: choose one under Failures",
    "c": "c cancels a job: choose one under Running or Failures",
    "t": "t triggers a schedule: choose one under Next fires",
}


def _pause_queue(name: str, paused: bool) -> Order:
    async def pause(admin: Admin) -> str:
        done = await admin.queues.apause(name)
        return f"queue {name} {'paused' if done else 'is paused already'}"

    async def resume(admin: Admin) -> str:
        done = await admin.queues.aresume(name)
        return f"queue {name} {'resumed' if done else 'is not paused'}"

    if paused:
        return Order(question=f"Resume queue {name}?", carry_out=resume)
    question = f"Pause queue {name}? What runs goes on."
    return Order(question=question, carry_out=pause)


def _pause_schedule(name: str, paused: bool) -> Order:
    async def pause(admin: Admin) -> str:
        [done] = await admin.schedules.apause(name)
        return f"schedule {name} {done.why if done.effect is ScheduleEffect.NONE else 'paused'}"

    async def resume(admin: Admin) -> str:
        [done] = await admin.schedules.aresume(name)
        return f"schedule {name} {done.why if done.effect is ScheduleEffect.NONE else 'resumed'}"

    if paused:
        question = f"Resume schedule {name}? The slots of the pause are not caught up."
        return Order(question=question, carry_out=resume)
    question = f"Pause schedule {name}? Its slots will be skipped."
    return Order(question=question, carry_out=pause)


def _retry(job_id: int, task: str) -> Order:
    async def retry(admin: Admin) -> str:
        return _said(await admin.jobs.aretry(job_id))

    question = f"Run job {job_id} ({task}) again now?"
    return Order(question=question, carry_out=retry)


def _cancel(job_id: int, *, running: bool) -> Order:
    async def cancel(admin: Admin) -> str:
        return _said(await admin.jobs.acancel(job_id))

    question = f"Cancel job {job_id} for good?" + (" It is taken from its worker." if running else "")
    return Order(question=question, carry_out=cancel)


def _trigger(name: str) -> Order:
    async def trigger(admin: Admin) -> str:
        done = await admin.schedules.atrigger(name)
        return f"schedule {name}: job {done.job_id} in queue {done.queue}"

    question = f"Make a job of schedule {name} now, besides its slots?"
    return Order(question=question, carry_out=trigger)


def _said(answers: list[Done]) -> str:
    [done] = answers
    said = done.why if done.effect is Effect.NONE else f"{done.effect} (was {done.was})"
    return f"job {done.job_id} {said}"
