"""`mainspring dev` on an example, as in the first minute with Mainspring."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from mainspring.model.job import JobFilter, JobState
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples" / "hello.py"


def test_dev_runs_the_example_and_ends_well_on_ctrl_c(site: Site) -> None:
    dev = site.start("dev", "dev", target=EXAMPLE)
    done = JobFilter(state=JobState.SUCCEEDED, task="hello")

    [first, *_] = until(lambda: site.ask(site.store.jobs.find(done, at=None)), "the first job", within=15)
    dev.signal(signal.SIGINT)
    code = dev.exit_code(within=15)

    assert code == 0
    assert first.slot_at is not None
    assert dev.says("Hello, world!")
    assert dev.says("hello: succeeded in")
    assert not dev.says("Traceback")
    assert site.ask(site.store.processes.all(at=None)) == []
