"""A schedule of a target is held to what its jobs are held to, at every door."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from mainspring import Mainspring
from mainspring.errors import InvalidArgument
from mainspring.tasks.task import Task
from mainspring.web.app import create_app
from tests.support.door import House, by_header

BAD: dict[str, tuple[str, dict[str, object]]] = {
    "a private address": ("hook", {"url": "http://127.0.0.1/admin"}),
    "a file": ("hook", {"url": "file:///etc/passwd"}),
    "no URL": ("hook", {"note": "x"}),
    "a number for a URL": ("hook", {"url": 7}),
    "NUL for a program": ("tool", {"word": "a\x00b"}),
    "a list for a program": ("tool", {"word": ["a", "b"]}),
    "a word that no program asked for": ("tool", {"word": "a", "other": "b"}),
    "no word": ("tool", {}),
}
GOOD: dict[str, dict[str, object]] = {"hook": {"url": "https://example.com/x"}, "tool": {"word": "a"}}
SAME = {"Sec-Fetch-Site": "same-origin"}


def declare(app: Mainspring) -> dict[str, Task[..., Any]]:
    return {"hook": app.http("hook"), "tool": app.shell("tool", ["echo", "{word}"])}


@pytest.fixture
def house(database_url: str) -> Iterator[House]:
    app = Mainspring(database_url)
    declare(app)
    with TestClient(create_app(app, identify=[by_header]), base_url="http://127.0.0.1") as client:
        opened = House(app, client.app, client)  # type: ignore[arg-type]
        yield opened
        opened.run(app.aclose)


@pytest.mark.parametrize("name", BAD)
def test_in_python(name: str) -> None:
    task, kwargs = BAD[name]
    app = Mainspring("sqlite://:memory:")
    declared = declare(app)
    with pytest.raises(InvalidArgument):
        app.schedule("nightly", declared[task], every="1h", kwargs=kwargs)


@pytest.mark.parametrize("name", BAD)
def test_over_http_and_on_its_page(house: House, name: str) -> None:
    task, kwargs = BAD[name]
    good = {"task": task, "every": "1h", "kwargs": GOOD[task]}
    made = house.post("/schedules", {"name": "good", **good})
    refused = [
        house.post("/schedules", {"name": "bad", **good, "kwargs": kwargs}),
        house.post("/schedules", {"name": "bad", **good, "kwargs": kwargs, "dry_run": True}),
        house.ask("PATCH", "/api/v1/schedules/good", json={"kwargs": kwargs}),
        house.ask("POST", "/schedules/good/-/edit", data={"kwargs": json.dumps(kwargs)}, headers=SAME),
    ]

    assert made.status_code == 201, made.text
    assert [each.status_code for each in refused] == [422] * 4
    assert [each["name"] for each in house.get("/schedules").json()["items"]] == ["good"]
    assert house.get("/schedules/good").json()["kwargs"] == GOOD[task]


@pytest.mark.parametrize("name", BAD)
def test_on_the_command_line(name: str, call: Callable[..., Any], bare_shell: Any) -> None:
    task, kwargs = BAD[name]
    bare_shell.write(
        "shop.py",
        "from mainspring import Mainspring\n"
        "app = Mainspring()\n"
        "app.http('hook')\n"
        "app.shell('tool', ['echo', '{word}'])\n",
    )
    assert call("db", "migrate").code == 0
    create = ("schedules", "create", "--every", "1h", "-A", "shop.py")
    made = call(*create, "good", "--task", task, "--kwargs", json.dumps(GOOD[task]))
    refused = [
        call(*create, "bad", "--task", task, "--kwargs", json.dumps(kwargs)),
        call("schedules", "edit", "-A", "shop.py", "good", "--kwargs", json.dumps(kwargs)),
    ]

    assert made.code == 0, made.err
    assert [each.code for each in refused] == [2, 2], [each.err for each in refused]
    assert all(each.err.startswith("Error: ") for each in refused)
