"""What a screen looks at every second: a few rows of each kind, the right ones."""

from __future__ import annotations

from mainspring.model.run import ProgressNote, Verdict
from tests.support.desk import MINUTE, SECOND, Desk


def test_running_jobs_come_longest_first_with_their_progress(desk: Desk) -> None:
    first = desk.started(queue="mail", priority=3, max_attempts=4)
    desk.advance(SECOND)
    second = desk.started()
    desk.put(queue="mail")
    note = ProgressNote(job_id=second.job_id, worker_id=1, fence=second.fence, fraction=0.5, note="half")
    stale = ProgressNote(job_id=first.job_id, worker_id=1, fence=first.fence, fraction=0.9)
    desk.run(desk.store.runs.note_progress([note, stale], at=desk.now))
    desk.end(first, Verdict.FAILED)
    desk.advance(SECOND)
    again = desk.take(queues=("mail",))

    found = desk.run(desk.store.jobs.running(limit=10))

    assert [each.id for each in found] == [second.job_id, again.job_id]
    assert (found[0].fraction, found[0].note, found[0].attempt) == (0.5, "half", 1)
    assert (found[1].fraction, found[1].queue, found[1].task) == (None, "mail", "t")
    assert (found[1].attempt, found[1].max_attempts, found[1].worker_id) == (2, 4, 1)
    assert found[1].claimed_at == desk.now
    assert [each.id for each in desk.run(desk.store.jobs.running(limit=1))] == [second.job_id]


def test_coming_fires_are_those_of_each_schedule_earliest_first(desk: Desk) -> None:
    for name, seconds in (("late", 90), ("twin", 30), ("soon", 30)):
        at = desk.now + seconds * SECOND
        desk.schedule(name, trigger=f'"{seconds}"', next_at=at, following_at=at + MINUTE)
    desk.schedule("done", trigger='"5"', next_at=desk.now + 5 * SECOND, max_fires=1)
    desk.pause("twin")
    desk.advance(5 * SECOND)
    desk.fire_due()

    found = desk.run(desk.store.slots.coming(limit=10))

    assert [each.schedule for each in found] == ["twin", "soon", "late"]
    assert [each.paused for each in found] == [True, False, False]
    assert found[2].slot_at - found[0].slot_at == MINUTE
    assert [each.schedule for each in desk.run(desk.store.slots.coming(limit=1))] == ["twin"]


def test_only_failures_among_the_newest_runs_are_told(desk: Desk) -> None:
    old = desk.started(max_attempts=9)
    desk.end(old, Verdict.FAILED, delay=MINUTE)
    desk.advance(SECOND)
    dead = desk.bury(queue="mail")
    desk.end(desk.started(), Verdict.SUCCEEDED)

    found = desk.run(desk.store.runs.failed(among=10, limit=10))

    assert [(each.job_id, each.verdict) for each in found] == [
        (dead, Verdict.DEAD),
        (old.job_id, Verdict.FAILED),
    ]
    assert (found[0].queue, found[0].error, found[0].message) == ("mail", "ValueError", "boom")
    assert (found[1].attempt, found[1].fence) == (1, old.fence)
    assert [each.job_id for each in desk.run(desk.store.runs.failed(among=2, limit=10))] == [dead]
    assert len(desk.run(desk.store.runs.failed(among=10, limit=1))) == 1
