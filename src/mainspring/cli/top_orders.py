"""What can be ordered from a line of `top`: a question that only yes answers, then the usual command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mainspring.cli.author import login_name
from mainspring.cli.top_panes import Line
from mainspring.clock import Clock
from mainspring.model.access import AccessRole, Actor
from mainspring.ops.access.acts import Acts
from mainspring.ops.access.redact import Redaction
from mainspring.ops.commands import Commands, Done, Effect
from mainspring.ops.queues import Queues
from mainspring.ops.schedules.orders import ScheduleCommands, ScheduleEffect
from mainspring.store.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Asked for, not yet agreed to."""

    question: str
    act: str
    """As the log of acts names it."""
    target: str
    carry_out: Callable[[Store, Clock, str], Awaitable[str]]
    """Given the author; answers what is to be said."""


async def obey(order: Order, store: Store, clock: Clock, author: str, redaction: Redaction) -> str:
    """Carry it out, on record before and after as any command is; answer what is to be said."""
    actor = Actor(name=login_name(), role=AccessRole.ADMIN, via="cli")
    acts, details = Acts(store, clock, redaction), {"author": author}
    async with acts.recorded(actor, order.act, target=order.target, details=details) as ending:
        said = await order.carry_out(store, clock, author)
        ending.details = {"said": said}
    return said


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
    async def pause(store: Store, clock: Clock, author: str) -> str:
        done = await Queues(store, clock).pause(name, author=author)
        return f"queue {name} {'paused' if done else 'is paused already'}"

    async def resume(store: Store, clock: Clock, author: str) -> str:
        done = await Queues(store, clock).resume(name)
        return f"queue {name} {'resumed' if done else 'is not paused'}"

    if paused:
        return Order(question=f"Resume queue {name}?", act="queues.resume", target=name, carry_out=resume)
    question = f"Pause queue {name}? What runs goes on."
    return Order(question=question, act="queues.pause", target=name, carry_out=pause)


def _pause_schedule(name: str, paused: bool) -> Order:
    async def pause(store: Store, clock: Clock, author: str) -> str:
        [done] = await ScheduleCommands(store, clock).pause([name], author=author)
        return f"schedule {name} {done.why if done.effect is ScheduleEffect.NONE else 'paused'}"

    async def resume(store: Store, clock: Clock, author: str) -> str:
        [done] = await ScheduleCommands(store, clock).resume([name], author=author)
        return f"schedule {name} {done.why if done.effect is ScheduleEffect.NONE else 'resumed'}"

    if paused:
        question = f"Resume schedule {name}? The slots of the pause are not caught up."
        return Order(question=question, act="schedules.resume", target=name, carry_out=resume)
    question = f"Pause schedule {name}? Its slots will be skipped."
    return Order(question=question, act="schedules.pause", target=name, carry_out=pause)


def _retry(job_id: int, task: str) -> Order:
    async def retry(store: Store, clock: Clock, author: str) -> str:
        return _said(await Commands(store, clock).retry([job_id]))

    question = f"Run job {job_id} ({task}) again now?"
    return Order(question=question, act="jobs.retry", target=str(job_id), carry_out=retry)


def _cancel(job_id: int, *, running: bool) -> Order:
    async def cancel(store: Store, clock: Clock, author: str) -> str:
        return _said(await Commands(store, clock).cancel([job_id]))

    question = f"Cancel job {job_id} for good?" + (" It is taken from its worker." if running else "")
    return Order(question=question, act="jobs.cancel", target=str(job_id), carry_out=cancel)


def _trigger(name: str) -> Order:
    async def trigger(store: Store, clock: Clock, author: str) -> str:
        done = await ScheduleCommands(store, clock).trigger(name)
        return f"schedule {name}: job {done.job_id} in queue {done.queue}"

    question = f"Make a job of schedule {name} now, besides its slots?"
    return Order(question=question, act="schedules.trigger", target=name, carry_out=trigger)


def _said(answers: list[Done]) -> str:
    [done] = answers
    said = done.why if done.effect is Effect.NONE else f"{done.effect} (was {done.was})"
    return f"job {done.job_id} {said}"
