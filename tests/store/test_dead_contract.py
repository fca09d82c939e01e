"""The contract of dead letters: listing, replay and purge, on every store."""

from __future__ import annotations

import msgspec

from mainspring.model.dead_letter import DeadGroup
from mainspring.model.job import Failure, JobState
from mainspring.model.run import Reason, Verdict
from tests.support.desk import BOOM, MINUTE, SECOND, settlement


def test_a_replayed_job_is_back_under_its_id_with_all_attempts_restored(desk):
    claim = desk.started(task="send", payload=b"args", queue="mail", priority=4, max_attempts=2)
    enqueued_at = desk.now
    desk.end(claim, Verdict.DEAD)
    desk.advance(MINUTE)

    assert desk.replay(claim.job_id) == [claim.job_id]

    job = desk.job(claim.job_id)
    assert (job.id, job.state, job.failures, job.crashes) == (claim.job_id, JobState.READY, 0, 0)
    assert (job.task, job.payload, job.queue, job.priority, job.max_attempts) == (
        "send",
        b"args",
        "mail",
        4,
        2,
    )
    assert (job.run_at, job.enqueued_at, job.worker_id) == (desk.now, enqueued_at, None)
    assert (job.finished_at, job.result) == (None, None)


def test_a_replayed_job_keeps_its_errors(desk):
    job_id = desk.bury()
    died_at = desk.now
    desk.advance(MINUTE)
    desk.replay(job_id)

    assert desk.job(job_id).errors == (msgspec.structs.replace(BOOM, attempt=1, at=died_at),)


def test_a_replayed_job_is_claimed_under_a_higher_fence(desk):
    claim = desk.started()
    desk.end(claim, Verdict.DEAD)
    desk.replay(claim.job_id)

    again = desk.take()

    assert (again.job_id, again.fence) == (claim.job_id, 2)
    assert (again.failures, again.attempt) == (0, 1)


def test_the_claim_it_died_under_is_refused_after_a_replay(desk):
    claim = desk.started()
    desk.end(claim, Verdict.DEAD)
    desk.replay(claim.job_id)
    desk.take()

    assert desk.settle(settlement(claim, Verdict.SUCCEEDED)) == [claim.job_id]


def test_a_replayed_job_is_no_longer_a_dead_letter(desk):
    job_id = desk.bury()
    desk.replay(job_id)

    assert desk.dead() == []
    assert desk.jobs(state=JobState.DEAD) == []


def test_a_job_that_dies_again_is_one_dead_letter_with_all_its_errors(desk):
    job_id = desk.bury()
    desk.replay(job_id)
    desk.advance(SECOND)
    desk.end(desk.take(), Verdict.DEAD)

    [dead] = desk.dead()
    assert (dead.id, dead.failures, dead.fence) == (job_id, 1, 2)
    assert [error.attempt for error in dead.errors] == [1, 1]
    assert [job.id for job in desk.jobs(state=JobState.DEAD)] == [job_id]


def test_the_runs_before_a_replay_stay_in_history(desk):
    job_id = desk.bury()
    desk.replay(job_id)
    desk.advance(SECOND)
    desk.end(desk.take(), Verdict.SUCCEEDED)

    assert [run.verdict for run in desk.runs(job_id)] == [Verdict.DEAD, Verdict.SUCCEEDED]
    assert desk.job(job_id).state is JobState.SUCCEEDED


def test_only_dead_jobs_are_replayed(desk):
    dead = desk.bury()
    live = desk.put()
    done = desk.started(worker=2, queue="other")
    desk.end(done, Verdict.SUCCEEDED)

    assert desk.replay(live, dead, done.job_id, 987_654) == [dead]
    assert [job.id for job in desk.jobs()] == [live, dead]


def test_a_job_is_replayed_once(desk):
    job_id = desk.bury()

    assert [desk.replay(job_id), desk.replay(job_id)] == [[job_id], []]


def test_several_are_replayed_at_once(desk):
    first, second, third = desk.bury(), desk.bury(), desk.bury()

    assert sorted(desk.replay(first, third)) == [first, third]
    assert [dead.id for dead in desk.dead()] == [second]


def test_a_replayed_job_of_a_schedule_keeps_its_slot(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.fire_due()
    claim = desk.take()
    desk.end(claim, Verdict.DEAD)

    [dead] = desk.dead()
    desk.replay(dead.id)

    again = desk.take()
    [schedule] = desk.schedules()
    assert (dead.schedule_id, dead.slot_at) == (schedule.id, desk.now)
    assert (again.schedule_id, again.slot_at) == (schedule.id, desk.now)


def test_a_purged_letter_is_gone_for_good(desk):
    job_id = desk.bury()

    assert desk.purge(job_id) == 1
    assert (desk.dead(), desk.find(job_id), desk.replay(job_id)) == ([], None, [])


def test_a_purge_leaves_the_runs_in_history(desk):
    job_id = desk.bury()
    desk.purge(job_id)

    assert [run.verdict for run in desk.runs(job_id)] == [Verdict.DEAD]


def test_a_purge_counts_what_was_there_and_touches_nothing_else(desk):
    first, second = desk.bury(), desk.bury()
    live = desk.put()

    assert desk.purge(first, live, 987_654) == 1
    assert [dead.id for dead in desk.dead()] == [second]
    assert desk.job(live).state is JobState.READY


def test_dead_letters_are_listed_newest_id_first(desk):
    buried = [desk.bury() for _ in range(3)]

    assert [dead.id for dead in desk.dead()] == buried[::-1]


def test_dead_letters_are_listed_by_page(desk):
    buried = [desk.bury() for _ in range(5)]

    first = [dead.id for dead in desk.dead(limit=2)]
    second = [dead.id for dead in desk.dead(limit=2, before=first[-1])]

    assert first + second == buried[:0:-1]


def test_dead_letters_are_listed_by_task_queue_and_id(desk):
    mail = desk.bury(task="send", queue="mail")
    other = desk.bury(task="other", queue="mail")
    third = desk.bury(task="send", queue="fax")

    def listed(**which):
        return [dead.id for dead in desk.dead(**which)]

    assert listed(task="send") == [third, mail]
    assert listed(queue="mail") == [other, mail]
    assert listed(task="send", queue="fax") == [third]
    assert listed(ids=(mail, other, 987_654)) == [other, mail]
    assert listed(ids=()) == []
    assert listed(task="never heard of") == []


def test_replaying_or_purging_nothing_is_no_work(desk):
    assert (desk.replay(), desk.purge()) == ([], 0)


def die(desk, type="ValueError", message="boom", *, reason=Reason.FAILED, **fields):
    claim = desk.started(**fields)
    desk.end(claim, Verdict.DEAD, failure=Failure(type=type, message=message), reason=reason)
    return claim.job_id


def ids(letters):
    return [dead.id for dead in letters]


def test_dead_letters_are_listed_by_reason(desk):
    failed, expired = die(desk), die(desk, reason=Reason.EXPIRED)

    assert (ids(desk.dead(reason="failed")), ids(desk.dead(reason="expired"))) == ([failed], [expired])
    assert desk.dead(reason="crashed") == []


def test_dead_letters_are_listed_by_the_type_of_their_last_error(desk):
    plain, own, other = die(desk, "Timeout"), die(desk, "http.errors.Timeout"), die(desk, "MyTimeout")

    assert ids(desk.dead(error="Timeout")) == [own, plain]
    assert ids(desk.dead(error="http.errors.Timeout")) == [own]
    assert ids(desk.dead(error="MyTimeout")) == [other]
    assert ids(desk.dead(error="errors.Timeout")) == [own]
    assert desk.dead(error="imeout") == []


def test_dead_letters_are_listed_by_what_their_last_message_holds(desk):
    first, second = die(desk, message="no route to 10%_host"), die(desk, message="No route\nto Ünder")

    assert ids(desk.dead(text="route")) == [second, first]
    assert ids(desk.dead(text="no route")) == [first]
    assert ids(desk.dead(text="%_")) == [first]
    assert ids(desk.dead(text="Ünder")) == [second]
    assert desk.dead(text="ünder") == []


def test_only_the_last_error_counts(desk):
    claim = desk.started(max_attempts=2)
    desk.end(claim, Verdict.FAILED, failure=Failure(type="First", message="one"))
    desk.end(desk.take(), Verdict.DEAD, failure=Failure(type="Second", message="two"))

    assert (desk.dead(error="First"), desk.dead(text="one")) == ([], [])
    assert ids(desk.dead(error="Second", text="two")) == [claim.job_id]


def test_dead_letters_are_listed_by_when_they_died(desk):
    first = desk.bury()
    start = desk.now
    desk.advance(SECOND)
    second = desk.bury()

    assert ids(desk.dead(died_from=start)) == [second, first]
    assert ids(desk.dead(died_from=start + SECOND)) == [second]
    assert ids(desk.dead(died_before=start + SECOND)) == [first]
    assert desk.dead(died_from=start, died_before=start) == []


def test_all_filters_hold_at_once(desk):
    wanted = die(desk, "A", "x", task="send", queue="mail", reason=Reason.PERMANENT)
    die(desk, "A", "x", task="send", queue="mail")
    die(desk, "A", "y", task="send", queue="mail", reason=Reason.PERMANENT)

    assert ids(desk.dead(task="send", queue="mail", reason="permanent", error="A", text="x")) == [wanted]


def test_dead_letters_are_counted_up_to_a_limit(desk):
    for _ in range(3):
        desk.bury()

    assert (desk.count_dead(), desk.count_dead(limit=2), desk.count_dead(task="t")) == (3, 2, 3)
    assert (desk.count_dead(task="never heard of"), desk.count_dead(error="KeyError")) == (0, 0)


def test_dead_letters_are_grouped_by_task_and_last_error(desk):
    die(desk, "A", "no route\nto host 1")
    desk.advance(SECOND)
    newest = die(desk, "A", "no route\nto host 2")
    newest_at = desk.now
    other = die(desk, "A", "no route", task="u")
    last = die(desk, "A", "x" * 300)

    assert desk.dead_groups() == [
        DeadGroup(task="t", error="A", line="no route", count=2, newest_at=newest_at, newest_id=newest),
        DeadGroup(task="t", error="A", line="x" * 200, count=1, newest_at=desk.now, newest_id=last),
        DeadGroup(task="u", error="A", line="no route", count=1, newest_at=desk.now, newest_id=other),
    ]
    assert [group.count for group in desk.dead_groups(limit=1)] == [2]
    assert [group.newest_id for group in desk.dead_groups(task="u")] == [other]


def test_an_edited_letter_has_its_new_arguments(desk):
    job_id = desk.bury(payload=b"old")

    assert desk.edit_dead(job_id, b"new", expected=b"old") is True
    assert [dead.payload for dead in desk.dead()] == [b"new"]
    desk.replay(job_id)
    assert desk.take().payload == b"new"


def test_an_edit_leaves_the_old_arguments_on_record(desk):
    job_id = desk.bury(payload=b"old")
    desk.advance(SECOND)
    desk.edit_dead(job_id, b"new", expected=b"old")
    desk.replay(job_id)
    desk.end(desk.take(), Verdict.SUCCEEDED)

    died, edited, succeeded = desk.runs(job_id)
    assert [died.verdict, edited.verdict, succeeded.verdict] == [
        Verdict.DEAD,
        Verdict.EDITED,
        Verdict.SUCCEEDED,
    ]
    assert (died.payload, edited.payload, succeeded.payload) == (None, b"old", None)
    assert (edited.started_at, edited.worker_id) == (None, None)
    assert edited.failure.message == "its arguments were edited by ann"


def test_an_edit_of_what_has_changed_meanwhile_is_none(desk):
    job_id = desk.bury(payload=b"old")
    desk.edit_dead(job_id, b"theirs", expected=b"old")

    assert desk.edit_dead(job_id, b"ours", expected=b"old") is False
    assert [dead.payload for dead in desk.dead()] == [b"theirs"]
    assert [run.verdict for run in desk.runs(job_id)] == [Verdict.DEAD, Verdict.EDITED]


def test_only_a_dead_letter_is_edited(desk):
    live = desk.put(payload=b"old")

    assert (desk.edit_dead(live, b"new", expected=b"old"), desk.edit_dead(987_654, b"")) == (False, False)
    assert desk.job(live).payload == b"old"


def test_an_edited_letter_is_still_dead(desk):
    job_id = desk.bury(payload=b"old")
    before = desk.job(job_id)
    desk.edit_dead(job_id, b"new", expected=b"old")

    assert desk.job(job_id) == msgspec.structs.replace(before, payload=b"new")
