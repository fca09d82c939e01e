"""A handler that goes step by step is killed at every place: those after it go on from the last record."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mainspring.model.checkpoint import Event
from mainspring.model.job import JobState, NewJob
from mainspring.model.run import Verdict
from mainspring.store.codes import AWAITING
from tests.e2e.resumed import FOLDER, STEPS
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

RESUMED = Path(__file__).with_name("resumed.py")
PATIENT = Path(__file__).with_name("patient.py")
BEFORE_THE_EFFECT, AFTER_THE_EFFECT, BEFORE_THE_RECORD, AFTER_THE_RECORD = range(4)
POINTS = 4 * len(STEPS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("task", ["order", "order_plain"])
def test_killed_anywhere_between_and_inside_steps_no_recorded_step_is_done_again(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    queues = [f"q{point}" for point in range(1, POINTS + 2)]
    ids = site.put([NewJob(task=task, payload=b"{}", queue=queue) for queue in queues])

    victims = subprocess.run(
        [sys.executable, str(RESUMED), site.url, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert victims.returncode == 0, victims.stderr
    monkeypatch.setenv(FOLDER, str(tmp_path))
    options = ["-q", ",".join(queues), "--lease", "3s", "--heartbeat", "1s"]
    site.start("worker", "second", *options, target=RESUMED)
    until(lambda: site.live() == 0, "every job to end")

    assert json.loads(victims.stdout) == [-signal.SIGKILL] * POINTS + [0]
    done = Counter((tmp_path / "effects").read_text(encoding="utf-8").splitlines())
    for number, job_id in enumerate(ids):
        died_in, at = divmod(number, 4)
        for place, name in enumerate(STEPS):
            # The one thing that cannot be known: it took effect, and died before it could say so.
            twice = place == died_in and at in (AFTER_THE_EFFECT, BEFORE_THE_RECORD)
            assert done[f"{job_id} {name}"] == 1 + twice, (number, name)
        assert site.job(job_id).result == b'["RESERVE","CHARGE","SHIP"]'
        crashed = [Verdict.CRASHED] if number < POINTS else []
        assert site.verdicts(job_id) == [*crashed, Verdict.SUCCEEDED]
    assert site.states(ids) == {JobState.SUCCEEDED}


@pytest.mark.parametrize("task", ["patient", "patient_plain"])
def test_in_a_child_a_handler_sleeps_and_waits_as_well_and_the_child_is_kept(site: Site, task: str) -> None:
    [job_id] = site.put([NewJob(task=task, payload=b"{}")])
    site.start("worker", "w", target=PATIENT)
    until(lambda: site.ask(site.store.events.awaited([job_id])), "the job to wait")
    waiting = site.job(job_id)
    sent = site.ask(site.store.events.send(Event(name="go", payload=b"[1]", job_id=job_id), at=None))
    until(lambda: site.live() == 0, "the job to end")

    assert (waiting.state, waiting.run_at, waiting.failures) == (JobState.DELAYED, AWAITING, 0)
    assert sent is True
    assert site.verdicts(job_id) == [Verdict.SNOOZED, Verdict.SNOOZED, Verdict.SUCCEEDED]
    payload, first, last = json.loads(site.job(job_id).result or b"")
    assert payload == [1]
    assert first == last, "a run that only waits leaves its child as good as before"
