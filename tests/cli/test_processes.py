"""The fleet from the command line, on both stores."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable

from tests.cli.conftest import FINISHES_WITHIN, Shell
from tests.support.processes import until

Start = Callable[..., subprocess.Popen[str]]


def test_who_lives_is_listed_and_who_left_is_not(shell: Shell, started: Start) -> None:
    shell("db", "migrate")
    nobody = shell("processes", "list")
    process = started("worker", "shop", "-n", "ann", "-q", "mail,default")
    until(lambda: shell("processes", "list", "--json").data, "the worker to join")
    [member] = shell("processes", "list", "--json").data
    titles, line = shell("processes", "list").out.splitlines()
    process.send_signal(signal.SIGTERM)
    process.wait(FINISHES_WITHIN)

    assert nobody.err.startswith("no live process in ")
    assert (member["name"], member["role"], member["alive"]) == ("ann", "worker", True)
    assert member["queues"] == ["mail", "default"]
    assert titles.split()[:3] == ["PROCESS", "ROLE", "NAME"]
    assert line.split()[:3] == [member["id"], "worker", "ann"]
    assert "mail,default" in line
    assert shell("processes", "list", "--all", "--json").data == []


def test_who_was_killed_is_shown_on_request(shell: Shell, started: Start) -> None:
    shell("db", "migrate")
    process = started("worker", "shop", "-n", "bob", "--lease", "3s", "--heartbeat", "1s")
    until(lambda: shell("processes", "list", "--json").data, "the worker to join")
    process.kill()
    until(lambda: not shell("processes", "list", "--json").data, "its lease to end")
    [member] = shell("processes", "list", "--all", "--json").data

    assert (member["name"], member["alive"]) == ("bob", False)
