"""`python -m tests.browser.screenshots docs/images`: pictures of the pages, light, dark and on a phone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mainspring.app import Mainspring
from mainspring.testing.clock import ManualClock
from tests.support.browser import Chromium, chromium
from tests.support.showcase import Showcase, plain
from tests.support.timetable import START, Timetable
from tests.support.web_server import WebServer, serving

PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "job": "/jobs/{retried}",
    "dead": "/dead",
    "letters": "/dead/letters?task=billing.invoice&error=ConnectionError",
    "edit": "/dead/{dead[0]}/edit",
    "queues": "/queues",
    "workers": "/workers",
}
TIMES = {
    "schedules": "/schedules",
    "schedule": "/schedules/crm.every-hour?at=2026-03-26T10:00:00%2B00:00",
    "dst": "/schedules/billing.close-day",
    "schedule-edit": "/schedules/billing.close-day/-/edit",
    "backfill": "/schedules/crm.every-hour/-/backfill?from=2026-03-26T00:00&to=2026-03-26T12:00",
    "workflows": "/workflows",
    "workflow": "/workflows/{running.id}?step=index",
    "workflow-failed": "/workflows/{failed.id}?step=shape",
    "audit": "/audit",
    "health": "/health",
}
"""By a clock that stands still, two nights before the clocks of Europe change."""
ON_PHONES = ("overview", "job", "schedules", "schedule", "workflow")
CHANGED = '{"api_key": "[redacted]", "note": "as agreed", "tenant": 4712}'
PHONE = {"width": 390, "height": 844}
TALLEST, TALLEST_PHONE = 880, 1400
COLOURS = 128


def main(args: Sequence[str]) -> None:
    """Take them all, or those that are named after the folder."""
    folder = Path(args[0])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = set(args[1:]) or {*PAGES, *TIMES}
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        with serving(Mainspring(f"sqlite:///{place}/demo.db")) as server:
            shown = Showcase(server.run(server.app._store()), server.run, plain).fill()
            _take_all(browser, server, folder, {n: PAGES[n] for n in PAGES if n in wanted}, vars(shown))
        clock = ManualClock(START)
        with serving(Mainspring._with(f"sqlite:///{place}/times.db", clock=clock)) as server:
            times = Timetable(server.run(server.app._store()), clock, server.run, plain).fill()
            _take_all(browser, server, folder, {n: TIMES[n] for n in TIMES if n in wanted}, vars(times))


def _take_all(
    browser: Chromium, server: WebServer, folder: Path, pages: Mapping[str, str], shown: Mapping[str, Any]
) -> None:
    for name, path in pages.items():
        address = path.format(**shown)
        for scheme in ("light", "dark"):
            with browser.tab(server.base, color_scheme=scheme, reduced_motion="reduce") as tab:
                tab.open(address)
                if name == "edit":
                    tab.page.fill("textarea[name=kwargs]", CHANGED)
                    tab.page.click("text=Show the difference")
                _take(tab, folder / f"{name}-{scheme}.png")
        if name in ON_PHONES:
            with browser.tab(server.base, viewport=PHONE, reduced_motion="reduce") as tab:
                tab.open(address)
                _take(tab, folder / f"{name}-phone.png")


def _take(tab: Any, path: Path) -> None:
    if tab.page.locator("#heat").count():
        tab.page.locator("#heat td[data-level]").first.wait_for()
    tab.page.wait_for_timeout(400)
    height = tab.page.evaluate("document.documentElement.scrollHeight")
    width = tab.page.viewport_size["width"]
    tallest = TALLEST_PHONE if width == PHONE["width"] else TALLEST
    tab.page.set_viewport_size({"width": width, "height": min(tallest, max(700, height))})
    tab.page.screenshot(path=str(path))
    _shrink(path)


def _shrink(path: Path) -> None:
    """Fewer colours, where pngquant is there: pages have few."""
    if shutil.which("pngquant") is not None:
        command = ["pngquant", "--force", "--nofs", "--output", str(path), str(COLOURS), str(path)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
