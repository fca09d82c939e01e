"""Forked processes: whoever is told that its job is stored finds it stored, and nobody is locked out.

Where jobs may be lost, the test itself has no connection meanwhile (`alone`): on SQLite any that is open
keeps the log in its place, and nothing would ever be lost.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mainspring.clock import SystemClock
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from tests.e2e.forking import afamily, family
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

FORKING = Path(__file__).with_name("forking.py")
ROUNDS = 2
"""A race is not lost every time."""


class Ledger:
    """What the processes said."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, word: str) -> list[str]:
        """What follows the word, in every line that begins with it."""
        text = self.path.read_text() if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [line.removeprefix(word).strip() for line in whole if line.startswith(word)]

    @property
    def ids(self) -> list[int]:
        return [int(each) for each in self.lines("stored")]

    @property
    def ends(self) -> int:
        """Children that have ended, well or not."""
        return len(self.lines("done")) + len(self.lines("failed"))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


def start(site: Site, ledger: Ledger, way: str, *, name: str = "") -> Process:
    return site.script(FORKING, name or way, way, str(ledger.path))


def missing(site: Site, ids: list[int]) -> set[int]:
    """Those of them that the database does not know."""
    assert len(set(ids)) == len(ids), "an id was given out twice"
    store = open_store(site.url, clock=SystemClock())  # the site's own may be closed
    try:
        return set(ids) - set(site.ask(store.jobs.states(ids, at=None)))
    finally:
        site.ask(store.close())


@contextmanager
def alone(site: Site) -> Iterator[None]:
    """Only processes that the test started have the database open, and one of them is the last to close."""
    site.ask(site.store.close())
    with workers_coming_and_going(site):
        yield


@contextmanager
def workers_coming_and_going(site: Site) -> Iterator[None]:
    """Beside it: the last of them to leave takes the log away, if nobody seems to need it."""
    stop = threading.Event()
    seen = []

    def come_and_go() -> None:
        while not stop.is_set():
            worker = site.start(
                "worker", f"worker-{len(seen)}", target=FORKING.with_name("target.py"), joined=False
            )
            seen.append(worker)
            until(worker.joined, "a worker to join")
            worker.signal(signal.SIGTERM)
            worker.exit_code()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert seen


@pytest.mark.parametrize(
    ("way", "children"),
    [
        ("fork_and_close", 4),
        ("fork_and_exit", 3),
        ("processes", 3),
        ("pool", 1),
        ("daemon", 1),
        ("in_loop", 5),
        ("writing", 7),
    ],
)
def test_what_forked_processes_were_told_is_stored_is_stored(
    site: Site, ledger: Ledger, way: str, children: int
) -> None:
    with alone(site):
        for number in range(ROUNDS):
            process = start(site, ledger, way, name=f"{way}-{number}")
            assert process.exit_code() == 0
            until(lambda ends=children * (number + 1): ledger.ends >= ends, "the children's ends")

    assert ledger.lines("failed") == []
    ids = ledger.ids
    assert len(ids) >= ROUNDS * 120
    assert missing(site, ids) == set(), f"of {len(ids)}"


def test_what_gunicorns_workers_were_told_is_stored_is_stored(
    site: Site, ledger: Ledger, tmp_path: Path
) -> None:
    """--preload: the master puts jobs in and closes again before each fork, and workers are replaced."""
    if importlib.util.find_spec("gunicorn") is None:
        assert not os.environ.get("CI"), "gunicorn is not installed"
        pytest.skip("gunicorn is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runner = tmp_path / "run.py"
    runner.write_text(
        "def pre_fork(server, worker):\n"
        "    from tests.e2e.forking import app, put\n"
        "    app.close()\n"
        "    put(-1)\n"
        "if __name__ == '__main__':\n"
        "    import os, sys\n"
        f"    os.environ['FORKING'] = ' '.join([sys.argv.pop(1), {str(ledger.path)!r}])\n"
        "    from gunicorn.app.wsgiapp import run\n"
        "    run()\n"
    )
    options = ["tests.e2e.forking:serve", "--preload", "--workers=3", f"--bind=127.0.0.1:{port}"]
    options += [f"--config={runner}"]
    options += ["--max-requests=40", "--graceful-timeout=5", "--no-control-socket"]
    server = site.script(runner, "gunicorn", *options)
    answered: list[int] = []

    def ask() -> None:
        for _ in range(60):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
                answered.append(int(answer.read()))

    until(lambda: server.says("Booting worker", times=3), "gunicorn's workers")
    with alone(site):
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        server.signal(signal.SIGTERM)
        server.exit_code()

    assert len(answered) > 200
    assert set(answered) < set(ledger.ids)
    assert missing(site, ledger.ids) == set()


def test_a_child_waits_for_its_parents_job_and_reads_its_result(site: Site, ledger: Ledger) -> None:
    site.start("worker", "worker", target=FORKING)
    process = start(site, ledger, "results")

    assert process.exit_code() == 0
    assert ledger.lines("failed") == []
    assert ledger.lines("read") == ["42", "42"]
    assert missing(site, ledger.ids) == set()


def test_handlers_may_fork(site: Site, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a worker's life: its children put jobs in, and it goes on with its lease."""
    monkeypatch.setenv("FORKING_LEDGER", str(ledger.path))
    worker = site.start("worker", "worker", target=FORKING)
    before = site.after_a_beat(worker)
    jobs = site.put([family.job(3), afamily.job(3)] * 5)

    until(lambda: ledger.ends == 30, "the children")
    until(lambda: site.states(jobs) == {JobState.SUCCEEDED}, "the handlers")

    assert ledger.lines("failed") == []
    assert len(ledger.ids) == 150
    assert missing(site, ledger.ids) == set()
    assert site.after_a_beat(worker).id == before.id, "the worker has lost its lease"
    assert [site.verdicts(each) for each in jobs] == [[Verdict.SUCCEEDED]] * 10
    assert not worker.met_a_defect()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_write_that_waits_for_its_lock_gives_way_to_a_fork(site: Site, ledger: Ledger) -> None:
    process = start(site, ledger, "locked")
    until(lambda: ledger.lines("ready"), "the first job")
    with closing(sqlite3.connect(site.url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        Path(f"{ledger.path}.locked").touch()
        until(lambda: ledger.lines("waits"), "two forks")
        other.execute("ROLLBACK")

    assert process.exit_code() == 0
    assert all(float(each) < 1.5 for each in ledger.lines("forked"))
    assert ledger.lines("failed") == []
    assert len(ledger.ids) == 1 + 1 + 2 * 5
    assert missing(site, ledger.ids) == set()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way", ["borrowed", "in_transaction"])
def test_a_child_that_inherits_an_open_file_is_refused(site: Site, ledger: Ledger, way: str) -> None:
    """And nothing of its parent is harmed; once the connection is closed, children are welcome again."""
    process = start(site, ledger, way)

    assert process.exit_code() == 0
    [refused] = ledger.lines("failed")
    assert refused.startswith("UsageError: database: ")
    assert "was open in the process that this one was forked from" in refused
    assert len(ledger.lines("done")) == 1
    assert len(ledger.ids) == {"borrowed": 1, "in_transaction": 0}[way] + 5 + 1
    assert missing(site, ledger.ids) == set()


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
def test_a_lent_transaction_on_a_server_is_no_hindrance(site: Site, ledger: Ledger) -> None:
    process = start(site, ledger, "in_transaction")

    assert process.exit_code() == 0
    assert ledger.lines("failed") == []
    assert missing(site, ledger.ids) == set()
    assert len(ledger.ids) == 11


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_database_in_memory_is_not_inherited(site: Site, ledger: Ledger) -> None:
    process = start(site, ledger, "in_memory")

    assert process.exit_code() == 0
    assert len(ledger.lines("failed")) == 2
    assert all(
        "a database in memory is the process's that made it" in each for each in ledger.lines("failed")
    )
    assert len(ledger.ids) == 2  # the parent goes on


def test_an_open_store_is_not_inherited(site: Site, ledger: Ledger) -> None:
    process = start(site, ledger, "old_store")

    assert process.exit_code() == 0
    [refused] = ledger.lines("failed")
    assert refused.startswith("UsageError: this store was opened before the process was forked")


def test_a_child_that_leaves_the_body_of_a_lease_does_not_end_it(site: Site, ledger: Ledger) -> None:
    process = start(site, ledger, "lease")

    assert process.exit_code() == 0
    assert ledger.lines("left") == [""]
    assert ledger.lines("lost") == ["False"]
    assert ledger.lines("done") == [""]
