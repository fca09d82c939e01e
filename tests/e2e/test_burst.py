"""`worker --burst`: until nothing is left to do."""

from __future__ import annotations

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e.target import flaky, flaky_thread, labour, work
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

OK, FAILED, DEAD = Verdict.SUCCEEDED, Verdict.FAILED, Verdict.DEAD
ENDS = {0: [OK], 1: [FAILED, OK], 2: [FAILED, FAILED, OK], 3: [FAILED, FAILED, DEAD]}


def test_a_burst_ends_when_every_job_is_final(site: Site) -> None:
    good = site.put([work.job(0), labour.job(0)] * 150)
    failing = {}
    for failures in (1, 2, 3):
        jobs = [flaky.job(failures), flaky_thread.job(failures)] * (33 if failures < 3 else 34)
        failing |= dict.fromkeys(site.put(jobs), failures)

    code = site.worker("burst", "--burst", joined=False).exit_code()

    assert len(good) + len(failing) == 500
    assert code == 0
    assert site.live() == 0
    for job_id, failures in {**dict.fromkeys(good, 0), **failing}.items():
        job = site.job(job_id)
        assert site.verdicts(job_id) == ENDS[failures]
        assert (job.failures, job.crashes) == (failures, 0)
        assert job.state is (JobState.DEAD if failures == 3 else JobState.SUCCEEDED)
        starts = site.effects.of("start", jobs=[job_id])
        assert [each.attempt for each in starts] == list(range(1, len(ENDS[failures]) + 1))


def test_a_burst_also_does_what_a_killed_one_left_behind(site: Site) -> None:
    lease = ("--lease", "3s", "--heartbeat", "1s")
    [job_id] = site.put([work.job(60, 0.01)])
    victim = site.worker("victim", "--burst", *lease)
    until(lambda: site.effects.of("start"), "the start")
    victim.kill()
    until(lambda: not site.member(victim).alive, "its lease to end")

    code = site.worker("burst", "--burst", *lease, joined=False).exit_code()

    assert code == 0
    assert site.verdicts(job_id) == [Verdict.CRASHED, OK]
