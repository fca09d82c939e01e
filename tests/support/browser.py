"""A headless Chromium that tests look at pages with, and that keeps every complaint it has about them.

Playwright's blocking calls keep an event loop running in their thread, so that `asyncio.run` cannot be used
beside them: a browser lives as long as its module, and the server's loop runs what tests do to the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 20_000
"""Milliseconds: a busy machine is no bug."""
_TELL = """addEventListener("securitypolicyviolation", (e) =>
  console.error(`CSP ${e.effectiveDirective} refuses ${e.blockedURI} ${e.sample}`));"""


class Tab:
    """One page in a context of its own, with what went wrong on it."""

    def __init__(self, page: Any, base: str) -> None:
        self.page, self.base = page, base
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("dialog", self._dialog)

    def open(self, path: str) -> Any:
        """Go to a page of ours; answers the response."""
        answer = self.page.goto(self.base + path, wait_until="load")
        assert answer is not None
        return answer

    def must_be_calm(self) -> None:
        """Nothing was complained of."""
        assert not self.complaints, self.complaints

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _failed(self, request: Any) -> None:
        # A page that is left takes back what it was asking for.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"request: {request.url} {request.failure}")

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()


class Chromium:
    """The browser."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    @contextmanager
    def tab(self, base: str, **context: Any) -> Iterator[Tab]:
        """A tab with nothing kept from others; `context` as Playwright's new_context."""
        opened = self._browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "timezone_id": "UTC", "locale": "en-GB", **context}
        )
        try:
            opened.add_init_script(_TELL)
            yield Tab(opened.new_page(), base)
        finally:
            opened.close()


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Start it, or skip the test with the reason; under CI a browser that is missing is a failure."""
    if not CHROMIUM.exists():
        said = f"{CHROMIUM} is missing: tests/support/install-chromium installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGS))
        try:
            yield Chromium(browser)
        finally:
            browser.close()
