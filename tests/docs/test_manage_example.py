"""The example of management does what it says, also when it is run again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "manage.py"


def run(folder: Path) -> list[str]:
    url = f"sqlite:///{folder / 'mainspring.db'}"
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        cwd=folder,
        env={**os.environ, "MAINSPRING_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_a_program_steers_jobs_and_reads_what_is_on_record(tmp_path: Path) -> None:
    first, again = run(tmp_path), run(tmp_path)

    assert first == [
        "job: cancelled, was delayed",
        "job: hastened, was delayed",
        "newest in mail: remind, ready",
        "schedule: changed",
        "ada: jobs.enqueue remind, done",
        "ada: jobs.cancel 1, done",
        "ada: jobs.retry 2, done",
        "ada: schedules.create reminders, done",
        "ada: schedules.edit reminders, done",
        "ada: schedules.pause reminders, done",
        "ada: queues.pause mail, done",
        "ada: queues.resume mail, done",
    ]
    assert again[3] == "schedule: none"
