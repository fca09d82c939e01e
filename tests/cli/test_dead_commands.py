"""Dead letters from the command line: filtered, grouped, edited, put back at a rate, purged."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import Answer, Shell
from tests.support.processes import until

MORGUE = """
from mainspring import Discard, Mainspring, Retry, Snooze

app = Mainspring()
once = Retry(attempts=1)


@app.task(retry=once)
def charge(card: str, cents: int = 1) -> str:
    if cents < 0:
        raise ValueError(f"negative amount\\ncents is {cents}")
    return f"{card} {cents}"


@app.task(retry=once)
def fetch(url: str) -> None:
    raise ConnectionError("no route to host")


@app.task
def withdraw() -> None:
    raise Discard("the order was withdrawn")


@app.task
def poll() -> None:
    raise Snooze("1h")
"""


@pytest.fixture
def morgue(shell: Shell) -> Shell:
    """Three dead letters: two charges and a fetch."""
    shell.write("morgue.py", MORGUE)
    for words in (["charge", "card=1", "cents=-1"], ["charge", "card=2", "cents=-2"], ["fetch", "url=x"]):
        assert shell("enqueue", "-A", "morgue.py", *words).code == 0
    assert shell("worker", "morgue.py", "--burst").code == 0
    return shell


def ids(answer: Answer) -> list[int]:
    assert answer.code == 0, answer.err
    return [each["id"] for each in answer.data]


def test_dead_letters_are_filtered(morgue: Shell) -> None:
    fetch, second, first = ids(morgue("dead", "list", "--json"))

    def listed(*words: str) -> list[int]:
        return ids(morgue("dead", "list", "--json", *words))

    assert listed("--task", "charge") == [second, first]
    assert listed("--error", "ConnectionError") == [fetch]
    assert listed("--message", "cents is -2") == [second]
    assert listed("--reason", "failed") == [fetch, second, first]
    assert listed("--reason", "crashed") == []
    assert listed("--died-after", "2020-01-01T00:00:00Z", "--died-before", "2020-01-02T00:00:00Z") == []
    assert listed("--before", str(second)) == [first]


def test_a_wrong_filter_is_refused(morgue: Shell) -> None:
    assert morgue("dead", "list", "--reason", "boredom").code == 2
    assert morgue("dead", "list", "--died-after", "yesterday").code == 2


def test_dead_letters_are_grouped(morgue: Shell) -> None:
    table = morgue("dead", "groups").out
    groups = morgue("dead", "groups", "--json").data

    assert [(each["count"], each["task"], each["error"], each["line"]) for each in groups] == [
        (2, "charge", "ValueError", "negative amount"),
        (1, "fetch", "ConnectionError", "no route to host"),
    ]
    assert re.search(r"^2 +charge .*ValueError: negative amount$", table, re.MULTILINE)


def test_an_edited_letter_runs_with_its_new_arguments(morgue: Shell) -> None:
    *_, job_id = map(str, ids(morgue("dead", "list", "--task", "charge", "--json")))

    edited = morgue("dead", "edit", job_id, "-A", "morgue.py", "--set", "cents=7", "--by", "ann", "--json")
    assert (edited.code, edited.data["kwargs"]) == (0, {"card": "1", "cents": 7})
    assert morgue("dead", "replay", job_id).code == 0
    assert morgue("worker", "morgue.py", "--burst").code == 0

    shown = morgue("jobs", "show", job_id, "--json").data
    assert (shown["state"], shown["result"]) == ("succeeded", "1 7")
    [edit] = [run for run in shown["runs"] if run["verdict"] == "edited"]
    assert edit["before"] == {"args": [], "kwargs": {"card": "1", "cents": -1}}
    assert edit["failure"]["message"] == "its arguments were edited by ann"


def test_an_edit_is_checked_against_the_task_when_an_app_is_named(morgue: Shell) -> None:
    *_, job_id = map(str, ids(morgue("dead", "list", "--task", "charge", "--json")))

    refused = morgue("dead", "edit", job_id, "-A", "morgue.py", "--set", "colour=red")
    assert (refused.code, "colour" in refused.err) == (2, True)
    text = morgue("dead", "edit", job_id, "-A", "morgue.py", "--set", "card=42", "--json")
    assert text.data["kwargs"]["card"] == "42"
    blind = morgue("dead", "edit", job_id, "--kwargs", '{"anything": 1}', "--args", "[]", "--json")
    assert blind.data["kwargs"] == {"anything": 1}


@pytest.mark.parametrize("words", [[], ["--set", "cents"], ["--args", "{}"], ["--kwargs", "7"]], ids=str)
def test_an_edit_that_says_nothing_is_refused(morgue: Shell, words: list[str]) -> None:
    [job_id, *_] = map(str, ids(morgue("dead", "list", "--json")))

    assert morgue("dead", "edit", job_id, *words).code == 2


def test_an_edit_of_no_dead_letter_is_refused(morgue: Shell) -> None:
    assert morgue("dead", "edit", "987654", "--set", "a=1").code == 1


def test_letters_are_replayed_by_filter_and_at_a_rate(morgue: Shell) -> None:
    fetch, *charges = ids(morgue("dead", "list", "--json"))

    done = morgue("dead", "replay", "--task", "charge", "--rate", "1000/s", "--json")

    assert done.code == 0, done.err
    assert done.data == {"replayed": 2, "ids": charges, "complete": True}
    assert ids(morgue("dead", "list", "--json")) == [fetch]
    assert morgue("dead", "replay", "--all").out == "1 replayed\n"


def test_ids_may_be_replayed_at_a_rate_too(morgue: Shell) -> None:
    first, second, _ = map(str, ids(morgue("dead", "list", "--json")))

    assert morgue("dead", "replay", first, second, "--rate", "100/s").out == "2 replayed\n"


@pytest.mark.parametrize("rate", ["0/s", "fast", "-1/s", "1/d", "1.5/s"])
def test_a_rate_that_is_none_is_refused(morgue: Shell, rate: str) -> None:
    refused = morgue("dead", "replay", "--all", "--rate", rate)

    assert (refused.code, "50/s" in refused.err) == (2, True)


def test_a_selection_must_be_one(morgue: Shell) -> None:
    for words in ([], ["1", "--all"], ["--all", "--error", "X"], ["1", "--before", "7"], ["--before", "7"]):
        assert morgue("dead", "replay", *words).code == 2, words


def test_a_replay_that_is_cut_short_says_how_to_go_on(
    morgue: Shell, started: Callable[..., subprocess.Popen[str]]
) -> None:
    newest, *_ = ids(morgue("dead", "list", "--json"))
    process = started("dead", "replay", "--all", "--rate", "1/h")
    until(lambda: len(morgue("dead", "list", "--json").data) == 2, "one letter to be back")

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)

    assert (process.returncode, out) == (130, "1 replayed\n")
    assert f"go on with: mainspring dead replay --all --before {newest}" in err
    assert morgue("dead", "replay", "--all", "--before", str(newest)).out == "2 replayed\n"


def test_letters_are_purged_by_filter(morgue: Shell) -> None:
    assert morgue("dead", "purge", "--error", "ConnectionError", "--yes").out == "1 purged\n"
    assert len(ids(morgue("dead", "list", "--json"))) == 2


def test_a_discarded_job_and_a_snoozed_one_are_told_of(morgue: Shell) -> None:
    withdrawn = morgue("enqueue", "-A", "morgue.py", "withdraw", "--json").data["id"]
    snoozed = morgue("enqueue", "-A", "morgue.py", "poll", "--json").data["id"]
    assert morgue("worker", "morgue.py", "--burst").code == 0

    assert ids(morgue("jobs", "list", "--state", "discarded", "--json")) == [withdrawn]
    assert "was discarded by its handler" in morgue("why", "job", str(withdrawn)).out
    assert "the order was withdrawn" in morgue("why", "job", str(withdrawn)).out
    assert "was snoozed by its handler until" in morgue("why", "job", str(snoozed)).out


def test_a_job_with_a_deadline_says_so(morgue: Shell) -> None:
    job_id = morgue("enqueue", "-A", "morgue.py", "poll", "--expires", "1h", "--json").data["id"]

    assert "It expires at" in morgue("why", "job", str(job_id)).out
    assert morgue("jobs", "show", str(job_id), "--json").data["expires_at"] is not None


def test_jobs_that_no_worker_will_take_are_shown_as_such(morgue: Shell) -> None:
    morgue("enqueue", "-A", "morgue.py", "poll")

    assert re.search(
        r" HINT\n.* no live worker serves queue default$", morgue("jobs", "list").out, re.MULTILINE
    )
    [listed] = morgue("jobs", "list", "--json").data
    assert listed["hint"] == "no live worker serves queue default"
