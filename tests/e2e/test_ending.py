"""A process that is to end does end, in its time, whatever the code of its handlers does."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from mainspring.cli.watchdog import ABORT_WITHIN, DRAIN_WITHIN, FINISH_WITHIN
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e import deaf_target as deaf
from tests.support.processes import Process, Site, until

pytestmark = [pytest.mark.e2e, pytest.mark.parametrize("backend", ["sqlite"], indirect=True)]

TARGET = Path(__file__).with_name("deaf_target.py")
OPTIONS = ("--lease", "3s", "--heartbeat", "1s", "--shutdown-timeout", "500ms")
ORDERLY = 12.0
"""Seconds in which a worker ends that has only itself to wait for: 5.5 of them for handlers."""
SLOW = 5.0
"""What a busy machine may add."""


def start(site: Site, role: str = "worker", name: str = "first", *options: str) -> Process:
    given = OPTIONS if role == "worker" else ()
    return site.start(role, name, *given, *options, target=TARGET)


def begun(site: Site, process: Process, job: Any) -> int:
    [job_id] = site.put([job])
    until(lambda: site.effects.of("start", by=process, jobs=[job_id]), "the handler to begin")
    return job_id


def ends(process: Process, within: float, *signals: signal.Signals) -> tuple[int, float]:
    """Its exit code, and how long it took from the first signal."""
    at = time.monotonic()
    for number in signals:
        process.signal(number)
        time.sleep(0.3)  # two of one kind that come at once are one
    code = process.exit_code(within + SLOW)
    return code, time.monotonic() - at


def done_by_another(site: Site, job_id: int) -> None:
    """It is given back, or taken over, and run exactly once more."""
    other = start(site, "worker", "other")
    until(lambda: site.live() == 0, "the job to end")
    assert site.job(job_id).state is JobState.SUCCEEDED
    assert (site.job(job_id).failures, site.job(job_id).crashes) == (0, 0)
    assert len(site.effects.of("start", jobs=[job_id], by=other)) == 1
    assert len(site.effects.of("end", jobs=[job_id])) == 1


@pytest.mark.parametrize("task", [deaf.swallows, deaf.sleeps, deaf.helped], ids=lambda task: task.name)
def test_a_handler_that_does_not_end_is_named_and_its_job_given_back(site: Site, task: Any) -> None:
    worker = start(site)
    job_id = begun(site, worker, task.job())

    code, _ = ends(worker, ORDERLY, signal.SIGTERM)

    assert code == 0
    assert worker.says("stopped; 1 unfinished job was given back")
    assert site.job(job_id).state is JobState.READY
    assert site.verdicts(job_id) == [Verdict.RELEASED]
    if task is not deaf.helped:
        words = f"go on until the process ends: job {job_id} {task.name}"
        assert worker.says(words)
    done_by_another(site, job_id)


@pytest.mark.parametrize("how", ["exit", "interrupt"])
def test_a_stray_task_that_ends_the_program_ends_only_itself(site: Site, how: str) -> None:
    worker = start(site)
    stuck = begun(site, worker, deaf.swallows.job())
    stray = begun(site, worker, deaf.strays.job(how))
    until(lambda: site.job(stray).state is JobState.SUCCEEDED, "the handler beside it to end")
    [next_job] = site.put([deaf.quick.job()])
    until(lambda: site.job(next_job).state is JobState.SUCCEEDED, "the next job to be done")
    assert worker.says(f"raised {'SystemExit' if how == 'exit' else 'KeyboardInterrupt'}; only that task")

    code, _ = ends(worker, ORDERLY, signal.SIGTERM)

    assert code == 0
    assert site.job(stuck).state is JobState.READY
    done_by_another(site, stuck)


@pytest.mark.parametrize("task", [deaf.blocks, deaf.blocks_in_c], ids=lambda task: task.name)
def test_a_blocked_event_loop_does_not_keep_its_process(site: Site, task: Any) -> None:
    worker = start(site)
    job_id = begun(site, worker, task.job())

    code, took = ends(worker, DRAIN_WITHIN.total_seconds() + 0.5, signal.SIGTERM)

    assert code == 70
    assert took > DRAIN_WITHIN.total_seconds()
    assert worker.says(f"still running: job {job_id} {task.name}; they are given back")
    assert [each for each in site.ask(site.store.processes.all(at=None)) if each.alive] == []
    done_by_another(site, job_id)


def test_a_second_signal_is_quicker_even_where_nothing_else_moves(site: Site) -> None:
    worker = start(site)
    job_id = begun(site, worker, deaf.blocks.job())

    code, took = ends(worker, ABORT_WITHIN.total_seconds(), signal.SIGTERM, signal.SIGINT)

    assert code == 70
    assert took < DRAIN_WITHIN.total_seconds()
    done_by_another(site, job_id)


@pytest.mark.parametrize("what", ["thread", "executor", "hook"])
def test_what_the_app_leaves_behind_does_not_keep_its_process(site: Site, what: str) -> None:
    worker = start(site)
    [job_id] = site.put([deaf.leaves_behind.job(what)])
    until(lambda: site.job(job_id).state is JobState.SUCCEEDED, "the job to end")

    code, _ = ends(worker, FINISH_WITHIN.total_seconds(), signal.SIGTERM)

    assert code == 0
    assert worker.says("stopped; 0 unfinished jobs were given back")
    assert worker.says("ended without ")


@pytest.mark.parametrize("role", ["scheduler", "dev"])
def test_a_process_of_another_role_ends_too(site: Site, role: str) -> None:
    process = start(site, role, "first", *(("--no-dashboard", *OPTIONS) if role == "dev" else ()))
    if role == "dev":
        begun(site, process, deaf.swallows.job())

    code, _ = ends(process, ORDERLY, signal.SIGTERM)

    assert code == 0


@pytest.mark.parametrize("name", ["evil", "evil_thread", "evil_plain", "evil_child"])
def test_an_exception_that_ends_whoever_asks_it_is_a_failure_of_its_run_alone(site: Site, name: str) -> None:
    worker = start(site)
    bystander = begun(site, worker, deaf.swallows.job())
    [job_id] = site.put([getattr(deaf, name).job()])
    until(lambda: site.job(job_id).state is JobState.DEAD, "the job to be a dead letter")
    [next_job] = site.put([deaf.quick.job()])
    until(lambda: site.job(next_job).state is JobState.SUCCEEDED, "the next job to be done")

    [error] = site.job(job_id).errors
    assert error.type.endswith("Evil")
    assert error.message == "(its message could not be had: SystemExit)"
    assert site.job(bystander).state is JobState.RUNNING
    assert not worker.met_a_defect()


def test_a_supervisor_kills_a_worker_that_cannot_end_itself(site: Site) -> None:
    supervisor = site.start("worker", "crew", "-p", "1", *OPTIONS, target=TARGET, joined=False)
    [job_id] = site.put([deaf.swallows.job()])
    [effect] = until(lambda: site.effects.of("start", jobs=[job_id]), "the handler to begin")
    os.kill(effect.pid, signal.SIGSTOP)  # it hears of nothing any more

    code, _ = ends(supervisor, 15.0, signal.SIGTERM, signal.SIGTERM)

    assert code == 128 + signal.SIGTERM
    assert not Path(f"/proc/{effect.pid}").exists()
    done_by_another(site, job_id)


def test_a_signal_to_a_process_that_a_handler_forked_is_not_the_workers(site: Site) -> None:
    worker = start(site)
    [job_id] = site.put([deaf.forks.job()])
    until(lambda: site.job(job_id).state is JobState.SUCCEEDED, "the job to end")

    assert site.effects.of(f"child {-signal.SIGTERM}")
    assert worker.lives
    assert not worker.says("stopping")
