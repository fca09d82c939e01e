"""Processes that serve, stopped by signals."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import FINISHES_WITHIN, Shell

Start = Callable[..., subprocess.Popen[str]]

STUCK = """
from __future__ import annotations

import asyncio
import time

from mainspring import Mainspring, Retry

app = Mainspring()


@app.task
def in_a_thread() -> None:
    print("begun", flush=True)
    time.sleep(600)


@app.task
async def in_a_helper() -> None:
    print("begun", flush=True)
    await asyncio.to_thread(time.sleep, 600)


@app.task
async def deaf() -> None:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass


@app.task(timeout="200ms", retry=Retry(attempts=1))
def late() -> None:
    print("begun", flush=True)
    time.sleep(600)


@app.task(timeout="200ms", retry=Retry(attempts=1))
async def deaf_and_late() -> None:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass


@app.task
async def patient() -> None:
    print("begun", flush=True)
    await asyncio.sleep(1)
"""


def read_until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"the process ended without saying {words!r}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["worker", "scheduler", "dev"])
def test_a_first_signal_drains_and_exits_zero(started: Start, command: str, number: signal.Signals) -> None:
    process = started(command, "shop")
    read_until(process, "started (process")

    process.send_signal(number)

    assert process.wait(FINISHES_WITHIN) == 0


def test_a_drain_lets_a_running_job_end(shell: Shell, started: Start) -> None:
    shell.write("stuck.py", STUCK)
    job_id = str(shell("enqueue", "-A", "stuck", "patient", "--json").data["id"])
    process = started("worker", "stuck")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    process.terminate()

    assert process.wait(FINISHES_WITHIN) == 0
    assert shell("jobs", "show", job_id, "--json").data["state"] == "succeeded"


@pytest.mark.parametrize("task", ["in_a_thread", "in_a_helper", "deaf"])
def test_a_second_signal_aborts_even_if_user_code_never_ends(shell: Shell, started: Start, task: str) -> None:
    shell.write("stuck.py", STUCK)
    job_id = str(shell("enqueue", "-A", "stuck", task, "--json").data["id"])
    process = started("worker", "stuck")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    process.terminate()
    read_until(process, "stopping:")
    process.terminate()

    assert process.wait(FINISHES_WITHIN) == 128 + signal.SIGTERM
    assert shell("jobs", "show", job_id, "--json").data["state"] in {"ready", "delayed"}


def test_user_code_that_never_ends_does_not_outlast_the_grace(shell: Shell, started: Start) -> None:
    shell.write("stuck.py", STUCK)
    shell("enqueue", "-A", "stuck", "in_a_thread")
    process = started("worker", "stuck", "--shutdown-timeout", "200ms")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    process.terminate()

    assert process.wait(FINISHES_WITHIN) == 0


@pytest.mark.parametrize(("task", "options"), [("late", ["-t", "1"]), ("deaf_and_late", ["-c", "1"])])
def test_a_worker_whose_last_thread_or_hand_is_lost_ends_and_says_so(
    shell: Shell, started: Start, task: str, options: list[str]
) -> None:
    shell.write("stuck.py", STUCK)
    job_id = str(shell("enqueue", "-A", "stuck", task, "--json").data["id"])

    process = started("worker", "stuck", "--shutdown-timeout", "1s", *options)
    read_until(process, "0 left")
    read_until(process, "stopping: handlers that would not end have taken every thread or execution slot")

    assert process.wait(FINISHES_WITHIN) == 70
    job = shell("jobs", "show", job_id, "--json").data
    assert job["state"] == "dead"
    assert job["errors"][0]["type"] == "TimeoutError"


def test_a_worker_that_lost_one_of_its_threads_goes_on_with_the_others(shell: Shell, started: Start) -> None:
    shell.write("stuck.py", STUCK)
    shell("enqueue", "-A", "stuck", "late")
    process = started("worker", "stuck", "-t", "2", "-v")
    read_until(process, "its thread is given up, 1 left")

    shell("enqueue", "-A", "stuck", "patient")
    read_until(process, "patient: succeeded")
    process.terminate()

    assert process.wait(FINISHES_WITHIN) == 0


def test_several_workers_cannot_share_a_database_in_memory(shell: Shell) -> None:
    refused = shell("worker", "shop", "-p", "2", "--database-url", "sqlite://:memory:")

    assert refused.code == 2
    assert "database.url" in refused.err


def test_two_signals_end_a_start_that_waits_for_a_silent_database(bare_shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x"
        process = bare_shell.start("worker", "shop", "--database-url", url)
        try:
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGINT)
                code = process.wait(FINISHES_WITHIN)
        finally:
            process.kill()
            process.communicate()

    # Which of the two is handled last is the kernel's choice.
    assert code in {128 + signal.SIGINT, 128 + signal.SIGTERM}


def test_dev_migrates_and_names_what_it_runs(bare_shell: Shell, empty_database_url: str) -> None:
    process = bare_shell.start("dev", "shop", "--database-url", empty_database_url)
    try:
        read_until(process, "tasks      add, broken, greet")
        read_until(process, "schedules  greetings")
        read_until(process, "schedules written: greetings")
        process.send_signal(signal.SIGINT)
        assert process.wait(FINISHES_WITHIN) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_scheduler_writes_what_the_schedules_commands_show(shell: Shell, started: Start) -> None:
    process = started("scheduler", "shop")
    read_until(process, "started (process")

    [listed] = shell("schedules", "list", "--json").data
    shown = shell("schedules", "show", "greetings", "--json").data
    fires = shell("schedules", "next", "greetings", "--count", "3", "--json").data
    table = shell("schedules", "next", "greetings")

    assert listed["trigger"] == {"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}
    assert (shown["slots"], shown["fires"][:3]) == ([], fires)
    assert "Europe/Berlin" in table.out
    assert "09:00:00 CE" in table.out
    assert shell("doctor").code == 0
