"""The contract of a look at what stands out, on every store."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from mainspring.model.alert import (
    Died,
    Dropped,
    LateJob,
    Lost,
    Outage,
    Overdue,
    Rule,
    Streak,
    Waiting,
    Watched,
)
from mainspring.model.job import NewJob
from mainspring.model.process import Role
from mainspring.model.run import Verdict
from mainspring.model.schedule import Misfire
from mainspring.model.stats import BUCKETS, PLACES, Counted, Tally
from tests.support.desk import DAY, HOUR, LEASE, MINUTE, SECOND

WATCHED = Watched(
    missed_after=MINUTE,
    late_after=10 * MINUTE,
    failed_window=HOUR,
    dead_growth=10,
    failing=2,
    dead_window=10 * MINUTE,
    lost_window=10 * MINUTE,
    streak=4,
)


@pytest.fixture
def look(desk):
    def looked(watched=WATCHED):
        return desk.run(desk.store.health.watch(watched, at=desk.clock.stamp()))

    return looked


def test_there_is_nothing_to_see_in_an_empty_store(desk, look):
    facts = look()

    assert (facts.now, facts.scheduled, facts.behind_since, facts.grown) == (desk.now, False, None, 0)
    assert not any((facts.processes, facts.lost, facts.overdue, facts.late, facts.waiting, facts.died))


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


def test_dropped_slots_are_seen_schedule_by_schedule_until_they_are_run(desk, look):
    for name in ("a", "b", "fine", "asked"):
        policy = Misfire.SKIP if name == "asked" else Misfire.LATEST
        desk.schedule(name, misfire=policy, catch_up=DAY if name == "fine" else MINUTE)
    began = desk.now
    desk.advance(HOUR)
    desk.fire_due(slot_at=began + 40 * MINUTE, since=began + MINUTE, next_at=began + 41 * MINUTE)
    desk.advance(SECOND)
    [later] = desk.due()
    desk.open(later, next_at=desk.now + HOUR)
    desk.fire_all()
    lost = {"since": began + MINUTE, "until": began + 41 * MINUTE, "dropped_at": began + HOUR}
    seen = [Dropped(schedule=name, breaker=False, **lost) for name in ("a", "b")]
    assert sorted(look().dropped, key=lambda each: each.schedule) == seen

    desk.backfill(*(desk.past(began + n * MINUTE, name="a") for n in (40, 41)), schedule="a", max_active=2)
    desk.move_backfills()
    assert [each.schedule for each in look().dropped] == ["b"]
    desk.delete("b")
    assert look().dropped == ()


def test_a_schedule_that_drops_slot_after_slot_hides_no_other(desk, look):
    desk.schedule("quiet", catch_up=MINUTE)
    desk.schedule("busy", misfire=Misfire.ALL, catch_up=MINUTE)
    desk.advance(10 * MINUTE)
    for spec in desk.due():
        desk.open(spec, next_at=None if not spec.one_by_one else spec.next_at + SECOND)
    for _ in range(12):
        desk.fire_all()
        for spec in desk.due():
            desk.open(spec, next_at=spec.next_at + SECOND)

    few = msgspec.structs.replace(WATCHED, most=4)
    assert {each.schedule for each in look(few).dropped} == {"quiet", "busy"}


def test_what_was_dropped_long_ago_is_no_news(desk, look):
    desk.schedule(catch_up=MINUTE)
    desk.advance(HOUR)
    desk.fire_due(next_at=None)
    assert len(look().dropped) == 1
    desk.advance(DAY)
    assert look().dropped == ()


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
    late = LateJob(
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
        Waiting(queue="q", task="b", job_id=old + 1, due_at=desk.now),
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
    assert {each.name for each in look().processes} == {"host:1", "host:2"}

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
    assert (facts.grown, facts.grown_since) == (1, desk.now)
    ago = desk.now - 10 * MINUTE
    assert facts.died == (
        Died(task="u", jobs=1, since=desk.now, job_id=new, died_at=desk.now, reason="failed"),
        Died(task="t", jobs=1, since=ago, job_id=old, died_at=ago, reason="failed"),
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


# Many of one hide no other; what must be cut says so.


def test_a_flood_of_dead_letters_of_one_task_hides_no_other_task(desk, look):
    desk.join(1, lease=10 * HOUR)
    first = desk.bury(task="quiet")
    desk.advance(SECOND)
    for _ in range(30):
        desk.bury(task="loud")
        desk.advance(SECOND)

    few = msgspec.structs.replace(WATCHED, most=5)
    assert [(each.task, each.jobs, each.job_id) for each in look(few).died] == [
        ("loud", 30, first + 30),
        ("quiet", 1, first),
    ]
    assert look(few).cut == ()
    for number in range(5):
        desk.bury(task=f"t{number}")
    assert len(look(few).died) == 5
    assert look(few).cut == (Rule.FAILED,)
    desk.advance(HOUR)
    assert look().died == ()


def test_a_flood_of_dead_letters_of_one_schedule_hides_no_other_that_fails(desk, look):
    desk.join(1, lease=1000 * HOUR)
    for name in ("loud", "quiet", "mended"):
        desk.schedule(name, task=name, overlap="queue_all")

    def slot(**verdicts):
        desk.advance(MINUTE)
        desk.fire_due()
        for task, verdict in verdicts.items():
            desk.end(desk.take(tasks=(task,)), verdict)

    dead = Verdict.DEAD
    for _ in range(2):
        slot(quiet=dead, loud=dead, mended=dead)
    for _ in range(8):
        slot(loud=dead, mended=Verdict.SUCCEEDED)

    few = msgspec.structs.replace(WATCHED, most=3, streak=12)
    assert {(each.schedule, each.failures) for each in look(few).streaks} == {("loud", 10), ("quiet", 2)}
    assert look(few).cut == ()
    assert set(look(msgspec.structs.replace(few, most=1)).cut) == {Rule.FAILED, Rule.FAILING}


def test_late_jobs_of_one_schedule_hide_no_other_late_schedule(desk, look):
    desk.schedule("loud", expect_start_within=SECOND, overlap="allow", overlap_limit=100)
    for _ in range(20):
        desk.advance(MINUTE)
        desk.fire_due()
    desk.schedule("quiet", expect_start_within=SECOND, trigger="other")
    desk.advance(MINUTE)
    desk.fire_due()
    desk.advance(MINUTE)

    few = msgspec.structs.replace(WATCHED, most=5)
    assert [each.schedule for each in look(few).late if each.expect_start_within] == ["loud", "quiet"]
    assert look(few).cut == ()


def test_a_backlog_of_plain_jobs_hides_no_late_slot(desk, look):
    desk.put_all(*[NewJob(task="t", payload=b"{}") for _ in range(50)])
    desk.advance(MINUTE)
    desk.schedule("s")
    desk.advance(MINUTE)
    desk.fire_due(next_at=desk.now + 10 * HOUR)
    desk.advance(10 * MINUTE)

    [late] = look(msgspec.structs.replace(WATCHED, most=5)).late
    assert late.schedule == "s"


def test_a_task_that_nobody_knows_is_seen_behind_others_that_wait(desk, look):
    for _ in range(5):
        desk.put("known")
        desk.advance(SECOND)
    desk.put("unknown")

    assert [each.task for each in look().waiting] == ["known", "unknown"]


def test_of_lists_that_are_too_long_the_rules_are_named(desk, look):
    for number in range(4):
        desk.schedule(f"s{number}", expect_start_within=SECOND)
        desk.put(f"t{number}", queue=f"q{number}")
        desk.join(number + 1, name=f"host:{number}", lease=SECOND)
    desk.advance(2 * MINUTE)
    desk.reap_all()

    cut = look(msgspec.structs.replace(WATCHED, most=3)).cut
    assert set(cut) == {Rule.MISSED, Rule.PROCESS_LOST}
    assert look(msgspec.structs.replace(WATCHED, most=4)).cut == ()


# Retries that go on.


def counted(desk, task, *, good=0, bad=0):
    counts = [0] * PLACES
    counts[Counted.SUCCEEDED], counts[Counted.FAILED] = good, bad
    tally = Tally(task=task, queue="q", counts=tuple(counts), waits=(0,) * BUCKETS, tooks=(0,) * BUCKETS)
    desk.run(desk.store.stats.add([tally], at=desk.clock.stamp()))


def test_a_task_is_retrying_since_its_last_good_minutes(desk, look):
    desk.clock.move_to(datetime(2030, 1, 1, 12, 0, tzinfo=UTC))
    counted(desk, "send", good=9, bad=1)
    desk.advance(MINUTE)
    since = desk.now
    counted(desk, "send", bad=3)
    counted(desk, "well", good=3, bad=2)
    desk.advance(20 * MINUTE)
    counted(desk, "send", bad=1, good=0)

    [found] = look().retrying
    # What is longer ago is told in steps of ten minutes.
    assert (found.task, found.failed, found.succeeded) in (("send", 4, 0), ("send", 5, 9), ("send", 1, 0))
    assert abs(found.since - since) <= 20 * MINUTE
    counted(desk, "send", good=2)
    assert look().retrying == ()


def test_a_task_that_has_failed_for_an_hour_and_waits_for_its_next_try_is_still_retrying(desk, look):
    desk.clock.move_to(datetime(2030, 1, 1, 12, 0, tzinfo=UTC))
    for minutes in (0, 1, 5, 20, 50):
        counted(desk, "send", bad=1)
        desk.advance(minutes * MINUTE)
    desk.advance(10 * MINUTE)

    [found] = look().retrying
    assert (found.failed, found.succeeded, found.since) == (5, 0, datetime(2030, 1, 1, 12, 0, tzinfo=UTC))
    desk.advance(20 * MINUTE)
    assert look().retrying == (), "after more than an hour without a run nobody tries any more"


def test_a_task_that_went_well_at_last_and_rests_is_not_retrying(desk, look):
    desk.clock.move_to(datetime(2030, 1, 1, 12, 0, tzinfo=UTC))
    for _ in range(3):
        counted(desk, "send", bad=10)
        desk.advance(MINUTE)
    counted(desk, "send", bad=5, good=1)
    [found] = look().retrying
    assert (found.failed, found.succeeded) == (35, 1), "others may fail beside it"

    desk.advance(2 * MINUTE - SECOND)
    assert len(look().retrying) == 1
    desk.advance(SECOND)
    assert look().retrying == ()


# Who watches, and when nobody did.


@pytest.fixture
def mark(desk):
    def marked(restart=MINUTE, outage=2 * MINUTE):
        return desk.run(desk.store.alerts.mark_watch(restart=restart, outage=outage, at=desk.clock.stamp()))

    return marked


def test_a_watch_goes_on_through_short_breaks_and_begins_anew_after_a_long_one(desk, mark):
    began = mark()
    assert began == desk.now
    for _ in range(3):
        desk.advance(MINUTE)
        assert mark() == began
    desk.advance(MINUTE + SECOND)
    assert mark() == desk.now


def test_a_time_in_which_nobody_watched_and_nothing_was_counted_is_on_record(desk, look, mark):
    mark()
    assert look().gaps == (), "a fresh database was not away"
    desk.advance(2 * MINUTE - SECOND)
    mark()
    assert look().gaps == ()
    began = desk.now
    desk.advance(3 * HOUR)
    for _ in range(2):
        mark()
    assert look().gaps == (Outage(began_at=began, ended_at=desk.now),)
    desk.advance(HOUR)
    assert look().gaps == ()
    desk.run(desk.store.alerts.prune(keep=MINUTE, at=desk.clock.stamp()))


def test_where_something_was_counted_meanwhile_only_the_alerter_was_away(desk, look, mark):
    mark()
    desk.advance(90 * SECOND)
    counted(desk, "t", good=1)
    desk.advance(3 * HOUR)
    mark()
    assert look().gaps == ()

    began = desk.now
    desk.advance(HOUR)
    counted(desk, "t", good=1)
    desk.advance(10 * MINUTE)
    mark()
    [gap] = look().gaps
    assert gap.began_at == began
    assert HOUR - MINUTE <= gap.ended_at - gap.began_at <= HOUR
