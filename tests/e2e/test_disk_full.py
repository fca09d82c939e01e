"""A disk that fills up under a running fleet, and has room again."""

from __future__ import annotations

import pytest

from mainspring.errors import StoreFull
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e.target import work
from tests.support.disks import SmallDisk
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

FULL = "the disk of the SQLite database is full"


def test_runs_that_end_while_the_disk_is_full_are_settled_when_there_is_room(
    disk: SmallDisk, disk_site: Site
) -> None:
    site = disk_site
    worker = site.worker("worker", "-c", "20", "--lease", "60s", "--heartbeat", "20s")
    ids = site.put([work.job(1.0)] * 20)
    until(lambda: len(site.effects.of("start")) == len(ids), "all to start")

    ids += _enqueued_until_full(disk, site)
    until(lambda: len(site.effects.of("end")) >= 20, "the handlers to end")
    until(lambda: worker.says(FULL), "the worker to say so")
    unsettled = site.live()
    disk.make_room()
    ids += site.put([work.job(0)])
    until(lambda: site.live() == 0, "all jobs to end")

    assert unsettled > 0
    _nothing_is_lost(site, worker, ids)
    for job_id in ids:
        assert len(site.effects.of("start", jobs=[job_id])) == 1, "and nothing ran twice"
        assert site.job(job_id).crashes == 0


def test_a_worker_outlives_a_disk_that_is_full_for_longer_than_its_lease(
    disk: SmallDisk, disk_site: Site
) -> None:
    site = disk_site
    worker = site.worker("worker", "--lease", "3s", "--heartbeat", "1s")
    ids = site.put([work.job(60, 0.1)] * 2)
    until(lambda: len(site.effects.of("start")) == 2, "2 starts")

    ids += _enqueued_until_full(disk, site)
    until(lambda: len(site.effects.of("cancelled")) == 2, "the handlers to be told")
    until(lambda: not site.member(worker).alive, "the lease to end")  # reading needs no room
    disk.make_room()
    ids += site.put([work.job(0)])
    until(lambda: site.live() == 0, "all jobs to end")

    assert worker.says("cannot be renewed; 2 handlers told to stop before it ends")
    _nothing_is_lost(site, worker, ids)


def _enqueued_until_full(disk: SmallDisk, site: Site) -> list[int]:
    """Fill the disk, and the last of what the store had for itself; answer the jobs that it took."""
    disk.fill()
    accepted: list[int] = []

    def refused() -> bool:
        try:
            accepted.extend(site.put([work.job(0)] * 10))
        except StoreFull as full:
            assert FULL in str(full)
            return True
        disk.fill()
        return False

    until(refused, "the store to take no more")
    return accepted


def _nothing_is_lost(site: Site, worker: Process, ids: list[int]) -> None:
    assert worker.lives
    assert worker.says(FULL)
    assert not worker.met_a_defect()
    for job_id in ids:
        assert site.job(job_id).state is JobState.SUCCEEDED
        assert site.verdicts(job_id).count(Verdict.SUCCEEDED) == 1
        assert site.job(job_id).failures == 0
