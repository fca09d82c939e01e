"""Jobs from the command line, on both stores: put in, run in a burst, looked at, cancelled, replayed."""

from __future__ import annotations

import json

from tests.cli.conftest import Shell


def test_a_burst_worker_runs_what_was_enqueued_and_exits_zero(shell: Shell) -> None:
    first = shell("enqueue", "-A", "shop:app", "greet", "name=Ada", "--json")
    second = shell("enqueue", "-A", "shop.py", "add", "--args", "[2]", "b=3", "--json")

    burst = shell("worker", "shop", "--burst")

    assert (first.code, second.code, burst.code) == (0, 0, 0), burst.err
    assert first.data["task"] == "greet"
    shown = shell("jobs", "show", str(second.data["id"]), "--json").data
    assert (shown["state"], shown["result"], shown["args"], shown["kwargs"]) == (
        "succeeded",
        5,
        [2],
        {"b": 3},
    )
    assert [run["verdict"] for run in shown["runs"]] == ["succeeded"]
    listed = shell("jobs", "list", "--state", "succeeded", "--json").data
    assert [each["result"] for each in listed] == [5, "hello Ada"]


def test_a_second_job_of_a_key_is_not_made(shell: Shell) -> None:
    first = shell("enqueue", "-A", "shop", "greet", "--key", "k", "--json").data
    second = shell("enqueue", "-A", "shop", "greet", "--key", "k")
    third = shell("enqueue", "-A", "shop", "greet", "--key", "k", "--on-duplicate", "error")
    wrong = shell("enqueue", "-A", "shop", "greet", "--key", "k", "--on-duplicate", "drop")

    assert first["created"]
    assert (second.code, second.out) == (
        0,
        f"job {first['id']} (greet in default), which was there already\n",
    )
    assert third.code == 1
    assert f"key: 'k' of task greet is taken by job {first['id']}" in third.err
    assert wrong.code == 2
    assert "unique.on_duplicate: expected one of return, replace, error, got 'drop'" in wrong.err


def test_successes_are_logged_one_by_one_only_when_asked_for(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "greet")
    quiet = shell("worker", "shop", "--burst")
    shell("enqueue", "-A", "shop", "greet")
    loud = shell("worker", "shop", "--burst", "-v")

    assert "greet: succeeded" not in quiet.err
    assert "greet: succeeded" in loud.err


def test_an_app_named_by_the_environment_need_not_be_typed(shell: Shell) -> None:
    named = shell("enqueue", "greet", "name=Ada", MAINSPRING_APP="shop:app")
    optioned = shell("enqueue", "-A", "shop", "greet")

    assert (named.code, optioned.code) == (0, 0), named.err + optioned.err
    assert named.out.endswith("(greet in default)\n")
    assert shell("worker", "--burst", MAINSPRING_APP="shop").code == 0
    assert len(shell("jobs", "list", "--state", "succeeded", "--json").data) == 2


def test_delay_priority_and_queue_reach_the_job(shell: Shell) -> None:
    words = ["--delay", "10m", "--priority", "7", "--queue", "slow"]
    job_id = shell("enqueue", "-A", "shop", "greet", *words, "--json").data["id"]

    shown = shell("jobs", "show", str(job_id), "--json").data

    assert (shown["state"], shown["priority"], shown["queue"]) == ("delayed", 7, "slow")
    assert shell("jobs", "list", "--state", "ready", "--json").data == []


def test_a_delayed_job_is_retried_at_once_and_a_ready_one_says_why_not(shell: Shell) -> None:
    job_id = str(shell("enqueue", "-A", "shop", "greet", "--at", "2099-01-01T00:00:00Z", "--json").data["id"])

    hastened = shell("jobs", "retry", job_id)
    refused = shell("jobs", "retry", job_id, "--json")

    assert (hastened.code, hastened.out) == (0, f"job {job_id} hastened (was delayed)\n")
    assert refused.code == 1
    assert refused.data[0]["why"] == "is due already and waits for a worker"


def test_a_job_is_given_another_time(shell: Shell) -> None:
    job_id = str(shell("enqueue", "-A", "shop", "greet", "--json").data["id"])

    moved = shell("jobs", "reschedule", job_id, "--delay", "2h", "--by", "ada")
    fixed = shell("jobs", "reschedule", job_id, "--at", "2099-01-01T00:00:00Z")
    neither, both = (
        shell("jobs", "reschedule", job_id),
        shell("jobs", "reschedule", job_id, "--delay", "2h", "--at", "2099-01-01T00:00:00Z"),
    )

    assert (moved.code, moved.out) == (0, f"job {job_id} rescheduled (was ready)\n")
    assert (fixed.code, neither.code, both.code) == (0, 2, 2)
    assert shell("jobs", "show", job_id, "--json").data["run_at"] == "2099-01-01T00:00:00+00:00"
    orders = shell("audit-log", "list", "--json").data
    assert [each["actor"] for each in orders if each["action"] == "jobs.reschedule"][-1] == "ada"


def test_a_job_is_edited_and_one_that_does_not_wait_says_why_not(shell: Shell) -> None:
    job_id = str(shell("enqueue", "-A", "shop", "greet", "--json").data["id"])

    edited = shell(
        *("jobs", "edit", job_id, "-A", "shop", "--kwargs", '{"name": "Bob"}', "--priority", "9"),
        *("--queue", "slow", "--attempts", "7", "--expires", "1h"),
    )
    wrong = shell("jobs", "edit", job_id, "-A", "shop", "--kwargs", '{"nobody": 1}')
    nothing = shell("jobs", "edit", job_id)

    assert (edited.code, edited.out) == (0, f"job {job_id} edited (was ready)\n"), edited.err
    shown = shell("jobs", "show", job_id, "--json").data
    assert (shown["kwargs"], shown["priority"], shown["queue"], shown["max_attempts"]) == (
        {"name": "Bob"},
        9,
        "slow",
        7,
    )
    assert shown["expires_at"] is not None
    assert (wrong.code, nothing.code) == (2, 2), (wrong.err, nothing.err)
    assert shell("jobs", "edit", job_id, "--expires", "never").code == 0
    assert shell("jobs", "show", job_id, "--json").data["expires_at"] is None
    shell("jobs", "cancel", job_id)
    refused = shell("jobs", "edit", job_id, "--priority", "1")
    assert (refused.code, refused.out) == (1, f"job {job_id} was cancelled; nothing was done\n")


def test_a_cancelled_job_never_runs(shell: Shell) -> None:
    job_id = str(shell("enqueue", "-A", "shop", "greet", "--json").data["id"])

    cancelled = shell("jobs", "cancel", job_id)
    again = shell("jobs", "cancel", job_id)

    assert (cancelled.code, cancelled.out) == (0, f"job {job_id} cancelled (was ready)\n")
    assert (again.code, again.out) == (1, f"job {job_id} was cancelled; nothing was done\n")
    assert shell("worker", "shop", "--burst").code == 0
    assert shell("jobs", "show", job_id, "--json").data["state"] == "cancelled"


def test_a_dead_letter_is_shown_with_its_error_replayed_and_purged(shell: Shell) -> None:
    job_id = str(shell("enqueue", "-A", "shop", "broken", "--json").data["id"])
    shell("worker", "shop", "--burst")

    [letter] = shell("dead", "list", "--json").data
    assert letter["errors"][0]["message"].startswith("boom")
    shown = shell("dead", "show", job_id)
    assert "ValueError: boom" in shown.out
    assert "\x1b" not in shown.out
    assert shell("dead", "replay", "--task", "broken").out == "1 replayed\n"
    assert shell("dead", "list", "--json").data == []
    assert shell("worker", "shop", "--burst").code == 0
    assert shell("dead", "purge", "--all").code == 2
    purged = shell("dead", "purge", "--all", "--yes", "--json")
    assert (purged.code, purged.data) == (0, {"purged": 1})


def test_a_failing_handler_cannot_forge_log_lines(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "broken")

    text = shell("worker", "shop", "--burst")

    assert "\x1b" not in text.err
    assert not any(line.startswith("second line") for line in text.err.splitlines())


def test_json_logs_are_one_object_a_line(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "broken")

    burst = shell("worker", "shop", "--burst", "--log-format", "json")

    lines = [json.loads(line) for line in burst.err.splitlines()]

    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert [line["level"] for line in lines if "boom" in line["message"]] == ["error"]
