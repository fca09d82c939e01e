"""Progress and logs from the command line, on both stores: a real worker writes, other commands read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

from tests.cli.conftest import Shell
from tests.support.processes import until

TALK = """
from __future__ import annotations

import logging
import time
from pathlib import Path

from mainspring import Context, Mainspring, Retry

app = Mainspring()


@app.task
def copy(ctx: Context, gate: str) -> None:
    ctx.progress(0.4, "3 of 7 \\x1b files")
    while not Path(gate).exists() and not ctx.cancelled:
        time.sleep(0.02)


@app.task(retry=Retry(attempts=2, base="1ms", jitter=False))
def talk(ctx: Context) -> None:
    ctx.log.info("attempt %d \\x1b", ctx.attempt)
    logging.getLogger("other").warning("from elsewhere")
    raise ValueError("boom")


@app.task
def large() -> str:
    return "x" * 5000
"""


def test_progress_is_seen_while_the_job_runs(
    shell: Shell, started: Callable[..., Popen[str]], tmp_path: Path
) -> None:
    shell.write("talk.py", TALK)
    gate = tmp_path / "gate"
    job_id = str(shell("enqueue", "-A", "talk", "copy", f"gate={gate}", "--json").data["id"])
    assert shell("jobs", "show", job_id, "--json").data["progress"] is None
    worker = started("worker", "talk", "--burst")

    def seen() -> dict[str, object] | None:
        found: dict[str, object] | None = shell("jobs", "show", job_id, "--json").data["progress"]
        return found

    progress = until(seen, "progress to be written")
    shown, why = shell("jobs", "show", job_id), shell("why", "job", job_id)
    gate.touch()
    worker.communicate()

    assert (progress["fraction"], progress["note"]) == (0.4, "3 of 7 \x1b files")
    assert "progress      40%, 3 of 7 \\x1b files (at " in shown.out
    assert "40% done (3 of 7 \\x1b files) as of" in why.out
    ended = shell("jobs", "show", job_id, "--json").data
    assert (ended["state"], ended["progress"]) == ("succeeded", None)


def test_the_log_of_every_run_can_be_read(shell: Shell) -> None:
    shell.write("talk.py", TALK)
    job_id = str(shell("enqueue", "-A", "talk", "talk", "--json").data["id"])
    none = shell("jobs", "logs", job_id)
    for _ in range(2):  # a burst may end before the second attempt is due
        shell("worker", "talk", "--burst", "--log-level", "error")

    text, second = shell("jobs", "logs", job_id), shell("jobs", "logs", job_id, "--run", "2")
    [first, last] = shell("jobs", "logs", job_id, "--json").data

    assert (none.code, none.out, none.err) == (0, "", f"no log lines were captured of job {job_id}\n")
    assert [line.split("Z ")[-1] for line in text.out.splitlines()] == [
        "run 1, attempt 1, failed:",
        "info    attempt 1 \\x1b",
        "run 2, attempt 2, dead:",
        "info    attempt 2 \\x1b",
    ]
    assert second.out.endswith("Z info    attempt 2 \\x1b\n")
    assert second.out.count("\n") == 1
    assert (first["run"], first["attempt"], first["verdict"]) == (1, 1, "failed")
    assert last["log"].endswith("Z info    attempt 2 \x1b")
    assert last["finished_at"] is not None
    listed = shell("jobs", "show", job_id).out
    assert "RUN  ATTEMPT  VERDICT" in listed


def test_all_loggers_are_captured_where_the_setting_says_so(shell: Shell) -> None:
    shell.write("talk.py", TALK)
    job_id = str(shell("enqueue", "-A", "talk", "talk", "--json").data["id"])

    burst = shell("worker", "talk", "--burst", MAINSPRING_WORKER_CAPTURE_LOGS="all")

    assert "from elsewhere" in burst.err
    lines = shell("jobs", "logs", job_id, "--run", "1").out.splitlines()
    assert [line.split("Z ")[-1] for line in lines] == [
        "info    attempt 1 \\x1b",
        "warning other: from elsewhere",
    ]


def test_asking_for_what_is_not_there(shell: Shell) -> None:
    job_id = str(shell("enqueue", "-A", "shop", "greet", "--json").data["id"])
    shell("worker", "shop", "--burst")

    missing, beyond = shell("jobs", "logs", "999999"), shell("jobs", "logs", job_id, "--run", "2")

    assert (missing.code, missing.err) == (1, "Error: job: there is none with the id 999999\n")
    assert beyond.code == 2
    assert beyond.err == f"Error: run: expected a run of job {job_id}: 1 to 1, got 2\n"


def test_a_result_above_the_setting_is_a_failed_attempt(shell: Shell) -> None:
    shell.write("talk.py", TALK)
    fits = str(shell("enqueue", "-A", "talk", "large", "--json").data["id"])
    shell("worker", "talk", "--burst")
    refused = str(shell("enqueue", "-A", "talk", "large", "--json").data["id"])
    shell("worker", "talk", "--burst", MAINSPRING_RESULTS_MAX_BYTES="1000")

    assert len(shell("jobs", "show", fits, "--json").data["result"]) == 5000
    [error, *_] = shell("jobs", "show", refused, "--json").data["errors"]
    assert error["message"] == (
        "result: expected at most 1000 bytes of JSON (results.max_bytes), got 'more than 1000 bytes'"
    )
