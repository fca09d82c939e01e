"""What every page has: keys, themes, live parts, a prefix, and words for when the database is away."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe

from mainspring.app import Mainspring
from mainspring.model.run import Verdict
from mainspring.web.auth.identity import by_token_or_session
from tests.support.postgres import PostgresServer
from tests.support.web_server import WebServer, serving


def test_the_keyboard_is_enough(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base) as tab:
        tab.open("/")
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.className") == "skip"
        tab.page.keyboard.press("Enter")
        assert tab.page.evaluate("document.activeElement.id") == "main"
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("j")
        tab.page.wait_for_url("**/jobs")
        assert tab.page.inner_text(".nav [aria-current=page]").strip() == "Jobs"
        tab.page.keyboard.press("/")
        assert tab.page.evaluate("document.activeElement.name") == "task"
        tab.page.keyboard.type(str(web.showcase.shown.running))
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url(f"**/jobs/{web.showcase.shown.running}")
        tab.page.keyboard.press("?")
        assert tab.page.locator("#keys[open]").count() == 1
        tab.page.keyboard.press("Escape")
        assert tab.page.locator("#keys[open]").count() == 0
        tab.must_be_calm()


def test_the_theme_is_kept(browser: Any, web: WebServer) -> None:
    with browser.tab(web.base, color_scheme="light") as tab:
        paper = "getComputedStyle(document.body).backgroundColor"
        tab.open("/queues")
        light = tab.page.evaluate(paper)
        tab.page.click("[data-toggles-theme]")
        dark = tab.page.evaluate(paper)
        assert dark != light
        tab.open("/workers")
        assert tab.page.evaluate(paper) == dark
        tab.must_be_calm()


def test_a_browser_signs_in_with_a_token_and_out_again(browser: Any, tmp_path: Any) -> None:
    app = Mainspring(f"sqlite:///{tmp_path / 'm.db'}")
    with serving(app, identify=by_token_or_session(app)) as server:
        made = server.run(app.admin("test").tokens.acreate("grace", role="viewer"))
        with browser.tab(server.base) as tab:
            tab.open("/queues")
            assert "/login?next=" in tab.page.url
            found = Axe().run(tab.page)
            assert found.violations_count == 0, found.generate_report()
            tab.page.fill("#token", made.secret)
            tab.page.keyboard.press("Enter")
            tab.page.wait_for_url("**/queues")
            assert "grace" in tab.page.inner_text(".who")
            tab.page.click("text=Sign out")
            tab.page.wait_for_url("**/login")
            tab.open("/queues")
            assert "/login?next=" in tab.page.url
            # The link that `mainspring dev` prints: what is behind the # leaves no trace.
            tab.open(f"/login#token={made.secret}")
            tab.page.wait_for_url(f"{server.base}/")
            tab.page.go_back()
            assert made.secret not in tab.page.url
            tab.must_be_calm()


def test_news_arrives_without_a_reload(browser: Any, web: WebServer) -> None:
    desk = web.showcase.desk
    with browser.tab(web.base) as tab:
        tab.open("/jobs?task=fresh")
        tab.page.evaluate("window.kept = true")
        claim = desk.started(task="fresh", worker=0xF00)
        tab.page.wait_for_selector("main .badge[data-state=running]")
        tab.open(f"/jobs/{claim.job_id}")
        tab.page.evaluate("window.kept = true")
        tab.page.click("text=Cancel job")  # an open question is not taken away by news
        desk.end(claim, Verdict.FAILED)
        tab.page.keyboard.press("Escape")
        tab.page.wait_for_selector("main .badge[data-state=failed]")
        summary = tab.page.locator("main summary").first
        summary.click()
        desk.hasten(claim.job_id)
        tab.page.wait_for_selector("main .badge[data-state=ready]")
        assert tab.page.locator("main details").first.get_attribute("open") is None  # as somebody left it
        assert tab.page.evaluate("window.kept")
        tab.must_be_calm()


def test_it_can_be_mounted_anywhere(browser: Any, tmp_path: Any) -> None:
    with serving(Mainspring(f"sqlite:///{tmp_path / 'm.db'}"), prefix="/ops/jobs") as server:
        server.run(server.app._store())
        with browser.tab(server.base) as tab:
            tab.open("/")
            tab.page.click(".nav a >> text=Queues")
            assert tab.page.url == f"{server.base}/queues"
            assert tab.page.inner_text(".nav [aria-current=page]").strip() == "Queues"
            links = tab.page.eval_on_selector_all(
                "[href], [src], form", "all => all.map(e => e.href || e.src || e.action)"
            )
            assert all(each.startswith(server.base) for each in links)
            # Not `wait_for_function`: it evaluates text, which our content security policy refuses.
            tab.page.wait_for_load_state("load")
            assert tab.page.evaluate("window.htmx !== undefined")
            tab.must_be_calm()


def test_pages_survive_the_database(browser: Any, server: PostgresServer) -> None:
    app = Mainspring(server.url())
    with serving(app) as web:
        store = web.run(app._store(prepare=False))
        web.run(store.migrate())
        with browser.tab(web.base) as tab:
            tab.open("/queues")
            with browser.tab(web.base) as other:
                server.kill()
                tab.page.wait_for_selector("#banner:not([hidden])")
                said = tab.page.inner_text("#banner")
                assert "The database cannot be reached; what you see is from" in said
                assert "No queues yet" in tab.page.inner_text("main")
                assert other.open("/jobs").status == 503
                assert "The database cannot be reached" in other.page.inner_text("main h1")
                server.start()
                other.page.wait_for_selector("main h1 >> text=Jobs")
            tab.page.wait_for_selector("#banner", state="hidden")
            assert [each for each in tab.complaints if "503" not in each] == []
