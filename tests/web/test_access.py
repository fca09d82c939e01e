"""Who is let in, by which door, and what is put on record of it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from mainspring.admin.access import Credentials
from mainspring.admin.order import Recorder
from mainspring.errors import MoreThanOwn
from mainspring.model.access import AccessRole, Actor
from mainspring.web.auth.identity import HOST, PLAIN, SECURE
from tests.support.door import open_house
from tests.web.conftest import Site, of_host

SAME = {"Origin": "http://127.0.0.1:8383", "Sec-Fetch-Site": "same-origin"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def signed_in(site: Site, client: Any, **token: Any) -> str:
    """Sign in with a new token; answers it."""
    secret = await site.token(**token)
    answer = await client.post("/login", data={"token": secret}, headers=SAME)
    assert answer.status_code == 303, answer.text
    return secret


# Tokens.


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ([], 401, "auth"),
        ([("Authorization", "Bearer")], 401, "auth"),
        ([("Authorization", "Bearer ")], 401, "auth"),
        ([("Authorization", "Basic Og==")], 401, "auth"),
        ([("Authorization", "Bearer ms_" + "x" * 43)], 401, "auth"),
        ([("Authorization", "Bearer " + "ms_" * 5000)], 401, "auth"),
        ([("Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4ifQ.")], 401, "auth"),
        ([("Authorization", "Bearer a"), ("Authorization", "Bearer b")], 400, "bad_request"),
        ([("X-Original-URL", "/login")], 401, "auth"),
        ([("Cookie", "mainspring=chosen-by-an-attacker")], 401, "auth"),
    ],
)
def test_nobody_comes_in_without_a_token_that_holds(site, run, headers, status, code):
    async def work() -> Any:
        async with site.client() as client:
            return await client.get("/things/1", headers=headers)

    answer = run(work())
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_token_in_the_address_is_refused_even_if_it_holds(site, run):
    async def work() -> None:
        secret = await site.token()
        async with site.client() as client:
            for name in ("token", "access_token"):
                answer = await client.get("/things/1", params={name: secret}, headers=bearer(secret))
                assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
            assert (await client.get("/things/1", headers=bearer(secret))).json()["by"] == "ada"

    run(work())


@pytest.mark.parametrize(
    ("own", "asked", "field"),
    [
        ({"scopes": ["access"]}, {"role": "viewer"}, "scopes"),
        ({"scopes": ["access"]}, {"role": "admin", "scopes": ["access", "jobs"]}, "scopes"),
        ({"scopes": ["access"]}, {"role": "admin", "scopes": ["jobs"]}, "scopes"),
        ({"scopes": ["access", "jobs"]}, {"role": "operator", "scopes": ["jobs"]}, None),
        ({"scopes": ["access"]}, {"role": "admin", "scopes": ["access"]}, None),
        ({}, {"role": "admin"}, None),
        ({"expires": "1d"}, {"role": "viewer"}, "expires"),
        ({"expires": "1d"}, {"role": "viewer", "expires": "365d"}, "expires"),
        ({"expires": "1d"}, {"role": "viewer", "expires": "86402s"}, "expires"),
        ({"expires": "1d"}, {"role": "viewer", "expires": "23h"}, None),
    ],
)
@pytest.mark.parametrize("by", ["token", "session"])
def test_nobody_gives_more_than_they_have(database_url, by, own, asked, field):
    """Whoever comes with a token, or with a session that was opened with it."""
    with open_house(database_url, seeded=False, tokens=True) as house:

        async def entered() -> dict[str, str]:
            app = house.app
            gate = Credentials(await app._store(), app._clock, app._entropy, app.settings.access)
            made = await app.admin("root").tokens.acreate("ada", role="admin", **own)
            if by == "token":
                return bearer(made.secret)
            actor = await gate.token_actor(made.secret)
            assert actor is not None
            return {"Cookie": f"mainspring={await gate.sign_in(actor)}", "Sec-Fetch-Site": "same-origin"}

        headers = house.run(entered)
        # A session ends at the latest after `access.session_longest`: what it gives does so, too.
        lasting = {"expires": "10m"} if by == "session" and "expires" not in asked and field is None else {}
        answer = house.post("/tokens", {"name": "bob", **asked, **lasting}, role=None, headers=headers)

        if field is None:
            assert answer.status_code == 201, answer.text
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
            assert answer.json()["field"] == field
            assert [each["name"] for each in house.get("/tokens").json()["items"]] == ["ada"]


@pytest.mark.parametrize(
    ("asked", "status"), [({}, 403), ({"expires": "31d"}, 403), ({"expires": "1h"}, 201)]
)
def test_who_came_through_a_provider_gives_nothing_that_lasts_longer_than_their_session(
    database_url, asked, status
):
    """Whom the provider lets in no more has nothing left of it when their session has ended."""
    with open_house(database_url, seeded=False, tokens=True) as house:

        async def entered() -> str:
            app = house.app
            gate = Credentials(await app._store(), app._clock, app._entropy, app.settings.access)
            return await gate.sign_in(Actor(name="ada", role=AccessRole.ADMIN, via="oidc"))

        headers = {"Cookie": f"mainspring={house.run(entered)}", "Sec-Fetch-Site": "same-origin"}
        body = {"name": "bob", "role": "viewer", **asked}
        answer = house.post("/tokens", body, role=None, headers=headers)

        assert (answer.status_code, answer.json().get("field", "expires")) == (status, "expires")


def test_an_operator_gives_nothing_away(run, site):
    """The route lets in admins alone; who asks the rooms behind it meets the same rule."""

    async def work() -> None:
        for role, asked in (("viewer", "operator"), ("operator", "admin"), ("viewer", "admin")):
            giver = Actor(name="ada", role=AccessRole(role), via="host")
            with pytest.raises(MoreThanOwn, match=f"role: expected at most {role}"):
                await site.app.admin(giver).tokens.acreate("bob", role=asked)

    run(work())


def test_a_role_and_a_scope_reach_so_far_and_no_further(site, run):
    async def work() -> None:
        viewer, operator = await site.token(role="viewer"), await site.token()
        admin, elsewhere = await site.token(role="admin"), await site.token(role="admin", scopes=["queues"])
        async with site.client() as client:

            async def tried(secret: str) -> list[int]:
                head = bearer(secret)
                return [
                    (await client.get("/things/1", headers=head)).status_code,
                    (await client.post("/things/1/poke", json={}, headers=head)).status_code,
                    (await client.delete("/things/1", headers=head)).status_code,
                ]

            assert await tried(viewer) == [200, 403, 403]
            assert await tried(operator) == [200, 200, 403]
            assert await tried(admin) == [200, 200, 200]
            assert await tried(elsewhere) == [403, 403, 403]

    run(work())


def test_what_is_revoked_or_expired_is_out_with_the_next_request(site, run):
    async def work() -> None:
        first, second = await site.token(), await site.token(expires="1h")
        async with site.client() as client:
            assert (await client.get("/things/1", headers=bearer(first))).status_code == 200
            await site.admin().tokens.arevoke(1)
            assert (await client.get("/things/1", headers=bearer(first))).status_code == 401
            site.clock.advance("1h")
            assert (await client.get("/things/1", headers=bearer(second))).status_code == 401

    run(work())


# Sessions.


def test_a_browser_signs_in_and_out(site, run):
    async def work() -> None:
        async with site.client() as client:
            shown = await client.get("/login?next=/things/1")
            assert shown.status_code == 200
            assert 'name="next" value="/things/1"' in shown.text
            secret = await site.token()
            entered = await client.post("/login", data={"token": secret, "next": "/things/1"}, headers=SAME)
            assert (entered.status_code, entered.headers["location"]) == (303, "/things/1")
            cookie = entered.headers["set-cookie"]
            assert cookie.startswith(f"{PLAIN}=")
            assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
            assert (await client.get("/things/1")).json()["by"] == "ada"
            kept = client.cookies[PLAIN]
            left = await client.post("/logout", headers=SAME)
            assert (left.status_code, left.headers["location"]) == (303, "/login")
            again = await client.get("/things/1", headers={"Cookie": f"{PLAIN}={kept}"})
            assert again.status_code == 401
        told = [(each.entry.action, each.outcome, each.entry.actor) for each in await site.orders()]
        assert told == [("access.sign_in", "done", "ada"), ("access.sign_out", "done", "ada")]

    run(work())


def test_a_session_is_new_at_every_sign_in_and_the_one_before_ends(site, run):
    async def work() -> None:
        async with site.client() as client:
            client.cookies.set(PLAIN, "chosen-by-an-attacker", domain="127.0.0.1", path="/")
            secret = await signed_in(site, client)
            first = client.cookies[PLAIN]
            assert first != "chosen-by-an-attacker"
            await client.post("/login", data={"token": secret}, headers=SAME)
            assert client.cookies[PLAIN] != first
            old = await client.get("/things/1", headers={"Cookie": f"{PLAIN}={first}"})
            assert old.status_code == 401

    run(work())


@pytest.mark.parametrize("end", ["revoke", "end", "idle", "old"])
def test_a_session_that_ends_is_out_with_the_next_request(site, run, end):
    async def work() -> None:
        async with site.client() as client:
            await signed_in(site, client)
            assert (await client.get("/things/1")).status_code == 200
            match end:
                case "revoke":
                    await site.admin().tokens.arevoke(1)
                case "end":
                    [session] = await site.admin().sessions.aall()
                    await site.admin().sessions.aend(session.id)
                case "idle":
                    site.clock.advance("61m")
                case "old":
                    for _ in range(48):
                        site.clock.advance("30m")
                        await client.get("/things/1")
            assert (await client.get("/things/1")).status_code == 401

    run(work())


def test_under_https_the_cookie_is_secure_and_the_hosts_own(site, run):
    async def work() -> None:
        same = {"Origin": "https://jobs.example", "Sec-Fetch-Site": "same-origin"}
        secret = await site.token()
        async with site.client(base="https://jobs.example") as client:
            entered = await client.post("/login", data={"token": secret}, headers=same)
            assert entered.headers["set-cookie"].startswith(f"{HOST}=")
            assert {"Secure", "Path=/"} <= set(entered.headers["set-cookie"].split("; "))
            assert (await client.get("/things/1")).status_code == 200
        outer = Starlette(routes=[Mount("/ops", app=site.web())])
        async with site.client(base="https://jobs.example", inside=outer) as client:
            entered = await client.post("/ops/login", data={"token": secret}, headers=same)
            assert entered.headers["location"] == "/ops/"
            assert entered.headers["set-cookie"].startswith(f"{SECURE}=")
            assert {"Secure", "Path=/ops"} <= set(entered.headers["set-cookie"].split("; "))
            assert (await client.get("/ops/things/1")).status_code == 200

    run(work())


def test_nobody_signs_in_where_others_read_along(site, run):
    async def work() -> None:
        secret = await site.token()
        async with site.client(base="http://jobs.example") as client:
            answer = await client.post(
                "/login", data={"token": secret}, headers={"Origin": "http://jobs.example"}
            )
            assert answer.status_code == 403
            assert "over https" in answer.text
            assert "set-cookie" not in answer.headers

    run(work())


@pytest.mark.parametrize(
    "goes_to",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "evil", "/\tx", "/login", "", "/\r\nX: y"],
)
def test_signing_in_leads_to_no_other_site(site, run, goes_to):
    async def work() -> None:
        async with site.client() as client:
            secret = await site.token()
            answer = await client.post("/login", data={"token": secret, "next": goes_to}, headers=SAME)
            assert (answer.status_code, answer.headers["location"]) == (303, "/")

    run(work())


def test_what_goes_on_the_page_is_text(site, run):
    async def work() -> None:
        async with site.client() as client:
            answer = await client.get("/login", params={"next": '"><script>alert(1)</script>'})
            assert "<script>alert" not in answer.text

    run(work())


def test_ten_wrong_attempts_in_a_row_are_enough(site, run):
    async def work() -> None:
        good = await site.token()
        async with site.client() as client:

            async def tried(secret: str) -> Any:
                return await client.post("/login", data={"token": secret}, headers=SAME)

            answers = [await tried(f"ms_{number}" + "x" * 40) for number in range(10)]
            assert {each.status_code for each in answers} == {401}
            assert len({each.text for each in answers}) == 1
            locked = await tried("ms_another" + "x" * 36)
            assert (locked.status_code, locked.headers["retry-after"]) == (429, "60")
            site.clock.advance("60s")
            assert (await tried(good)).status_code == 303
            assert (await tried("ms_wrong")).status_code == 401
        refused = [each for each in await site.orders() if each.outcome == "refused"]
        assert len(refused) == 11
        assert {each.entry.address for each in refused} == {"10.1.2.3"}

    run(work())


def test_a_right_token_comes_in_however_many_wrong_ones_came_from_its_address(site, run):
    """Behind one address may be many people; and one of them cannot go on guessing between right ones."""

    async def work() -> None:
        good = await site.token()
        async with site.client() as client:

            async def tried(secret: str) -> int:
                answer = await client.post("/login", data={"token": secret}, headers=SAME)
                client.cookies.clear()
                return int(answer.status_code)

            # Of that very token's own first characters, too.
            wrong = [f"{good[:7]}{number:036}" for number in range(10)]
            assert {await tried(each) for each in wrong} == {401}
            assert [await tried(each) for each in wrong] == [429] * 10
            assert await tried(good) == 303
            assert await tried("ms_" + "y" * 43) == 429
            assert await tried(good) == 303
            site.clock.advance("11m")
            assert [await tried(each) for each in wrong] == [401] * 10
            assert await tried(wrong[0]) == 429

    run(work())


# Other sites.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (SAME, 200),
        ({"Origin": "http://127.0.0.1:8383"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://127.0.0.1:8383", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
def test_an_order_with_a_cookie_must_come_from_our_own_pages(site, run, headers, status):
    async def work() -> Any:
        async with site.client() as client:
            await signed_in(site, client)
            answer = await client.post("/things/1/poke", json={}, headers=headers)
            return answer, [each.outcome for each in await site.orders() if each.entry.action == "jobs.poke"]

    answer, told = run(work())
    assert answer.status_code == status, answer.text
    assert told == ["done" if status == 200 else "refused"]
    assert status == 200 or answer.json()["code"] == "csrf"


def test_nobody_is_signed_in_or_out_from_elsewhere(site, run):
    async def work() -> None:
        evil = {"Origin": "https://evil.example"}
        async with site.client() as client:
            secret = await signed_in(site, client)
            for path in ("/login", "/logout"):
                assert (await client.post(path, data={"token": secret}, headers=evil)).status_code == 403
            assert (await client.get("/things/1")).status_code == 200

    run(work())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (SAME, 200),
        ({}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_a_stream_is_for_our_own_pages(site, run, headers, status):
    async def work() -> Any:
        async with site.client() as client:
            await signed_in(site, client)
            return await client.get("/things/1/stream", headers={"Accept": "text/event-stream", **headers})

    assert run(work()).status_code == status


def test_a_token_is_good_from_anywhere_for_nobody_else_has_it(site, run):
    async def work() -> Any:
        secret = await site.token()
        async with site.client() as client:
            head = {**bearer(secret), "Origin": "https://evil.example"}
            return await client.post("/things/1/poke", json={}, headers=head)

    answer = run(work())
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


# Whoever holds our pages.


def test_a_host_app_says_who_comes(site, run):
    async def work() -> None:
        async with site.client(of_host("grace")) as client:
            assert (await client.get("/things/1")).json()["by"] == "grace"
            evil = {"Origin": "https://evil.example"}
            assert (await client.post("/things/1/poke", json={}, headers=evil)).status_code == 403
            assert (await client.post("/things/1/poke", json={}, headers=SAME)).status_code == 200
        async with site.client(of_host(role=AccessRole.VIEWER)) as client:
            assert (await client.post("/things/1/poke", json={}, headers=SAME)).status_code == 403
        told = [(each.entry.actor, each.entry.via, each.outcome) for each in await site.orders()]
        assert told == [("grace", "host", "refused"), ("grace", "host", "done"), ("host", "host", "refused")]

    run(work())


# The record.


def test_an_order_is_on_record_with_who_what_and_how_it_ended(site, run):
    async def work() -> None:
        secret = await site.token()
        async with site.client() as client:
            asked = {"password": "hunter2", "note": "x", "header": f"Bearer {secret}"}
            for thing in ("7", "busy", "missing"):
                answer = await client.post(f"/things/{thing}/poke", json=asked, headers=bearer(secret))
            assert answer.status_code == 404
            done = await client.post("/things/7/poke", json=asked, headers=bearer(secret))
            assert done.json() == {"body": asked}
            await client.get("/things/7", headers=bearer(secret))
        found = await site.orders()
        assert [(each.entry.object, each.outcome) for each in found] == [
            ("7", "done"),
            ("busy", "failed"),
            ("missing", "failed"),
            ("7", "done"),
        ]
        first = found[0].entry
        assert (first.action, first.actor, first.role, first.via) == ("jobs.poke", "ada", "operator", "token")
        assert first.address == "10.1.2.3"
        for each in found:
            assert b"hunter2" not in each.entry.details
            assert secret.encode() not in each.entry.details
        assert b'"note":"x"' in first.details

    run(work())


def test_what_cannot_be_put_on_record_is_not_done(site, run):
    async def work() -> None:
        secret = await site.token()
        store = await site.app._store()
        await store._database.write(
            lambda session: session.script(
                "CREATE TRIGGER no BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'full'); END;"
            )
        )
        async with site.client() as client:
            answer = await client.post("/things/7/poke", json={}, headers=bearer(secret))
            assert answer.status_code >= 400
            assert "body" not in answer.json()
            assert (await client.get("/things/7", headers=bearer(secret))).status_code == 200

    run(work())


def test_what_was_cut_short_stays_in_doubt(site, run):
    async def work() -> None:
        audit_log = Recorder((await site.app._store()).audit_log, site.clock)
        actor = Actor(name="ada", role=AccessRole.ADMIN, via="cli")
        with pytest.raises(KeyboardInterrupt):
            async with audit_log.recorded(actor, "jobs.purge", object="1"):
                raise KeyboardInterrupt
        [told] = await site.orders()
        assert (told.outcome, told.end) == ("in doubt", None)

    run(work())
