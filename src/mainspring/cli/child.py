"""`python -m mainspring.cli.child`: the process that a worker starts for isolated runs. Not for people."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from mainspring.cli.app_loader import load_app
from mainspring.cli.errors import UserCodeFailed
from mainspring.cli.logs import set_up_logging
from mainspring.config import LogConfig
from mainspring.model.job import Failure
from mainspring.process.child_effects import ChildEffects
from mainspring.telemetry.traces import Tracer
from mainspring.worker.children.child_channel import ChildChannel, Hello, Ready, StartRun
from mainspring.worker.children.child_reaper import STATUS, keep
from mainspring.worker.children.runner import Handler, Runner, found_by_name
from mainspring.worker.outcomes import failure_of


def main(arguments: list[str]) -> int:
    """Keep a runner; the arguments are the numbers of the worker, the channel and the lifeline."""
    worker, channel_number, lifeline_number = map(int, arguments)
    lifeline = socket.socket(fileno=lifeline_number)
    channel = socket.socket(fileno=channel_number)
    for each in (lifeline, channel):
        each.set_inheritable(False)  # what handlers start must not hold the line open
    status = keep(lifeline, worker, lambda: _run(channel))
    with suppress(OSError):  # the worker is gone
        lifeline.sendall(STATUS.pack(status))
    return 0


def _run(channel: socket.socket) -> None:
    line = ChildChannel(channel)
    try:
        hello = line.hello()
        find = _finder(hello)
        tracer = Tracer() if hello.traces else None
    except UserCodeFailed as error:
        line.send(Ready(failure=Failure(type="ChildNotReady", message=error.report[-4000:])))
        return
    except BaseException as error:  # noqa: BLE001 - whatever it was, the worker should know
        line.send(Ready(failure=failure_of(error)))
        return
    Runner(
        line,
        find,
        lambda claim, run, size: ChildEffects(claim, run, hello.database_url, size),
        tracer,
    ).serve()
    sys.stdout.flush()


def _finder(hello: Hello) -> Callable[[StartRun], Handler]:
    """How this child finds the handler of a run."""
    sys.path[:] = hello.path
    if hello.target is None:
        return found_by_name
    app = load_app(hello.target)
    if hello.database_url is not None:
        app._configure({"database.url": hello.database_url})
    if hello.log_level is not None:
        log = LogConfig(level=hello.log_level, format=hello.log_format)
        set_up_logging(replace(app.settings, log=log), sys.stderr, every_run=False)

    def by_task(run: StartRun) -> Handler:
        task = app._registry.get(run.claim.task)
        return task.function, task.signature, task.retry

    return by_task


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
