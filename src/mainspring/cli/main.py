"""`mainspring`: the group that holds every command."""

from __future__ import annotations

import sys

import click

from mainspring.cli.access import sessions, tokens
from mainspring.cli.acts import acts
from mainspring.cli.alerts import alerts
from mainspring.cli.audit import audit
from mainspring.cli.backfill import backfill, backfills
from mainspring.cli.check import check
from mainspring.cli.completion import completion
from mainspring.cli.config import config
from mainspring.cli.db import db
from mainspring.cli.dead import dead
from mainspring.cli.doctor import doctor
from mainspring.cli.enqueue import enqueue
from mainspring.cli.errors import ExitingGroup
from mainspring.cli.events import events
from mainspring.cli.jobs import jobs
from mainspring.cli.members import members
from mainspring.cli.next import next_
from mainspring.cli.queues import limits, queues
from mainspring.cli.run import dev, scheduler, worker
from mainspring.cli.schedules import schedules
from mainspring.cli.server import server
from mainspring.cli.simulate import simulate_
from mainspring.cli.status import status
from mainspring.cli.surroundings import speak_utf8, typed
from mainspring.cli.top import top
from mainspring.cli.watchdog import finish
from mainspring.cli.why import why
from mainspring.cli.workflows import workflows
from mainspring.version import __version__


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
    members,
    top,
    schedules,
    backfill,
    backfills,
    why,
    next_,
    simulate_,
    audit,
    acts,
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
    speak_utf8()
    try:
        cli(typed(sys.argv[1:]), prog_name="mainspring")
    except SystemExit as ending:
        finish(ending.code)
        raise
