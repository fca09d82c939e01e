"""The contract of long lists, on every store."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.model.job import JobFilter, JobState, Key, NewJob
from mainspring.model.run import Verdict
from mainspring.model.schedule import Only, ScheduleCounts, ScheduleFilter
from mainspring.store import jobs
from mainspring.store import schedules as store_schedules
from tests.support.desk import DAY, HOUR, MINUTE, SECOND


@pytest.fixture
def page(desk):
    return lambda **which: desk.run(desk.store.jobs.page(JobFilter(**which), at=desk.clock.stamp()))


@pytest.fixture
def schedules(desk):
    return lambda **which: desk.run(desk.store.schedules.page(ScheduleFilter(**which), at=desk.clock.stamp()))


@pytest.fixture
def short_sighted(monkeypatch):
    """A page looks at three rows."""
    monkeypatch.setattr(jobs, "LOOK", 3)
    monkeypatch.setattr(store_schedules, "LOOK", 3)


def ids(page):
    return [job.id for job in page.jobs]


def test_a_page_names_the_next_until_there_is_none(desk, page):
    made = sorted((desk.put() for _ in range(5)), reverse=True)

    first = page(limit=2)
    second = page(limit=2, before=first.next)
    third = page(limit=2, before=second.next)

    assert [ids(first), ids(second), ids(third)] == [made[:2], made[2:4], made[4:]]
    assert (first.partial, third.next, third.partial) == (False, None, False)


def test_a_page_gives_up_after_so_many_rows_and_says_where_to_go_on(desk, page, short_sighted):
    wanted = [desk.put(task="rare") for _ in range(2)]
    passed = [desk.put(task="common") for _ in range(3)]

    first = page(task="rare", limit=10)
    second = page(task="rare", limit=10, before=first.next)

    assert (ids(first), first.next, first.partial) == ([], passed[0], True)
    assert (ids(second), second.next, second.partial) == (wanted[::-1], None, False)
    assert [job.id for job in desk.jobs(task="rare")] == wanted[::-1]


def test_jobs_of_many_states_are_one_list(desk, page):
    done = desk.started(queue="a")
    desk.end(done, Verdict.SUCCEEDED)
    dead = desk.bury(queue="b")
    cancelled, waiting = desk.put(queue="c"), desk.put(delay=HOUR)
    desk.cancel(cancelled)

    found = page(states=tuple(JobState))

    assert [(job.id, job.state) for job in found.jobs] == [
        (waiting, JobState.DELAYED),
        (cancelled, JobState.CANCELLED),
        (dead, JobState.DEAD),
        (done.job_id, JobState.SUCCEEDED),
    ]
    assert ids(page(states=(JobState.CANCELLED, JobState.DELAYED), limit=1)) == [waiting]
    assert ids(page(states=(JobState.CANCELLED, JobState.DEAD))) == [cancelled, dead]
    assert ids(page(states=tuple(JobState), queue="b")) == [dead]


def test_sources_that_were_looked_at_in_part_leave_no_gap(desk, page, short_sighted):
    made = []
    for _ in range(4):
        done = desk.started(queue="a")
        desk.end(done, Verdict.SUCCEEDED)
        made += [done.job_id, desk.put(queue="b", delay=HOUR)]
    which = {"states": (JobState.SUCCEEDED, JobState.DELAYED), "limit": 3}

    seen, turns, before = [], 0, None
    while turns == 0 or before is not None:
        found = page(**which, before=before)
        seen, before, turns = seen + ids(found), found.next, turns + 1

    assert seen == sorted(made, reverse=True)


def test_a_job_is_found_by_its_key_wherever_it_stands(desk, page):
    key = Key(digest=b"k" * 32, name="order-7")
    [held] = desk.put_unique(NewJob(task="t", payload=b"{}", unique=key))

    assert ids(page(key="order-7")) == [held.job_id]
    assert ids(page(key="order-7", state=JobState.SUCCEEDED)) == []
    assert ids(page(key="order-8")) == []
    desk.cancel(held.job_id)
    assert [job.state for job in page(key="order-7").jobs] == [JobState.CANCELLED]


def test_jobs_of_a_schedule_are_found_live_and_done(desk, page):
    for name in ("s", "other"):
        desk.schedule(name)
    desk.advance(MINUTE)
    desk.fire_due()
    live = [slot.job_id for slot in desk.slots("s")]
    triggered = desk.trigger("s")
    desk.join()
    desk.end(next(each for each in desk.claim(tasks=("t",)) if each.job_id == triggered), Verdict.SUCCEEDED)

    assert ids(page(schedule="s")) == live
    assert ids(page(schedule="s", state=JobState.SUCCEEDED)) == [triggered]
    assert ids(page(schedule="s", states=(JobState.RUNNING, JobState.READY, JobState.SUCCEEDED))) == [
        triggered,
        *live,
    ]
    assert ids(page(schedule="s", states=(JobState.DEAD, JobState.CANCELLED))) == []
    assert ids(page(schedule="nobody")) == []


def test_a_schedule_is_called_by_its_name_even_after_it_was_deleted(desk):
    desk.schedule("nightly")
    schedule_id = desk.the_schedule("nightly").id
    assert desk.run(desk.store.schedules.name_of(schedule_id)) == "nightly"
    desk.delete("nightly")
    assert desk.run(desk.store.schedules.name_of(schedule_id)) == "nightly"
    assert desk.run(desk.store.schedules.name_of(schedule_id + 1)) is None


def test_times_are_those_of_the_enqueue_or_of_the_end(desk, page):
    early, buried = desk.started(queue="a"), desk.bury(queue="c")
    cut = desk.now + SECOND
    desk.advance(MINUTE)
    late = desk.put(queue="b")
    desk.end(early, Verdict.SUCCEEDED)

    assert (ids(page(since=cut)), ids(page(until=cut))) == ([late], [])
    done = {"states": (JobState.SUCCEEDED, JobState.DEAD)}
    assert (ids(page(**done, since=cut)), ids(page(**done, until=cut))) == ([early.job_id], [buried])
    assert ids(page(**done, since=cut, until=cut + DAY, queue="b")) == []


def test_what_a_member_holds_is_what_it_last_said(desk, page):
    mine, other = desk.started(queue="a"), desk.started(queue="b")
    assert desk.beat(1, mine).alive

    assert ids(page(worker=1)) == [mine.job_id]
    assert [job.worker_id for job in page(worker=1).jobs] == [1]
    assert other.job_id in ids(page(state=JobState.RUNNING))
    desk.end(mine, Verdict.SUCCEEDED)
    assert ids(page(worker=1)) == []
    assert ids(page(worker=99)) == []


def test_a_member_tells_how_its_clock_stands(desk):
    desk.join()
    [before] = desk.processes()
    told = desk.now + timedelta(seconds=3)
    desk.run(
        desk.store.processes.beat(1, lease=HOUR, claims=[(7, 1), (8, 1)], told=told, at=desk.clock.stamp())
    )
    [after] = desk.processes()

    assert (before.skew, before.holding) == (None, 0)
    assert (after.skew, after.holding) == (timedelta(seconds=3), 2)


def test_schedules_come_by_name_with_their_newest_slot(desk, schedules):
    for name in ("b", "a", "c"):
        desk.schedule(name)
    desk.advance(MINUTE)
    desk.fire_due()

    first = schedules(limit=2)
    second = schedules(limit=2, after=first.next)

    assert [[row.schedule.name for row in each.rows] for each in (first, second)] == [["a", "b"], ["c"]]
    assert (first.next, second.next, second.partial) == ("b", None, False)
    [row] = second.rows
    assert (row.last.schedule, row.last.slot_at, row.last.job_id) == (
        "c",
        desk.now,
        desk.slots("c")[0].job_id,
    )
    assert row.schedule.next_at == desk.now + MINUTE


def test_schedules_are_filtered(desk, schedules):
    def names(**which):
        return [row.schedule.name for row in schedules(**which).rows]

    for name in ("daily.Report", "hourly", "idle"):
        desk.schedule(name, task="send" if name == "hourly" else "t", trigger=name)
    desk.pause("hourly")
    desk.edit("idle", trigger="idle", max_attempts=3)

    assert names(text="report") == ["daily.Report"]
    assert names(text="SEND") == ["hourly"]
    assert (names(task="send"), names(queue="nowhere")) == (["hourly"], [])
    assert names(only=Only.PAUSED) == ["hourly"]
    assert names(only=Only.EDITED) == ["idle"]
    assert names(only=Only.OVERDUE) == []
    desk.advance(HOUR)
    assert names(only=Only.OVERDUE) == ["daily.Report", "hourly", "idle"]
    counts = desk.run(desk.store.schedules.counts(late=SECOND, at=desk.clock.stamp()))
    assert counts == ScheduleCounts(
        total=3, paused=1, edited=1, overdue=3, ended=0, oldest_due_at=desk.now - HOUR + MINUTE
    )


def test_a_search_among_many_schedules_gives_up_and_goes_on(desk, schedules, short_sighted):
    for name in ("a", "b", "c", "d"):
        desk.schedule(name)

    first = schedules(text="d")

    assert (first.rows, first.next, first.partial) == ((), "c", True)
    assert [row.schedule.name for row in schedules(text="d", after=first.next).rows] == ["d"]


def test_an_estimated_depth_of_few_jobs_is_exact(desk):
    desk.put(queue="a")
    desk.put(queue="b", delay=HOUR)

    stamp = desk.clock.stamp()
    assert desk.run(desk.store.queues.depth(at=stamp, about=True)) == desk.depth()
