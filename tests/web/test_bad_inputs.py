"""Every bad input of the API, by id: its verdict, no trace of our insides, and nothing changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.door import House

INPUTS = {
    each["id"]: each
    for each in json.loads((Path(__file__).parents[1] / "data" / "bad_inputs_api.json").read_text())
}
ELSEWHERE = {
    "test_access.py": {"api-005", "api-006", "api-056", "api-057"},
    "test_server.py": {"api-065", "api-066", "api-067", "api-068", "api-069", "api-063"},
    "test_live.py": {"api-070", "api-072"},
}
JSON = {"content-type": "application/json"}
CALL = {"task": "greet", "args": ["Ada"]}
Asked = Callable[[House], Any]


def ask(method: str, path: str, **options: Any) -> Asked:
    return lambda house: house.ask(method, path, **options)


def twice(second: object, key: str) -> Asked:
    def asked(house: House) -> Any:
        house.post("/jobs", CALL, headers={"Idempotency-Key": key})
        return house.post("/jobs", second, headers={"Idempotency-Key": key})

    return asked


REFUSED: dict[str, tuple[Asked, int, str]] = {
    "api-001": (
        ask("POST", "/api/v1/jobs", content=json.dumps(CALL), headers={"content-type": "text/plain"}),
        415,
        "media_type",
    ),
    "api-002": (ask("POST", "/api/v1/jobs", data={"task": "greet"}), 415, "media_type"),
    "api-003": (ask("POST", "/api/v1/jobs", content=json.dumps(CALL)), 415, "media_type"),
    "api-008": (ask("GET", "/api/v1/jobs/3/retry"), 405, "method"),
    "api-009": (ask("HEAD", "/api/v1/jobs/3/cancel"), 405, ""),
    "api-013": (ask("GET", "/api/v1/flows/x/configs", role=None), 401, "auth"),
    "api-014": (ask("GET", "//api//v1//jobs", role=None), 401, "auth"),
    "api-015": (ask("GET", "/api/v1/jobs/..%2f..%2fhealth", role=None), 401, "auth"),
    "api-016": (ask("GET", "/api/v1/jobs;.js", role=None), 401, "auth"),
    "api-017": (ask("GET", "/API/V1/JOBS", role=None), 401, "auth"),
    "api-018": (ask("GET", "/api/v1/jobs", role=None, headers={"X-Original-URL": "/health"}), 401, "auth"),
    # There are no tenants: what is not there is not found.
    "api-023": (ask("POST", "/api/v1/dead/424242/replay"), 404, "not_found"),
    "api-025": (ask("PATCH", "/api/v1/dead/2", json={"state": "succeeded"}), 422, "unknown_field"),
    "api-026": (
        ask("PATCH", "/api/v1/dead/2", json={"attempt": 0, "token": 999, "lease_until": "x"}),
        422,
        "unknown_field",
    ),
    "api-027": (ask("POST", "/api/v1/jobs", json={**CALL, "id": 7}), 422, "unknown_field"),
    "api-029": (ask("GET", "/api/v1/jobs?limit=-1"), 422, "range"),
    "api-030": (ask("GET", "/api/v1/jobs?limit=1000000000"), 422, "range"),
    "api-031": (ask("GET", "/api/v1/jobs?limit=abc"), 422, "type"),
    "api-032": (ask("GET", "/api/v1/jobs?limit=1&limit=2"), 422, "duplicate"),
    # There is no offset to be out of range.
    "api-033": (ask("GET", "/api/v1/jobs?offset=9223372036854775808"), 422, "unknown_field"),
    "api-034": (ask("GET", "/api/v1/jobs?cursor=tampered"), 422, "cursor"),
    "api-038": (ask("GET", "/api/v1/jobs?tag[]=x&tag[y]=z"), 422, "unknown_field"),
    "api-039": (ask("GET", f"/api/v1/jobs?task={'a' * 60_000}"), 414, "uri_too_long"),
    "api-040": (ask("GET", "/api/v1/jobs/not-a-uuid"), 404, "not_found"),
    "api-041": (ask("GET", "/api/v1/jobs/%00"), 400, "bad_request"),
    "api-042": (ask("GET", "/api/v1/jobs/%ff"), 400, "bad_request"),
    "api-043": (ask("GET", "/api/v1/jobs/1' OR '1'='1"), 404, "not_found"),
    "api-044": (
        ask("PATCH", "/api/v1/schedules/nightly", json={"priority": 3}, headers={"If-Match": '"7"'}),
        412,
        "precondition",
    ),
    "api-045": (twice({**CALL, "priority": 3}, "k45"), 409, "idempotency_conflict"),
    "api-053": (
        ask("GET", "/api/v1/jobs", headers=[("authorization", "Bearer a"), ("authorization", "Bearer b")]),
        400,
        "bad_request",
    ),
    "api-074": (
        ask("POST", "/api/v1/jobs/bulk", json={"jobs": [{"task": "greet"}] * 1_000_000}),
        413,
        "too_large",
    ),
    "api-076": (ask("GET", "/api/v1/openapi.json", role=None), 401, "auth"),
    "api-077": (ask("GET", "/static/..%2f..%2fetc/passwd", role=None), 404, "not_found"),
    "api-078": (ask("GET", "/.git/config"), 404, "not_found"),
}


def test_they_are_refused_and_nothing_changes(house: House) -> None:
    """One house for all: what one of them changed, or broke, the next would meet."""
    live = {each["id"] for each in house.get("/jobs?limit=500").json()["items"]}
    wrong = {}
    for id, (asked, status, code) in REFUSED.items():
        answer = asked(house)
        told = answer.json()["code"] if answer.content else ""
        if (answer.status_code, told) != (status, code) or _leaks(answer):
            wrong[id] = (answer.status_code, answer.text[:300])

    assert wrong == {}
    kept = {each["id"] for each in house.get("/jobs?limit=500").json()["items"]}
    assert len(kept - live) == 1  # the first of api-045
    assert live <= kept


def _leaks(answer: Any) -> bool:
    inside = any(word in answer.text for word in ("Traceback", "site-packages", "SELECT", ".py"))
    is_problem = answer.headers.get("content-type") == "application/problem+json" or not answer.content
    return inside or not is_problem or answer.headers.get("x-content-type-options") != "nosniff"


def test_options_from_elsewhere_get_no_permission(sqlite_house: House) -> None:
    """api-012"""
    answer = sqlite_house.ask("OPTIONS", "/api/v1/jobs", headers={"Origin": "https://evil.example"})

    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_fifty_of_one_key_at_once_are_one_job(house: House) -> None:
    """api-047"""
    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(lambda _: house.post("/jobs", CALL, headers={"Idempotency-Key": "k47"}), range(50))
        )

    assert {(each.status_code, each.text) for each in answers} == {(201, answers[0].text)}
    assert sum("idempotency-replayed" not in each.headers for each in answers) == 1
    assert sum(each["args"] == ["Ada"] for each in house.get("/jobs?task=greet").json()["items"]) == 2


def test_a_callback_is_no_script(sqlite_house: House) -> None:
    """api-060"""
    answer = sqlite_house.get("/jobs?callback=<script>")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert "script" not in answer.text


def test_ten_thousand_schedules_of_the_same_minute_are_taken(sqlite_house: House) -> None:
    """api-075; a few stand for them, and one in a window has a place of its own."""
    made = [
        sqlite_house.post(
            "/schedules", {"name": f"s{n}", "task": "greet", "args": ["x"], "cron": "0 9 * * *"}
        )
        for n in range(20)
    ]
    spread = sqlite_house.post(
        "/schedules",
        {"name": "w", "task": "greet", "args": ["x"], "cron": "0 9 * * *", "window": "15m", "dry_run": True},
    )

    assert {each.status_code for each in made} == {201}
    assert spread.json()["schedule"]["offset"] != "0s"


#: Tokens: who may not come in is told so, and no more.
BEARERS = {
    "api-048": "Bearer",
    "api-049": "Basic Og==",
    "api-050": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "api-051": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2ln",
    "api-052": "Bearer eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjF9.c2ln",
}


@pytest.mark.parametrize("id", sorted(BEARERS))
def test_what_is_no_token_lets_nobody_in(token_house: House, id: str) -> None:
    answer = token_house.get("/jobs", role=None, headers={"Authorization": BEARERS[id]})

    assert (answer.status_code, answer.json()["code"]) == (401, "auth")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_that_is_revoked_is_gone_at_once(token_house: House) -> None:
    """api-055"""
    made = token_house.post("/tokens", {"name": "ci", "role": "viewer"}).json()
    as_ci = {"role": None, "headers": {"Authorization": f"Bearer {made['secret']}"}}
    before = token_house.get("/jobs", **as_ci)
    token_house.ask("DELETE", f"/api/v1/tokens/{made['id']}")
    after = token_house.get("/jobs", **as_ci)

    assert (before.status_code, after.status_code) == (200, 401)
    assert made["secret"] not in token_house.get("/tokens").text


def test_every_bad_input_is_somewhere() -> None:
    here = {*REFUSED, *BEARERS, "api-012", "api-047", "api-055", "api-060", "api-075"}
    elsewhere = {each for ids in ELSEWHERE.values() for each in ids}

    assert here | elsewhere == set(INPUTS)


NOT_IN_DIGITS = ("1_000", "+5", "\uff11", "\u0665", " 5", "5 ", "0x5", "1e1", "\u00b2")


def in_document(house: House, kind: str) -> list[tuple[str, str, str]]:
    """Place and name of every whole number that the document names in paths or queries."""
    return [
        (method.upper(), path, each["name"])
        for path, methods in house.get("/openapi.json").json()["paths"].items()
        for method, operation in methods.items()
        for each in operation.get("parameters", ())
        if each["in"] == kind and '"integer"' in json.dumps(each["schema"])
    ]


def test_numbers_of_the_api_are_in_the_digits_0_to_9(sqlite_house: House) -> None:
    house, taken = sqlite_house, []
    queries, paths = in_document(house, "query"), in_document(house, "path")
    assert len(queries) >= 12
    assert len(paths) >= 15
    for odd in NOT_IN_DIGITS:
        for method, path, name in queries:
            place = re.sub(r"\{[^}]+\}", "1", path)
            needed = {"from": "2030-01-01T00:00Z", "to": "2030-01-02T00:00Z"} if "simulation" in path else {}
            answer = house.ask(method, place, params={**needed, name: odd})
            if answer.status_code != 422 or answer.json()["field"] != name:
                taken.append((odd, method, path, name, answer.status_code))
        for method, path, name in paths:
            place = re.sub(r"\{[^}]+\}", "1", path.replace(f"{{{name}}}", quote(odd)))
            if (
                status := house.ask(method, place, **({} if method == "GET" else {"json": {}})).status_code
            ) != 404:
                taken.append((odd, method, path, name, status))

    assert taken == []


@pytest.mark.parametrize("odd", NOT_IN_DIGITS)
@pytest.mark.parametrize(
    "place",
    [
        "/jobs/{}", "/jobs?before={}", "/jobs?worker={}x", "/dead/letters?before={}", "/dead/letters?like={}",
        "/dead/replays/{}", "/workflows/{}", "/audit?before={}",
    ],
)  # fmt: skip
def test_numbers_of_pages_are_in_the_digits_0_to_9(sqlite_house: House, place: str, odd: str) -> None:
    answer = sqlite_house.ask("GET", place.format(quote(odd)), headers={"Accept": "text/html"})
    stripped = odd.strip() != odd and place.startswith("/audit")  # fields of forms are stripped
    assert answer.status_code in ((200,) if stripped else (404, 422)), answer.text


@pytest.mark.parametrize("odd", NOT_IN_DIGITS)
def test_numbers_of_forms_are_in_the_digits_0_to_9(sqlite_house: House, odd: str) -> None:
    for field in ("ids", "like"):
        answer = sqlite_house.ask(
            "POST", "/dead/replay", data={field: odd}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert answer.status_code == 422


@pytest.mark.parametrize("field", ["delay", "expires", "every", "wait"])
@pytest.mark.parametrize("odd", ["1_0s", "+5s", "\uff11s", "\u0665", "1_0", "5 s"])
def test_lengths_of_time_are_in_the_digits_0_to_9(sqlite_house: House, field: str, odd: str) -> None:
    house = sqlite_house
    answers = {
        "delay": lambda: house.post("/jobs", {**CALL, "delay": odd}),
        "expires": lambda: house.post("/tokens", {"name": "x", "role": "viewer", "expires": odd}),
        "every": lambda: house.get("/next", params={"every": odd}),
        "wait": lambda: house.get("/jobs/1/result", params={"wait": odd}),
    }
    assert answers[field]().status_code == 422


ODD_NAMES = ("a\x00b", "\ud800", "x" * 201, "", 7)
NAMED = [
    ("/schedules/pause", lambda name: {"names": ["nightly", name]}),
    ("/schedules/resume", lambda name: {"names": [name]}),
    ("/schedules/delete", lambda name: {"names": [name]}),
    ("/dead/replay", lambda name: {"task": name}),
    ("/dead/replay", lambda name: {"queue": name}),
    ("/dead/purge", lambda name: {"task": name}),
    ("/workflows/5/retry", lambda name: {"steps": [name]}),
    ("/jobs/bulk", lambda name: {"jobs": [CALL, {**CALL, "key": name}]}),
    ("/jobs/bulk", lambda name: {"jobs": [CALL, {**CALL, "queue": name}]}),
]


def test_names_are_refused_alike_on_both_stores(house: House) -> None:
    """Of many as of one, and nothing is done to the others."""
    before = house.get("/jobs").text
    for path, body in NAMED:
        for odd in ODD_NAMES:
            answer = house.post_raw(path, json.dumps(body(odd)))
            assert (answer.status_code, answer.json()["code"] != "internal") == (422, True), (path, odd)
    assert house.get("/jobs").text == before
    assert house.get("/schedules/nightly").json()["paused_at"] is None
