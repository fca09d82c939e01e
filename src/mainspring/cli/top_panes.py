"""The panes of `top` as text, the same for the screen and for `--once`, and the orders on their lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mainspring.admin.admin import Admin
from mainspring.admin.health.top import DEAD_COUNTED, Failing, Frame, worker_name
from mainspring.admin.jobs import Done, Effect
from mainspring.admin.schedules.orders import ScheduleEffect
from mainspring.admin.words import length
from mainspring.cli.output import printable
from mainspring.model.value import Value

_WIDEST = 28
_ERROR = 200
_WIDE = 10_000


class Line(Value, frozen=True, kw_only=True):
    """One row, and what an order given on it is about."""

    key: str
    """The same for the same thing in the next frame."""
    cells: tuple[str, ...]
    values: tuple[str | float, ...]
    """What each column is sorted by: words upwards, and numbers negative, so that the largest come first."""
    queue: str | None = None
    schedule: str | None = None
    job_id: int | None = None
    paused: bool = False


class Pane(Value, frozen=True, kw_only=True):
    """One table."""

    name: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def sorted_by(self, column: int | None) -> Pane:
        """The same, sorted; None for the order they came in."""
        if column is None:
            return self
        lines = sorted(self.lines, key=lambda line: line.values[column])
        return Pane(name=self.name, title=self.title, columns=self.columns, lines=tuple(lines))

    def holding(self, text: str) -> Pane:
        """Only lines that hold this text."""
        wanted = text.casefold()
        lines = tuple(line for line in self.lines if wanted in " ".join(line.cells).casefold())
        return Pane(name=self.name, title=self.title, columns=self.columns, lines=lines)


def panes(frame: Frame) -> tuple[Pane, ...]:
    """Queues, running jobs, next fires and failures."""
    return (_queues(frame), _running(frame), _coming(frame), _failures(frame))


def headline(frame: Frame, where: str, *, width: int = _WIDE) -> str:
    """The time, the lag, the processes and the database, whose name is cut at its beginning."""
    lag = length(frame.lag) if frame.lag >= timedelta(seconds=1) else "none"
    there = f"{_counted(frame.workers, 'worker')}, {_counted(frame.schedulers, 'scheduler')}"
    letters = f"{frame.dead}{'+' if frame.dead == DEAD_COUNTED else ''} dead"
    said = f"{frame.at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}  lag {lag}  {there}, {letters}  "
    place, room = printable(where), max(width - len(said), 8)
    return said + (place if len(place) <= room else f"…{place[1 - room :]}")


def _queues(frame: Frame) -> Pane:
    lines = []
    for each in frame.queues:
        oldest = None if each.oldest_ready_at is None else max(frame.at - each.oldest_ready_at, timedelta())
        paused = "" if each.pause is None else f"by {each.pause.paused_by}"
        if each.pause is not None and each.pause.note:
            paused = f"{paused}: {each.pause.note}"
        lines.append(
            Line(
                key=each.name,
                cells=_cells(
                    each.name,
                    f"{'~' if each.about else ''}{each.ready}",
                    f"{'~' if each.about else ''}{each.delayed}",
                    each.running,
                    "" if oldest is None else _short(oldest),
                    each.workers,
                    paused,
                ),
                values=(
                    each.name,
                    -each.ready,
                    -each.delayed,
                    -each.running,
                    -oldest.total_seconds() if oldest else 0.0,
                    -each.workers,
                    0 if each.pause else 1,
                ),
                queue=each.name,
                paused=each.pause is not None,
            )
        )
    columns = ("QUEUE", "READY", "DELAYED", "RUNNING", "OLDEST", "WORKERS", "PAUSED")
    return Pane(name="queues", title="Queues", columns=columns, lines=tuple(lines))


def _running(frame: Frame) -> Pane:
    lines = [
        Line(
            key=f"{each.id}",
            cells=_cells(
                each.id,
                each.task,
                each.queue,
                f"{each.attempt}/{each.max_attempts}",
                _short(frame.at - each.claimed_at),
                _progress(each.fraction, each.note),
                worker_name(frame, each),
            ),
            values=(
                -each.id,
                each.task,
                each.queue,
                -each.attempt,
                each.claimed_at.timestamp(),
                -(each.fraction or 0.0),
                worker_name(frame, each),
            ),
            queue=each.queue,
            job_id=each.id,
        )
        for each in frame.running
    ]
    columns = ("JOB", "TASK", "QUEUE", "ATTEMPT", "FOR", "PROGRESS", "WORKER")
    return Pane(name="running", title="Running", columns=columns, lines=tuple(lines))


def _coming(frame: Frame) -> Pane:
    lines = [
        Line(
            key=each.schedule,
            cells=_cells(
                _when(each.slot_at, frame.at),
                each.schedule,
                f"{each.slot_at.astimezone(UTC):%m-%d %H:%M:%SZ}",
                each.task,
                each.queue,
                "paused" if each.paused else "",
            ),
            values=(
                each.slot_at.timestamp(),
                each.schedule,
                each.slot_at.timestamp(),
                each.task,
                each.queue,
                0 if each.paused else 1,
            ),
            queue=each.queue,
            schedule=each.schedule,
            paused=each.paused,
        )
        for each in frame.coming
    ]
    columns = ("IN", "SCHEDULE", "SLOT", "TASK", "QUEUE", "PAUSED")
    return Pane(name="coming", title="Next fires", columns=columns, lines=tuple(lines))


def _failures(frame: Frame) -> Pane:
    columns = ("AGO", "JOB", "TASK", "ATTEMPT", "WAS", "NOW", "ERROR")
    lines = tuple(_failure(each, frame.at) for each in frame.failures)
    return Pane(name="failures", title="Failures", columns=columns, lines=lines)


def _failure(each: Failing, now: datetime) -> Line:
    run, state = each.run, "gone" if each.now is None else each.now.value
    error = " ".join(f"{run.error}: {run.message}".split()) if run.error else run.message
    return Line(
        key=f"{run.job_id}-{run.fence}",
        cells=(
            *_cells(
                _short(now - run.finished_at), run.job_id, run.task, run.attempt, run.verdict.value, state
            ),
            _cut(error, _ERROR),
        ),
        values=(
            -run.finished_at.timestamp(),
            -run.job_id,
            run.task,
            -run.attempt,
            run.verdict.value,
            state,
            error,
        ),
        queue=run.queue,
        job_id=run.job_id,
    )


def _cells(*values: object) -> tuple[str, ...]:
    return tuple(_cut(str(each), _WIDEST) for each in values)


def _cut(text: str, most: int) -> str:
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _short(value: timedelta) -> str:
    """The two largest units are enough: a frame is one second old at most."""
    seconds = max(int(value.total_seconds()), 0)
    parts = [
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "m"),
        (seconds % 60, "s"),
    ]
    first = next((place for place, (count, _) in enumerate(parts) if count), 3)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"


def _when(slot: datetime, now: datetime) -> str:
    return _short(slot - now) if slot > now else f"{_short(now - slot)} late"


def _progress(fraction: float | None, note: str) -> str:
    return "" if fraction is None else f"{fraction:.0%} {note}".rstrip()


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def plain(frame: Frame, where: str) -> Sequence[str]:
    """The whole frame, line by line."""
    text = [f"mainspring top  {headline(frame, where)}"]
    text += [f"{each.severity.upper()}  {printable(each.sentence)}" for each in frame.wrong]
    text += [] if frame.wrong else ["nothing is wrong"]
    for pane in panes(frame):
        text += ["", pane.title.upper()]
        if not pane.lines:
            text.append("  none")
            continue
        rows = [pane.columns, *(line.cells for line in pane.lines)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(pane.columns))]
        text += [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
    return text


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
