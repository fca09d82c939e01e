"""The API's own behaviour: what it does that the command line does too, and what is its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.admin.schedules.draft import OPTIONS
from mainspring.errors import StoreUnavailable
from mainspring.model.process import NewProcess, Role
from mainspring.web.api.schedules import Changes
from tests.support.door import LEASE, House


def test_a_job_is_enqueued_as_in_python(house: House) -> None:
    made = house.post(
        "/jobs", {"task": "greet", "kwargs": {"name": "x", "times": 2}, "delay": "10m", "priority": 5}
    )
    shown = house.get(f"/jobs/{made.json()['id']}").json()

    assert made.status_code == 201
    assert (shown["state"], shown["priority"], shown["kwargs"]) == ("delayed", 5, {"name": "x", "times": 2})


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"task": "greet"}, "invalid", "greet.name"),
        ({"task": "greet", "kwargs": {"nobody": 1}}, "invalid", "greet"),
        ({"task": "greet", "args": ["x"], "delay": "soon"}, "invalid", "delay"),
        ({"task": "greet", "args": ["x"], "run_at": "2026-01-01T00:00:00"}, "invalid", "run_at"),
        ({"task": "greet", "args": ["x"], "priority": 1000}, "range", "priority"),
        (
            {"task": "greet", "args": ["x"], "expires": "1h", "expires_at": "2030-01-01T00:00:00Z"},
            "invalid",
            "expires",
        ),
        ({"task": "nobody's"}, "unknown_task", "task"),
        ({"task": "greet", "args": ["a\u0000b"]}, "invalid", "greet.args[0]"),
    ],
)
def test_what_does_not_fit_names_its_field(sqlite_house: House, body: Any, code: str, field: str) -> None:
    answer = sqlite_house.post("/jobs", body)

    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)


@pytest.mark.parametrize(
    "text",
    ['{"task":"a","task":"b"}', '{"task":NaN}', '{"task":"a","args":[1e999]}', "[" * 100_000, "{", '"x"', ""],
)
def test_what_is_no_json_is_refused(sqlite_house: House, text: str) -> None:
    answer = sqlite_house.ask(
        "POST", "/api/v1/jobs", content=text, headers={"content-type": "application/json"}
    )

    assert answer.status_code == 422, answer.text


def test_a_task_that_only_workers_know_is_taken_as_it_comes(house: House) -> None:
    async def join(app: Mainspring) -> None:
        other = NewProcess(id=9, role=Role.WORKER, name="other", queues=("default",), tasks=("elsewhere",))
        await (await app._store()).processes.join(other, lease=LEASE, at=None)

    before = house.post("/jobs", {"task": "elsewhere"}).status_code
    house.run(join, house.app)
    after = house.post("/jobs", {"task": "elsewhere", "args": [1], "key": "one", "queue": "far"})
    again = house.post("/jobs", {"task": "elsewhere", "args": [2], "key": "one", "queue": "far"})

    assert (before, after.status_code, again.status_code) == (422, 201, 200)
    assert again.json()["id"] == after.json()["id"]


def test_a_job_that_waits_is_given_another_time(house: House) -> None:
    first, second = (house.post("/jobs", {"task": "greet", "args": ["x"]}).json()["id"] for _ in range(2))

    one = house.post(f"/jobs/{first}/reschedule", {"delay": "2h"})
    both = house.post("/jobs/reschedule", {"ids": [first, second], "run_at": "2099-01-01T00:00:00Z"})

    assert one.json() == {"id": first, "effect": "rescheduled", "was": "ready", "why": ""}
    assert [(each["id"], each["effect"], each["was"]) for each in both.json()["items"]] == [
        (first, "rescheduled", "delayed"),
        (second, "rescheduled", "ready"),
    ]
    assert house.get(f"/jobs/{second}").json()["run_at"] == "2099-01-01T00:00:00+00:00"
    house.post(f"/jobs/{first}/cancel", {})
    refused = house.post(f"/jobs/{first}/reschedule", {"delay": 60})
    assert (refused.status_code, refused.json()["code"], refused.json()["was"]) == (
        409,
        "refused",
        "cancelled",
    )


def test_a_job_that_waits_is_edited(house: House) -> None:
    job_id = house.post("/jobs", {"task": "greet", "args": ["x"], "delay": "1h"}).json()["id"]

    edited = house.ask(
        "PATCH",
        f"/api/v1/jobs/{job_id}",
        json={"args": ["y"], "priority": 5, "queue": "slow", "attempts": 4, "expires": "1h"},
    )
    shown = house.get(f"/jobs/{job_id}").json()
    never = house.ask("PATCH", f"/api/v1/jobs/{job_id}", json={"expires": "never"})

    assert edited.json() == {"id": job_id, "effect": "edited", "was": "delayed", "why": ""}
    assert (shown["args"], shown["priority"], shown["queue"], shown["max_attempts"]) == (["y"], 5, "slow", 4)
    assert shown["expires_at"] is not None
    assert (never.status_code, house.get(f"/jobs/{job_id}").json()["expires_at"]) == (200, None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "change"),
        ({"kwargs": {"nobody": 1}}, "greet"),
        ({"expires": "soon"}, "expires"),
        ({"expires": "1h", "expires_at": "2099-01-01T00:00:00Z"}, "expires"),
        ({"priority": 101}, "priority"),
        ({"name": "x"}, "name"),
    ],
)
def test_an_edit_that_does_not_fit_names_its_field(sqlite_house: House, body: Any, field: str) -> None:
    job_id = sqlite_house.post("/jobs", {"task": "greet", "args": ["x"]}).json()["id"]

    answer = sqlite_house.ask("PATCH", f"/api/v1/jobs/{job_id}", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_many_are_put_in_together_or_not_at_all(house: House) -> None:
    good, bad = {"task": "greet", "args": ["x"]}, {"task": "greet"}
    before = len(house.get("/jobs?limit=500").json()["items"])
    refused = house.post("/jobs/bulk", {"jobs": [good, bad]})
    none = len(house.get("/jobs?limit=500").json()["items"])
    made = house.post("/jobs/bulk", {"jobs": [good] * 600}, headers={"Idempotency-Key": "b"})
    again = house.post("/jobs/bulk", {"jobs": [good] * 600}, headers={"Idempotency-Key": "b"})
    too_many = house.post("/jobs/bulk", {"jobs": [{"task": "greet"}] * 10_001})

    assert (refused.status_code, refused.json()["field"]) == (422, "jobs.1.greet.name")
    assert none == before
    assert (made.status_code, len(made.json()["items"])) == (201, 600)
    assert again.json() == made.json()
    assert (too_many.status_code, too_many.json()["code"]) == (413, "too_many")


def test_pages_follow_each_other_and_a_cursor_is_good_for_its_question_only(house: House) -> None:
    house.post("/jobs/bulk", {"jobs": [{"task": "greet", "args": [str(n)]} for n in range(10)]})
    seen: list[int] = []
    cursor = ""
    while True:
        page = house.get(f"/jobs?task=greet&limit=4{cursor}").json()
        seen += [each["id"] for each in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    first = house.get("/jobs?task=greet&limit=4").json()["next"]
    other = house.get(f"/jobs?task=fail&limit=4&cursor={first}")

    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 13
    assert (other.status_code, other.json()["code"]) == (422, "cursor")


def test_secrets_are_not_shown(house: House) -> None:
    job = house.post("/jobs", {"task": "greet", "kwargs": {"name": "password=hunter3"}}).json()["id"]
    texts = [
        house.get(path).text for path in (f"/jobs/{job}", "/jobs", "/dead/2", "/dead/groups", "/audit-log")
    ]

    assert not [text for text in texts if "hunter3" in text or "password=hunter2" in text]


def test_dead_letters_are_edited_replayed_and_purged(house: House) -> None:
    wrong = house.ask("PATCH", "/api/v1/dead/2", json={"kwargs": {"nobody": 1}})
    edited = house.ask("PATCH", "/api/v1/dead/2", json={"args": [], "set": {"secret": "x"}}).json()
    unsaid = house.post("/dead/replay", {})
    both = house.post("/dead/replay", {"all": True, "task": "fail"})
    replayed = house.post("/dead/replay", {"task": "fail"}).json()
    gone = house.post("/dead/2/replay")
    purged = house.post("/dead/purge", {"all": True}).json()

    assert wrong.status_code == unsaid.status_code == both.status_code == 422
    assert edited["changed"] is True
    assert (replayed["ids"], replayed["complete"], replayed["next"]) == ([2], True, None)
    assert gone.status_code == 404
    assert purged == {"purged": 0, "complete": True}


def test_a_schedule_is_made_changed_by_who_read_it_paused_and_deleted(house: House) -> None:
    new = {"name": "team/report", "task": "greet", "args": ["x"], "every": "1h"}
    dry = house.post("/schedules", {**new, "dry_run": True})
    made, twice = house.post("/schedules", new), house.post("/schedules", new)
    shown = house.get("/schedules/team~report")
    etag = shown.headers["etag"]
    edit = {"json": {"every": "2h", "note": "less often"}, "headers": {"If-Match": etag}}
    first = house.ask("PATCH", "/api/v1/schedules/team~report", **edit)
    stale = house.ask("PATCH", "/api/v1/schedules/team~report", **edit)
    steps = house.get("/schedules/team~report/versions").json()["items"]
    paused = house.post("/schedules/team~report/pause", {"note": "holiday"})
    triggered = house.post("/schedules/team~report/trigger")
    gone = house.ask("DELETE", "/api/v1/schedules/team~report")

    assert (dry.status_code, made.status_code, twice.status_code) == (200, 201, 422)
    assert (first.status_code, first.headers["etag"], stale.status_code) == (200, '"2"', 412)
    assert [each["author"] for each in steps] == ["test-admin"] * 2
    assert (paused.json()["effect"], triggered.status_code) == ("paused", 201)
    assert gone.json()["effect"] == "deleted"
    assert house.get("/schedules/team~report").status_code == 404


def test_a_backfill_is_planned_and_begun(house: House) -> None:
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-04T00:00:00Z"}
    dry = house.post("/schedules/nightly/backfill", {**span, "dry_run": True})
    begun = house.post("/schedules/nightly/backfill", span)
    number = begun.json()["backfill"]["id"]
    cancelled = house.post(f"/backfills/{number}/cancel").json()

    assert (dry.status_code, dry.json()["backfill"], dry.json()["to_run"]) == (200, None, 3)
    assert (begun.status_code, begun.json()["to_run"]) == (201, 3)
    assert cancelled == {"id": number, "cancelled": True}


def test_workflows_are_started_and_steered(house: House) -> None:
    started = house.post("/workflows", {"name": "pair", "params": {"who": "Eve"}})
    unknown = house.post("/workflows", {"name": "nothing"})
    paused = house.post("/workflows/5/pause", {"note": "wait"}).json()
    cancelled = house.post("/workflows/5/cancel", {"now": True}).json()
    refused = house.post("/workflows/5/resume")

    assert (started.status_code, started.json()["task"]) == (201, "workflow:pair")
    assert unknown.status_code == 422
    assert (paused["effect"], cancelled["effect"]) == ("paused", "cancelled")
    assert refused.status_code == 409


def test_waiting_for_a_result_has_an_end(house: House) -> None:
    done = house.get("/jobs/1/result?wait=5").json()
    waits = house.get("/jobs/3/result?wait=10ms").json()
    dead = house.get("/jobs/2/result").json()
    too_long = house.get("/jobs/3/result?wait=2m")

    assert (done["ended"], done["result"]) == (True, "Ada")
    assert (waits["ended"], waits["state"]) == (False, "ready")
    assert (dead["state"], dead["error"]["type"]) == ("dead", "ValueError")
    assert too_long.status_code == 422


def test_the_database_goes_away_and_comes_back(sqlite_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*args: object, **options: object) -> None:
        raise StoreUnavailable("connection to 10.0.0.1 refused")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_house.app, "_store", away)
        answers = [sqlite_house.get("/jobs"), sqlite_house.post("/jobs", {"task": "greet", "args": ["x"]})]
    back = sqlite_house.get("/jobs")

    assert {each.status_code for each in answers} == {503}
    assert {each.json()["code"] for each in answers} == {"store_unavailable"}
    assert {each.headers["retry-after"] for each in answers} == {"5"}
    assert not [each for each in answers if "10.0.0.1" in each.text]
    assert back.status_code == 200


def test_what_nobody_expected_has_an_id_and_no_inside(
    sqlite_house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*args: object, **options: object) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(sqlite_house.app, "_store", broken)
    answer = sqlite_house.get("/jobs")

    assert answer.status_code == 500
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret inside" not in answer.text
    assert answer.json()["id"] in caplog.text
    assert "secret inside" in caplog.text


def test_the_document_is_complete_and_for_those_who_are_signed_in(sqlite_house: House) -> None:
    document = sqlite_house.get("/openapi.json").json()
    texts = json.dumps(document)
    operations = [each for methods in document["paths"].values() for each in methods.values()]

    assert document["openapi"].startswith("3.1")
    assert all(each.get("x-role") for each in operations)
    assert all(each.get("description") for each in operations)
    named = {each.split('"')[0] for each in texts.split('"#/components/schemas/')[1:]}
    assert named <= set(document["components"]["schemas"])


def test_a_schedule_has_the_same_options_by_http_as_in_python() -> None:
    assert set(Changes.model_fields) - {"note", "dry_run"} == OPTIONS


def test_to_go_on_where_the_breaker_left_nothing_out_begins_nothing(house: House) -> None:
    dry = house.post("/schedules/nightly/go-on", {"dry_run": True})
    done = house.post("/schedules/nightly/go-on")

    assert [each.status_code for each in (dry, done)] == [200, 200]
    assert done.json() == {"backfill": None, "to_run": 0, "slots": [], "cut": False}
    assert house.post("/schedules/nobody/go-on").status_code == 404


def test_a_body_that_is_refused_is_no_order_and_what_is_forbidden_is_on_record(
    house: House,
) -> None:
    bad = house.post("/queues/mail/pause", {"note": ["no", "text"]})
    forbidden = house.post("/queues/mail/pause", {"note": "x"}, role="viewer")
    failed = house.post("/jobs/4242/cancel", {})
    done = house.post("/queues/mail/pause", {"note": "x"}, role="operator")

    assert [each.status_code for each in (bad, forbidden, failed, done)] == [422, 403, 404, 200]
    acts = [
        (each["action"], each["actor"], each["outcome"], each["details"], each["result"])
        for each in house.get("/audit-log").json()["items"]
    ]
    assert acts[0] == ("queues.pause", "test-operator", "done", {"asked": {"note": "x"}}, {"changed": True})
    assert acts[1][:4] == ("jobs.cancel", "test-admin", "failed", {"asked": {"ids": [4242]}})
    assert acts[2][:3] == ("queues.pause", "test-viewer", "refused")
    assert len(acts) == 3
