"""Every page, with markup in every text that is stored: it renders, stays calm, and the markup stays text."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.support.web_server import WebServer

PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "succeeded": "/jobs?state=succeeded",
    "dead-jobs": "/jobs?state=dead",
    "running-job": "/jobs/{running}",
    "retried-job": "/jobs/{retried}",
    "dead-job": "/jobs/{dead[0]}",
    "succeeded-job": "/jobs/{succeeded}",
    "dead": "/dead",
    "letters": "/dead/letters",
    "edit": "/dead/{dead[0]}/edit",
    "queues": "/queues",
    "workers": "/workers",
    "not-there": "/jobs/999999",
}


@pytest.fixture(params=PAGES)
def path(request: pytest.FixtureRequest, web: WebServer) -> str:
    return PAGES[request.param].format(**vars(web.showcase.shown))


def test_a_page_renders_stays_calm_and_keeps_text_as_text(browser: Any, web: WebServer, path: str) -> None:
    with browser.tab(web.base) as tab:
        missing = path == "/jobs/999999"
        assert tab.open(path).status == (404 if missing else 200)
        assert tab.page.locator("main h1").count() == 1
        if not missing:
            assert tab.page.locator("main img, main script:not([type='application/json'])").count() == 0
            assert "{{7*7}}" in tab.page.locator("main").inner_text()
            assert "sk-very-secret" not in tab.page.content()
            assert "abcdef0123456789" not in tab.page.content()
            tab.must_be_calm()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible(browser: Any, web: WebServer, path: str, scheme: str) -> None:
    with browser.tab(web.base, color_scheme=scheme, reduced_motion="reduce") as tab:
        tab.open(path)
        found = Axe().run(tab.page)
        assert found.violations_count == 0, found.generate_report()
