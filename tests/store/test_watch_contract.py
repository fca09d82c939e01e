"""The contract of a look at what stands out, on every store."""

from __future__ import annotations

import pytest

from mainspring.model.fleet import Role
from mainspring.model.settlement import Verdict
from mainspring.model.trouble import Died, Late, Lost, Overdue, Streak, Waiting, Watched
from tests.support.desk import HOUR, LEASE, MINUTE, SECOND

WATCHED = Watched(
    missed_after=MINUTE,
    late_after=10 * MINUTE,
    dead_window=10 * MINUTE,
    lost_window=10 * MINUTE,
    streak=4,
)


@pytest.fixture
def look(desk):
    def looked(watched=WATCHED):
        return desk.run(desk.store.watch(watched, at=desk.clock.stamp()))

    return looked


def test_there_is_nothing_to_see_in_an_empty_store(desk, look):
    facts = look()

    assert (facts.now, facts.scheduled, facts.behind_since, facts.grown) == (desk.now, False, None, 0)
    assert not any((facts.members, facts.lost, facts.overdue, facts.late, facts.waiting, facts.died))


def test_a_slot_is_overdue_from_its_bound_on_until_it_is_decided(desk, look):
    desk.schedule("s")
    desk.schedule("quick", expect_start_within=10 * SECOND)
    desk.schedule("paused")
    desk.pause("paused")
    slot_at = desk.now + MINUTE
    desk.advance(MINUTE)
    assert (look().scheduled, look().behind_since, look().overdue) == (True, slot_at, ())

    desk.advance(10 * SECOND)
    assert look().overdue == (Overdue(schedule="quick", slot_at=slot_at, expect_start_within=10 * SECOND),)
    desk.advance(50 * SECOND)
    assert {each.schedule for each in look().overdue} == {"s", "quick"}

    [spec] = desk.due()
    desk.open(spec, next_at=desk.now + HOUR)
    assert {each.schedule for each in look().overdue} == {"s", "quick"}
    assert look().behind_since == slot_at
    desk.fire(limit=1)
    assert [each.schedule for each in look().overdue] == ["quick"]
    desk.fire_all()
    assert (look().overdue, look().behind_since) == ((), None)


def test_schedules_that_are_gone_or_paused_need_no_scheduler(desk, look):
    desk.schedule("s")
    desk.pause("s")
    assert look().scheduled is False

    desk.resume("s")
    assert look().scheduled is True
    desk.delete("s")
    assert look().scheduled is False


def test_a_job_is_late_by_what_its_schedule_expects(desk, look):
    desk.schedule("s", expect_start_within=2 * MINUTE, expect_finish_by=HOUR, queue="q")
    desk.advance(MINUTE)
    desk.fire_due(next_at=desk.now + 10 * HOUR)
    slot_at = desk.now
    desk.advance(2 * MINUTE - SECOND)
    assert look().late == ()

    desk.advance(SECOND)
    [job] = desk.jobs()
    late = Late(
        schedule="s",
        slot_at=slot_at,
        job_id=job.id,
        queue="q",
        due_at=slot_at,
        claimed=False,
        begun=False,
        expect_start_within=2 * MINUTE,
        expect_finish_by=HOUR,
    )
    assert look().late == (late,)

    desk.join(1, lease=10 * HOUR)
    claim = desk.take(1, queues=("q",))
    assert look().late == ()
    desk.advance(HOUR)
    [unfinished] = look().late
    assert (unfinished.claimed, unfinished.begun) == (True, True)
    desk.end(claim, Verdict.SUCCEEDED)
    assert look().late == ()


def test_a_job_of_a_slot_is_late_by_default_too_and_one_of_nobodys_is_not(desk, look):
    desk.schedule("s")
    desk.advance(MINUTE)
    desk.fire_due(next_at=desk.now + 10 * HOUR)
    desk.put()
    desk.trigger("s")
    slot_at = desk.now
    desk.advance(10 * MINUTE - SECOND)
    assert look().late == ()

    desk.advance(SECOND)
    [late] = look().late
    assert (late.schedule, late.slot_at, late.due_at, late.queue) == ("s", slot_at, slot_at, "default")
    assert (late.expect_start_within, late.expect_finish_by, late.begun) == (None, None, False)
    desk.take()
    assert look().late == ()


def test_the_oldest_job_that_is_due_is_seen_in_each_queue_and_pauses_are(desk, look):
    old = desk.put("a", queue="q")
    desk.advance(SECOND)
    desk.put("b", queue="q")
    other = desk.put("c", queue="r", priority=5)
    desk.put("d", queue="later", run_at=desk.now + HOUR)
    desk.pause_queue("r", note="x")

    facts = look()
    assert facts.waiting == (
        Waiting(queue="q", task="a", job_id=old, due_at=desk.now - SECOND),
        Waiting(queue="r", task="c", job_id=other, due_at=desk.now),
    )
    assert [(each.queue, each.paused_by, each.note) for each in facts.pauses] == [("r", "ann", "x")]
    desk.take(queues=("q",), tasks=("a",))
    assert {each.task for each in look().waiting} == {"b", "c"}


def test_who_did_not_renew_its_lease_is_seen_for_a_while_and_who_left_is_not(desk, look):
    desk.join(1, name="host:1")
    desk.join(2, role=Role.SCHEDULER, name="host:2")
    desk.join(3)
    desk.leave(3)
    assert {each.name for each in look().members} == {"host:1", "host:2"}

    desk.advance(LEASE)
    desk.reap_all()
    lost_at = desk.now
    assert set(look().lost) == {
        Lost(name="host:1", role=Role.WORKER, lost_at=lost_at),
        Lost(name="host:2", role=Role.SCHEDULER, lost_at=lost_at),
    }
    desk.advance(10 * MINUTE)
    assert look().lost == ()


def test_the_newest_dead_letters_are_seen_and_counted(desk, look):
    desk.join(1, lease=HOUR)
    old = desk.bury(task="t")
    desk.advance(10 * MINUTE)
    new = desk.bury(task="u")

    facts = look()
    assert facts.grown == 1
    assert facts.died == (
        Died(job_id=new, task="u", died_at=desk.now, reason="failed"),
        Died(job_id=old, task="t", died_at=desk.now - 10 * MINUTE, reason="failed"),
    )
    desk.replay(new)
    assert (look().grown, [each.job_id for each in look().died]) == (0, [old])


def test_jobs_of_a_schedule_that_died_one_after_the_other_are_a_streak(desk, look):
    desk.schedule("s", overlap="queue_all")
    desk.join(1, lease=100 * HOUR)

    def slot(*verdicts):
        desk.advance(MINUTE)
        desk.fire_due()
        for verdict in verdicts:
            desk.end(desk.take(), verdict)

    slot(Verdict.DEAD)
    slot(Verdict.SUCCEEDED)
    first = desk.now + MINUTE
    slot(Verdict.DEAD)
    slot(Verdict.DEAD)
    slot()
    assert look().streaks == (Streak(schedule="s", failures=2, since=first),)
    assert look().died[0].schedule == "s"

    desk.end(desk.take(), Verdict.SUCCEEDED)
    assert look().streaks == ()
