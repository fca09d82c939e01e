"""`worker -p N`: several worker processes under one that keeps them going."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta

from mainspring.app import Mainspring
from mainspring.cli.errors import by_signal
from mainspring.cli.session import Access
from mainspring.cli.watchdog import Watchdog
from mainspring.config import service_manager, unmanaged
from mainspring.duration import format_duration
from mainspring.monitor.service_manager import ServiceManager
from mainspring.process.process import CANCEL_WITHIN, PASS_WITHIN, WRITE_WITHIN
from mainspring.process.supervisor import Supervisor
from mainspring.waiting import until

_FLAGS = ("burst", "verbose")
_SWITCHES = {"shell": "shell", "log_configure": "configure-logging"}


def supervise(
    app: Mainspring, access: Access, count: int, given: Mapping[str, object], *, burst: bool
) -> int:
    """Keep so many workers going until stopped; answer the exit code."""
    # Its own drain, and then everything a worker may take to end, before it is killed.
    grace = app.settings.worker.shutdown_timeout + CANCEL_WITHIN + WRITE_WITHIN + 2 * PASS_WITHIN
    supervisor = Supervisor(
        count,
        lambda number: _start(command(access, given, number)),
        grace=grace,
        burst=burst,
        clock=app._clock,
        entropy=app._entropy,
        telemetry=app._telemetry,
    )
    Watchdog(grace, last_words=lambda: 1, wake=lambda: None)  # for what the app may have left at work here
    with asyncio.Runner() as runner:
        return runner.run(_run(supervisor))


def command(access: Access, given: Mapping[str, object], number: int) -> list[str]:
    """The command line of one worker: ours, without what makes a supervisor of us."""
    words = [sys.executable, "-m", "mainspring", "worker", str(access.app), "--supervised", str(os.getpid())]
    options: dict[str, object] = {**given, "database_url": access.database_url, "config": access.file}
    if options.get("name"):
        options["name"] = f"{options['name']}-{number}"
    if port := access.loaded.settings.metrics.port:
        options["metrics_port"] = port + number - 1  # each serves its own
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name in _FLAGS:
            words += [option] if value else []
        elif isinstance(value, bool):
            switch = _SWITCHES[name]
            words.append(f"--{switch}" if value else f"--no-{switch}")
        elif value is not None:
            words += [option, format_duration(value) if isinstance(value, timedelta) else str(value)]
    return words


def _start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    # In a session of its own, or Ctrl-C would reach it twice: from the terminal and from us.
    return subprocess.Popen(  # noqa: S603
        words, stdin=subprocess.DEVNULL, start_new_session=True, env=unmanaged()
    )


async def _run(supervisor: Supervisor) -> int:
    loop, woken, signals = asyncio.get_running_loop(), asyncio.Event(), list[int]()

    def stop(number: int) -> None:
        signals.append(number)
        supervisor.stop()
        woken.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    loop.add_signal_handler(signal.SIGCHLD, woken.set)
    notifier = ServiceManager.of(service_manager())
    notifier.ready("supervisor")
    while True:
        woken.clear()
        pause = await supervisor.tick()
        if supervisor.done:
            break
        notifier.stopping() if signals else notifier.alive()
        await until(woken, min(pause, notifier.every))
    return by_signal(signals[-1]) if len(signals) > 1 else supervisor.code
