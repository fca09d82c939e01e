"""What the tests of pages share: a browser for each module, and one server, which is filled once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.testing.clock import ManualClock
from tests.support.browser import chromium
from tests.support.showcase import Showcase, nasty
from tests.support.timetable import START, Timetable
from tests.support.web_server import WebServer, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def web(tmp_path_factory: Any) -> Iterator[WebServer]:
    """A dashboard whose store has something of everything in it, and markup in every text."""
    path = tmp_path_factory.mktemp("web") / "mainspring.db"
    with serving(Mainspring(f"sqlite:///{path}")) as server:
        server.showcase = Showcase(server.run(server.app._store()), server.run, nasty)
        server.showcase.fill()
        yield server


@pytest.fixture(scope="module")
def times(tmp_path_factory: Any) -> Iterator[WebServer]:
    """A dashboard of schedules with a past and of workflows, by a clock that stands still; with markup."""
    path = tmp_path_factory.mktemp("web") / "mainspring.db"
    clock = ManualClock(START)
    with serving(Mainspring._with(f"sqlite:///{path}", clock=clock)) as server:
        server.timetable = Timetable(server.run(server.app._store()), clock, server.run, nasty)
        server.timetable.fill()
        yield server
