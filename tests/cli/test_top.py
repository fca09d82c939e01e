"""`top`: one frame on both stores, word for word; the live screen on a real store, headless, in 80 x 24."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.widgets import DataTable, Static

from mainspring.admin.health.top import Frame, look
from mainspring.app import Mainspring
from mainspring.cli.top import _watch
from mainspring.cli.top_panes import Order, plain
from mainspring.cli.top_screen import TopScreen
from mainspring.errors import UsageError
from mainspring.model.alert import Rule
from mainspring.model.audit_log import AuditFilter
from mainspring.model.job import Failure, JobState
from mainspring.model.run import ProgressNote, Verdict
from mainspring.store.opener import open_store
from tests.cli.conftest import Answer, Shell
from tests.support.desk import HOUR, MINUTE, SECOND, Desk
from tests.support.management import admin_of
from tests.support.postgres import PostgresServer

BACKENDS = ["sqlite", "postgres"]
PATIENCE = 40.0
GOLDEN = """\
mainspring top  2030-01-01 00:03:05Z  lag none  1 worker, 0 schedulers, 1 dead  sqlite:///jobs.db
(what is wrong)

QUEUES
  QUEUE    READY  DELAYED  RUNNING  OLDEST  WORKERS  PAUSED
  default  0      1        1                1
  mail     2      0        0        3m5s    0        by ann: moving

RUNNING
  JOB  TASK  QUEUE    ATTEMPT  FOR  PROGRESS  WORKER
  5    t     default  1/3      5s   50% half  worker-1

NEXT FIRES
  IN     SCHEDULE  SLOT             TASK  QUEUE    PAUSED
  55s    nightly   01-01 00:04:00Z  t     default
  2m55s  weekly    01-01 00:06:00Z  t     default  paused

FAILURES
  AGO   JOB  TASK  ATTEMPT  WAS     NOW      ERROR
  5s    4    t     1        failed  delayed  ValueError: boom \\x1b[31m
  3m5s  3    t     1        dead    dead     ValueError: boom"""


@pytest.fixture
def desk(store: Any, clock: Any, run: Any) -> Desk:
    return Desk(store, clock, run)


def furnish(desk: Desk) -> None:
    """Something of everything."""
    desk.put(queue="mail")
    desk.put(queue="mail")
    desk.pause_queue("mail", note="moving")
    desk.join(1, lease=HOUR, queues=("default",), tasks=("t",))
    desk.bury()
    desk.advance(3 * MINUTE)
    failed = desk.started(max_attempts=3)
    boom = Failure(type="ValueError", message="boom \x1b[31m")
    desk.end(failed, Verdict.FAILED, failure=boom, delay=HOUR)
    running = desk.started(max_attempts=3)
    note = ProgressNote(job_id=running.job_id, worker_id=1, fence=running.fence, fraction=0.5, note="half")
    desk.run(desk.store.runs.note_progress([note], at=desk.now))
    for name, minutes in (("nightly", 1), ("weekly", 3)):
        at = desk.now + minutes * MINUTE
        desk.schedule(name, trigger=f'"{minutes}"', next_at=at, following_at=at + MINUTE)
    desk.pause("weekly")
    desk.advance(5 * SECOND)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_frame_in_plain_text(desk: Desk) -> None:
    furnish(desk)

    frame = desk.run(look(desk.store, desk.clock))

    wrong = [f"{each.severity.upper()}  {each.sentence}" for each in frame.wrong]
    assert Rule.NO_SCHEDULER in [each.rule for each in frame.wrong]
    text = "\n".join(plain(frame, "sqlite:///jobs.db"))
    assert text == GOLDEN.replace("(what is wrong)", "\n".join(wrong))


def test_without_a_terminal_one_frame_must_be_asked_for(
    call: Callable[..., Answer], bare_shell: Shell
) -> None:
    assert call("db", "migrate").code == 0

    refused = call("top")
    once = call("top", "--once")
    data = call("top", "--json").data

    assert (refused.code, refused.out) == (2, "")
    assert "--once: expected, for there is no terminal" in refused.err
    assert once.code == 0
    assert once.out.splitlines()[1:4] == ["nothing is wrong", "", "QUEUES"]
    assert (data["workers"], data["queues"], data["wrong"]) == (0, [], [])
    assert call("top", "--every", "1ms", "--once").code == 2
    assert [each["action"] for each in call("audit-log", "list", "--json").data] == ["db.migrate"], (
        "looking is no act"
    )


def test_a_terminal_shows_it_until_q(bare_shell: Shell) -> None:
    bare_shell("enqueue", "-A", "shop.py", "greet", "--queue", "mail-of-today")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = subprocess.Popen(
        bare_shell.command("top"),
        cwd=bare_shell.folder,
        env={**bare_shell.environment, "TERM": "xterm", "NO_COLOR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        seen = b""
        while b"mail-of-today" not in seen:
            assert select.select([ours], [], [], PATIENCE)[0], seen[-500:]
            seen += os.read(ours, 65536)
        os.write(ours, b"q")
        while shown.poll() is None:
            if select.select([ours], [], [], 0.1)[0]:
                os.read(ours, 65536)
    except OSError:  # the terminal is closed once its last reader has gone
        shown.wait(timeout=PATIENCE)
    finally:
        os.close(ours)
        if shown.poll() is None:
            shown.kill()
            shown.wait()
    assert shown.returncode == 0


def test_without_textual_the_extra_is_named(
    run: Any, bare_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Mainspring(f"sqlite:///{bare_shell.folder / 'jobs.db'}")
    app._configure()
    run(migrated(app))
    for name in [each for each in sys.modules if each.startswith("mainspring.cli.top_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "textual.app", None)

    with pytest.raises(UsageError, match=r"pip install 'mainspring\[tui\]'"):
        run(_watch(app, "jobs.db", SECOND, "ann"))


async def migrated(app: Mainspring) -> None:
    await (await app._store(prepare=False)).migrate()
    await app.aclose()


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell_name: str, call: Callable[..., Answer]) -> None:
    script = call("completion", shell_name)

    assert script.code == 0
    assert f"_MAINSPRING_COMPLETE={shell_name}_complete" in script.out


def test_commands_are_completed(bare_shell: Shell) -> None:
    asked = {"_MAINSPRING_COMPLETE": "bash_complete", "COMP_WORDS": "mainspring que", "COMP_CWORD": "1"}

    assert bare_shell(**asked).out == "plain,queues\n"


def screen(desk: Desk, **changed: Any) -> TopScreen:
    async def read() -> Frame:
        return await look(desk.store, desk.clock)

    async def carry_out(order: Order) -> str:
        return await order.carry_out(admin_of(desk.store, desk.clock, actor="bob"))

    given = {"where": "jobs.db", "every": HOUR, "clock": desk.clock, **changed}
    return TopScreen(desk.run(read()), read, carry_out, **given)


def words(app: TopScreen, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).content)


def rows(app: TopScreen, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


def show(
    desk: Desk, story: Callable[[TopScreen, Any], Awaitable[None]], app: TopScreen | None = None
) -> None:
    """Let a story happen on the screen."""

    async def shown() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await story(app, pilot)

    app = app or screen(desk)
    desk.run(shown())


async def agreed(app: TopScreen, pilot: Any, *keys: str) -> str:
    """Press the keys, and wait for what comes of it; answer what is said."""
    await pilot.press(*keys)
    await app.workers.wait_for_complete()
    await pilot.pause()
    return words(app, "said")


@pytest.fixture
def backend() -> str:
    """The screen asks the store nothing that the frame does not: one store will do."""
    return "sqlite"


class TestScreen:
    @pytest.fixture(autouse=True)
    def furnished(self, desk: Desk) -> None:
        furnish(desk)

    def test_rows_appear_and_a_change_shows_after_a_look(self, desk: Desk) -> None:
        async def story(app: TopScreen, pilot: Any) -> None:
            assert words(app, "wrong").startswith("! critical: ")
            assert "no scheduler is alive" in words(app, "wrong")
            assert words(app, "head").startswith("2030-01-01 00:03:05Z  lag none  1 worker")
            assert [row[:2] for row in rows(app, "queues")] == [["default", "0"], ["mail", "2"]]
            assert rows(app, "running")[0][:3] == ["5", "t", "default"]
            assert [row[1] for row in rows(app, "coming")] == ["nightly", "weekly"]
            assert rows(app, "failures")[0][-1] == "ValueError: boom \\x1b[31m"

            await desk.store.jobs.cancel([5], at=desk.now)
            desk.advance(SECOND)
            app.look()
            await app.workers.wait_for_complete()

            assert rows(app, "running") == []
            assert words(app, "head").startswith("2030-01-01 00:03:06Z")
            assert rows(app, "failures")[0][0] == "6s"
            lines = [str(line) for line in app.screen._compositor.render_strips()]
            assert len(lines) == 24

        show(desk, story)

    def test_acts_ask_first_and_are_carried_out_by_name(self, desk: Desk) -> None:
        async def story(app: TopScreen, pilot: Any) -> None:
            await pilot.press("p")
            await app.tick()  # the panes go on behind the question
            assert len(app.screen_stack) == 2
            assert await agreed(app, pilot, "n") == "nothing was done"
            assert await agreed(app, pilot, "p", "y") == "queue default paused"
            assert rows(app, "queues")[0][-1] == "by bob"
            assert await agreed(app, pilot, "p", "y") == "queue default resumed"
            assert await agreed(app, pilot, "t") == "t triggers a schedule: choose one under Next fires"
            assert await agreed(app, pilot, "tab", "c", "y") == "job 5 cancelled (was running)"
            assert await agreed(app, pilot, "tab", "t", "y") == "schedule nightly: job 6 in queue default"
            assert await agreed(app, pilot, "down", "p", "y") == "schedule weekly resumed"
            assert await agreed(app, pilot, "tab", "r", "y") == "job 4 hastened (was delayed)"
            assert await agreed(app, pilot, "down", "r", "y") == "job 3 replayed (was dead)"
            assert [row[5] for row in rows(app, "failures")] == ["ready", "ready"]

        show(desk, story)
        assert desk.job(5).state is JobState.CANCELLED
        assert desk.job(3).state is JobState.READY
        assert desk.the_schedule("weekly").paused_at is None
        assert [each.author for each in desk.versions("weekly")][-1] == "bob"
        audit_log = desk.run(admin_of(desk.store, desk.clock).audit_log.afind(AuditFilter()))
        assert {each.outcome for each in audit_log} == {"done"}
        assert {each.entry.actor for each in audit_log} == {"bob"}
        assert [(each.entry.action, each.entry.object) for each in reversed(audit_log)] == [
            ("queues.pause", "default"),
            ("queues.resume", "default"),
            ("jobs.cancel", "5"),
            ("schedules.trigger", "nightly"),
            ("schedules.resume", "weekly"),
            ("jobs.retry", "4"),
            ("jobs.retry", "3"),
        ]

    def test_lines_are_filtered_sorted_and_explained(self, desk: Desk) -> None:
        async def story(app: TopScreen, pilot: Any) -> None:
            await pilot.press("s", "s")
            assert [row[0] for row in rows(app, "queues")] == ["mail", "default"]
            await pilot.press("slash", *"mail", "enter")
            assert [row[0] for row in rows(app, "queues")] == ["mail"]
            assert rows(app, "running") == []
            assert app.query_one("#queues", DataTable).border_title == "Queues (1 of 2, by ready)"
            await pilot.press("escape")
            assert len(rows(app, "running")) == 1
            await pilot.press("question_mark")
            assert len(app.screen_stack) == 2
            await pilot.press("x")
            assert len(app.screen_stack) == 1
            await pilot.press("q")

        show(desk, story)

    def test_the_line_in_hand_stays_in_hand_when_others_come(self, desk: Desk) -> None:
        async def story(app: TopScreen, pilot: Any) -> None:
            await pilot.press("down")
            await desk.store.queues.pause("alpha", author="ann", note=None, at=desk.now)
            await app.tick()
            assert [row[0] for row in rows(app, "queues")] == ["alpha", "default", "mail"]
            assert await agreed(app, pilot, "p", "y") == "queue mail resumed"

        show(desk, story)


def test_a_database_that_goes_away_is_said_and_the_screen_goes_on(
    server: PostgresServer, run: Any, clock: Any
) -> None:
    store = open_store(server.url(), clock=clock)
    desk = Desk(store, clock, run)
    run(store.migrate())
    desk.put(queue="mail")

    async def story(app: TopScreen, pilot: Any) -> None:
        server.kill()
        await app.tick()
        assert words(app, "wrong").startswith("! the database is away: ")
        assert [row[0] for row in rows(app, "queues")] == ["mail"]
        assert (await agreed(app, pilot, "p", "y")).startswith("not done: ")
        server.start()
        await app.tick()
        assert "away" not in words(app, "wrong")

    try:
        show(desk, story)
    finally:
        run(store.close())
