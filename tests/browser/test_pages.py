"""Every page, with markup in every text that is stored: it renders, stays calm, and the markup stays text."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.support.web_server import WebServer

PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "running-job": "/jobs/{running}",
    "retried-job": "/jobs/{retried}",
    "dead-job": "/jobs/{dead[0]}",
    "succeeded-job": "/jobs/{succeeded}",
    "dead": "/dead",
    "letters": "/dead/letters",
    "edit": "/dead/{dead[0]}/edit",
    "queues": "/queues",
    "workers": "/workers",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_calm_accessible_and_keeps_text_as_text(browser: Any, web: WebServer, name: str) -> None:
    with browser.tab(web.base, color_scheme="light", reduced_motion="reduce") as tab:
        assert tab.open(PAGES[name].format(**vars(web.showcase.shown))).status == 200
        assert tab.page.locator("main h1").count() == 1
        assert tab.page.locator("main img, main script:not([type='application/json'])").count() == 0
        assert "{{7*7}}" in tab.page.locator("main").inner_text()
        assert "sk-very-secret" not in tab.page.content()
        assert "abcdef0123456789" not in tab.page.content()
        found = Axe().run(tab.page)
        assert found.violations_count == 0, found.generate_report()
        tab.page.emulate_media(color_scheme="dark")
        dark = Axe().run(tab.page, options={"runOnly": ["color-contrast"]})
        assert dark.violations_count == 0, dark.generate_report()
        tab.must_be_calm()


def test_what_is_not_there_is_said_on_a_page(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base) as tab:
        for path in ("/jobs/999999", "/nowhere", "/jobs/x"):
            assert tab.open(path).status == 404
            assert "Not found" in tab.page.inner_text("main h1")
            assert tab.page.locator(".nav a").count() == 9
