"""`mainspring`: the group of all commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click
from click.shell_completion import get_completion_class

from mainspring.cli.access import sessions, tokens
from mainspring.cli.alerts import alerts
from mainspring.cli.audit_log import audit_log
from mainspring.cli.backfills import backfill, backfills
from mainspring.cli.config import config
from mainspring.cli.db import db
from mainspring.cli.dead import dead
from mainspring.cli.errors import ExitingGroup
from mainspring.cli.events import events
from mainspring.cli.health import check, doctor, status
from mainspring.cli.jobs import enqueue, jobs
from mainspring.cli.processes import processes
from mainspring.cli.queues import limits, queues
from mainspring.cli.run import dev, scheduler, worker
from mainspring.cli.schedules import next_fires, schedules
from mainspring.cli.server import server
from mainspring.cli.simulate import simulate_
from mainspring.cli.top import top
from mainspring.cli.verify import verify
from mainspring.cli.watchdog import finish
from mainspring.cli.why import why
from mainspring.cli.workflows import workflows
from mainspring.errors import UsageError
from mainspring.version import __version__

VARIABLE = "_MAINSPRING_COMPLETE"


_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options.

    bash: eval "$(mainspring completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: write it to
    ~/.config/fish/completions/mainspring.fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"completion: click knows nothing of {shell}")
    click.echo(kind(ctx.find_root().command, {}, "mainspring", VARIABLE).source())


@click.group(cls=ExitingGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="mainspring", message="%(prog)s %(version)s")
def cli() -> None:
    """Cron that can't miss, can't double, and can tell you why.

    Start with `mainspring dev FILE.py`. Exit codes: 0 done, 1 failed or refused, 2 wrong usage or an
    app that cannot be loaded, 3 the database cannot be reached, 70 a worker whose handlers would not end,
    130 or 143 cut short by a signal.
    """


for command in (
    dev,
    worker,
    scheduler,
    server,
    enqueue,
    jobs,
    dead,
    events,
    workflows,
    queues,
    limits,
    processes,
    top,
    schedules,
    backfill,
    backfills,
    why,
    next_fires,
    simulate_,
    verify,
    audit_log,
    tokens,
    sessions,
    alerts,
    check,
    db,
    doctor,
    status,
    config,
    completion,
):
    cli.add_command(command)


def main() -> None:
    """The entry point."""
    _speak_utf8()
    try:
        cli(_typed(sys.argv[1:]), prog_name="mainspring")
    except SystemExit as ending:
        finish(ending.code)
        raise


def _speak_utf8() -> None:
    """Read and write UTF-8 where the locale is plain C and Python's UTF-8 mode is off: what is stored is
    text, whatever the terminal is."""
    if _is_utf8():
        return
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _typed(words: Sequence[str]) -> list[str]:
    """The command line as it was typed: bytes that the locale could not read are UTF-8. Those that are not
    even that stay as they are, and are refused where they are used."""
    if _is_utf8():
        return list(words)
    return [os.fsencode(each).decode("utf-8", "surrogateescape") for each in words]


def _is_utf8() -> bool:
    return sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
