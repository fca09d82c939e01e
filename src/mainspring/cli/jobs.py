"""`jobs` and `enqueue`: put jobs into queues, look at them, cancel and retry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import click

from mainspring.admin.admin import Admin
from mainspring.admin.jobs import (
    NEVER,
    Done,
    Effect,
    EnqueueRequest,
    JobDetail,
    JobHistory,
    RunLogView,
    job_of,
)
from mainspring.admin.views import HandleView, JobView, ListedJob, iso, process_id, to_json
from mainspring.admin.words import combined
from mainspring.cli.errors import FAILED
from mainspring.cli.options import (
    JOB_ID,
    LARGEST_ID,
    Whole,
    app_option,
    author_option,
    json_option,
    keywords,
    length,
    moment,
    pairs,
    positional,
    settings_options,
    store_options,
    value,
)
from mainspring.cli.output import block, document, fields, printable, say, table, when
from mainspring.cli.session import Access, refuse_memory, with_admin
from mainspring.model.job import Job, JobFilter, JobState
from mainspring.model.run import Progress, Run
from mainspring.model.schedule import Period

LARGEST_PAGE = 1000


@click.group()
def jobs() -> None:
    """See, cancel, retry and change jobs, and read their logs."""


@jobs.command("list")
@click.option(
    "--state",
    type=click.Choice([each.value for each in JobState]),
    help="Only this state. Default: all live jobs.",
)
@click.option("--task", metavar="NAME", help="Only jobs of this task.")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option("--limit", type=Whole(1, LARGEST_PAGE), default=50, show_default=True, help="How many to list.")
@click.option(
    "--before",
    type=Whole(1, LARGEST_ID),
    metavar="ID",
    help="Only ids below this one, to read the next page.",
)
@store_options
def list_jobs(
    state: str | None,
    task: str | None,
    queue: str | None,
    limit: int,
    before: int | None,
    access: Access,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    which = JobFilter(
        state=None if state is None else JobState(state), task=task, queue=queue, before=before, limit=limit
    )

    async def read(admin: Admin) -> tuple[list[Job], dict[int, str]]:
        found = await admin.jobs.afind(which)
        return found, await admin.jobs.ahints(found)

    found, hints = access.ask(read)
    if as_json:
        document([ListedJob.of(each, hint=hints.get(each.id)) for each in found])
        return
    titles = ["ID", "STATE", "TASK", "QUEUE", "PRIORITY", "RUN AT", "FAILURES"]
    rows: list[Sequence[object]] = [_row(each) for each in found]
    if hints:
        titles, rows = (
            [*titles, "HINT"],
            [(*row, hints.get(each.id)) for row, each in zip(rows, found, strict=True)],
        )
    table(titles, rows, none=_none(state, access.where()))


@jobs.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@store_options
def show(job_id: int, access: Access, as_json: bool) -> None:
    """Show one job and all its runs."""
    found = access.ask(lambda admin: admin.jobs.aget(job_id))
    if as_json:
        document(JobDetail.of_history(found))
        return
    now = {
        "stands for": _stands_for(found.period),
        "progress": _progress(found.progress),
        "awaits": found.awaits,
        **_belongs_in_words(found),
    }
    show_job(JobView.of(found.job), now)
    if found.runs:
        click.echo()
        titles = ["RUN", "ATTEMPT", "VERDICT", "STARTED AT", "FINISHED AT", "WORKER", "FAILURE"]
        table(titles, ([n, *_run_row(each)] for n, each in enumerate(found.runs, 1)), none="no runs")


@jobs.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option(
    "--run", "number", type=Whole(1), metavar="N", help="Only this run, by its number in `jobs show`."
)
@store_options
def logs(job_id: int, number: int | None, access: Access, as_json: bool) -> None:
    """Show the captured log lines of a job's runs."""
    found = access.ask(lambda admin: admin.jobs.alogs(job_id, number=number))
    if as_json:
        document([RunLogView.of(each) for each in found])
        return
    logged = [each for each in found if each.log is not None]
    for each in logged:
        if len(found) > 1:
            click.echo(f"run {each.number}, attempt {each.run.attempt}, {each.run.verdict}:")
        block(each.log or "", indent="" if len(found) == 1 else "  ")
    if not logged:
        whose = f"job {job_id}" if number is None else f"run {number} of job {job_id}"
        say(f"no log lines were captured of {whose}")


@jobs.command()
@click.argument("ids", nargs=-1, required=True, type=JOB_ID, metavar="ID...")
@author_option
@store_options
@click.pass_context
def cancel(ctx: click.Context, ids: tuple[int, ...], author: str, access: Access, as_json: bool) -> None:
    """Cancel jobs for good; running ones are asked to stop."""
    ctx.exit(report(access.ask(lambda admin: admin.jobs.acancel(ids), by=author), as_json=as_json))


@jobs.command()
@click.argument("ids", nargs=-1, required=True, type=JOB_ID, metavar="ID...")
@author_option
@store_options
@click.pass_context
def retry(ctx: click.Context, ids: tuple[int, ...], author: str, access: Access, as_json: bool) -> None:
    """Make delayed jobs due now; replay dead ones."""
    ctx.exit(report(access.ask(lambda admin: admin.jobs.aretry(ids), by=author), as_json=as_json))


@jobs.command()
@click.argument("ids", nargs=-1, required=True, type=JOB_ID, metavar="ID...")
@click.option("--at", type=moment, metavar="ISO", help="At this moment: 2026-03-01T09:00:00+01:00.")
@click.option("--delay", type=length, help="So long from now: 10m.")
@author_option
@store_options
@click.pass_context
def reschedule(
    ctx: click.Context,
    ids: tuple[int, ...],
    at: datetime | None,
    delay: timedelta | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Have jobs that wait run at another time."""
    if (at is None) == (delay is None):
        raise click.UsageError("--at, --delay: expected one of them")
    done = access.ask(lambda admin: admin.jobs.areschedule(ids, run_at=at, delay=delay), by=author)
    ctx.exit(report(done, as_json=as_json))


@jobs.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--args", "listed", metavar="JSON", help="Other positional arguments, as a JSON array.")
@click.option("--kwargs", "named", metavar="JSON", help="Other keyword arguments, as a JSON object.")
@click.option("--priority", type=Whole(), help="From -100 to 100; higher runs first.")
@click.option("--queue", help="Another queue.")
@click.option("--attempts", type=Whole(1), help="How many times it may be tried in all.")
@click.option("--expires", help='So long after it is due it must have succeeded: 1h; or "never".')
@author_option
@store_options
@click.pass_context
def edit(
    ctx: click.Context,
    job_id: int,
    listed: str | None,
    named: str | None,
    priority: int | None,
    queue: str | None,
    attempts: int | None,
    expires: str | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Change a job that waits; what is not named stays as it is.

    With -A the arguments are checked against the task's parameters, and the limits of the task count for the
    new ones.
    """
    args = None if listed is None else positional(listed)
    kwargs = None if named is None else keywords(named)
    ends = expires if expires in (None, NEVER) else length(expires)
    done = access.ask(
        lambda admin: admin.jobs.aedit(
            job_id,
            args=args,
            kwargs=kwargs,
            priority=priority,
            queue=queue,
            attempts=attempts,
            expires=ends,
        ),
        by=author,
    )
    ctx.exit(report([done], as_json=as_json))


def report(done: Sequence[Done], *, as_json: bool) -> int:
    """Say what became of each job; answer 1 if one refused."""
    if as_json:
        document(done)
    else:
        for each in done:
            click.echo(f"job {each.job_id} {_said(each)}")
    return FAILED if any(each.effect is Effect.NONE for each in done) else 0


def show_job(job: JobView, more: Mapping[str, object] | None = None) -> None:
    """A job's facts, and its errors with their tracebacks."""
    facts = {**to_json(job), **(more or {})}
    del facts["errors"]
    fields((name.replace("_", " "), value) for name, value in facts.items())
    for error in job.errors:
        said = f"attempt {error.attempt} at {iso(error.at)}: {error.type}: {error.message}"
        click.echo(f"\n{printable(said)}")
        block(error.traceback)


def _belongs_in_words(found: JobHistory) -> dict[str, object]:
    whole = found.workflow
    own = None if whole is None else f"{whole.name}, {whole.state}: `mainspring workflows show {whole.id}`"
    return {"workflow": own, "belongs to": None if found.step is None else str(found.step)}


def _stands_for(period: Period | None) -> str | None:
    if period is None or period.start is None:
        return None
    missed = f"; {combined(period)}" if period.since is not None else ""
    return f"{when(period.start)} to {when(period.end)}{missed}"


def _progress(progress: Progress | None) -> str | None:
    if progress is None:
        return None
    note = f", {progress.note}" if progress.note else ""
    return f"{progress.fraction:.0%}{note} (at {when(progress.at)})"


def _none(state: str | None, where: str) -> str:
    if state is None:
        return f"no live jobs in {where}; --state succeeded shows ended ones"
    return f"no {state} jobs in {where}"


def _said(done: Done) -> str:
    return (
        f"{done.why}; nothing was done" if done.effect is Effect.NONE else f"{done.effect} (was {done.was})"
    )


def _row(job: Job) -> Sequence[object]:
    return (
        job.id,
        job.state,
        job.task,
        job.queue,
        job.priority,
        when(job.run_at),
        f"{job.failures}/{job.max_attempts}",
    )


def _run_row(run: Run) -> Sequence[object]:
    failure = None if run.failure is None else f"{run.failure.type}: {run.failure.message}"
    return (
        run.attempt,
        run.verdict,
        when(run.started_at),
        when(run.finished_at),
        process_id(run.worker_id),
        failure,
    )


@click.command()
@click.argument("name", metavar="TASK")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "listed", metavar="JSON", help="Positional arguments, as a JSON array.")
@click.option("--kwargs", "named", metavar="JSON", help="Keyword arguments, as a JSON object.")
@click.option("--delay", type=length, help="Run it after this time: 10m.")
@click.option("--at", type=moment, metavar="ISO", help="Run it at this moment: 2026-03-01T09:00:00+01:00.")
@click.option("--priority", type=Whole(), help="From -100 to 100; higher runs first.")
@click.option("--queue", help="Another queue than the task's own.")
@click.option("--key", help="An idempotency key: one job only.")
@click.option(
    "--scope",
    metavar="queued|finished",
    help="With --key: only while its job is queued, or until it has finished.",
)
@click.option("--period", type=length, help="With --key: for this long after the job was made.")
@click.option(
    "--on-duplicate", metavar="return|replace|error", help="With --key: what happens to a second job."
)
@click.option("--debounce", type=length, help="Run it when no further one was enqueued for this long.")
@click.option("--expires", type=length, help="The deadline, counted from when it is due: 1h.")
@author_option
@app_option(required=True, example="invoice month=2026-10")
@settings_options
@json_option
def enqueue(
    name: str,
    words: tuple[str, ...],
    listed: str | None,
    named: str | None,
    delay: timedelta | None,
    at: datetime | None,
    priority: int | None,
    queue: str | None,
    key: str | None,
    scope: str | None,
    period: timedelta | None,
    on_duplicate: str | None,
    debounce: timedelta | None,
    expires: timedelta | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Put one job into its queue; it is stored on return.

    For a parameter annotated str a VALUE is text. For others it is JSON if it can be read as JSON, else
    text: count=3 name=Ada.
    """
    if delay is not None and at is not None:
        raise click.UsageError("--delay and --at: expected one of them, not both")
    args, kwargs, texts = positional(listed), keywords(named), pairs(words)
    app = access.load()
    task = app._registry.get(name)
    kwargs.update({each: value(each, text, task.signature.text_kind(each)) for each, text in texts.items()})
    wanted = EnqueueRequest(
        task=name,
        args=tuple(args),
        kwargs=kwargs,
        delay=delay,
        run_at=at,
        priority=priority,
        queue=queue,
        expires=expires,
        key=key,
        scope=scope,
        period=period,
        on_duplicate=on_duplicate,
        debounce=debounce,
    )
    job_of(task, wanted)  # wrong arguments are refused before a database is opened
    refuse_memory(app)
    [handle], _ = with_admin(app, lambda admin: admin.jobs.aenqueue([wanted]), by=author)
    if as_json:
        document(HandleView.of(handle))
    else:
        click.echo(str(handle) + ("" if handle.created else ", which was there already"))
