"""Orders: what each does to a job in each state."""

from __future__ import annotations

import pytest

from mainspring.admin import dead_letters
from mainspring.admin.admin import Admin
from mainspring.admin.jobs import Effect
from mainspring.errors import NotFound
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.support.desk import HOUR, Desk

MISSING = 999_999


def test_cancel_takes_live_jobs_and_says_what_they_were(desk: Desk, admin: Admin) -> None:
    running = desk.started().job_id
    ready, delayed = desk.put(), desk.put(delay=HOUR)

    done = desk.run(admin.jobs.acancel([ready, delayed, running]))

    assert {each.job_id: each.was for each in done} == {
        ready: JobState.READY,
        delayed: JobState.DELAYED,
        running: JobState.RUNNING,
    }
    assert {each.effect for each in done} == {Effect.CANCELLED}


def test_cancel_leaves_finished_jobs_and_says_why(desk: Desk, admin: Admin) -> None:
    claim = desk.started()
    desk.end(claim, Verdict.SUCCEEDED)

    [done] = desk.run(admin.jobs.acancel([claim.job_id]))

    assert (done.effect, done.why) == (Effect.NONE, "has succeeded")


def test_an_unknown_id_stops_an_order_before_it_does_anything(desk: Desk, admin: Admin) -> None:
    job_id = desk.put()

    with pytest.raises(NotFound):
        desk.run(admin.jobs.acancel([job_id, MISSING]))

    assert desk.job(job_id).state is JobState.READY


def test_retry_hastens_delayed_jobs_replays_dead_ones_and_refuses_others(desk: Desk, admin: Admin) -> None:
    dead = desk.bury()
    running = desk.started().job_id
    ready, delayed = desk.put(), desk.put(delay=HOUR)

    done = desk.run(admin.jobs.aretry([dead, running, ready, delayed]))

    assert [(each.job_id, each.effect) for each in done] == [
        (dead, Effect.REPLAYED),
        (running, Effect.NONE),
        (ready, Effect.NONE),
        (delayed, Effect.HASTENED),
    ]
    assert desk.job(dead).state is desk.job(delayed).state is JobState.READY


def test_replay_by_id_refuses_a_job_that_is_not_dead(desk: Desk, admin: Admin) -> None:
    dead, ready = desk.bury(), desk.put()

    done = desk.run(admin.dead_letters.areplay([dead, ready]))

    assert [each.effect for each in done] == [Effect.REPLAYED, Effect.NONE]


def test_replay_by_filter_goes_through_every_page(desk: Desk, admin: Admin) -> None:
    mine = [desk.bury(task="mine") for _ in range(5)]
    other = desk.bury(task="other")

    done = desk.run(admin.dead_letters.areplay_all(DeadFilter(task="mine"), page=2))

    assert sorted(done.job_ids) == mine
    assert [each.id for each in desk.dead()] == [other]


def test_purge_by_filter_goes_through_every_page(
    desk: Desk, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "PAGE", 2)
    for _ in range(5):
        desk.bury()

    assert desk.run(admin.dead_letters.apurge(DeadFilter())) == 5
    assert desk.dead() == []


def test_purge_by_id_wants_every_id_to_be_a_dead_letter(desk: Desk, admin: Admin) -> None:
    dead, ready = desk.bury(), desk.put()

    with pytest.raises(NotFound):
        desk.run(admin.dead_letters.apurge([dead, ready]))

    assert [each.id for each in desk.dead()] == [dead]
    assert desk.run(admin.dead_letters.apurge([dead, dead])) == 1
