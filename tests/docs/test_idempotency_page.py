"""The page on idempotency is a program: it is run, and each of its patterns is tried twice."""

from __future__ import annotations

import logging
import re
import runpy
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context

PAGE = Path(__file__).parents[2] / "docs" / "idempotency.md"


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the page's program has been run once: its tables are there, and its jobs wait."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shop.py").write_text("\n".join(blocks), encoding="utf-8")
    python("shop.py", cwd=tmp_path)
    return tmp_path


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Its names, for calling its handlers by hand."""
    monkeypatch.chdir(folder)
    return runpy.run_path("shop.py", run_name="shop")


def rows(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        return connection.execute(query).fetchall()


def context(**facts: Any) -> Context:
    given = {"job_id": 7, "task": "t", "queue": "default", "attempt": 1, "max_attempts": 3, "fence": 1}
    log = logging.LoggerAdapter(logging.getLogger("test"), {})
    return Context(**{**given, **facts}, log=log, stop=threading.Event())


def test_its_jobs_do_what_it_says(folder: Path) -> None:
    python("-m", "mainspring", "worker", "shop.py", "--burst", cwd=folder)
    listed = python("-m", "mainspring", "jobs", "list", "-A", "shop.py", "--state", "succeeded", cwd=folder)

    assert rows(folder, "SELECT id, paid, shipped, confirmed, letters FROM orders") == [(7, 1, 1, 1, 1)]
    assert rows(folder, "SELECT month, total FROM months") == [("2026-10", 99)]
    assert rows(folder, "SELECT fence, text FROM reports") == [(1, "fine")]
    assert rows(folder, "SELECT name FROM steps") == [("letter",)]
    assert len(re.findall(r"^\d+ +succeeded ", listed.stdout, re.MULTILINE)) == 7
    assert rows(folder, "SELECT count(*) FROM jobs") == [(0,)]


def test_an_order_that_is_rolled_back_leaves_no_jobs(folder: Path, shop: dict[str, Any]) -> None:
    before = rows(folder, "SELECT count(*) FROM jobs")

    with pytest.raises(sqlite3.IntegrityError):
        shop["place"](7)

    assert rows(folder, "SELECT count(*) FROM jobs") == before == [(7,)]


def test_the_service_charges_once_for_one_token(shop: dict[str, Any]) -> None:
    for attempt in (1, 2):
        shop["charge"](context(attempt=attempt, fence=attempt), 5)
    shop["charge"](context(job_id=8), 5)

    assert len(shop["bank"].charges) == 2


def test_what_is_checked_first_is_done_once(folder: Path, shop: dict[str, Any]) -> None:
    shop["confirm"](7)
    shop["confirm"](7)

    assert rows(folder, "SELECT confirmed, letters FROM orders") == [(1, 1)]


def test_what_is_written_twice_is_there_once(folder: Path, shop: dict[str, Any]) -> None:
    shop["close_month"]("2026-11", 5)
    shop["close_month"]("2026-11", 5)

    assert rows(folder, "SELECT total FROM months WHERE month = '2026-11'") == [(5,)]


def test_the_one_who_comes_too_late_is_refused(folder: Path, shop: dict[str, Any]) -> None:
    shop["report"](context(fence=2), "second")
    shop["report"](context(fence=2), "second, again")

    with pytest.raises(shop["TooLate"]):
        shop["report"](context(fence=1), "first")

    assert rows(folder, "SELECT text FROM reports") == [("second, again",)]
