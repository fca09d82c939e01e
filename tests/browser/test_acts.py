"""What can be done from the pages, by somebody with a browser: each act, what it asks first, and who may."""

from __future__ import annotations

import re
from typing import Any

from mainspring.model.access import AccessRole
from mainspring.model.job import Job, JobState
from tests.support.showcase import nasty
from tests.support.web_server import WebServer


def state(web: WebServer, job_id: int) -> JobState:
    """By the clock of the store, as everybody but the showcase sees it."""
    job: Job = web.run(web.showcase.desk.store.jobs.get(job_id, at=None))
    return job.state


def test_a_job_is_cancelled_after_a_question(browser: Any, web: WebServer) -> None:
    job_id = web.showcase.shown.delayed
    with browser.tab(web.base) as tab:
        tab.open(f"/jobs/{job_id}")
        tab.page.click("text=Cancel job")
        assert tab.page.locator("dialog[open]").count() == 1
        tab.page.keyboard.press("Escape")
        assert tab.page.locator("dialog[open]").count() == 0
        assert state(web, job_id) is JobState.DELAYED
        tab.page.click("text=Cancel job")
        tab.page.click("dialog[open] button[type=submit]")
        tab.page.wait_for_selector(f"#notices >> text=Job {job_id} was cancelled.")
        assert tab.page.locator("main .badge[data-state=cancelled]").count() > 0
        assert state(web, job_id) is JobState.CANCELLED
        tab.must_be_calm()


def test_acts_work_without_scripts(browser: Any, web: WebServer) -> None:
    job_id = web.showcase.shown.ready
    with browser.tab(web.base, java_script_enabled=False) as tab:
        tab.open(f"/jobs/{job_id}")
        tab.page.click("text=Cancel job")  # leads to the question by its #id
        tab.page.click("#cancel button[type=submit]")
        assert f"Job {job_id} was cancelled." in tab.page.inner_text("#notices")
        assert state(web, job_id) is JobState.CANCELLED
        tab.page.reload()
        assert "was cancelled." not in tab.page.inner_text("#notices")


def test_a_queue_is_paused_with_a_note_and_resumed(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base) as tab:
        web.run(web.showcase.desk.store.queues.pause("quiet", author="x", note=None, at=None))
        tab.open("/queues")
        row = tab.page.locator("tr", has=tab.page.locator("td:first-child a", has_text=re.compile("^quiet$")))
        row.locator("text=Resume").click()
        tab.page.wait_for_selector("#notices >> text=Queue quiet goes on.")
        web.showcase.desk.put(queue="quiet")
        tab.page.locator("main", has_not_text="by x").wait_for()
        row.locator("text=Pause").first.click()
        tab.page.fill("dialog[open] input[name=note]", "because <b>")
        tab.page.click("dialog[open] button[type=submit]")
        tab.page.wait_for_selector("text=Queue quiet is paused")
        assert "by ada" in row.inner_text()
        assert "because <b>" in row.inner_text()
        tab.must_be_calm()


def test_a_dead_letter_is_edited_and_replayed(browser: Any, web: WebServer) -> None:
    job_id = web.showcase.shown.dead.pop(0)
    with browser.tab(web.base) as tab:
        tab.open(f"/jobs/{job_id}")
        tab.page.click("text=Edit arguments")
        tab.page.fill("textarea[name=kwargs]", "{tenant}")
        tab.page.click("text=Show the difference")
        assert "kwargs: expected a JSON object" in tab.page.inner_text("main [role=alert]")
        tab.complaints.clear()  # Chromium tells of the 422
        tab.page.fill("textarea[name=kwargs]", '{"tenant": 12, "api_key": "[redacted]"}')
        tab.page.click("text=Show the difference")
        assert '"tenant": 12' in tab.page.inner_text(".diff ins >> nth=0") + tab.page.inner_text(".diff")
        tab.page.click("text=Change and replay")
        assert "it went back into its queue" in tab.page.inner_text("#notices")
        job = web.showcase.desk.job(job_id)
        assert state(web, job_id) is JobState.READY
        assert b'"tenant":12' in job.payload
        assert b"sk-very-secret" in job.payload
        tab.must_be_calm()


def test_chosen_letters_are_replayed(browser: Any, web: WebServer) -> None:
    chosen = [web.showcase.shown.dead.pop(0), web.showcase.shown.dead.pop(0)]
    with browser.tab(web.base) as tab:
        tab.open("/dead/letters")
        for job_id in chosen:
            tab.page.check(f"input[value='{job_id}']")
        tab.page.click("text=Replay the chosen ones")
        assert "2 jobs went back into the queue." in tab.page.inner_text("#notices")
        assert [state(web, each) for each in chosen] == [JobState.READY] * 2
        tab.must_be_calm()


def test_a_whole_group_is_replayed_in_the_background(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base) as tab:
        tab.open("/dead")
        tab.page.click("td a >> text=reports.render")
        tab.page.wait_for_url("**/dead/letters?*")  # loaded: before that the next link leads to #replay-all
        tab.page.click("text=Replay all")
        tab.page.click("dialog[open] button[type=submit]")
        tab.page.wait_for_url("**/dead/replays/*")
        tab.page.wait_for_selector("main .badge[data-state=done]")
        assert web.showcase.desk.count_dead(task=nasty("reports.render"), limit=10) == 0
        tab.must_be_calm()


def test_purging_wants_the_word_and_the_role(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base) as tab:
        tab.open(f"/dead/letters?task={'crm.sync'}")
        assert "No such letters" in tab.page.inner_text("main")
        job_id = web.showcase.desk.bury(task="purged")
        tab.open("/dead/letters?task=purged")
        tab.page.click("text=Purge all")
        assert tab.page.is_disabled("dialog[open] button[type=submit]")
        tab.page.fill("dialog[open] input[name=typed]", "purge")
        tab.page.click("dialog[open] button[type=submit]")
        assert "1 dead letter deleted for good." in tab.page.inner_text("#notices")
        assert web.showcase.desk.dead(ids=(job_id,)) == []
        tab.must_be_calm()


def test_who_may_only_look_sees_nothing_to_do(browser: Any, web: WebServer) -> None:
    web.anyone.role = AccessRole.VIEWER
    try:
        with browser.tab(web.base) as tab:
            tab.open(f"/jobs/{web.showcase.shown.running}")
            assert tab.page.locator("main form").count() == 0
            tab.open("/queues")
            assert tab.page.locator("main form").count() == 0
            answer = tab.page.request.post(f"{web.base}/queues/pause", form={"name": "mail"})
            assert answer.status == 403
            assert "You may not do this" in answer.text()
            tab.must_be_calm()
    finally:
        web.anyone.role = AccessRole.ADMIN
