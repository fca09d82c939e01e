"""Workers that die in the middle of their work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e.target import gated, lethal, suicidal, work
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

LEASE, REAP_AND_CLAIM = 15.0, 2.0
ONE_JOB = 0.5
"""So short that the other worker has done all the rest, and has its hands free, when the lease ends."""


def test_the_jobs_of_a_killed_worker_are_taken_up_within_its_lease_and_two_seconds_and_all_done(
    site: Site, record_property: Callable[[str, object], None]
) -> None:
    victim = site.worker("victim", "-c", "8")
    other = site.worker("other", "-c", "8", "--children", "8")
    ids = site.put([work.job(ONE_JOB)] * 100)
    until(lambda: len(site.effects.of("end", by=victim)) >= 16, "16 jobs to end")
    site.after_a_beat(victim)
    # A beat may take as long as all of those: these are what it has in hand.
    more = site.put([work.job(ONE_JOB)] * 100)
    ids += more
    until(lambda: site.effects.of("start", by=victim, jobs=more), "the victim to begin one of them")

    held, settled = _freeze(site, victim, ids)
    killed, killed_at = datetime.now(UTC), victim.kill()
    until(lambda: site.live() == 0, "all jobs to end")

    # The store may show more than it has hands: runs that have ended and are not yet written.
    assert 0 < len(held - site.effects.jobs("end", by=victim)) <= 8
    assert len(settled) < len(ids) - len(held)
    assert site.states(ids) == {JobState.SUCCEEDED}
    for job_id in ids:
        lost = [Verdict.CRASHED] if job_id in held else []
        assert site.verdicts(job_id) == [*lost, Verdict.SUCCEEDED]
        assert (site.job(job_id).failures, site.job(job_id).crashes) == (0, 0)
        assert len(site.effects.of("start", jobs=[job_id], by=other)) == (job_id not in settled)
        assert all(each.attempt == 1 for each in site.effects.of("start", jobs=[job_id]))
    ends = site.effects.of("end", by=other, jobs=sorted(held))
    record_property("seconds from the kill to the last end", max(each.at for each in ends) - killed_at)
    # They are orphaned jobs now, and are taken up as children are free; the promise is for when they are.
    taken = [site.ask(site.store.runs.of(job_id))[-1].started_at for job_id in held]
    assert (max(taken) - killed).total_seconds() <= LEASE + REAP_AND_CLAIM


def test_a_job_that_ends_its_process_is_done_by_another_in_a_child(site: Site) -> None:
    options = ["--lease", "3s", "--heartbeat", "1s"]
    first = site.worker("first", *options)
    [job_id] = site.put([suicidal.job()])

    code = first.exit_code()
    second = site.worker("second", *options)
    until(lambda: site.live() == 0, "the job to end")

    assert code == 1
    assert site.job(job_id).state is JobState.SUCCEEDED
    assert (site.job(job_id).failures, site.job(job_id).crashes) == (0, 0)
    assert site.verdicts(job_id) == [Verdict.CRASHED, Verdict.SUCCEEDED]
    starts = site.effects.of("start")
    assert [each.worker for each in starts] == [first.pid, second.pid]
    assert starts[1].pid != second.pid, "a orphaned job runs in a child"
    assert second.says("dead processes found (first): 1 jobs given back")


QUICK = ("-c", "24", "--lease", "3s", "--heartbeat", "1s")


def test_a_worker_that_is_killed_again_and_again_buries_nobody(site: Site, tmp_path: Path) -> None:
    ids = site.put([gated.job(str(tmp_path / "open"))] * 24)
    tried: Counter[int] = Counter()
    for number in range(3):
        victim = site.worker(f"victim-{number}", *QUICK)
        expected = 4 if number else 24  # as many as there are children, once they are orphaned jobs
        until(lambda v=victim, n=expected: len(site.effects.of("start", by=v)) == n, "all of them to begin")
        begun = site.effects.of("start", by=victim)
        until(lambda b=begun: time.monotonic() > max(each.at for each in b) + 4, "4 seconds to pass")
        assert len(site.effects.of("start", by=victim)) == expected
        victim.kill()
        tried.update(each.job for each in begun if number)
    (tmp_path / "open").touch()
    last = site.worker("last", *QUICK)
    until(lambda: site.live() == 0, "all jobs to end")

    assert site.states(ids) == {JobState.SUCCEEDED}
    # Of their first run nobody knows whether it had begun. After that, it was others' turn each time.
    assert {job_id: site.job(job_id).crashes for job_id in ids} == {job_id: tried[job_id] for job_id in ids}
    assert sorted(tried.values()) == [1] * 8
    assert {site.job(job_id).failures for job_id in ids} == {0}
    assert all(len(site.effects.of("start", jobs=[job_id], by=last)) == 1 for job_id in ids)


def test_a_job_that_kills_its_process_is_buried_after_one_worker_and_three_children(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "open").touch()
    ids = site.put([gated.job(str(tmp_path / "open"), 2.0)] * 12)
    [poison] = site.put([lethal.job()])
    ids += site.put([gated.job(str(tmp_path / "open"), 2.0)] * 11)
    assert site.worker("first", *QUICK, joined=False).exit_code() == 7
    second = site.worker("second", *QUICK)
    until(lambda: site.live() == 0, "all jobs to end")

    assert second.lives
    assert (site.job(poison).state, site.job(poison).crashes) == (JobState.DEAD, 3)
    assert site.verdicts(poison) == [Verdict.CRASHED] * 4
    assert site.states(ids) == {JobState.SUCCEEDED}
    assert {site.job(job_id).crashes for job_id in ids} == {0}


def _freeze(site: Site, victim: Process, ids: list[int]) -> tuple[set[int], set[int]]:
    """Stop it wherever it is, and see what it holds and what it has settled: neither changes now."""
    victim.freeze()
    process_id = site.member(victim).id

    def looked() -> tuple[set[int], set[int]]:
        jobs = [site.job(job_id) for job_id in ids]
        held = {job.id for job in jobs if job.state is JobState.RUNNING and job.worker_id == process_id}
        done = {job.id for job in jobs if job.state is JobState.SUCCEEDED}
        return held, done & site.effects.jobs("end", by=victim)

    # A statement that was already sent may still be under way in the server.
    return until(lambda: (first := looked()) == looked() and first, "a frozen worker to change nothing")
