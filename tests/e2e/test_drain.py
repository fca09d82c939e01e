"""SIGTERM: what is running ends or goes back, and nothing is lost."""

from __future__ import annotations

import signal

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e.target import labour, stubborn, work
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

LEASE = 15.0
LONG = 30.0


def test_what_does_not_end_in_the_grace_period_goes_back_at_once(site: Site) -> None:
    drained = site.worker("drained", "-c", "6", "--shutdown-timeout", "1s")
    brief = site.put([work.job(0.5), labour.job(0.5), stubborn.job(0.5)])
    long = site.put([work.job(LONG, 0.1), labour.job(LONG, 0.1), stubborn.job(LONG, 0.1)])
    waiting = site.put([work.job(0.1)] * 4)
    until(lambda: len(site.effects.of("start")) >= 6, "6 starts")
    other = site.worker("other", "-c", "6", joined=False)

    stopped_at = drained.signal(signal.SIGTERM)
    code = drained.exit_code(within=LONG / 2)
    until(lambda: site.live() == 0, "all jobs to end")

    assert code == 0
    assert drained.says("stopped; 3 unfinished jobs were given back")
    for job_id in [*brief, *waiting]:
        assert site.verdicts(job_id) == [Verdict.SUCCEEDED]
        assert len(site.effects.of("start", jobs=[job_id])) == 1
    assert site.effects.jobs("end", by=drained) >= set(brief)
    for job_id in long:
        assert site.verdicts(job_id) == [Verdict.RELEASED, Verdict.SUCCEEDED]
        assert (site.job(job_id).failures, site.job(job_id).crashes) == (0, 0)
        [again] = site.effects.of("start", jobs=[job_id], by=other)
        assert again.attempt == 1
        assert again.at - stopped_at < LEASE / 3


def test_heartbeats_go_on_during_a_drain_that_outlasts_the_lease(site: Site) -> None:
    options = ["--lease", "3s", "--heartbeat", "1s"]
    drained = site.worker("drained", *options)
    [job_id] = site.put([work.job(7)])
    until(lambda: site.effects.of("start", by=drained), "the job to start")
    other = site.worker("other", *options)

    drained.signal(signal.SIGTERM)
    code = drained.exit_code()

    assert code == 0
    assert site.verdicts(job_id) == [Verdict.SUCCEEDED]
    assert site.job(job_id).crashes == 0
    assert len(site.effects.of("start")) == 1
    assert drained.says("stopped; 0 unfinished jobs were given back")
    assert not other.says("dead processes found")


def test_a_second_sigterm_cuts_the_drain_short(site: Site) -> None:
    worker = site.worker("worker")
    ids = site.put([work.job(LONG), labour.job(LONG), stubborn.job(LONG)])
    until(lambda: len(site.effects.of("start")) == 3, "3 starts")

    worker.signal(signal.SIGTERM)
    until(lambda: worker.says("stopping: 3 running jobs"), "the drain to begin")
    worker.signal(signal.SIGTERM)
    code = worker.exit_code(within=LONG / 3)

    assert code == 128 + signal.SIGTERM
    assert site.states(ids) == {JobState.READY}
    for job_id in ids:
        assert site.verdicts(job_id) == [Verdict.RELEASED]
        assert (site.job(job_id).failures, site.job(job_id).crashes) == (0, 0)
