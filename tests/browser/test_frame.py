"""The frame of every page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mainspring.app import Mainspring
from tests.support.browser import chromium
from tests.support.web_server import WebServer, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def web(tmp_path_factory: Any) -> Iterator[WebServer]:
    path = tmp_path_factory.mktemp("web") / "mainspring.db"
    with serving(Mainspring(f"sqlite:///{path}")) as server:
        server.run(server.app.store())
        yield server


def test_overview(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base) as tab:
        assert tab.open("/").status == 200
        assert tab.page.title() == "Overview · Mainspring"
        tab.must_be_calm()
