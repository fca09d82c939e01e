"""Programs of jobs, when the worker that started them dies or is stopped."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from mainspring.model.job import JobState, NewJob
from mainspring.model.run import Verdict
from mainspring.tasks.payload import encode
from tests.support.processes import Process, Site, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="shell targets need Linux"),
]
TARGET = Path(__file__).with_name("shell_target.py")
SHORT = ("--lease", "3s", "--heartbeat", "1s")


def job(task: str, folder: Path) -> NewJob:
    payload = encode((), {"folder": str(folder)}, field=task)
    return NewJob(task=task, payload=payload, max_attempts=3)


def napping(folder: Path) -> list[int]:
    """The processes of the job, once all three have said who they are."""
    note = folder / "pids"

    def pids() -> list[int]:
        found = note.read_text().split() if note.exists() else []
        return [int(each) for each in found] if len(found) == 3 else []

    return until(pids, "the program and its children to start")


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.append(pid)
    return found


def worker(site: Site, name: str, *options: str) -> Process:
    return site.start("worker", name, *SHORT, *options, target=TARGET)


def test_when_a_worker_is_killed_its_programs_die_with_it(site: Site, tmp_path: Path) -> None:
    process = worker(site, "doomed", "--shell")
    site.put([job("nap", tmp_path)])
    pids = napping(tmp_path)
    assert len(alive(pids)) == 3

    process.kill()

    until(lambda: not alive(pids), "the program and its children to die")


def test_when_a_worker_is_stopped_its_programs_end_and_the_job_goes_back(site: Site, tmp_path: Path) -> None:
    process = worker(site, "stopped", "--shell", "--shutdown-timeout", "0s")
    [job_id] = site.put([job("nap", tmp_path)])
    pids = napping(tmp_path)

    process.signal(signal.SIGTERM)

    assert process.exit_code() == 0
    assert alive(pids) == []
    assert site.job(job_id).state is JobState.READY
    assert site.verdicts(job_id) == [Verdict.RELEASED]


def test_a_worker_that_starts_no_programs_leaves_the_job_to_one_that_does(site: Site, tmp_path: Path) -> None:
    without = site.start("worker", "without", "--burst", target=TARGET, joined=False)
    [job_id] = site.put([job("once", tmp_path)])
    assert without.exit_code() == 0
    again = site.start("worker", "again", "--burst", target=TARGET, joined=False)
    assert again.exit_code() == 0
    assert site.job(job_id).state is JobState.READY

    worker(site, "with", "--shell")

    until(lambda: site.job(job_id).state is JobState.SUCCEEDED, "the job to be done")
    assert (tmp_path / "done").read_text() == "done\n"
