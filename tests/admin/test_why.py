"""Why: decided over plain values, and read from both stores."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from mainspring.admin.why.answer import Because
from mainspring.admin.why.asking import Why
from mainspring.admin.why.job import JobFacts, why_job
from mainspring.admin.why.slot import Records, why_next, why_slot
from mainspring.errors import NotFound
from mainspring.model.checkpoint import Checkpoint
from mainspring.model.job import Failure, Job, JobState
from mainspring.model.process import ProcessInfo, Role
from mainspring.model.run import FOREVER, ProgressNote, Run, Verdict
from mainspring.model.schedule import (
    Change,
    Disposition,
    Misfire,
    Overlap,
    Schedule,
    ScheduleVersion,
    Skipped,
    Slot,
)
from mainspring.store.codes import AWAITING
from mainspring.testing.clock import START
from mainspring.triggers.intervals import Every
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk

MISSING = 999_999
HOURLY = Every(HOUR).encode()
NOW = START + 10 * HOUR + MINUTE


def schedule(**fields: Any) -> Schedule:
    given: dict[str, Any] = {
        "id": 1,
        "name": "s",
        "task": "t",
        "trigger": HOURLY,
        "payload": b"{}",
        "queue": "default",
        "priority": 0,
        "max_attempts": 1,
        "misfire": Misfire.LATEST,
        "catch_up": DAY,
        "overlap": Overlap.SKIP,
        "overlap_limit": 1,
        "offset": timedelta(),
        "jitter": timedelta(),
        "max_fires": None,
        "fires_left": None,
        "skips": 0,
        "version": 1,
        "active_from": START,
        "edited": False,
        "paused_at": None,
        "paused_by": None,
        "pause_note": None,
        "next_at": START + 11 * HOUR,
    }
    return Schedule(**{**given, **fields})


def version(at: datetime, change: Change, number: int = 1, **fields: Any) -> ScheduleVersion:
    return ScheduleVersion(
        schedule=schedule(version=number, **fields),
        version=number,
        change=change,
        changed_at=at,
        author="ann",
        note=None,
    )


CREATED = version(START, Change.CREATED)


def row(hours: int, **fields: Any) -> Slot:
    slot_at = START + hours * HOUR
    given: dict[str, Any] = {
        "disposition": Disposition.SKIPPED if "reason" in fields else Disposition.FIRED,
        "reason": None,
        "since": None,
        "job_id": None if "reason" in fields else 7,
        "decided_at": slot_at,
    }
    return Slot(schedule="s", slot_at=slot_at, **{**given, **fields})


def records(*rows: Slot, **fields: Any) -> Records:
    given: dict[str, Any] = {"schedule": schedule(), "versions": (CREATED,), "schedulers": 1, "now": NOW}
    return Records(name="s", rows=rows, **{**given, **fields})


def job(state: JobState, **fields: Any) -> Job:
    given: dict[str, Any] = {"run_at": NOW - MINUTE, "max_attempts": 3, "priority": 0}
    return Job(
        id=7,
        task="t",
        queue="default",
        state=state,
        enqueued_at=START,
        payload=b"{}",
        **{**given, **fields},
    )


def run_of(verdict: Verdict, **fields: Any) -> Run:
    return Run(
        job_id=7, task="t", queue="default", attempt=1, verdict=verdict, worker_id=1, fence=1,
        started_at=NOW, finished_at=NOW, **fields,
    )  # fmt: skip


def member(number: int = 1, **fields: Any) -> ProcessInfo:
    given: dict[str, Any] = {
        "role": Role.WORKER,
        "name": "host-1",
        "queues": ("default",),
        "tasks": ("t",),
        "alive": True,
        "lease_until": NOW + 10 * SECOND,
    }
    return ProcessInfo(id=number, version="1", tzdata="1", started_at=START, **{**given, **fields})


# Slots that the ledger knows.


def test_a_slot_that_fired_names_its_job_and_what_became_of_it() -> None:
    ended = job(JobState.SUCCEEDED, finished_at=START + 2 * HOUR + SECOND)

    found = why_slot(records(row(2)), START + 2 * HOUR, ended)

    assert found.because is Because.FIRED
    assert found.sentence == (
        "The slot of 2030-01-01 02:00:00Z fired as job 7, which succeeded at 2030-01-01 02:00:01Z."
    )
    assert (found.facts["job_id"], found.facts["job_state"]) == (7, "succeeded")


def test_a_slot_whose_job_is_gone_says_so() -> None:
    assert "no longer on record" in why_slot(records(row(2)), START + 2 * HOUR).sentence


def test_a_slot_before_the_one_that_stands_for_it_was_coalesced() -> None:
    standing = row(9, since=START + 3 * HOUR, decided_at=START + 9 * HOUR + MINUTE)

    found = why_slot(records(standing), START + 5 * HOUR, job(JobState.READY))

    assert found.because is Because.COALESCED
    assert "coalesced into the slot of 2030-01-01 09:00:00Z, which fired as job 7" in found.sentence
    assert "It was fired 1m late." in found.sentence


def test_a_moment_between_coalesced_slots_is_still_not_a_slot() -> None:
    found = why_slot(records(row(9, since=START + 3 * HOUR)), START + 5 * HOUR + MINUTE)

    assert found.because is Because.NOT_A_SLOT


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reason": Skipped.OVERLAP, "blocker": 12}, "skipped: overlap, job 12 was still live."),
        ({"reason": Skipped.MISFIRE}, "misfire, nobody could fire it until 2030-01-01 09:00:00Z"),
        ({"reason": Skipped.TOO_LATE}, "too_late, nobody could fire it until 2030-01-01 09:00:00Z"),
        ({"reason": Skipped.BREAKER}, "breaker, too many jobs of its schedule were live at 2030-01-01"),
        ({"reason": Skipped.REQUESTED}, "requested, somebody asked for it to be skipped."),
        ({"reason": Skipped.EXHAUSTED}, "exhausted, all its fires were used up."),
        ({"reason": Skipped.CALENDAR}, "calendar, it leaves this day out."),
        ({"reason": Skipped.DELETED}, "deleted, it was due and not yet fired when its schedule was deleted."),
        ({"reason": Skipped.MISFIRE, "note": "gap"}, " Note: gap."),
    ],
)
def test_a_skipped_slot_gives_its_reason(fields: dict[str, Any], said: str) -> None:
    found = why_slot(records(row(9, **fields)), START + 9 * HOUR)

    assert found.because is Because.SKIPPED
    assert said in found.sentence
    assert found.facts["reason"] == fields["reason"]


def test_slots_skipped_together_say_from_when_to_when() -> None:
    skipped = row(9, reason=Skipped.BREAKER, since=START + 3 * HOUR)

    found = why_slot(records(skipped), START + 4 * HOUR)

    assert "skipped with those from 2030-01-01 03:00:00Z to 2030-01-01 09:00:00Z: breaker" in found.sentence


def test_a_slot_of_a_pause_names_who_paused_even_after_it_was_resumed() -> None:
    pause = {"paused_at": START + HOUR, "paused_by": "bob", "pause_note": "db move"}
    versions = (
        CREATED,
        version(START + HOUR, Change.PAUSED, 2, **pause),
        version(START + 5 * HOUR, Change.RESUMED, 3),
    )

    found = why_slot(records(row(2, reason=Skipped.PAUSED), versions=versions), START + 2 * HOUR)

    assert "skipped: it was paused by bob at 2030-01-01 01:00:00Z: db move." in found.sentence
    assert found.facts["paused_by"] == "bob"


# Moments that the ledger does not know.


def test_a_moment_that_is_no_slot_names_its_neighbours() -> None:
    found = why_slot(records(), START + 90 * MINUTE)

    assert found.sentence == (
        "2030-01-01 01:30:00Z is not a slot of this schedule (every 1h): "
        "the nearest are 2030-01-01 01:00:00Z and 2030-01-01 02:00:00Z."
    )


def test_the_trigger_of_that_time_decides_what_was_a_slot() -> None:
    daily = Every(DAY).encode()
    changed = version(START + 5 * HOUR, Change.CHANGED, 2, trigger=daily, active_from=START + 5 * HOUR)
    now_daily = records(
        row(4), versions=(CREATED, changed), schedule=schedule(trigger=daily, next_at=START + DAY)
    )

    assert why_slot(now_daily, START + 4 * HOUR).because is Because.FIRED
    assert why_slot(now_daily, START + 6 * HOUR).because is Because.NOT_A_SLOT


@pytest.mark.parametrize("at", [START - HOUR, START])
def test_a_moment_up_to_its_creation_is_before_it(at: datetime) -> None:
    found = why_slot(records(), at)

    assert found.because is Because.NOT_CREATED
    assert "before it was created (2030-01-01 00:00:00Z by ann)" in found.sentence


def test_a_schedule_older_than_its_versions_is_judged_by_what_is_known() -> None:
    old = records(versions=(), schedule=schedule(active_from=START + HOUR))

    assert why_slot(old, START + HOUR).because is Because.NOT_CREATED
    assert why_slot(old, START + 11 * HOUR).because is Because.TO_COME


def test_a_slot_after_the_deletion_says_who_deleted() -> None:
    gone = records(schedule=None, versions=(CREATED, version(START + HOUR, Change.DELETED, 2)))

    assert why_slot(gone, START + 2 * HOUR).sentence == "It was deleted by ann at 2030-01-01 01:00:00Z."
    assert why_next(gone).because is Because.DELETED


def test_a_slot_that_a_change_overtook_was_never_fired() -> None:
    changed = version(START + 5 * HOUR, Change.CHANGED, 2, active_from=START + 5 * HOUR)
    overtaken = records(versions=(CREATED, changed), schedule=schedule(active_from=START + 5 * HOUR))

    found = why_slot(overtaken, START + 4 * HOUR)

    assert "before it was fired the schedule was changed by ann at 2030-01-01 05:00:00Z" in found.sentence


def test_a_slot_older_than_the_ledger_is_not_kept() -> None:
    found = why_slot(records(row(9), row(8)), START + 2 * HOUR)

    assert found.because is Because.NOT_KEPT
    assert "the oldest row read is of 2030-01-01 08:00:00Z" in found.sentence


def test_a_due_slot_without_a_scheduler_says_that_there_is_none() -> None:
    late = schedule(next_at=START + 10 * HOUR)

    alone = why_slot(records(row(9), schedule=late, schedulers=0), START + 10 * HOUR)
    served = why_slot(records(row(9), schedule=late), START + 10 * HOUR)

    assert alone.because is Because.NO_SCHEDULER
    assert "is due but not fired, 1m late: no live scheduler." in alone.sentence
    assert served.because is Because.BEING_FIRED


def test_a_slot_that_is_opened_but_not_written_is_being_fired() -> None:
    found = why_slot(records(row(9)), START + 10 * HOUR)

    assert (found.because, "not yet written" in found.sentence) == (Because.BEING_FIRED, True)


def test_a_slot_to_come_says_in_how_long() -> None:
    found = why_next(records())

    assert found.sentence == "The slot of 2030-01-01 11:00:00Z is still to come, in 59m."
    assert found.facts["seconds"] == 59 * 60


@pytest.mark.parametrize(
    ("fields", "hours", "said"),
    [
        ({"paused_at": START, "paused_by": "bob", "pause_note": "db move"}, 15, "paused by bob at"),
        ({"max_fires": 3, "fires_left": 0}, 11, "its 3 fires are used up"),
        ({"skips": 2}, 12, "somebody asked for it"),
        ({"skips": 2}, 13, None),
    ],
)
def test_a_slot_to_come_that_will_be_skipped_says_so(
    fields: dict[str, Any], hours: int, said: str | None
) -> None:
    found = why_slot(records(schedule=schedule(**fields)), START + hours * HOUR)

    assert found.because is (Because.TO_COME if said is None else Because.WILL_BE_SKIPPED)
    assert said is None or f"It will be skipped: {said}" in found.sentence


def test_a_trigger_that_ends_names_no_further_slot() -> None:
    assert why_next(records(schedule=schedule(next_at=None))).because is Because.ENDED


def test_the_next_slot_of_a_late_spec_is_the_first_that_is_its_own() -> None:
    fresh = schedule(active_from=NOW, next_at=START + HOUR)

    found = why_next(records(schedule=fresh, versions=(version(NOW, Change.CREATED),)))

    assert found.facts["at"] == (START + 11 * HOUR).isoformat()


def test_a_trigger_of_another_version_is_unreadable() -> None:
    odd = version(START, Change.CREATED, trigger="when the tide is high")

    assert why_slot(records(versions=(odd,)), START + 2 * HOUR).because is Because.UNREADABLE


# Jobs.


@pytest.mark.parametrize(
    ("facts", "because", "said"),
    [
        (
            JobFacts(job=job(JobState.DELAYED, run_at=NOW + 3 * MINUTE), now=NOW),
            Because.DUE_LATER,
            "waiting for its time: 2030-01-01 10:04:00Z, in 3m.",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=START.replace(year=9999), schedule_id=1),
                now=NOW,
                blocker=5,
            ),
            Because.HELD,
            "held until its schedule's earlier job 5 has ended.",
        ),
        (
            JobFacts(
                job=job(
                    JobState.DELAYED,
                    run_at=NOW + MINUTE,
                    failures=1,
                    errors=(Failure(type="ValueError", message="boom\nbang", attempt=1, at=NOW),),
                ),
                now=NOW,
            ),
            Because.RETRYING,
            "after failure 1 of 3 at 2030-01-01 10:01:00Z: ValueError: boom bang.",
        ),
        (
            JobFacts(job=job(JobState.READY), now=NOW, processes=(member(queues=("other",)),)),
            Because.QUEUE_UNSERVED,
            "no live worker serves queue default",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=NOW + HOUR, expires_at=NOW + 2 * HOUR),
                now=NOW,
                runs=(run_of(Verdict.SNOOZED),),
            ),
            Because.SNOOZED,
            "handler until 2030-01-01 11:01:00Z, in 1h. It expires at 2030-01-01 12:01:00Z, in 2h.",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=NOW + HOUR),
                now=NOW,
                runs=(run_of(Verdict.SNOOZED),),
                checkpoints=(Checkpoint(name="sleep sleep", value=b"3601.0", done_at=NOW - SECOND),),
            ),
            Because.SLEEPING,
            "Job 7 sleeps until 2030-01-01 11:01:00Z, in 1h.",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=NOW + HOUR),
                now=NOW,
                runs=(run_of(Verdict.SNOOZED),),
                checkpoints=(
                    Checkpoint(name="sleep sleep", value=b"60.0", done_at=NOW - MINUTE),
                    Checkpoint(name="sleep", value=None, done_at=NOW),
                    Checkpoint(name="step sleep", value=b"[1]", done_at=NOW),
                ),
            ),
            Because.SNOOZED,
            "was snoozed by its handler until 2030-01-01 11:01:00Z, in 1h.",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=NOW + HOUR, expires_at=NOW + 2 * HOUR),
                now=NOW,
                runs=(run_of(Verdict.SNOOZED),),
                awaits="approved",
            ),
            Because.AWAITING,
            "waits for event approved, until 2030-01-01 11:01:00Z, in 1h. It expires at 2030-01-01 12:01:00Z,"
            " in 2h. Send it with `mainspring events send approved --job 7`.",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=AWAITING),
                now=NOW,
                runs=(run_of(Verdict.SNOOZED),),
                awaits="approved",
            ),
            Because.AWAITING,
            "Job 7 waits for event approved, for however long it takes. Send it with",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=NOW + HOUR, crashes=2),
                now=NOW,
                runs=(run_of(Verdict.CRASHED),),
            ),
            Because.CRASHED,
            "waits until 2030-01-01 11:01:00Z, in 1h, after crash 2 of 3.",
        ),
        (
            JobFacts(job=job(JobState.READY, expires_at=NOW), now=NOW),
            Because.QUEUE_UNSERVED,
            "Its deadline was 2030-01-01 10:01:00Z: it does not run any more, and becomes a dead letter.",
        ),
        (
            JobFacts(
                job=job(JobState.DELAYED, run_at=NOW + MINUTE, failures=7, max_attempts=3),
                now=NOW,
                runs=(run_of(Verdict.FAILED),),
            ),
            Because.RETRYING,
            "after failure 7.",
        ),
        (
            JobFacts(job=job(JobState.DEAD, expires_at=NOW), now=NOW, reason="expired"),
            Because.DEAD,
            "died (expired) for it had not succeeded by its deadline, which was 2030-01-01 10:01:00Z.",
        ),
        (
            JobFacts(job=job(JobState.DEAD, crashes=3), now=NOW, reason="crashed"),
            Because.DEAD,
            "died (crashed) after its process had died under it 3 times.",
        ),
        (
            JobFacts(
                job=job(JobState.DISCARDED),
                now=NOW,
                runs=(run_of(Verdict.DISCARDED, failure=Failure(type="Discard", message="withdrawn")),),
            ),
            Because.DISCARDED,
            "was discarded by its handler: withdrawn.",
        ),
        (
            JobFacts(job=job(JobState.READY), now=NOW, processes=(member(alive=False),)),
            Because.QUEUE_UNSERVED,
            "(live workers: 0)",
        ),
        (
            JobFacts(job=job(JobState.READY), now=NOW, processes=(member(tasks=("u",)),)),
            Because.TASK_UNKNOWN,
            "knows task t",
        ),
        (
            JobFacts(job=job(JobState.READY, crashes=2), now=NOW, processes=(member(),), ahead=4),
            Because.IN_LINE,
            "waiting behind 4 others; live workers for it: 1. Its process was lost 2 times.",
        ),
        (
            JobFacts(job=job(JobState.RUNNING, worker_id=1), now=NOW, processes=(member(),)),
            Because.RUNNING,
            "running on worker host-1 (1), attempt 1 of 3; the worker's lease is alive until",
        ),
        (
            JobFacts(
                job=job(JobState.RUNNING, worker_id=1),
                now=NOW,
                processes=(member(alive=False, lease_until=NOW - SECOND),),
            ),
            Because.LEASE_ENDED,
            "lease ended at 2030-01-01 10:00:59Z: the job will be given back.",
        ),
        (
            JobFacts(job=job(JobState.RUNNING, worker_id=255), now=NOW),
            Because.LEASE_ENDED,
            "worker ff, attempt 1 of 3; the worker has left",
        ),
    ],
)
def test_a_job_says_what_it_waits_for(facts: JobFacts, because: Because, said: str) -> None:
    found = why_job(facts)

    assert found.because is because
    assert said in found.sentence
    assert found.facts["job_id"] == 7


# Read from a store.


@pytest.fixture
def why(desk: Desk) -> Why:
    return Why(desk.store, desk.clock)


def test_what_is_not_there_is_not_found(desk: Desk, why: Why) -> None:
    for question in (why.job(MISSING), why.schedule("nosuch"), why.slot("nosuch", START)):
        with pytest.raises(NotFound):
            desk.run(question)


def test_a_new_schedule_has_no_last_slot_and_a_next_one(desk: Desk, why: Why) -> None:
    desk.schedule()

    both = desk.run(why.schedule("s"))

    assert (both.last.because, both.next.because) == (Because.NO_SLOT_YET, Because.TO_COME)
    assert both.next.sentence.endswith("in 1m. There is no live scheduler now.")


def test_last_and_next_of_a_schedule_whose_job_is_in_the_way(desk: Desk, why: Why) -> None:
    desk.schedule(trigger=Every(MINUTE).encode())
    for _ in range(2):
        desk.advance(MINUTE)
        desk.fire_due()
    [live] = desk.jobs()

    both = desk.run(why.schedule("s"))
    first = desk.run(why.slot("s", START + MINUTE))

    assert both.last.facts["blocker"] == live.id
    assert both.next.facts["at"] == (START + 3 * MINUTE).isoformat()
    assert f"fired as job {live.id}, which is waiting for a worker" in first.sentence


def test_a_pause_and_a_deletion_are_told_from_the_versions(desk: Desk, why: Why) -> None:
    desk.schedule(trigger=Every(MINUTE).encode())
    desk.pause("s", author="bob", note="db move")
    desk.advance(MINUTE)
    desk.fire_due()
    desk.delete("s")

    found = desk.run(why.slot("s", START + MINUTE))

    assert "paused by bob at 2030-01-01 00:00:00Z: db move" in found.sentence
    assert desk.run(why.slot("s", START + 2 * MINUTE)).because is Because.DELETED


def test_slots_around_changes_are_told_by_the_version_they_belong_to(desk: Desk, why: Why) -> None:
    """No scheduler is alive: each change decides what was due before it."""
    desk.schedule(trigger=Every(MINUTE).encode())
    desk.advance(MINUTE + SECOND / 2)
    desk.schedule(trigger=Every(MINUTE).encode(), priority=3)
    [job] = desk.jobs()
    desk.pause("s", author="bob", note="db move")
    desk.advance(MINUTE)
    desk.resume("s", author="ann")
    desk.advance(MINUTE)
    desk.delete("s")

    fired, paused, deleted = (desk.run(why.slot("s", START + n * MINUTE)).sentence for n in (1, 2, 3))

    assert f"fired as job {job.id}, which is waiting for a worker" in fired
    assert "skipped: it was paused by bob at 2030-01-01 00:01:00.500Z: db move." in paused
    assert "skipped: deleted, it was due and not yet fired" in deleted


def test_a_held_job_names_the_one_it_waits_for(desk: Desk, why: Why) -> None:
    desk.schedule(overlap=Overlap.QUEUE_ALL)
    for _ in range(2):
        desk.advance(MINUTE)
        desk.fire_due()
    held, first = desk.jobs()

    found = desk.run(why.job(held.id))

    assert (found.because, found.facts["blocker"]) == (Because.HELD, first.id)


def test_a_ready_job_counts_those_that_go_before_it(desk: Desk, why: Why) -> None:
    desk.join(queues=("default",), tasks=("t",))
    job_id = desk.put()
    desk.put(priority=5)
    desk.put()

    found = desk.run(why.job(job_id))

    assert (found.because, found.facts["ahead"]) == (Because.IN_LINE, 1)


def test_how_a_job_ended_is_told_with_its_time(desk: Desk, why: Why) -> None:
    dead = desk.bury()
    claim = desk.started(worker=2)
    desk.end(claim, Verdict.SUCCEEDED)
    cancelled = desk.put()
    desk.cancel(cancelled)

    died, done, stopped = (desk.run(why.job(each)) for each in (dead, claim.job_id, cancelled))

    assert "Its last error: ValueError: boom." in died.sentence
    assert f"`mainspring dead replay {dead}`" in died.sentence
    assert done.sentence.startswith(f"Job {claim.job_id} succeeded at 2030-01-01 00:00:00Z on attempt 1")
    assert stopped.sentence == f"Job {cancelled} was cancelled at 2030-01-01 00:00:00Z, before it ran."


def test_every_answer_is_plain_json(desk: Desk, why: Why) -> None:
    desk.schedule(trigger=Every(MINUTE).encode())
    desk.advance(MINUTE)
    desk.fire_due()
    both = desk.run(why.schedule("s"))

    for each in (both.last, both.next, desk.run(why.job(desk.bury(task="u")))):
        assert msgspec.json.decode(msgspec.json.encode(each.facts)) == each.facts


def test_a_job_that_sleeps_or_waits_says_so(desk: Desk, why: Why) -> None:
    sleeping, waiting = desk.started(), desk.started()
    record = desk.store.effects.record_step(sleeping, "sleep sleep", value=b"3600.0", at=desk.clock.stamp())
    assert desk.run(record)
    desk.end(sleeping, Verdict.SNOOZED, delay=HOUR)
    desk.end(waiting, Verdict.SNOOZED, delay=FOREVER, awaits="approved")
    answers = [desk.run(why.job(each.job_id)) for each in (sleeping, waiting)]

    assert [each.because for each in answers] == [Because.SLEEPING, Because.AWAITING]
    assert answers[1].facts["event"] == "approved"
    assert "seconds" not in answers[1].facts


def test_a_running_job_says_how_far_it_is(desk: Desk) -> None:
    claim = desk.started(max_attempts=3)
    why = Why(desk.store, desk.clock)
    before = desk.run(why.job(claim.job_id))
    assert "done" not in before.sentence
    assert "progress" not in before.facts
    said = ProgressNote(
        job_id=claim.job_id, worker_id=1, fence=claim.fence, fraction=0.4, note="3 of 7\nfiles"
    )
    desk.run(desk.store.runs.note_progress([said], at=desk.now))
    desk.advance(4 * SECOND)

    answer = desk.run(why.job(claim.job_id))

    assert ", attempt 1 of 3, 40% done (3 of 7 files) as of 4s ago; the worker's lease" in answer.sentence
    assert (answer.facts["progress"], answer.facts["progress_note"]) == (0.4, "3 of 7\nfiles")
    assert answer.facts["progress_at"] == START.isoformat()
