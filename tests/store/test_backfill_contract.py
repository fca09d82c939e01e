"""The contract of backfills: slots of the past, run on request, each once."""

from __future__ import annotations

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import BackfillState, Disposition, Overlap, Reprocess, Skipped
from tests.support.desk import DAY, HOUR, MINUTE, Desk


def jobs(desk: Desk) -> list:
    return sorted(desk.jobs(), key=lambda job: job.id)


def test_a_backfill_makes_a_job_and_a_ledger_row_for_each_slot(desk):
    desk.schedule(payload=b'{"x":1}', queue="reports", priority=7, max_attempts=3)
    slots = [desk.past(desk.now - HOUR), desk.past(desk.now - MINUTE)]

    number = desk.backfill(*slots, max_active=5)
    done = desk.move_backfills()

    assert (done.active, done.made) == (1, 2)
    first, second = jobs(desk)
    assert (first.slot_at, second.slot_at) == (slots[0].slot_at, slots[1].slot_at)
    assert (first.task, first.payload, first.queue, first.priority) == ("t", b'{"x":1}', "reports", 7)
    assert (first.max_attempts, first.schedule_id) == (3, desk.the_schedule().id)
    assert (first.run_at, first.enqueued_at, first.state) == (desk.now, desk.now, JobState.READY)
    rows = desk.slots()
    assert [(row.slot_at, row.job_id) for row in rows] == [
        (second.slot_at, second.id),
        (first.slot_at, first.id),
    ]
    assert {row.disposition for row in rows} == {Disposition.BACKFILLED}
    assert {(row.note, row.decided_at) for row in rows} == {(f"backfill {number} by ann", desk.now)}


def test_no_more_jobs_are_live_than_it_was_told(desk):
    desk.schedule()
    number = desk.backfill(*(desk.past(desk.now - n * MINUTE) for n in range(5, 0, -1)), max_active=2)

    assert desk.move_backfills().made == 2
    assert desk.move_backfills().made == 0
    desk.end(desk.take(), Verdict.SUCCEEDED)
    assert desk.move_backfills().made == 1
    assert [job.slot_at for job in jobs(desk)] == [desk.now - 4 * MINUTE, desk.now - 3 * MINUTE]
    standing = desk.the_backfill(number)
    assert (standing.slots, standing.made, standing.live, standing.state) == (5, 3, 2, BackfillState.ACTIVE)


def test_it_ends_when_its_last_job_has(desk):
    desk.schedule()
    number = desk.backfill(desk.past(desk.now - MINUTE))
    desk.move_backfills()
    desk.move_backfills()
    assert desk.the_backfill(number).state is BackfillState.ACTIVE

    desk.end(desk.take(), Verdict.SUCCEEDED)
    desk.advance(MINUTE)
    assert desk.move_backfills().active == 1

    ended = desk.the_backfill(number)
    assert (ended.state, ended.ended_at, ended.cancelled_by) == (BackfillState.DONE, desk.now, None)
    assert desk.move_backfills().active == 0


def test_a_skipped_slot_keeps_the_reason_it_was_skipped_for(desk):
    desk.schedule()
    desk.pause()
    desk.advance(MINUTE)
    desk.fire_due()
    [row] = desk.slots()

    desk.backfill(desk.past(row.slot_at))
    desk.move_backfills()

    [row] = desk.slots()
    assert (row.disposition, row.reason) == (Disposition.BACKFILLED, Skipped.PAUSED)
    assert row.job_id == jobs(desk)[0].id


def test_a_slot_that_somebody_ran_meanwhile_is_left_alone(desk):
    desk.schedule()
    planned = desk.past(desk.now + MINUTE)
    number = desk.backfill(planned)
    desk.advance(MINUTE)
    desk.fire_due()
    [job] = jobs(desk)

    assert desk.move_backfills().made == 0
    assert jobs(desk) == [job]
    [row] = desk.slots()
    assert (row.disposition, row.job_id, row.note) == (Disposition.FIRED, job.id, None)
    left = desk.the_backfill(number)
    assert (left.made, left.left, left.slots) == (0, 1, 1)


def test_a_slot_that_was_backfilled_is_not_fired_as_well(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.backfill(desk.past(desk.now))
    desk.move_backfills()
    [job] = jobs(desk)

    desk.fire_due()

    assert jobs(desk) == [job]
    assert [row.disposition for row in desk.slots()] == [Disposition.BACKFILLED]


def test_a_slot_is_done_over_when_the_job_seen_is_still_the_ledgers(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.fire_due()
    first = desk.take()
    desk.end(first, Verdict.DEAD)

    desk.backfill(desk.past(desk.now, seen=first.job_id), reprocess=Reprocess.FAILED)
    assert desk.move_backfills().made == 1

    [job] = jobs(desk)
    [row] = desk.slots()
    assert (row.job_id, row.disposition) == (job.id, Disposition.BACKFILLED)
    [noted] = desk.run(desk.store.backfills.jobs([job.schedule_id], start=desk.now - DAY))
    assert (noted.slot_at, noted.job_id, noted.seen) == (desk.now, job.id, first.job_id)


def test_two_backfills_of_one_slot_make_one_job(desk):
    desk.schedule()
    one = desk.backfill(desk.past(desk.now - MINUTE))
    two = desk.backfill(desk.past(desk.now - MINUTE))

    desk.move_backfills()

    assert len(jobs(desk)) == 1
    assert [desk.the_backfill(each).made for each in (one, two)] == [1, 0]


def test_it_runs_the_version_it_names_also_when_another_stands_and_it_is_paused(desk):
    desk.schedule(payload=b"old", task="t")
    then = desk.past(desk.now - MINUTE)
    desk.schedule(payload=b"new", task="u")
    desk.pause()

    desk.backfill(then)
    desk.move_backfills()

    [job] = jobs(desk)
    assert (job.task, job.payload) == ("t", b"old")


def test_it_runs_versions_of_a_schedule_that_was_deleted(desk):
    desk.schedule()
    then = desk.past(desk.now - MINUTE)
    desk.delete()

    desk.backfill(then)

    assert desk.move_backfills().made == 1


@pytest.mark.parametrize("overlap", list(Overlap))
def test_overlap_takes_no_notice_of_the_jobs_of_a_backfill(desk, overlap):
    desk.schedule(overlap=overlap)
    desk.backfill(desk.past(desk.now - MINUTE))
    desk.move_backfills()

    desk.advance(MINUTE)
    desk.fire_due()

    backfilled, fired = jobs(desk)
    assert (fired.run_at, fired.state) == (desk.now, JobState.READY)
    assert desk.slots()[0].disposition is Disposition.FIRED
    assert backfilled.state is JobState.READY


def test_what_waits_for_a_live_job_does_not_wait_for_a_backfill(desk):
    desk.schedule(overlap=Overlap.QUEUE_ALL)
    for _ in range(2):
        desk.advance(MINUTE)
        desk.fire_due()
    desk.end(desk.take(), Verdict.SUCCEEDED)
    desk.backfill(desk.past(desk.now - HOUR))
    desk.move_backfills()

    assert desk.release() == 1


def test_a_cancelled_backfill_makes_no_more_jobs(desk):
    desk.schedule()
    number = desk.backfill(*(desk.past(desk.now - n * MINUTE) for n in (3, 2, 1)))
    desk.move_backfills()

    assert desk.run(desk.store.backfills.cancel(number, author="bob", at=desk.clock.stamp()))
    assert not desk.run(desk.store.backfills.cancel(number, author="eve", at=desk.clock.stamp()))
    desk.end(desk.take(), Verdict.SUCCEEDED)
    assert desk.move_backfills().active == 0
    stopped = desk.the_backfill(number)
    assert (stopped.state, stopped.cancelled_by, stopped.made) == (BackfillState.CANCELLED, "bob", 1)


def test_of_one_schedule_what_is_active_is_found_behind_newer_ones(desk):
    desk.schedule()
    active = desk.backfill(desk.past(desk.now - MINUTE))
    ended = [desk.backfill(desk.past(desk.now - n * HOUR)) for n in range(1, 4)]
    for number in ended:
        assert desk.run(desk.store.backfills.cancel(number, author="bob", at=desk.now))

    found = desk.run(desk.store.backfills.all(limit=2, schedule="s"))

    assert [each.id for each in found] == [ended[-1], active]


def test_what_was_asked_for_is_on_record_newest_first(desk):
    desk.schedule()
    first = desk.backfill(
        desk.past(desk.now - MINUTE), max_active=4, reverse=True, reprocess=Reprocess.ALL, author="eve"
    )
    second = desk.backfill(desk.past(desk.now - HOUR))

    found = desk.run(desk.store.backfills.all(limit=5))
    assert [each.id for each in found] == [second, first]
    asked = found[1]
    assert (asked.schedule, asked.start, asked.end) == ("s", desk.now - DAY, desk.now)
    assert (asked.max_active, asked.reverse, asked.reprocess, asked.author) == (4, True, Reprocess.ALL, "eve")
    assert (asked.created_at, asked.ended_at, asked.slots) == (desk.now, None, 1)
    assert [each.id for each in desk.run(desk.store.backfills.all(limit=1))] == [second]
    assert [each.id for each in desk.run(desk.store.backfills.all(limit=5, schedule="s"))] == [second, first]
    assert desk.run(desk.store.backfills.all(limit=5, schedule="other")) == []
    assert desk.run(desk.store.backfills.get(99)) is None


def test_states_tell_where_jobs_stand_and_leave_out_the_unknown(desk):
    desk.join()
    dead, ready = desk.bury(), desk.put(task="u")
    delayed = desk.put(delay=HOUR)
    gone = desk.put()
    desk.cancel(gone)
    running = desk.started()
    ended = desk.started()
    desk.end(ended, Verdict.SUCCEEDED)

    ids = [dead, ready, delayed, gone, running.job_id, ended.job_id, 999]
    assert desk.run(desk.store.jobs.states(ids, at=desk.clock.stamp())) == {
        dead: JobState.DEAD,
        ready: JobState.READY,
        delayed: JobState.DELAYED,
        gone: JobState.CANCELLED,
        running.job_id: JobState.RUNNING,
        ended.job_id: JobState.SUCCEEDED,
    }


def test_the_ledger_is_read_in_pages(desk):
    desk.schedule()
    for _ in range(5):
        desk.advance(MINUTE)
        desk.fire_due()
    newest = [row.slot_at for row in desk.slots()]

    def page(**which):
        return [row.slot_at for row in desk.run(desk.store.slots.of("s", **which))]

    assert page(limit=2) == newest[:2]
    assert page(limit=2, before=newest[1]) == newest[2:4]
    assert page(limit=9, start=newest[3]) == newest[:4]
    assert page(limit=9, start=newest[3], before=newest[0]) == newest[1:4]
