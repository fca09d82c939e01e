"""Jobs that wait, given another time or other contents through `Admin`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring import Limit, Mainspring
from mainspring.admin.admin import Admin
from mainspring.admin.jobs import Effect
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.audit_log import AuditFilter
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.support.desk import DAY, HOUR, MINUTE, Desk
from tests.support.flows import Story, definition
from tests.support.management import admin_of

MISSING = 999_999
app = Mainspring("sqlite://:memory:")


@app.task(limits=[Limit("each", by="number", concurrency=1)])
def numbered(number: int, note: str = "") -> None:
    """Its limit depends on an argument."""


@pytest.fixture
def knowing(desk: Desk) -> Admin:
    """An admin that knows the app's tasks."""
    return admin_of(desk.store, desk.clock, registry=app._registry)


def test_jobs_are_rescheduled_and_those_that_cannot_be_say_why(desk: Desk, admin: Admin) -> None:
    running = desk.started().job_id
    dead, ready, delayed = desk.bury(), desk.put(), desk.put(delay=DAY)
    ending = desk.put(expires=MINUTE)

    done = desk.run(admin.jobs.areschedule([running, dead, ready, delayed, ending], delay="1h"))

    until = (desk.now + MINUTE).isoformat()
    assert [(each.job_id, each.effect, each.was, each.why) for each in done] == [
        (running, Effect.NONE, JobState.RUNNING, "is running"),
        (dead, Effect.NONE, JobState.DEAD, "is dead"),
        (ready, Effect.RESCHEDULED, JobState.READY, ""),
        (delayed, Effect.RESCHEDULED, JobState.DELAYED, ""),
        (ending, Effect.NONE, JobState.READY, f"must have succeeded by {until}, before that time"),
    ]
    assert [desk.job(each).run_at - desk.now for each in (ready, delayed)] == [HOUR, HOUR]


def test_a_moment_that_has_passed_means_now(desk: Desk, admin: Admin) -> None:
    job_id = desk.put(delay=DAY)

    [done] = desk.run(admin.jobs.areschedule(job_id, run_at=desk.now - DAY))

    assert (done.effect, desk.job(job_id).run_at) == (Effect.RESCHEDULED, desk.now)


@pytest.mark.parametrize(
    "when",
    [
        {},
        {"run_at": None, "delay": None},
        {"delay": "soon"},
        {"delay": timedelta(seconds=-1)},
        {"delay": "1h", "run_at": "now"},
        {"run_at": "2030-01-01T00:00:00Z"},
    ],
)
def test_a_time_that_is_none_is_refused(desk: Desk, admin: Admin, when: dict[str, Any]) -> None:
    job_id = desk.put()

    with pytest.raises(InvalidArgument):
        desk.run(admin.jobs.areschedule(job_id, **when))

    assert desk.job(job_id).run_at == desk.now


def test_an_unknown_id_stops_both_before_they_do_anything(desk: Desk, admin: Admin) -> None:
    job_id = desk.put()

    with pytest.raises(NotFound):
        desk.run(admin.jobs.areschedule([job_id, MISSING], delay="1h"))
    with pytest.raises(NotFound):
        desk.run(admin.jobs.aedit(MISSING, priority=1))

    assert desk.job(job_id).state is JobState.READY


def test_a_job_is_edited_and_what_is_not_named_stays(desk: Desk, admin: Admin) -> None:
    job_id = desk.put(payload=b'{"args":[1],"kwargs":{"a":2}}', queue="mail", delay=HOUR)

    done = desk.run(
        admin.jobs.aedit(job_id, kwargs={"a": 3}, priority=7, queue="post", attempts=9, expires="2h")
    )

    assert (done.effect, done.was) == (Effect.EDITED, JobState.DELAYED)
    job = desk.job(job_id)
    assert (job.payload, job.priority, job.queue, job.max_attempts) == (
        b'{"args":[1],"kwargs":{"a":3}}',
        7,
        "post",
        9,
    )
    assert (job.run_at, job.expires_at) == (desk.now + HOUR, desk.now + 3 * HOUR)
    desk.run(admin.jobs.aedit(job_id, args=[]))
    desk.run(admin.jobs.aedit(job_id, expires="never"))
    assert (desk.job(job_id).payload, desk.job(job_id).expires_at) == (b'{"kwargs":{"a":3}}', None)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"priority": 101},
        {"queue": "no queue"},
        {"attempts": 0},
        {"attempts": 1},
        {"expires": "soon"},
        {"args": [object()]},
    ],
)
def test_a_change_that_does_not_fit_is_refused(desk: Desk, admin: Admin, change: dict[str, Any]) -> None:
    claim = desk.started(max_attempts=3)
    desk.end(claim, Verdict.FAILED)
    before = desk.job(claim.job_id)

    with pytest.raises(InvalidArgument):
        desk.run(admin.jobs.aedit(claim.job_id, **change))

    assert desk.job(claim.job_id) == before


def test_what_does_not_wait_is_not_edited(desk: Desk, admin: Admin) -> None:
    running, dead = desk.started().job_id, desk.bury()
    story = Story(desk, definition(a={}))

    done = [desk.run(admin.jobs.aedit(each, priority=1)) for each in (running, dead, story.step("a").id)]

    assert {each.effect for each in done} == {Effect.NONE}
    assert [each.why for each in done[:2]] == ["is running", "is dead"]
    assert done[2].why.startswith(f"is a step of workflow {story.id}")


def test_a_claim_meanwhile_is_told(desk: Desk, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.join()
    job_id, real = desk.put(), desk.store.jobs.edit

    async def claimed_first(*args: Any, **named: Any) -> bool:
        await desk.store.queue.claim(1, queues=["default"], tasks=["t"], limit=1, at=desk.clock.stamp())
        return await real(*args, **named)

    monkeypatch.setattr(desk.store.jobs, "edit", claimed_first)
    done = desk.run(admin.jobs.aedit(job_id, priority=9))

    assert (done.effect, done.why) == (Effect.NONE, "is running")
    assert desk.job(job_id).priority == 0


def test_arguments_are_checked_and_limited_as_the_app_declares(desk: Desk, knowing: Admin) -> None:
    desk.join()
    first, second = [
        desk.put(task="numbered", payload=b'{"args":[%d]}' % number, limit_keys=limit_keys(number))
        for number in (1, 2)
    ]
    desk.admit_all()
    [claim] = desk.claim(tasks=["numbered"], limit=1)
    assert claim.job_id == first

    with pytest.raises(InvalidArgument):
        desk.run(knowing.jobs.aedit(second, kwargs={"nosuch": 1}))
    assert desk.run(knowing.jobs.aedit(second, args=[1])).effect is Effect.EDITED

    desk.admit_all()
    assert desk.claim(tasks=["numbered"]) == []  # it waits for the first now
    desk.end(claim, Verdict.SUCCEEDED)
    desk.admit_all()
    assert [each.job_id for each in desk.claim(tasks=["numbered"])] == [second]


def limit_keys(number: int) -> Any:
    return numbered.job(number).limit_keys


def test_the_log_says_what_was_there_before(desk: Desk, admin: Admin) -> None:
    job_id = desk.put(payload=b'{"args":[1],"kwargs":{"password":"swordfish"}}', priority=4)
    desk.run(admin.jobs.aedit(job_id, kwargs={"password": "other"}, priority=5))
    desk.run(admin.jobs.areschedule(job_id, delay="1h"))

    moved, edited = desk.run(admin.audit_log.afind(AuditFilter()))
    assert (edited.entry.action, edited.asked, edited.result) == (
        "jobs.edit",
        {"asked": {"kwargs": {"password": "[redacted]"}, "priority": 5}},
        {
            "edited": [job_id],
            "was": {"priority": 4, "args": [1], "kwargs": {"password": "[redacted]"}},
        },
    )
    assert (moved.entry.action, moved.asked, moved.result) == (
        "jobs.reschedule",
        {"asked": {"delay": "1h"}},
        {"rescheduled": [job_id]},
    )
