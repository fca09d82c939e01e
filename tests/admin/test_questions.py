"""Questions, and the shapes of their answers."""

from __future__ import annotations

import json

import pytest

from mainspring.admin import views
from mainspring.admin.admin import Admin
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import Claim
from mainspring.model.run import ProgressNote, Verdict
from mainspring.testing.clock import START
from tests.support.desk import DAY, MINUTE, SECOND, Desk

MISSING = 999_999
NINE_IN_BERLIN = '{"cron":"0 9 * * *","tz":"Europe/Berlin"}'


def test_a_job_comes_with_its_runs_and_its_decoded_call(desk: Desk, admin: Admin) -> None:
    claim = desk.started(payload=b'{"args":[1],"kwargs":{"to":"Ada"}}', max_attempts=2)
    desk.end(claim, Verdict.FAILED, took=SECOND)
    desk.end(desk.take(), Verdict.SUCCEEDED, result=b'{"sum":3}')

    found = desk.run(admin.jobs.aget(claim.job_id))
    view = views.to_json(views.JobView.of(found.job))

    assert (view["args"], view["kwargs"], view["result"]) == ([1], {"to": "Ada"}, {"sum": 3})
    assert (view["state"], view["run_at"]) == ("succeeded", "2030-01-01T00:00:00+00:00")
    runs = views.to_json([views.RunView.of(each) for each in found.runs])
    assert [(each["verdict"], each["attempt"], each["seconds"]) for each in runs] == [
        ("failed", 1, 1.0),
        ("succeeded", 2, 0.0),
    ]
    failure = runs[0]["failure"]
    assert isinstance(failure, dict)
    assert failure["message"] == "boom"


def test_what_is_not_there_is_not_found(desk: Desk, admin: Admin) -> None:
    for question in (
        admin.jobs.aget(MISSING),
        admin.dead_letters.aget(MISSING),
        admin.schedules.aget("nosuch"),
    ):
        with pytest.raises(NotFound):
            desk.run(question)


def test_a_payload_written_by_another_hand_is_shown_as_it_is(desk: Desk, admin: Admin) -> None:
    job_id = desk.put(payload=b'{"surprise": true}')

    view = views.to_json(views.JobView.of(desk.run(admin.jobs.aget(job_id)).job))

    assert (view["args"], json.loads(str(view["payload"]))) == (None, {"surprise": True})


def test_a_schedule_comes_with_its_last_slots_and_next_fires(desk: Desk, admin: Admin) -> None:
    desk.schedule("daily", trigger=NINE_IN_BERLIN)
    desk.advance(MINUTE)
    desk.fire_due()

    found = desk.run(admin.schedules.aget("daily", fires=2))

    assert [each["slot_at"] for each in views.to_json(found.slots)] == ["2030-01-01T00:01:00+00:00"]
    assert views.to_json(found.fires) == ["2030-01-01T08:00:00+00:00", "2030-01-02T08:00:00+00:00"]
    assert views.ScheduleView.of(found.schedule).trigger == {"cron": "0 9 * * *", "tz": "Europe/Berlin"}


def test_a_trigger_of_another_version_does_not_hide_its_schedule(desk: Desk, admin: Admin) -> None:
    desk.schedule("odd", trigger="when the tide is high")

    found = desk.run(admin.schedules.aget("odd"))

    assert found.fires is None
    assert views.ScheduleView.of(found.schedule).trigger == "when the tide is high"


def test_every_view_is_plain_json(desk: Desk, admin: Admin) -> None:
    desk.bury()
    desk.put(task="waits")
    desk.schedule("s", trigger=NINE_IN_BERLIN)

    [letter] = desk.run(admin.dead_letters.afind(DeadFilter()))
    processes, depth = desk.run(admin.processes.aall()), desk.run(admin.queues.adepth())
    shapes = views.to_json(
        [
            views.DeadView.of_letter(letter),
            *map(views.ProcessView.of, processes),
            *depth,
            *map(views.ScheduleView.of, desk.run(admin.schedules.aall())),
        ]
    )

    assert json.loads(json.dumps(shapes)) == shapes
    assert len(shapes) == 4
    assert shapes[1]["id"] == "1"
    assert shapes[2]["oldest_ready_at"] == START.isoformat()


def test_a_running_job_comes_with_its_progress_and_others_without(desk: Desk, admin: Admin) -> None:
    claim = desk.started()
    assert desk.run(admin.jobs.aget(claim.job_id)).progress is None
    note(desk, claim)

    found = desk.run(admin.jobs.aget(claim.job_id)).progress

    assert views.to_json(views.ProgressView.of(found)) == {
        "fraction": 0.4,
        "note": "3 of 7",
        "at": "2030-01-01T00:00:00+00:00",
    }
    desk.end(claim, Verdict.SUCCEEDED)
    assert desk.run(admin.jobs.aget(claim.job_id)).progress is None


def note(desk: Desk, claim: Claim) -> None:
    said = ProgressNote(
        job_id=claim.job_id, worker_id=claim.worker_id, fence=claim.fence, fraction=0.4, note="3 of 7"
    )
    desk.run(desk.store.runs.note_progress([said], at=desk.now))


def test_logs_come_with_their_runs_and_runs_without_any_are_counted(desk: Desk, admin: Admin) -> None:
    claim = desk.started(max_attempts=9)
    desk.end(claim, Verdict.FAILED)
    desk.end(desk.take(), Verdict.FAILED, log="second")
    desk.lose()
    desk.end(desk.take(2), Verdict.SUCCEEDED, log="third")

    found = desk.run(admin.jobs.alogs(claim.job_id))

    assert [(each.number, each.run.verdict, each.log) for each in found] == [
        (1, Verdict.FAILED, None),
        (2, Verdict.FAILED, "second"),
        (3, Verdict.SUCCEEDED, "third"),
    ]
    [second] = desk.run(admin.jobs.alogs(claim.job_id, number=2))
    assert second.log == "second"
    with pytest.raises(InvalidArgument, match=rf"run: expected a run of job {claim.job_id}: 1 to 3, got 4"):
        desk.run(admin.jobs.alogs(claim.job_id, number=4))
    with pytest.raises(InvalidArgument, match="has no run yet"):
        desk.run(admin.jobs.alogs(desk.put(), number=1))
    with pytest.raises(NotFound):
        desk.run(admin.jobs.alogs(MISSING))


def test_a_result_that_is_no_longer_kept_is_not_shown_as_none(desk: Desk, admin: Admin) -> None:
    claim, silent = desk.started(), desk.started()
    desk.end(claim, Verdict.SUCCEEDED, result=b"3")
    desk.end(silent, Verdict.SUCCEEDED)
    desk.advance(3 * DAY)
    desk.run(desk.store.runs.drop_results(keep=DAY, at=desk.now))

    found = desk.run(admin.jobs.aget(claim.job_id))

    for view in views.to_json([views.JobView.of(found.job), views.RunView.of(found.runs[0])]):
        assert (view["result"], view["result_gone"]) == (None, True)
    assert "result_gone" not in views.to_json(views.JobView.of(desk.run(admin.jobs.aget(silent.job_id)).job))
