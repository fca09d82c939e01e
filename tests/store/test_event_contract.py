"""The contract of events and checkpoints, on every store: who waits is woken, and the first one counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring.model.checkpoint import EVERYBODY, Checkpoint, Event
from mainspring.model.job import Claim, JobState
from mainspring.model.limit import LimitKey
from mainspring.model.run import FOREVER, Settlement, Verdict
from mainspring.store.codes import AWAITING
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk, settlement

FOUR = LimitKey(name="four", concurrency=4)


def send(desk: Desk, name: str = "approved", payload: bytes = b"1", job_id: int = EVERYBODY) -> bool:
    event = Event(name=name, payload=payload, job_id=job_id)
    return bool(desk.run(desk.store.events.send(event, at=desk.clock.stamp())))


def found(desk: Desk, job_id: int, name: str = "approved") -> bytes | None:
    return desk.run(desk.store.events.get(job_id, name))


def awaited(desk: Desk, *job_ids: int) -> dict[int, str]:
    return dict(desk.run(desk.store.events.awaited(job_ids)))


def waits(claim: Claim, name: str = "approved", delay: timedelta = FOREVER) -> Settlement:
    return settlement(claim, Verdict.SNOOZED, awaits=name, delay=delay)


def waiting(desk: Desk, name: str = "approved", delay: timedelta = FOREVER, **fields: Any) -> int:
    """A job that was claimed and waits now; answer its id."""
    claim = desk.started(**fields)
    assert desk.settle(waits(claim, name, delay)) == []
    return claim.job_id


# The first one counts.


def test_an_event_is_kept_and_the_first_one_counts(desk: Desk) -> None:
    before = found(desk, 7)
    sent = [send(desk, payload=b"1"), send(desk, payload=b"2"), send(desk, payload=b"3", name="other")]

    assert before is None
    assert sent == [True, False, True]
    assert found(desk, 7) == b"1"
    assert found(desk, 7, "other") == b"3"
    assert found(desk, 7, "approve") is None


def test_a_jobs_own_event_goes_before_everybodys_and_is_nobody_elses(desk: Desk) -> None:
    sent = [send(desk, payload=b'"all"'), send(desk, payload=b'"own"', job_id=7), send(desk, job_id=7)]

    assert sent == [True, True, False]
    assert (found(desk, 7), found(desk, 8)) == (b'"own"', b'"all"')
    assert found(desk, 8, "approved") == b'"all"'


# Waiting.


def test_a_job_waits_without_an_end_and_nobody_is_handed_it(desk: Desk) -> None:
    job_id = waiting(desk)
    desk.advance(100 * DAY)
    desk.join(2)
    job, [run] = desk.job(job_id), desk.runs(job_id)

    assert (job.state, job.run_at, job.failures, job.crashes) == (JobState.DELAYED, AWAITING, 0, 0)
    assert run.verdict is Verdict.SNOOZED
    assert awaited(desk, job_id) == {job_id: "approved"}
    assert desk.claim(2) == []


def test_a_job_waits_for_its_timeout_at_most(desk: Desk) -> None:
    job_id = waiting(desk, delay=MINUTE)
    due = desk.job(job_id).run_at
    desk.advance(MINUTE)

    assert due == desk.now
    assert desk.take(2).job_id == job_id


@pytest.mark.parametrize("own", [True, False])
def test_who_waits_is_due_when_the_event_comes(desk: Desk, own: bool) -> None:
    job_id, other = waiting(desk), waiting(desk, "paid")
    desk.advance(HOUR)
    sent = send(desk, job_id=job_id if own else EVERYBODY)

    assert sent is True
    assert desk.job(job_id).state is JobState.READY
    assert desk.job(job_id).run_at == desk.now
    assert desk.job(other).state is JobState.DELAYED
    assert awaited(desk, job_id, other) == {other: "paid"}
    assert desk.take(2).job_id == job_id


@pytest.mark.parametrize("own", [True, False])
def test_who_begins_to_wait_after_it_came_is_due_at_once(desk: Desk, own: bool) -> None:
    claim = desk.started()
    send(desk, job_id=claim.job_id if own else EVERYBODY)
    desk.advance(SECOND)
    desk.end(claim, Verdict.SNOOZED, awaits="approved", delay=FOREVER)

    assert desk.job(claim.job_id).state is JobState.READY
    assert awaited(desk, claim.job_id) == {}
    assert desk.take(2).job_id == claim.job_id


def test_the_event_of_another_job_wakes_nobody(desk: Desk) -> None:
    first, second = waiting(desk), waiting(desk)
    send(desk, job_id=first)

    assert [desk.job(each).state for each in (first, second)] == [JobState.READY, JobState.DELAYED]
    assert send(desk) is True
    assert desk.job(second).state is JobState.READY


def test_many_are_woken_at_once_in_one_batch_with_others(desk: Desk) -> None:
    desk.join()
    ids = [desk.put() for _ in range(200)]
    claims = desk.claim(limit=200)
    others = [desk.put() for _ in range(3)]
    done, failed, alone = desk.claim(limit=3)
    batch = [
        *(waits(claim) for claim in claims),
        settlement(done, Verdict.SUCCEEDED),
        settlement(failed, Verdict.FAILED, delay=HOUR),
        waits(alone, "paid"),
    ]

    assert desk.settle(*batch) == []
    assert len(awaited(desk, *ids, *others)) == 201
    assert send(desk)
    assert {desk.job(job_id).state for job_id in ids} == {JobState.READY}
    assert [desk.job(each).state for each in others] == [
        JobState.SUCCEEDED,
        JobState.DELAYED,
        JobState.DELAYED,
    ]
    assert awaited(desk, *ids, *others) == {alone.job_id: "paid"}


def test_a_settlement_that_is_refused_does_not_wait(desk: Desk) -> None:
    claim = desk.started(max_attempts=9)
    desk.lose()
    new = desk.take(2)

    assert desk.settle(waits(claim)) == [claim.job_id]
    assert awaited(desk, claim.job_id) == {}
    desk.end(new, Verdict.FAILED, delay=HOUR)
    send(desk)
    assert desk.job(claim.job_id).state is JobState.DELAYED, "it is to be tried again, and waits for that"


def test_who_has_been_claimed_since_does_not_wait_any_more(desk: Desk) -> None:
    job_id = waiting(desk, delay=MINUTE, max_attempts=9)
    desk.advance(MINUTE)
    claim = desk.take(2)
    running = awaited(desk, job_id)
    send(desk, "other")
    desk.end(claim, Verdict.FAILED, delay=HOUR)
    send(desk)

    assert running == {}
    assert awaited(desk, job_id) == {}
    assert desk.job(job_id).run_at == desk.now + HOUR


def test_a_job_may_wait_for_one_event_after_the_other(desk: Desk) -> None:
    job_id = waiting(desk)
    send(desk)
    desk.end(desk.take(2), Verdict.SNOOZED, awaits="paid", delay=FOREVER)
    second = awaited(desk, job_id)
    send(desk, "paid")

    assert second == {job_id: "paid"}
    assert desk.job(job_id).state is JobState.READY


def test_a_job_with_limits_comes_before_its_gates_when_it_is_woken(desk: Desk) -> None:
    desk.put(limit_keys=(FOUR,))
    desk.join()
    desk.admit_all()
    [claim] = desk.claim()
    desk.end(claim, Verdict.SNOOZED, awaits="approved", delay=FOREVER)
    asleep = desk.job(claim.job_id)
    admitted = desk.admit_all()
    held = [limit_key.used for limit_key in desk.limit_keys()]
    desk.advance(HOUR)
    send(desk)
    woken = desk.job(claim.job_id)

    assert (asleep.state, asleep.run_at, admitted) == (JobState.DELAYED, AWAITING, 0)
    assert held == [0], "a job that waits holds no place"
    assert (woken.run_at, woken.waits_for_limit) == (desk.now, True)
    desk.admit_all()
    desk.join(2)
    assert [each.job_id for each in desk.claim(2)] == [claim.job_id]


def test_an_operator_may_make_a_waiting_job_due_and_may_cancel_it(desk: Desk) -> None:
    first, second = waiting(desk), waiting(desk)

    assert desk.hasten(first) == [first]
    assert desk.job(first).state is JobState.READY
    assert desk.cancel(second) == {second: "delayed"}
    assert awaited(desk, second) == {}
    assert send(desk)
    assert desk.job(second).state is JobState.CANCELLED


def test_a_waiting_job_ends_at_its_deadline(desk: Desk) -> None:
    job_id = waiting(desk, expires=HOUR)
    desk.advance(HOUR)

    assert desk.expire() == [job_id]
    assert desk.job(job_id).state is JobState.DEAD
    assert send(desk)
    assert desk.job(job_id).state is JobState.DEAD


def test_a_job_that_waits_still_counts_as_live_for_its_schedule(desk: Desk) -> None:
    desk.schedule()
    desk.advance(MINUTE)
    desk.fire_due()
    claim = desk.take()
    desk.end(claim, Verdict.SNOOZED, awaits="approved", delay=FOREVER)
    desk.advance(MINUTE)
    desk.fire_due()

    assert [slot.disposition for slot in desk.slots()] == ["skipped", "fired"]


# What is kept, and for how long.


def test_events_go_with_the_job_they_were_for_and_everybodys_by_age(desk: Desk) -> None:
    done, live = desk.started(), desk.started()
    gone = waiting(desk, "never", delay=FOREVER)
    for job_id in (EVERYBODY, done.job_id, live.job_id):
        send(desk, job_id=job_id)
    desk.end(done, Verdict.SUCCEEDED)
    desk.end(live, Verdict.SNOOZED, delay=99 * DAY)
    desk.cancel(gone)
    desk.advance(DAY)
    desk.prune(7 * DAY)
    kept = [found(desk, each) for each in (done.job_id, 999)]
    desk.advance(9 * DAY)
    pruned = desk.prune(7 * DAY)

    assert kept == [b"1", b"1"]
    assert pruned > 0
    assert [found(desk, each) for each in (done.job_id, live.job_id, 999)] == [None, b"1", None]
    assert desk.prune(7 * DAY) == 0


def test_pruning_leaves_those_who_wait_alone(desk: Desk) -> None:
    job_id = waiting(desk)
    desk.advance(30 * DAY)
    desk.prune(7 * DAY)

    assert awaited(desk, job_id) == {job_id: "approved"}
    assert send(desk)
    assert desk.job(job_id).state is JobState.READY


def test_what_has_ended_waiting_is_pruned(desk: Desk) -> None:
    cancelled, went_on, stands = (waiting(desk, delay=HOUR) for _ in range(3))
    desk.cancel(cancelled)
    desk.hasten(went_on)
    desk.take(2)

    assert desk.prune(7 * DAY) >= 2
    assert awaited(desk, cancelled, went_on, stands) == {stands: "approved"}
    assert desk.prune(7 * DAY) == 0


# Checkpoints.


def record(desk: Desk, claim: Claim, name: str, value: bytes | None) -> bool:
    return bool(desk.run(desk.store.effects.record_step(claim, name, value=value, at=desk.clock.stamp())))


def test_what_was_recorded_is_read_at_once_with_the_stores_now(desk: Desk) -> None:
    claim, other = desk.started(), desk.started()
    empty = desk.run(desk.store.effects.steps(claim.job_id, at=desk.clock.stamp()))
    at = desk.now
    record(desk, claim, "step a", b"[1]")
    desk.advance(SECOND)
    record(desk, claim, "step b", None)
    record(desk, other, "step a", b"2")
    record(desk, claim, "step a", b"[2]")
    read = desk.run(desk.store.effects.steps(claim.job_id, at=desk.clock.stamp()))

    assert (empty.now, empty.checkpoints) == (at, ())
    assert read.now == desk.now
    assert sorted(read.checkpoints, key=lambda each: each.name) == [
        Checkpoint(name="step a", value=b"[1]", done_at=at),
        Checkpoint(name="step b", value=None, done_at=desk.now),
    ]


def test_by_the_stores_own_clock_a_record_is_not_in_its_future(desk: Desk) -> None:
    claim = desk.started()

    async def story() -> Any:
        await desk.store.effects.record_step(claim, "step a", value=b"1", at=None)
        return await desk.store.effects.steps(claim.job_id, at=None)

    read = desk.run(story())

    [checkpoint] = read.checkpoints
    assert timedelta() <= read.now - checkpoint.done_at < MINUTE
