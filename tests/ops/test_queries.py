"""Questions, and the shapes of their answers."""

from __future__ import annotations

import json

import pytest

from mainspring.errors import NotFound
from mainspring.model.history import DeadFilter
from mainspring.model.settlement import Verdict
from mainspring.ops import views
from mainspring.ops.queries import Queries
from mainspring.testing.clock import START
from tests.support.desk import MINUTE, SECOND, Desk

MISSING = 999_999
NINE_IN_BERLIN = '{"cron":"0 9 * * *","tz":"Europe/Berlin"}'


def test_a_job_comes_with_its_runs_and_its_decoded_call(desk: Desk, queries: Queries) -> None:
    claim = desk.started(payload=b'{"args":[1],"kwargs":{"to":"Ada"}}', max_attempts=2)
    desk.end(claim, Verdict.FAILED, took=SECOND)
    desk.end(desk.take(), Verdict.SUCCEEDED, result=b'{"sum":3}')

    found = desk.run(queries.job(claim.job_id))
    view = views.job_view(found.job)

    assert (view["args"], view["kwargs"], view["result"]) == ([1], {"to": "Ada"}, {"sum": 3})
    assert (view["state"], view["run_at"]) == ("succeeded", "2030-01-01T00:00:00+00:00")
    runs = [views.run_view(each) for each in found.runs]
    assert [(each["verdict"], each["attempt"], each["seconds"]) for each in runs] == [
        ("failed", 1, 1.0),
        ("succeeded", 2, 0.0),
    ]
    failure = runs[0]["failure"]
    assert isinstance(failure, dict)
    assert failure["message"] == "boom"


def test_what_is_not_there_is_not_found(desk: Desk, queries: Queries) -> None:
    for question in (queries.job(MISSING), queries.dead_letter(MISSING), queries.schedule("nosuch")):
        with pytest.raises(NotFound):
            desk.run(question)


def test_a_payload_written_by_another_hand_is_shown_as_it_is(desk: Desk, queries: Queries) -> None:
    job_id = desk.put(payload=b'{"surprise": true}')

    view = views.job_view(desk.run(queries.job(job_id)).job)

    assert (view["args"], json.loads(str(view["payload"]))) == (None, {"surprise": True})


def test_a_schedule_comes_with_its_last_slots_and_next_fires(desk: Desk, queries: Queries) -> None:
    desk.schedule("daily", trigger=NINE_IN_BERLIN)
    desk.advance(MINUTE)
    desk.fire_due()

    found = desk.run(queries.schedule("daily", fires=2))

    assert [views.slot_view(each)["slot_at"] for each in found.slots] == ["2030-01-01T00:01:00+00:00"]
    assert views.moments_view(found.fires) == ["2030-01-01T08:00:00+00:00", "2030-01-02T08:00:00+00:00"]
    assert views.schedule_view(found.schedule)["trigger"] == {"cron": "0 9 * * *", "tz": "Europe/Berlin"}


def test_a_trigger_of_another_version_does_not_hide_its_schedule(desk: Desk, queries: Queries) -> None:
    desk.schedule("odd", trigger="when the tide is high")

    found = desk.run(queries.schedule("odd"))

    assert found.fires is None
    assert views.schedule_view(found.schedule)["trigger"] == "when the tide is high"


def test_every_view_is_plain_json(desk: Desk, queries: Queries) -> None:
    desk.bury()
    desk.put(task="waits")
    desk.schedule("s", trigger=NINE_IN_BERLIN)

    [letter] = desk.run(queries.dead(DeadFilter()))
    members, depth = desk.run(queries.members()), desk.run(queries.depth())
    shapes = [
        views.dead_view(letter),
        *map(views.member_view, members),
        *map(views.depth_view, depth),
        *map(views.schedule_view, desk.run(queries.schedules())),
    ]

    assert json.loads(json.dumps(shapes)) == shapes
    assert len(shapes) == 4
    assert shapes[1]["id"] == "1"
    assert shapes[2]["oldest_ready_at"] == START.isoformat()
