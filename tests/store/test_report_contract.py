"""The contract of what runs say of themselves, on every store: progress, logs, results and endings."""

from __future__ import annotations

import pytest

from mainspring.errors import StoreUnavailable
from mainspring.model.job import Failure, JobState
from mainspring.model.run import RESULT_GONE, JobEnd, Progress, ProgressNote, RunLog, Verdict
from tests.support.desk import BOOM, DAY, HOUR, MINUTE, SECOND, settlement

NO_JOB = 10**9


def note(desk, claim, fraction=0.5, text="half", **fields):
    named = {"job_id": claim.job_id, "worker_id": claim.worker_id, "fence": claim.fence, **fields}
    notes = [ProgressNote(fraction=fraction, note=text, **named)]
    desk.run(desk.store.runs.note_progress(notes, at=desk.clock.stamp()))


def progress(desk, job_id):
    return desk.run(desk.store.runs.progress(job_id))


def sweep(desk):
    return desk.run(desk.store.runs.sweep_progress(at=desk.clock.stamp()))


def logs(desk, job_id):
    return desk.run(desk.store.runs.logs(job_id))


def endings(desk, *job_ids):
    return desk.run(desk.store.runs.endings(job_ids))


def drop_results(desk, keep):
    return desk.run(desk.store.runs.drop_results(keep=keep, at=desk.clock.stamp()))


# Progress.


def test_progress_is_read_back_and_the_newest_word_counts(desk):
    claim = desk.started()
    assert progress(desk, claim.job_id) is None

    note(desk, claim, 0.25, "1 of 4")
    assert progress(desk, claim.job_id) == Progress(fraction=0.25, note="1 of 4", at=desk.now)
    desk.advance(SECOND)
    note(desk, claim, 1, "")

    assert progress(desk, claim.job_id) == Progress(fraction=1.0, note="", at=desk.now)


def test_many_jobs_progress_in_one_call_whatever_their_order_and_worker(desk):
    claims = [desk.started(), desk.started(2), desk.started()]
    notes = [
        ProgressNote(job_id=c.job_id, worker_id=c.worker_id, fence=c.fence, fraction=n / 4, note=f"☃ {n}")
        for n, c in enumerate(claims)
    ]

    desk.run(desk.store.runs.note_progress(notes[::-1], at=desk.clock.stamp()))

    found = [progress(desk, claim.job_id) for claim in claims]
    assert [(each.fraction, each.note) for each in found] == [(0.0, "☃ 0"), (0.25, "☃ 1"), (0.5, "☃ 2")]


@pytest.mark.parametrize("wrong", [{"fence": 99}, {"worker_id": 99}, {"job_id": NO_JOB}])
def test_progress_under_another_claim_is_not_written(desk, wrong):
    claim = desk.started()
    note(desk, claim, 0.25)
    note(desk, claim, 0.75, **wrong)

    assert progress(desk, claim.job_id).fraction == 0.25
    assert progress(desk, NO_JOB) is None


def test_progress_of_a_run_that_ended_is_not_shown_and_the_next_run_begins_anew(desk):
    first = desk.started(max_attempts=3)
    note(desk, first, 0.9)
    desk.end(first, Verdict.FAILED)
    assert progress(desk, first.job_id) is None

    second = desk.take()
    assert progress(desk, first.job_id) is None
    note(desk, first, 0.95)
    assert progress(desk, first.job_id) is None
    note(desk, second, 0.1)

    assert progress(desk, first.job_id).fraction == 0.1


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.DEAD, Verdict.FAILED, Verdict.RELEASED])
def test_what_ended_runs_said_is_swept_and_what_runs_say_stays(desk, verdict):
    ended, running = desk.started(max_attempts=9), desk.started()
    note(desk, ended)
    note(desk, running)
    desk.end(ended, verdict)
    assert sweep(desk) == 0, "it was written a moment ago: its run may be about to say more"

    desk.advance(MINUTE + SECOND)

    assert sweep(desk) == 1
    assert sweep(desk) == 0
    assert progress(desk, running.job_id) is not None


def test_what_a_cancelled_run_said_is_swept(desk):
    claim = desk.started()
    note(desk, claim)
    desk.cancel(claim.job_id)
    desk.advance(HOUR)

    assert progress(desk, claim.job_id) is None
    assert sweep(desk) == 1


# Logs.


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.DEAD, Verdict.FAILED, Verdict.RELEASED])
def test_a_log_is_written_with_its_run_whatever_the_verdict(desk, verdict):
    claim = desk.started(max_attempts=9)
    desk.advance(SECOND)

    desk.end(claim, verdict, log="line 1\nline 2 ☃")

    assert logs(desk, claim.job_id) == [
        RunLog(worker_id=1, fence=claim.fence, finished_at=desk.now, text="line 1\nline 2 ☃")
    ]
    [run] = desk.runs(claim.job_id)
    assert (run.fence, run.finished_at) == (claim.fence, desk.now)


def test_runs_that_logged_nothing_have_no_log_and_mixed_batches_keep_theirs_apart(desk):
    claims = [desk.started(max_attempts=9) for _ in range(4)]
    refused = desk.settle(
        settlement(claims[2], Verdict.SUCCEEDED, log="two"),
        settlement(claims[0], Verdict.SUCCEEDED),
        settlement(claims[3], Verdict.FAILED, log="three"),
        settlement(claims[1], Verdict.SUCCEEDED, result=b"1", log="one"),
    )

    assert refused == []
    texts = [[log.text for log in logs(desk, claim.job_id)] for claim in claims]
    assert texts == [[], ["one"], ["two"], ["three"]]


def test_the_logs_of_several_runs_come_oldest_first(desk):
    claim = desk.started(max_attempts=9)
    desk.end(claim, Verdict.FAILED, log="first")
    desk.advance(SECOND)
    second = desk.take()
    desk.end(second, Verdict.SUCCEEDED, log="second")

    assert [(log.fence, log.text) for log in logs(desk, claim.job_id)] == [
        (claim.fence, "first"),
        (second.fence, "second"),
    ]


def test_a_settlement_that_is_refused_leaves_no_log(desk):
    claim = desk.started()
    desk.cancel(claim.job_id)

    assert desk.settle(settlement(claim, Verdict.SUCCEEDED, log="too late")) == [claim.job_id]
    assert logs(desk, claim.job_id) == []


def test_logs_are_pruned_with_their_runs(desk):
    desk.prune(DAY)
    old = desk.started()
    desk.end(old, Verdict.SUCCEEDED, log="old")
    desk.advance(5 * DAY)
    desk.leave()
    desk.reap_all()
    young = desk.started(2)
    desk.end(young, Verdict.SUCCEEDED, log="young")
    desk.advance(3 * DAY)

    assert desk.prune(7 * DAY) > 0
    assert (logs(desk, old.job_id), desk.runs(old.job_id)) == ([], [])
    assert [log.text for log in logs(desk, young.job_id)] == ["young"]
    assert desk.prune(7 * DAY) == 0


# Results.


def test_results_of_old_days_are_dropped_and_their_runs_stay(desk):
    desk.prune(DAY)
    old, none = desk.started(), desk.started()
    desk.end(old, Verdict.SUCCEEDED, result=b'"old"')
    desk.end(none, Verdict.SUCCEEDED)
    desk.advance(2 * DAY)
    desk.leave()
    desk.reap_all()
    young = desk.started(2)
    desk.end(young, Verdict.SUCCEEDED, result=b'"young"')
    desk.advance(SECOND)

    assert drop_results(desk, 2 * DAY) == 0, "its day has not ended long enough ago"
    assert drop_results(desk, DAY) == 1
    assert drop_results(desk, DAY) == 0

    kept = {c.job_id: desk.job(c.job_id).result for c in (old, none, young)}
    assert kept == {old.job_id: RESULT_GONE, none.job_id: None, young.job_id: b'"young"'}
    assert [run.result for run in desk.runs(old.job_id)] == [RESULT_GONE]
    assert desk.job(old.job_id).state is JobState.SUCCEEDED


def test_more_results_than_fit_one_transaction_are_all_dropped(desk, monkeypatch):
    monkeypatch.setattr("mainspring.store.runs.BATCH", 2)
    for n in range(5):
        desk.end(desk.started(), Verdict.SUCCEEDED, result=b"%d" % n)
    desk.advance(3 * DAY)

    assert drop_results(desk, DAY) == 5


# Endings.


def test_endings_tell_results_failures_and_reasons_and_leave_live_jobs_out(desk):
    done, empty, buried, gone = desk.started(), desk.started(), desk.started(max_attempts=2), desk.put()
    desk.end(done, Verdict.SUCCEEDED, result=b"[1]")
    desk.end(empty, Verdict.SUCCEEDED)
    desk.cancel(gone)
    desk.end(buried, Verdict.FAILED, failure=Failure(type="E", message="first"))
    desk.end(desk.take(), Verdict.DEAD)
    live = desk.put()

    found = endings(desk, live, gone, NO_JOB, buried.job_id, empty.job_id, done.job_id)

    failure = found[buried.job_id].failure
    assert (failure.type, failure.message, failure.traceback) == (BOOM.type, BOOM.message, BOOM.traceback)
    assert (failure.attempt, failure.at) == (2, desk.now)
    assert found == {
        done.job_id: JobEnd(state=JobState.SUCCEEDED, result=b"[1]"),
        empty.job_id: JobEnd(state=JobState.SUCCEEDED),
        gone: JobEnd(state=JobState.CANCELLED),
        buried.job_id: JobEnd(state=JobState.DEAD, failure=failure, reason="failed"),
    }
    assert endings(desk) == {}


def test_a_job_that_died_was_replayed_and_succeeded_has_succeeded(desk):
    job_id = desk.bury()
    desk.replay(job_id)
    assert endings(desk, job_id) == {}

    desk.end(desk.take(), Verdict.SUCCEEDED, result=b"2")

    assert endings(desk, job_id) == {job_id: JobEnd(state=JobState.SUCCEEDED, result=b"2")}


def test_a_log_that_cannot_be_written_keeps_its_settlement_from_being_written(desk, monkeypatch):
    """One transaction: a run is never on record without what was captured of it."""
    claim = desk.started()
    broken = StoreUnavailable("on order")

    def fail(*_):
        raise broken

    for dialect in ("sqlite", "postgres"):
        monkeypatch.setattr(f"mainspring.store.{dialect}.queue.note_logs", fail)
    with pytest.raises(StoreUnavailable):
        desk.settle(settlement(claim, Verdict.SUCCEEDED, log="x"))

    assert desk.job(claim.job_id).state is JobState.RUNNING
    assert desk.runs(claim.job_id) == []
