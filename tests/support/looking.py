"""What every page must be: calm, accessible in light and in dark, and free of markup from the store."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe

SECRET = "sk-very-secret"


def look_at(tab: Any, path: str, *, nasty: bool = True) -> None:
    """Open a page and hold it to all of that."""
    assert tab.open(path).status == 200
    page = tab.page
    assert page.locator("main h1").count() == 1
    assert page.locator("main img, main script").count() == 0
    assert SECRET not in page.content()
    if nasty:
        assert "{{7*7}}" in page.locator("main").inner_text()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    tab.must_be_calm()
