"""Signing in through an OpenID provider that is one, and through several that only pretend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import RSAKey

from mainspring.app import Mainspring
from mainspring.config import load
from mainspring.entropy import SeededEntropy
from mainspring.errors import InvalidConfig
from mainspring.model.access import AccessRole
from mainspring.testing.clock import ManualClock
from mainspring.web.auth.identity import PLAIN
from mainspring.web.auth.provider import ClaimRefused, NoRole, actor_of_claims
from tests.support.openid import CLIENT_ID, CLIENT_SECRET, OpenIdProvider, openid_provider
from tests.web.conftest import Site

HERE = "http://127.0.0.1:8383"


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as running:
        yield running


@pytest.fixture
def org(provider: OpenIdProvider, clock: ManualClock, run: Callable[[Any], Any]) -> Iterator[Site]:
    provider.claims, provider.forge, provider.issuer_told = {}, "", None
    provider.now = int(clock.now().timestamp())
    app = Mainspring._with("sqlite://:memory:", clock=clock, entropy=SeededEntropy(1))
    app._configure(settings(provider.issuer))
    yield Site(app, clock)
    run(app.aclose())
    if app._in_memory is not None:
        run(app._in_memory.close())


def settings(issuer: str, **more: object) -> dict[str, object]:
    return {
        "access.oidc_issuer": issuer,
        "access.oidc_client_id": CLIENT_ID,
        "access.oidc_client_secret": CLIENT_SECRET,
        "access.oidc_redirect_url": f"{HERE}/login/oidc/back",
        "access.oidc_domains": ["corp.example"],
        "access.oidc_operators": ["ops"],
        "access.oidc_admins": ["root"],
        **more,
    }


async def journey(provider: OpenIdProvider, client: Any, **said: str) -> Any:
    """To the provider and back, as a browser goes; answers what it gets in the end."""
    left = await client.get("/login/oidc", params={"next": "/things/1"})
    assert left.status_code == 303, left.text
    query = {name: values[0] for name, values in parse_qs(urlsplit(left.headers["location"]).query).items()}
    back = {name: values[0] for name, values in parse_qs(urlsplit(provider.authorize(query)).query).items()}
    return await client.get("/login/oidc/back", params={**back, **said})


def test_who_the_provider_knows_comes_in_with_their_role(org, provider, run):
    async def work() -> None:
        async with org.client() as client:
            shown = await client.get("/login")
            assert "/login/oidc?next=" in shown.text
            answer = await journey(provider, client)
            assert (answer.status_code, answer.headers["location"]) == (303, "/things/1"), answer.text
            assert (await client.get("/things/1")).json()["by"] == "ada@corp.example"
            assert (await client.delete("/things/1", headers={"Origin": HERE})).status_code == 403
        [entered, *_] = await org.orders()
        assert (entered.entry.action, entered.entry.via, entered.entry.role) == (
            "access.sign_in",
            "oidc",
            "operator",
        )

    run(work())


@pytest.mark.parametrize(
    ("forge", "claims"),
    [
        ("none", {}),
        ("hmac", {}),
        ("other key", {}),
        ("changed", {}),
        ("", {"exp": -1}),
        ("", {"exp": None}),
        ("", {"nbf": 60}),
        ("", {"iss": "https://evil.example"}),
        ("", {"aud": "somebody-else"}),
        ("", {"aud": [CLIENT_ID, "x"], "azp": "x"}),
        ("", {"nonce": "of another journey"}),
        ("", {"email": "ada@evilcorp.example"}),
        ("", {"email": "ada@corp.example.evil.example"}),
        ("", {"email": "ada@sub.corp.example"}),
        ("", {"email_verified": False}),
        ("", {"email_verified": "true"}),
        ("", {"sub": None}),
    ],
)
def test_a_token_that_is_not_what_it_should_be_lets_nobody_in(org, provider, run, forge, claims):
    provider.forge = forge
    now = provider.now
    provider.claims = {
        name: value + now if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in claims.items()
    }

    async def work() -> None:
        async with org.client() as client:
            answer = await journey(provider, client)
            assert answer.status_code == 401, answer.text
            assert PLAIN not in client.cookies
            assert (await client.get("/things/1")).status_code == 401
        [refused] = await org.orders()
        assert (refused.entry.action, refused.outcome) == ("access.sign_in", "refused")

    run(work())


def test_who_has_no_role_does_not_come_in(org, provider, run):
    provider.claims = {"groups": ["sales"]}

    async def work() -> None:
        async with org.client() as client:
            answer = await journey(provider, client)
            assert answer.status_code == 403
            assert "you have no role here" in answer.text

    run(work())


@pytest.mark.parametrize(
    "said", [{"state": "x"}, {"code": "x"}, {"error": "access_denied"}, {"iss": "https://x"}]
)
def test_a_journey_that_began_elsewhere_ends_nowhere(org, provider, run, said):
    async def work() -> None:
        async with org.client() as client:
            assert (await journey(provider, client, **said)).status_code == 401
            # Nor without the cookie of the browser that began it.
            assert (await client.get("/login/oidc/back?code=x&state=x")).status_code == 401

    run(work())


def test_new_keys_of_the_provider_are_fetched_and_not_for_everybody_who_asks(org, provider, run):
    async def work() -> None:
        async with org.client() as client:
            assert (await journey(provider, client)).status_code == 303
            before, old = provider.keys_read, provider.key
            provider.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
            try:
                assert (await journey(provider, client)).status_code == 401
                assert provider.keys_read == before
                org.clock.advance("1m")
                assert (await journey(provider, client)).status_code == 303
                assert provider.keys_read == before + 1
            finally:
                provider.key = old

    run(work())


def test_a_provider_that_calls_itself_otherwise_or_is_away_is_not_asked(org, provider, run):
    provider.issuer_told = "https://evil.example"

    async def work() -> None:
        async with org.client() as client:
            answer = await client.get("/login/oidc")
            assert answer.status_code == 503
            assert "Traceback" not in answer.text
        org.app._configure(settings("http://127.0.0.1:9"))
        async with org.client() as client:
            assert (await client.get("/login/oidc")).status_code == 503

    run(work())


def test_without_a_provider_there_is_no_such_door(site, run):
    async def work() -> None:
        async with site.client() as client:
            assert (await client.get("/login/oidc")).status_code == 404
            assert "/login/oidc" not in (await client.get("/login")).text

    run(work())


def test_the_highest_role_that_is_named_counts(clock):
    configured, _ = load(
        flags=settings("https://id.example", **{"access.oidc_role_claim": "realm.roles"}), environ={}
    )
    claims = {
        "iss": "https://id.example",
        "aud": CLIENT_ID,
        "sub": "u-1",
        "exp": clock.now().timestamp() + 60,
        "nonce": "n",
        "email": "Ada@CORP.example",
        "email_verified": True,
        "realm": {"roles": ["ops", "root"]},
    }

    actor = actor_of_claims(claims, configured.access, nonce="n", now=clock.now())

    assert (actor.name, actor.role) == ("Ada@CORP.example", AccessRole.ADMIN)
    with pytest.raises(NoRole):
        actor_of_claims({**claims, "realm": "root"}, configured.access, nonce="n", now=clock.now())
    with pytest.raises(ClaimRefused):
        actor_of_claims({**claims, "exp": True}, configured.access, nonce="n", now=clock.now())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("access.oidc_issuer", "http://id.example"),
        ("access.oidc_issuer", "https://u:p@id.example"),
        ("access.oidc_issuer", "ftp://id.example"),
        ("access.oidc_redirect_url", ""),
        ("access.oidc_client_id", ""),
        ("access.session_idle", "1s"),
        ("access.session_longest", "1000d"),
        ("privacy.redact", ["", "x"]),
    ],
)
def test_settings_that_cannot_be_are_refused(key, value):
    with pytest.raises(InvalidConfig) as refused:
        load(flags=settings("https://id.example", **{key: value}), environ={})
    assert refused.value.field == key
    assert CLIENT_SECRET not in str(refused.value)


def test_a_secret_may_be_in_a_file(tmp_path):
    (tmp_path / "secret").write_text("s3cret-of-24-characters\n")
    variable = "MAINSPRING_ACCESS_OIDC_CLIENT_SECRET"

    configured, origins = load(flags={}, environ={f"{variable}_FILE": str(tmp_path / "secret")}, cwd=tmp_path)

    assert configured.access.oidc_client_secret == "s3cret-of-24-characters"
    assert origins["access.oidc_client_secret"] == f"{variable}_FILE"
    assert "s3cret" not in repr(configured)
    with pytest.raises(InvalidConfig):
        load(flags={}, environ={f"{variable}_FILE": str(tmp_path / "secret"), variable: "x"}, cwd=tmp_path)
