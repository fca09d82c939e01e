"""Queues and limits from the command line, on both stores."""

from __future__ import annotations

from tests.cli.conftest import Shell

LIMITED = """
from mainspring import Limit, Mainspring

app = Mainspring()


@app.task(limits=[Limit("stripe", concurrency=1), Limit("tenant", by="tenant", concurrency=2)])
def charge(tenant: str) -> None: ...
"""


def test_a_queue_is_paused_resumed_and_drained(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "greet")
    paused = shell("queues", "pause", "default", "--by", "bob", "--note", "moving")
    again = shell("queues", "pause", "default")
    burst = shell("worker", "shop", "--burst")
    listed = shell("queues", "list", "--json").data
    why = shell("why", "job", "1")
    drained = shell("queues", "drain", "default")
    resumed = shell("queues", "resume", "default")
    shell("worker", "shop", "--burst")

    assert (paused.code, paused.out) == (0, "queue default paused\n")
    assert again.out == "queue default is paused already; nothing was done\n"
    assert burst.code == 0
    [queue] = listed
    assert (queue["ready"], queue["paused_by"], queue["pause_note"]) == (1, "bob", "moving")
    assert "its queue default was paused by bob" in why.out
    assert (drained.code, drained.out.split(":")[0]) == (0, "queue default drained")
    assert resumed.out == "queue default resumed\n"
    assert [each["task"] for each in shell("jobs", "list", "--state", "succeeded", "--json").data] == [
        "greet"
    ]


def test_queues_may_be_named_one_by_one_or_together(shell: Shell) -> None:
    for queue in ("mail", "reports", "billing", "nobodys"):
        shell("enqueue", "-A", "shop", "greet", "--queue", queue)

    served = shell("worker", "shop", "--burst", "-q", "mail=3", "-q", "reports,billing=2")

    assert served.code == 0
    assert [each["queue"] for each in shell("jobs", "list", "--json").data] == ["nobodys"]


def test_limits_and_what_waits_for_them_are_shown(shell: Shell) -> None:
    shell.write("bank.py", LIMITED)
    for _ in range(3):
        assert shell("enqueue", "-A", "bank", "charge", "tenant=acme").code == 0

    [stripe, tenant] = shell("limits", "list", "--json").data
    assert (stripe["name"], stripe["concurrency"], stripe["used"], stripe["waiting"]) == ("stripe", 1, 0, 3)
    assert (tenant["name"], tenant["key"], tenant["concurrency"]) == ("tenant", "acme", 2)
    why = shell("why", "job", "1").out
    assert "Job 1 waits for its limits" in why
    assert "stripe (1 at once)" in why
    assert shell("worker", "bank", "--burst").code == 0
    assert len(shell("jobs", "list", "--state", "succeeded", "--json").data) == 3
    assert shell("limits", "list", "--name", "nothing").err.startswith("no limits in")
