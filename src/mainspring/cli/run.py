"""`dev`, `worker` and `scheduler`: the commands that run an app."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext

import click

from mainspring.cli.options import Whole, app_argument, length, log_options, settings_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import printable, say
from mainspring.cli.server import dashboard as beside
from mainspring.cli.session import Access, naming_the_database, refuse_memory
from mainspring.config import masked_url
from mainspring.version import __version__

_LISTED = 12
_FEW_FILES = 256
"""Files that a serving process should be allowed to open, for connections, children and the user's own."""


def metrics_options(command: Callable[..., None]) -> Callable[..., None]:
    """Where this process serves its metrics."""
    command = click.option("--metrics-host", metavar="HOST", help="Where to listen; default: 127.0.0.1.")(
        command
    )
    return click.option(
        "--metrics-port", type=Whole(), metavar="PORT", help="Serve /metrics, /healthz and /readyz there."
    )(command)


verbose_option = click.option("-v", "--verbose", is_flag=True, help="Log every run, successes too.")


def _together(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> str | None:
    """`-q a -q b` is `-q a,b`."""
    return ",".join(given) if given else None


def worker_options(command: Callable[..., None]) -> Callable[..., None]:
    """How a worker takes and runs jobs."""
    for option in reversed(
        [
            click.option(
                "-q",
                "--queues",
                metavar="A,B",
                multiple=True,
                callback=_together,
                help="Queues to serve; default: default.",
            ),
            click.option("-c", "--concurrency", type=Whole(), metavar="N", help="Jobs that run at once."),
            click.option(
                "-t", "--threads", type=Whole(), metavar="N", help="Plain functions that run at once."
            ),
            click.option("--children", type=Whole(), metavar="N", help="Isolated jobs that run at once."),
            click.option("-n", "--name", type=a_name, help="The name of this process; default: host:pid."),
            click.option(
                "--shutdown-timeout", type=length, help="How long running jobs may take to end after a stop."
            ),
            click.option(
                "--lease",
                type=length,
                help="Lease duration: without a heartbeat for so long, a process is dead.",
            ),
            click.option(
                "--heartbeat", type=length, help="How often the lease is renewed: at most a third of it."
            ),
            click.option("--shell/--no-shell", default=None, help="Run shell tasks, which start programs."),
        ]
    ):
        command = option(command)
    return command


@click.command()
@app_argument()
@worker_options
@click.option(
    "--dashboard/--no-dashboard",
    default=True,
    help="Serve the dashboard too, at 127.0.0.1:8383 or the next free port.",
)
@settings_options
@metrics_options
@log_options
def dev(access: Access, dashboard: bool, **given: object) -> None:
    """Run everything in one process: the quickest way to start.

    It migrates the database, runs a scheduler and a worker, serves the dashboard, and logs every run.
    """
    _serve(access, given, verbose=True, worker=True, scheduler=True, migrate=True, dashboard=dashboard)


@click.command()
@app_argument()
@worker_options
@click.option("--burst", is_flag=True, help="End when no job is ready.")
@click.option("-p", "--processes", type=Whole(1, 1000), metavar="N", help="How many worker processes to run.")
@click.option("--supervised", type=Whole(), hidden=True)
@settings_options
@metrics_options
@log_options
@verbose_option
def worker(
    access: Access,
    verbose: bool,
    burst: bool,
    processes: int | None,
    supervised: int | None,
    **given: object,
) -> None:
    """Run jobs until stopped.

    The first SIGTERM or Ctrl-C lets running jobs end; the second gives them back at once. With -p, one
    process starts so many workers, starts again those that die, and ends with them.
    """
    if processes is not None:
        _supervise(access, given, processes, verbose=verbose, burst=burst)
    else:
        _serve(
            access,
            given,
            verbose=verbose,
            worker=True,
            scheduler=False,
            burst=burst,
            supervisor=supervised,
        )


@click.command()
@app_argument()
@click.option("-n", "--name", type=a_name, help="The name of this process; default: host:pid.")
@click.option(
    "--lease", type=length, help="Lease duration: without a heartbeat for so long, a process is dead."
)
@click.option("--heartbeat", type=length, help="How often the lease is renewed: at most a third of it.")
@settings_options
@metrics_options
@log_options
@verbose_option
def scheduler(access: Access, verbose: bool, **given: object) -> None:
    """Write the app's schedules and turn due slots into jobs.

    It runs until it is stopped. Several schedulers may run at once.
    """
    _serve(access, given, verbose=verbose, worker=False, scheduler=True)


def _serve(
    access: Access,
    given: Mapping[str, object],
    *,
    verbose: bool,
    worker: bool,
    scheduler: bool,
    burst: bool = False,
    migrate: bool = False,
    supervisor: int | None = None,
    dashboard: bool = False,
) -> None:
    from mainspring.cli.logs import set_up_logging
    from mainspring.cli.service import run_service
    from mainspring.telemetry.log import log_event

    app = access.load(_flags(given))
    set_up_logging(app.settings, sys.stderr, every_run=verbose)
    app._telemetry = app._telemetry.behind(log_event)
    for tight in _tight_limits():
        logging.getLogger("mainspring").warning(tight)
    if migrate:
        _banner(app.settings.database.url, list(app._registry.tasks), list(app._registry.schedules))
    with naming_the_database(app):
        code = run_service(
            app,
            worker=worker,
            scheduler=scheduler,
            burst=burst,
            migrate=migrate,
            supervisor=supervisor,
            beside=beside if dashboard else nullcontext,
        )
    click.get_current_context().exit(code)


def _supervise(
    access: Access, given: Mapping[str, object], count: int, *, verbose: bool, burst: bool
) -> None:
    from mainspring.cli.logs import set_up_logging
    from mainspring.cli.supervise import supervise
    from mainspring.telemetry.log import log_event

    # Loaded here too, so that what is wrong with it is said once, and not by every worker.
    app = access.load(_flags(given))
    refuse_memory(app)
    set_up_logging(app.settings, sys.stderr, every_run=verbose)
    app._telemetry = app._telemetry.behind(log_event)
    options = {**given, "burst": burst, "verbose": verbose}
    click.get_current_context().exit(supervise(app, access, count, options, burst=burst))


def _flags(given: Mapping[str, object]) -> dict[str, object]:
    """Options by the dotted names of the settings they set."""
    return {_setting(name): value for name, value in given.items()}


def _setting(option: str) -> str:
    section, _, name = option.partition("_")
    return f"{section}.{name}" if section in ("log", "metrics") else f"worker.{option}"


def _banner(url: str, tasks: list[str], schedules: list[str]) -> None:
    say(f"Mainspring {__version__} on {printable(masked_url(url))}")
    say(f"  tasks      {_listed(tasks)}")
    say(f"  schedules  {_listed(schedules)}")
    say("  Ctrl-C stops it")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (", ".join(sorted(names)[:_LISTED]) or "none") + more


def _tight_limits() -> Iterator[str]:
    """What a serving process may run out of."""
    try:
        import resource
    except ImportError:  # not on every system
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        yield f"only {soft} files may be open at once (ulimit -n), so jobs may fail: allow {_FEW_FILES}"
