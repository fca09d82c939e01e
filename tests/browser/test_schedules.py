"""The pages of schedules: what they show, what they do, and that they are calm about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from mainspring.model.access import AccessRole
from tests.support.looking import look_at
from tests.support.timetable import TENANTS
from tests.support.web_server import WebServer, serving

PAGES = {
    "list": "/schedules",
    "found": "/schedules?q=tenants&only=",
    "one": "/schedules/{hourly}",
    "why": "/schedules/{hourly}?at=2026-03-26T10:00:00%2B00:00",
    "paused": "/schedules/{paused}",
    "edit": "/schedules/{berlin}/-/edit",
    "backfill": "/schedules/{hourly}/-/backfill?from=2026-03-26T00:00&to=2026-03-26T12:00",
}


def _path(web: WebServer, path: str) -> str:
    shown = web.timetable.shown
    return path.format(hourly=quote(shown.hourly), berlin=quote(shown.berlin), paused=quote(shown.paused))


@pytest.fixture
def tab(browser: Any, times: WebServer) -> Any:
    with browser.tab(times.base) as opened:
        yield opened
        opened.must_be_calm()


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_a_page_is_calm_accessible_and_keeps_text_as_text(tab: Any, times: WebServer, path: str) -> None:
    look_at(tab, _path(times, path))


def test_the_heat_map_comes_by_itself_and_is_walked_with_arrow_keys(tab: Any) -> None:
    tab.open("/schedules")
    night = tab.page.locator("td[data-night]")
    night.wait_for()

    assert "Sun 29 Mar 01:00Z" in night.get_attribute("title")
    # All tenants at once, and one or two of the others with them.
    busiest = int(tab.page.locator("#bursts-title").inner_text().split()[2])
    assert TENANTS < busiest < TENANTS + 4
    tab.page.locator(".heat").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowDown")
    assert "Sat 28 Mar" in tab.page.locator("#heat-said").inner_text()


def test_overdue_ones_come_first_and_a_search_finds_its_page(tab: Any) -> None:
    tab.open("/schedules")
    assert "legacy.export" in tab.page.locator("section[aria-labelledby=overdue-title] tbody").inner_text()
    tab.page.get_by_label("Name or task").fill("sync-07")
    tab.page.get_by_role("button", name="Search").click()
    tab.page.wait_for_url("**q=sync-07**")
    assert tab.page.locator("tbody tr").count() == 1


def test_a_slot_tells_why_without_a_reload(tab: Any, times: WebServer) -> None:
    tab.open(_path(times, PAGES["one"]))
    tab.page.evaluate("window.here = true")
    skipped = tab.page.locator(".slot[data-state=skipped]").first
    skipped.focus()
    assert "paused" in skipped.inner_text()
    skipped.press("Enter")
    tab.page.locator("#why .answer").wait_for()

    assert "it was paused by grace" in tab.page.locator("#why").inner_text()
    assert tab.page.evaluate("window.here")


def test_every_disposition_is_in_the_strip(tab: Any, times: WebServer) -> None:
    tab.open(_path(times, PAGES["one"]))
    strip = tab.page.locator(".slots")

    for kind in ("succeeded", "dead", "running", "skipped"):
        assert strip.locator(f"[data-state={kind}]").count() > 0, kind
    assert strip.locator("[data-kind=backfilled]").count() > 0
    assert strip.locator("[data-coalesced]").count() > 0
    for reason in ("paused", "somebody asked", "still live"):
        assert reason in strip.inner_text(), reason


def test_pause_resume_skip_and_trigger(tab: Any, times: WebServer) -> None:
    page, name = tab.page, times.timetable.shown.hourly
    tab.open(_path(times, PAGES["one"]))
    page.locator("a[data-opens=pause]").click()
    page.locator("#pause input[name=note]").fill("release 7")
    page.locator("#pause button[type=submit]").click()
    page.get_by_text("Its slots are skipped from now on").or_(
        page.get_by_text("Paused: its slots")
    ).first.wait_for()
    assert "release 7" in page.locator("#schedule-part").inner_text()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Resumed: slots of the pause").wait_for()
    page.locator("a[data-opens=skip]").click()
    page.locator("#skip input[name=count]").fill("2")
    page.locator("#skip button[type=submit]").click()
    page.get_by_text("Its next 2 slots are to be skipped").wait_for()
    assert page.locator("tr.struck").count() == 2
    page.locator("a[data-opens=trigger]").click()
    page.locator("#trigger button[type=submit]").click()
    page.get_by_text("Triggered: job").wait_for()

    changes = [each.change.value for each in times.timetable.desk.versions(name)]
    assert changes[-3:] == ["paused", "resumed", "skipping"]


def test_an_edit_is_previewed_refused_at_its_field_and_then_written(tab: Any, times: WebServer) -> None:
    page, name = tab.page, times.timetable.shown.berlin
    tab.open(_path(times, PAGES["edit"]))
    preview = page.locator("#preview")
    preview.get_by_text("Sun 29 Mar 2026 03:00:00 CEST").wait_for()
    assert "gap: shifted" in preview.inner_text()
    page.get_by_label("Cron expression").fill("0 25 * * *")
    page.locator("#error-cron[role=alert]").wait_for()
    page.get_by_role("button", name="Save").click()
    page.locator("input[name=cron][aria-invalid=true]").wait_for()
    # What the server answered with 422 is told by the browser, too.
    assert all("422" in each for each in tab.complaints)
    tab.complaints.clear()
    page.get_by_label("Cron expression").fill("0 4 * * *")
    preview.get_by_text("Sat 28 Mar 2026 04:00:00 CET").wait_for()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Changed cron: it is at version 2").wait_for()

    written = times.timetable.desk.the_schedule(name)
    assert written.edited
    assert '"0 4 * * *"' in written.trigger
    assert b"sk-very-secret" in written.payload
    page.get_by_role("button", name="Revert to code").click()
    page.locator("#notices").get_by_text("Handed back").wait_for()
    assert not times.timetable.desk.the_schedule(name).edited


def test_a_backfill_looks_first_then_runs_and_is_cancelled(tab: Any, times: WebServer) -> None:
    page = tab.page
    tab.open(_path(times, "/schedules/{paused}/-/backfill?from=2026-03-26T00:00&to=2026-03-27T09:00"))
    before = times.run(times.timetable.desk.store.backfills.all(limit=10))
    page.get_by_role("button", name="Run 2 jobs").click()
    page.get_by_text("runs 2 slots").wait_for()
    assert len(times.run(times.timetable.desk.store.backfills.all(limit=10))) == len(before) + 1
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("makes no more jobs").wait_for()


def test_delete_wants_the_name_typed(tab: Any, times: WebServer) -> None:
    name = times.timetable.added("old.report")
    page = tab.page
    tab.open(f"/schedules/{quote(name)}")
    page.locator("a[data-opens=delete]").click()
    button = page.locator("#delete button[type=submit]")
    assert button.is_disabled()
    page.locator("#delete input[name=name]").fill(name)
    button.click()
    page.get_by_text("its ledger, versions and jobs stay").wait_for()
    assert times.run(times.timetable.desk.store.schedules.get(name)) is None


def test_a_viewer_is_shown_no_acts_and_may_not_do_them(tab: Any, times: WebServer) -> None:
    times.anyone.role = AccessRole.VIEWER
    try:
        tab.open(_path(times, PAGES["one"]))
        assert tab.page.locator("main form[method=post]").count() == 0
        answer = tab.page.request.post(
            times.base + _path(times, "/schedules/{hourly}/-/trigger"), headers={"Origin": times.base}
        )
        assert answer.status == 403
        assert "needs the role operator" in answer.text()
    finally:
        times.anyone.role = AccessRole.ADMIN


def test_under_a_prefix(browser: Any, times: WebServer) -> None:
    with serving(times.app, prefix="/ops/jobs") as mounted, browser.tab(mounted.base) as tab:
        tab.open("/schedules")
        tab.page.locator("#heat td[data-level]").first.wait_for()
        tab.page.get_by_role("link", name="crm.every-hour").first.click()
        tab.page.locator(".slots").wait_for()
        assert tab.page.url.startswith(mounted.base)
        tab.must_be_calm()


def test_next_slots_arrive_without_a_reload(tab: Any, times: WebServer) -> None:
    tab.open(_path(times, PAGES["one"]))
    tab.page.evaluate("window.here = true")
    before = tab.page.locator(".slot").count()
    times.timetable.next_hour()
    tab.page.locator(".slot").nth(before).wait_for()
    assert tab.page.evaluate("window.here")
