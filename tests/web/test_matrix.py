"""Who may use what: every role at every method of every route, from the routes themselves."""

from __future__ import annotations

import re
from typing import Any

from mainspring.model.access import NOUNS, AccessRole
from tests.support.door import House, open_house
from tests.support.matrix import PUBLIC, guarded, kept

ENDLESS = {"GET /api/v1/stream"}
TRICKS = ("/{}", "{}/", "{};x=y", "{}.json", "{}%2f", "{}%20", "{}?token=ms_x", "/%2e%2e{}")
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


def ask(house: House, place: str, role: str | None, **options: Any) -> Any:
    method, path = place.split()
    house.client.cookies.clear()  # what the last answer had to say: with a cookie it would want an Origin
    path = re.sub(r"\{\w*id(:int)?\}", "424242", path)
    path = re.sub(r"\{[^}]+\}", "nothing-here", path)
    body = {} if method in ("GET", "DELETE") else {"json": {}}
    return house.ask(method, path, role=role, follow_redirects=False, **body, **options)


def is_led_to_the_door(place: str, answer: Any) -> bool:
    """Pages do so; nothing of them is in the answer."""
    led = answer.status_code == 303 and answer.headers["location"].startswith("/login?next=")
    return led and place.startswith("GET /") and not place.startswith("GET /api/") and not answer.content


def test_the_table_is_what_the_routes_say(sqlite_house: House) -> None:
    table = guarded(sqlite_house.web)

    # After a look: python -m tests.support.matrix --write
    assert table == kept()
    assert {each["noun"] for each in table.values()} <= set(NOUNS)
    assert not [
        place for place, each in table.items() if each["action"] is None and not place.startswith("GET")
    ]


def test_each_role_may_do_what_the_table_says_and_no_more(sqlite_house: House) -> None:
    wrong = []
    for place, guard in kept().items():
        if guard["role"] == PUBLIC or place in ENDLESS:
            continue
        needs = AccessRole(str(guard["role"]))
        for role in (None, *AccessRole):
            answer = ask(sqlite_house, place, role)
            status = answer.status_code
            fits = (
                status == 401 or is_led_to_the_door(place, answer)
                if role is None
                else (status not in (401, 403))
                if role.includes(needs)
                else status == 403
            )
            if not fits or status >= 500:
                wrong.append((place, role, status))

    assert wrong == []


# Acts of pages that the API has not, and why.
OF_PAGES_ALONE = {
    "access.sign_in": "programs send their token with each request",
    "access.sign_out": "programs send their token with each request",
    "audit_log.verify": "the API answers it at once: GET /audit-log/verify, for the same role and noun",
    "dead.cancel_replay": "a replay of the API goes on with each request, and stops when none comes",
    "health.check": "a look at the whole file, in the background; `mainspring doctor` does it elsewhere",
    "ledger.cancel": "of the one below",
    "ledger.verify": "in the background, on the admins' page; the API answers it at once: GET /ledger/verify",
}


# What a scope has several of.
PARTS = {"tokens": "access", "sessions": "access"}


def test_an_act_wants_the_same_by_every_door() -> None:
    """Whatever a page does, it asks for the role and the noun that the API asks for."""
    by_door: dict[bool, dict[str, set[tuple[str, str]]]] = {True: {}, False: {}}
    for place, guard in kept().items():
        if guard["action"] is not None:
            acts = by_door["/api/" in place].setdefault(str(guard["action"]), set())
            acts.add((str(guard["role"]), str(guard["noun"])))
    api, pages = by_door[True], by_door[False]

    assert set(pages) - set(api) == set(OF_PAGES_ALONE)
    assert {
        action: (pages[action], api[action])
        for action in set(pages) & set(api)
        if pages[action] != api[action]
    } == {}
    assert {action: found for action, found in {**pages, **api}.items() if len(found) > 1} == {}
    # An act is called by what it is about.
    named = {action: (action.partition(".")[0], noun) for action, [(_, noun)] in {**pages, **api}.items()}
    assert [action for action, (about, noun) in named.items() if PARTS.get(about, about) != noun] == []


def test_a_token_of_other_nouns_gets_nowhere(sqlite_house: House) -> None:
    wrong = []
    for place, guard in kept().items():
        if guard["role"] != PUBLIC:
            others = ",".join(each for each in NOUNS if each != guard["noun"])
            status = ask(sqlite_house, place, "admin", headers={"X-Scopes": others}).status_code
            if status != 403:
                wrong.append((place, status))

    assert wrong == []


def test_what_is_not_there_is_nobodys_business(sqlite_house: House) -> None:
    """Without credentials: other methods, and the ways in which paths have been mistaken for others."""
    wrong = []
    for place, guard in kept().items():
        _, path = place.split()
        if guard["role"] == PUBLIC:
            continue
        path = re.sub(r"\{[^}]+\}", "1", path)
        asked = [(method, path) for method in ("HEAD", "OPTIONS", "PUT", "TRACE")]
        asked += [("GET", trick.format(path)) for trick in TRICKS] + [("GET", path.upper())]
        for method, way in asked:
            answer = sqlite_house.ask(method, way, role=None, follow_redirects=False)
            if answer.status_code not in (401, 303) or "access-control-allow-origin" in answer.headers:
                wrong.append((method, way, answer.status_code))

    assert wrong == []


def test_no_path_leads_to_another_one_with_or_without_a_slash(sqlite_house: House) -> None:
    """Such a redirect answers before anybody has signed in, and leads to whatever host the request names."""
    led = []
    for place in kept():
        method, path = place.split()
        path = re.sub(r"\{[^}]+\}", "1", path)
        for role in (None, "admin"):
            for way in (path.rstrip("/") if path.endswith("/") and path != "/" else f"{path}/", "/static"):
                headers = {"Host": "127.0.0.1"}
                answer = sqlite_house.ask(method, way, role=role, follow_redirects=False, headers=headers)
                goes_to = answer.headers.get("location", "")
                if "://" in goes_to or answer.status_code in (301, 302, 307, 308):
                    led.append((method, way, role, goes_to))

    assert led == []


def test_a_browser_is_told_to_come_by_https_where_people_do(tmp_path: Any) -> None:
    """Behind a proxy that ends TLS and says nothing of it, too; and not where the address is a plain one."""
    for public_url, told in (("https://jobs.example", True), ("http://localhost:8383", False), ("", False)):
        with open_house(f"sqlite:///{tmp_path}/mainspring.db", seeded=False) as house:
            house.app._configure({"server.public_url": public_url})
            for path in ("/login", "/jobs", "/nothing", "/static/mainspring.css"):
                answer = house.ask("GET", path, role=None, follow_redirects=False)
                assert ("strict-transport-security" in answer.headers) == told, (public_url, path)


def test_every_answer_tells_browsers_what_they_may_not(sqlite_house: House) -> None:
    answers = [
        sqlite_house.get("/jobs"),
        sqlite_house.get("/jobs", role=None),
        sqlite_house.get("/nothing"),
        sqlite_house.get("/jobs/%00"),
        sqlite_house.post("/jobs", {"task": 7}),
        sqlite_house.ask("GET", "/static/mainspring.js", role=None),
        sqlite_house.ask("GET", "/login", role=None),
    ]

    for answer in answers:
        page = answer.headers["content-type"].startswith("text/html")
        policy = answer.headers["content-security-policy"]
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert ("script-src 'self'" in policy) == page
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control")]
