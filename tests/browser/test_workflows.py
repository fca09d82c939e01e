"""The pages of workflows: a graph that lives, its timeline and steps, and what can be done to it."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.model.workflow import WorkflowState
from tests.support.looking import look_at
from tests.support.web_server import WebServer

PAGES = {
    "list": "/workflows",
    "running": "/workflows/{running.id}?step=index",
    "failed": "/workflows/{failed.id}?step=shape",
    "succeeded": "/workflows/{succeeded.id}",
}


def _path(web: WebServer, name: str) -> str:
    return PAGES[name].format(**vars(web.timetable.shown))


@pytest.fixture
def tab(browser: Any, times: WebServer) -> Any:
    with browser.tab(times.base) as opened:
        yield opened
        opened.must_be_calm()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_calm_accessible_and_keeps_text_as_text(tab: Any, times: WebServer, name: str) -> None:
    look_at(tab, _path(times, name))


def test_a_graph_is_drawn_and_changes_without_a_reload(tab: Any, times: WebServer) -> None:
    story = times.timetable.importing()
    tab.open(f"/workflows/{story.id}")
    tab.page.evaluate("window.here = true")
    graph = tab.page.locator("#graph")
    graph.locator("a.node").nth(6).wait_for()
    assert graph.locator("path.line").count() == 7
    thumbnails = graph.locator("a.node[data-name=thumbnails]")
    assert thumbnails.get_attribute("data-state") == "running"
    assert "5 of 12 items" in graph.inner_text()

    story.end("thumbnails")
    story.end("index", item=5)
    graph.locator("a.node[data-name=thumbnails][data-state=succeeded]").wait_for()
    graph.locator("text.node__line", has_text="6 of 12 items").wait_for()
    assert tab.page.evaluate("window.here")


def test_a_step_is_looked_into_by_keyboard(tab: Any, times: WebServer) -> None:
    tab.open(f"/workflows/{times.timetable.shown.failed.id}")
    node = tab.page.locator("#graph a.node[data-name=shape]")
    assert node.get_attribute("aria-label").startswith("shape: failed")
    node.focus()
    node.press("Enter")
    tab.page.locator("#step").get_by_text("KeyError, attempt 1").wait_for()
    assert "line 2" in tab.page.locator("#step .said").first.inner_text()


def test_pause_resume_and_cancel(tab: Any, times: WebServer) -> None:
    page, story = tab.page, times.timetable.importing()
    tab.open(f"/workflows/{story.id}")
    page.locator("a[data-opens=pause]").click()
    page.locator("#pause input[name=note]").fill("wait <b>")
    page.locator("#pause button[type=submit]").click()
    page.get_by_text("Paused: no further step").wait_for()
    assert story.workflow.paused_at is not None
    assert "wait <b>" in page.locator("section[aria-labelledby=log-title]").inner_text()
    page.get_by_role("button", name="Resume").click()
    page.locator("#notices").get_by_text("Resumed.").wait_for()
    page.locator("a[data-opens=cancel]").click()
    page.locator("#cancel button[type=submit]").click()
    page.get_by_text("Cancelled: its steps are taken away").wait_for()
    assert story.workflow.state is WorkflowState.CANCELLED


def test_retry_and_fork(tab: Any, times: WebServer) -> None:
    page, story = tab.page, times.timetable.failing()
    tab.open(f"/workflows/{story.id}")
    page.locator("a[data-opens=fork]").click()
    page.locator("#fork select").select_option("shape")
    page.locator("#fork button[type=submit]").click()
    page.get_by_text(f"Forked from workflow {story.id} at shape").wait_for()
    page.locator("#graph text.node__line", has_text="result kept").first.wait_for()
    tab.open(f"/workflows/{story.id}")
    page.locator("a[data-opens=retry]").click()
    page.locator("#retry button[type=submit]").click()
    page.get_by_text("Run again: shape").wait_for()
    assert story.workflow.state is WorkflowState.RUNNING


def test_the_list_is_filtered(tab: Any, times: WebServer) -> None:
    tab.open("/workflows")
    tab.page.get_by_label("State").select_option("failed")
    tab.page.get_by_role("button", name="Search").click()
    tab.page.wait_for_url("**state=failed**")
    states = tab.page.locator("tbody .badge").all_inner_texts()
    assert states
    assert set(states) == {"failed"}
