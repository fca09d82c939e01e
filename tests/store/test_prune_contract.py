"""The contract of `prune`, on every store: whole UTC days go, and nothing that is still owed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.support.desk import DAY, HOUR, LEASE, MINUTE, SECOND


def finished(desk):
    claim = desk.started()
    desk.end(claim, Verdict.SUCCEEDED)
    desk.leave()
    return claim.job_id


@pytest.fixture
def tended(desk):
    """A store that has been pruned once, so that the days its migration made ready by the real
    clock, years before this one's, are gone."""
    desk.prune(DAY)
    return desk


def test_pruning_an_empty_store_finds_nothing(tended):
    assert tended.prune(DAY) == 0


def test_runs_of_days_that_ended_long_enough_ago_are_dropped(desk):
    old = finished(desk)
    desk.advance(8 * DAY)

    assert desk.prune(7 * DAY) > 0
    assert (desk.runs(old), desk.find(old)) == ([], None)


def test_what_was_pruned_is_not_counted_twice(desk):
    finished(desk)
    desk.advance(8 * DAY)
    desk.prune(7 * DAY)

    assert desk.prune(7 * DAY) == 0


def test_a_day_is_kept_until_its_end_is_long_enough_ago(tended):
    desk = tended
    kept = finished(desk)
    desk.advance(8 * DAY - SECOND)

    assert desk.prune(7 * DAY) == 0
    assert len(desk.runs(kept)) == 1

    desk.advance(SECOND)

    assert desk.prune(7 * DAY) > 0
    assert desk.runs(kept) == []


def test_a_day_is_dropped_whole_or_not_at_all(desk):
    morning = finished(desk)
    desk.advance(DAY - HOUR)
    evening = finished(desk)
    desk.advance(7 * DAY)
    desk.prune(7 * DAY)
    assert (len(desk.runs(morning)), len(desk.runs(evening))) == (1, 1)

    desk.advance(HOUR)
    desk.prune(7 * DAY)

    assert (desk.runs(morning), desk.runs(evening)) == ([], [])


def test_younger_days_are_kept(desk):
    old = finished(desk)
    desk.advance(5 * DAY)
    young = finished(desk)
    desk.advance(5 * DAY)
    desk.prune(7 * DAY)

    assert (desk.runs(old), len(desk.runs(young))) == ([], 1)


def test_the_ledger_is_pruned_by_the_same_rule(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.fire_due()
    desk.advance(5 * DAY)
    [spec] = desk.due()
    desk.open(spec, slot_at=desk.now)
    desk.fire_all()
    assert len(desk.slots()) == 2
    desk.advance(5 * DAY)

    assert desk.prune(7 * DAY) > 0
    assert [slot.slot_at for slot in desk.slots()] == [desk.now - 5 * DAY]


def test_dead_letters_are_never_pruned(desk):
    job_id = desk.bury()
    desk.advance(3650 * DAY)
    desk.prune(DAY)

    assert [dead.id for dead in desk.dead()] == [job_id]
    assert desk.job(job_id).state is JobState.DEAD


def test_live_jobs_are_never_pruned(desk):
    ready, delayed = desk.put(), desk.put(delay=400 * DAY)
    desk.advance(365 * DAY)
    desk.prune(DAY)

    assert {job.id: job.state for job in desk.jobs()} == {ready: JobState.READY, delayed: JobState.DELAYED}


def test_history_is_written_and_read_across_days_after_a_prune(desk):
    desk.prune(7 * DAY)
    written = []
    for _ in range(12):
        written.append(finished(desk))
        desk.advance(DAY)

    assert [len(desk.runs(job_id)) for job_id in written] == [1] * 12
    desk.prune(7 * DAY)
    assert [len(desk.runs(job_id)) for job_id in written] == [0] * 5 + [1] * 7


def test_history_written_before_its_day_was_made_ready_is_kept_and_pruned_in_turn(desk):
    early = finished(desk)
    desk.prune(7 * DAY)
    assert len(desk.runs(early)) == 1

    desk.advance(8 * DAY)
    desk.prune(7 * DAY)

    assert desk.runs(early) == []


def test_a_job_that_lives_on_keeps_the_runs_of_the_days_that_are_kept(desk):
    claim = desk.started(max_attempts=9)
    desk.end(claim, Verdict.FAILED)
    desk.advance(8 * DAY)
    desk.reap_all()
    desk.end(desk.take(2), Verdict.FAILED)
    desk.prune(7 * DAY)

    assert [run.attempt for run in desk.runs(claim.job_id)] == [2]
    assert desk.job(claim.job_id).failures == 2
    assert len(desk.job(claim.job_id).errors) == 2


def test_keeping_nothing_still_keeps_today(tended):
    desk = tended
    desk.advance(HOUR)
    today = finished(desk)
    desk.advance(LEASE)

    assert desk.prune(timedelta()) == 0
    assert len(desk.runs(today)) == 1
