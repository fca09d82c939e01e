"""Events from the command line, on both stores."""

from __future__ import annotations

from tests.cli.conftest import Shell

APP = """
from mainspring import Context, Mainspring

app = Mainspring()


@app.task
async def order(ctx: Context) -> object:
    return await ctx.await_event("approved")
"""


def test_a_job_waits_says_so_and_goes_on_when_the_event_is_sent(shell: Shell) -> None:
    shell.write("orders.py", APP)
    shell("enqueue", "-A", "orders", "order")
    shell("worker", "orders", "--burst")
    waiting = shell("jobs", "show", "1").out
    listed = shell("jobs", "list", "--json").data
    why = shell("why", "job", "1").out
    sent = shell("events", "send", "approved", '{"by": ["ann"]}', "--job", "1")
    again = shell("events", "send", "approved", "--job", "1", "--json")
    everybody = shell("events", "send", "approved", "--json")
    shell("worker", "orders", "--burst")
    ended = shell("jobs", "show", "1", "--json").data

    assert any(line.split() == ["awaits", "approved"] for line in waiting.splitlines())
    assert [each["hint"] for each in listed] == ["waits for event approved"]
    assert "Job 1 waits for event approved, for however long it takes." in why
    assert (sent.code, sent.out) == (0, "event approved for job 1 sent\n")
    assert (again.code, again.data) == (0, {"name": "approved", "job_id": 1, "sent": False})
    assert everybody.data == {"name": "approved", "job_id": None, "sent": True}
    assert (ended["state"], ended["result"], ended["awaits"]) == ("succeeded", {"by": ["ann"]}, None)


def test_what_cannot_be_sent_is_refused(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "greet")
    mistakes = {
        ("a b",): 2,
        ("approved", "{by: ann}"): 2,
        ("approved", '{"a": 1, "a": 2}'): 2,
        ("approved", "--job", "0"): 2,
        ("approved", "--job", "99"): 1,
    }
    for words, code in mistakes.items():
        answer = shell("events", "send", *words)
        assert (answer.code, answer.out) == (code, ""), words
        assert "Traceback" not in answer.err
