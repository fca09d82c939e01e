"""The audit log and its proof, the proof of the ledger, and how the database is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.testing.clock import ManualClock
from tests.support.looking import look_at
from tests.support.showcase import plain
from tests.support.timetable import START, Timetable
from tests.support.web_server import WebServer, serving


@pytest.fixture
def tab(browser: Any, times: WebServer) -> Iterator[Any]:
    with browser.tab(times.base) as opened:
        yield opened
        opened.must_be_calm()


@pytest.mark.parametrize("path", ["/audit", "/audit?action=schedules.pause"])
def test_a_page_is_calm_accessible_and_keeps_text_as_text(tab: Any, path: str) -> None:
    look_at(tab, path)


def test_acts_tell_their_outcome_and_one_in_doubt_stands_out(tab: Any) -> None:
    tab.open("/audit")
    outcomes = tab.page.locator("#log-part tbody .badge").all_inner_texts()
    assert outcomes[-4:] == ["in doubt", "failed", "refused", "done"]
    tab.page.get_by_label("Action", exact=True).fill("jobs.cancel")
    tab.page.get_by_role("button", name="Search").click()
    tab.page.wait_for_url("**action=jobs.cancel**")
    assert tab.page.locator("#log-part tbody tr").count() == 1
    tab.page.locator("#log-part summary").click()
    assert "NotFound" in tab.page.locator("#log-part .said").inner_text()


def test_the_chain_is_checked_and_the_ledger_proven(tab: Any) -> None:
    tab.open("/audit")
    tab.page.get_by_role("button", name="Check the chain").click()
    tab.page.locator("#chain-title .badge", has_text="sound").wait_for()
    assert "each as it was written" in tab.page.locator("section[aria-labelledby=chain-title]").inner_text()
    tab.page.get_by_role("button", name="Verify the ledger").click()
    tab.page.locator("section[aria-labelledby=ledger-title]").get_by_text("slots of 30 schedules").wait_for()
    # One of them has a trigger that nobody can read, which is told.
    assert "legacy.export" in tab.page.locator("section[aria-labelledby=ledger-title] tbody").inner_text()


def test_health_of_a_file_and_its_check(tab: Any) -> None:
    look_at(tab, "/health", nasty=False)
    assert "SQLite" in tab.page.locator(".strip").inner_text()
    tab.page.get_by_role("button", name="Check the file").click()
    tab.page.get_by_text("The file is whole").wait_for()


@pytest.fixture(scope="module")
def server_url(databases: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of a server, made by a thread of its own: the browser's calls keep a loop in this one."""
    owner = getattr(request.config, "workerinput", {}).get("workerid", "main")
    with ThreadPoolExecutor(1) as aside:
        name = aside.submit(databases.create, owner=owner, migrated=True).result()
        yield str(databases.url(name))
        aside.submit(databases.drop, name).result()


def test_health_of_a_server(browser: Any, server_url: str) -> None:
    with serving(Mainspring(server_url)) as web, browser.tab(web.base) as tab:
        look_at(tab, "/health", nasty=False)
        tables = tab.page.locator("section[aria-labelledby=tables-title]").inner_text()
        assert {"jobs", "runs", "slots"} <= set(tables.split())
        assert "ahead" in tab.page.locator("section[aria-labelledby=partitions-title]").inner_text().lower()
        assert "PostgreSQL" in tab.page.locator(".strip").inner_text()
        tab.must_be_calm()


def test_a_chain_that_was_cut_is_told(browser: Any, tmp_path: Any) -> None:
    """Somebody with the file takes an entry out."""
    url = f"sqlite:///{tmp_path / 'cut.db'}"
    with serving(Mainspring._with(url, clock=ManualClock(START))) as web:
        store = web.run(web.app._store())
        Timetable(store, web.app._clock, web.run, plain).acts()  # type: ignore[arg-type]
        _cut(tmp_path / "cut.db")
        with browser.tab(web.base) as tab:
            tab.open("/audit")
            tab.page.get_by_role("button", name="Check the chain").click()
            tab.page.locator("#chain-title .badge", has_text="broken").wait_for()
            assert "Entry 2" in tab.page.locator("section[aria-labelledby=chain-title]").inner_text()
            tab.must_be_calm()


def _cut(path: Any) -> None:
    with sqlite3.connect(path) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        ]
        for name in names:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE audit_log SET actor = 'nobody' WHERE id = 2")
    connection.close()
