"""Workers that are frozen, and workers whose event loop is."""

from __future__ import annotations

import contextlib
import signal
import sqlite3

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e.target import block, labour, work
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

LEASE = 3.0
OPTIONS = ["-c", "4", "--lease", "3s", "--heartbeat", "1s"]


def test_a_worker_frozen_beyond_its_lease_changes_nothing_and_rejoins(site: Site) -> None:
    frozen = site.worker("frozen", *OPTIONS)
    ids = site.put([work.job(2)] * 2 + [labour.job(2)] * 2)
    until(lambda: len(site.effects.of("start", by=frozen)) == 4, "4 starts")
    site.freeze(frozen)
    other = site.worker("other", *OPTIONS)
    until(lambda: len(site.effects.of("start", by=other)) == 4, "the other worker to begin the jobs")

    frozen.signal(signal.SIGCONT)  # its handlers' time is long over: it settles while the other runs
    until(lambda: frozen.joined(times=2), "the frozen worker to rejoin")
    until(lambda: frozen.says("refused") or frozen.says("lease lost"), "the late settlement to be refused")
    until(lambda: site.live() == 0, "the other worker to do the jobs")

    assert site.effects.jobs("end", by=other) == set(ids)
    assert site.states(ids) == {JobState.SUCCEEDED}
    for job_id in ids:
        assert site.verdicts(job_id) == [Verdict.CRASHED, Verdict.SUCCEEDED]
        assert site.ask(site.store.runs.of(job_id))[-1].worker_id == site.member(other).id
        assert (site.job(job_id).failures, site.job(job_id).crashes) == (0, 0)
        assert len(site.effects.of("start", jobs=[job_id], by=other)) == 1

    other.signal(signal.SIGTERM)
    assert other.exit_code() == 0
    later = site.put([work.job(0.01)] * 4)
    until(lambda: site.live() == 0, "the frozen worker to work again")
    assert site.effects.jobs("end", by=frozen) >= set(later)
    assert all(site.verdicts(job_id) == [Verdict.SUCCEEDED] for job_id in later)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_settlement_that_was_under_way_when_its_worker_froze_is_refused(site: Site) -> None:
    """Another's write lock keeps the settlement waiting, so that it surely is written late."""
    frozen = site.worker("frozen", *OPTIONS)
    [job_id] = site.put([work.job(0.5, 2)])
    until(lambda: site.effects.of("start", by=frozen), "the job to start")
    with contextlib.closing(sqlite3.connect(site.url.removeprefix("sqlite:///"))) as lock:
        lock.execute("BEGIN IMMEDIATE")
        until(lambda: site.effects.of("end", by=frozen), "the handler to end")
        frozen.freeze()  # while the lock is another's: it cannot be stopped with it
    other = site.worker("other", *OPTIONS)
    until(lambda: site.effects.of("start", by=other), "the other worker to begin the job")

    frozen.signal(signal.SIGCONT)
    until(lambda: frozen.says("settlement (succeeded) refused"), "the late settlement to be refused")
    until(lambda: site.live() == 0, "the other worker to do the job")

    assert site.verdicts(job_id) == [Verdict.CRASHED, Verdict.SUCCEEDED]
    assert site.ask(site.store.runs.of(job_id))[-1].worker_id == site.member(other).id


def test_a_blocked_event_loop_does_not_cost_the_lease(site: Site) -> None:
    blocked = site.worker("blocked", *OPTIONS)
    [job_id] = site.put([block.job(3 * LEASE)])
    until(lambda: site.effects.of("start", by=blocked), "the job to start")
    other = site.worker("other", *OPTIONS)
    process_id = site.member(blocked).id

    until(lambda: site.live() == 0, "the job to end")

    assert site.verdicts(job_id) == [Verdict.SUCCEEDED]
    assert site.job(job_id).crashes == 0
    [start], [end] = site.effects.of("start"), site.effects.of("end")
    assert end.at - start.at >= 3 * LEASE
    assert site.member(blocked).id == process_id
    assert blocked.lives
    assert not other.says("dead processes found")
    assert not blocked.says("lease")
