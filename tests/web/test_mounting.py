"""The doors inside somebody else's app, under a prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.testclient import TestClient

from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole, Actor
from mainspring.web import dashboard, mounted
from tests.support.django import configured
from tests.support.door import make_app

PREFIX = "/ops/jobs"


async def who(request: Request) -> Actor | None:
    """What a host knows people by."""
    name = request.headers.get("x-user")
    return Actor(name=name, role=AccessRole.OPERATOR, via="host") if name else None


def in_fastapi(inside: Any) -> Any:
    host = FastAPI()
    host.mount(PREFIX, inside)
    return host


def in_starlette(inside: Any) -> Any:
    return Starlette(routes=[Mount(PREFIX, inside)])


def in_django(inside: Any) -> Any:
    from django.core.asgi import get_asgi_application

    return mounted(PREFIX, inside, otherwise=get_asgi_application())


@pytest.fixture(params=[in_fastapi, in_starlette, in_django])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestClient]:
    app = make_app(f"sqlite:///{tmp_path}/mainspring.db")
    with configured(f"sqlite:///{tmp_path}/django.db"):
        from django.conf import settings

        settings.ALLOWED_HOSTS, settings.ROOT_URLCONF = ["*"], (lambda: None)
        put: Callable[[Any], Any] = request.param
        with TestClient(put(dashboard(app, identify=who)), base_url="http://127.0.0.1") as opened:
            yield opened
            opened.portal.call(app.aclose)


def test_it_lives_under_the_prefix_of_its_host(client: TestClient) -> None:
    as_ada = {"headers": {"X-User": "ada"}}
    nobody = client.get(f"{PREFIX}/api/v1/me")
    ada = client.get(f"{PREFIX}/api/v1/me", **as_ada)
    made = client.post(f"{PREFIX}/api/v1/jobs", json={"task": "greet", "args": ["x"]}, **as_ada)
    document = client.get(f"{PREFIX}/api/v1/openapi.json", **as_ada).json()
    script = client.get(f"{PREFIX}/static/mainspring.js")
    sign_in = client.get(f"{PREFIX}/login")

    assert nobody.status_code == 401
    assert ada.json() == {"name": "ada", "role": "operator", "via": "host", "scopes": [], "until": None}
    assert made.status_code == 201
    assert document["servers"] == [{"url": PREFIX}]
    assert script.status_code == 200
    assert f'"{PREFIX}/static/' in sign_in.text


def test_a_prefix_is_a_path() -> None:
    for wrong in ("ops", "/ops/", ""):
        with pytest.raises(InvalidArgument, match="prefix"):
            mounted(wrong, None, otherwise=None)  # type: ignore[arg-type]
