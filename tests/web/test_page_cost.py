"""How many calls of the store one view of a page makes: none reads the same thing twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mainspring.web.services import Services
from tests.support.door import House, open_house

#: The most calls of one view, and what it may read more than once: with other arguments, or for `why`.
PAGES = {
    "/": (10, {"stats.find": 2}),
    "/schedules": (3, {}),
    "/schedules/nightly": (6, {}),
    "/schedules/nightly/-/part": (6, {}),
    "/jobs": (3, {}),
    "/jobs/1": (13, {"processes.all": 2, "now": 2}),
    "/jobs/3": (15, {"processes.all": 2, "now": 2}),
    "/workflows": (1, {}),
    "/workflows/5": (9, {}),
    "/queues": (4, {}),
    "/workers": (4, {}),
    "/dead": (1, {}),
    "/dead/letters": (2, {}),
    "/audit": (1, {}),
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """A house, and the calls that its pages make."""
    calls: list[str] = []

    def called(self: Services, call: str, seconds: float, *, error: BaseException | None) -> None:
        calls.append(call)

    monkeypatch.setattr(Services, "_called", called)
    with open_house(f"sqlite:///{tmp_path}/mainspring.db") as house:
        yield house, calls


def test_a_page_reads_nothing_twice(counted: tuple[House, list[str]]) -> None:
    house, calls = counted
    found = {}
    for path, (most, again) in PAGES.items():
        calls.clear()
        assert house.ask("GET", path, headers={"Accept": "text/html"}).status_code == 200
        twice = {call: times for call, times in Counter(calls).items() if times > again.get(call, 1)}
        if twice or len(calls) > most:
            found[path] = (len(calls), twice)

    assert found == {}
