"""The fleet from the command line, on both stores."""

from __future__ import annotations

import signal

from tests.cli.conftest import FINISHES_WITHIN, Shell
from tests.support.processes import until


def test_who_lives_is_listed_and_who_is_gone_on_request(shell: Shell) -> None:
    shell("db", "migrate")
    nobody = shell("members", "list")
    process = shell.start("worker", "shop", "-n", "ann", "-q", "mail,default")
    try:
        until(lambda: shell("members", "list", "--json").data, "the worker to join")
        [member] = shell("members", "list", "--json").data
        lines = shell("members", "list").out.splitlines()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=FINISHES_WITHIN)
    after, everybody = shell("members", "list"), shell("members", "list", "--all", "--json").data

    assert nobody.err.startswith("nobody is alive in ")
    assert (member["name"], member["role"], member["alive"]) == ("ann", "worker", True)
    assert member["queues"] == ["mail", "default"]
    assert lines[0].split()[:3] == ["MEMBER", "ROLE", "NAME"]
    assert lines[1].split()[:3] == [member["id"], "worker", "ann"]
    assert "mail,default" in lines[1]
    assert after.err.startswith("nobody is alive in ")
    assert [each["alive"] for each in everybody] in ([False], [])
