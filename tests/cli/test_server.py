"""`mainspring server` as people start it, and the page about it, request for request."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any
from urllib.request import Request, urlopen

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "http-api.md"
FINISHES_WITHIN = 60
SHOP = """
from __future__ import annotations

from mainspring import Mainspring

app = Mainspring()


@app.task
def greet(name: str) -> str:
    return f"hello {name}"


app.schedule("nightly", greet, cron="30 2 * * *", args=["Ada"])
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(bare_shell: Any) -> Iterator[Start]:
    """Starts processes on the folder's own file, which are gone when the test ends."""
    running: list[subprocess.Popen[str]] = []
    bare_shell.write("shop.py", SHOP)

    def started(*words: str) -> subprocess.Popen[str]:
        running.append(bare_shell.start(*words))
        return running[-1]

    yield started
    for each in running:
        each.kill()
        each.communicate()


def ask(curl: str, **values: str) -> str:
    """What a curl command of the page gets."""
    words = iter(shlex.split(Template(curl).substitute(values)))
    assert next(words) == "curl"
    url, method, headers, body = "", None, {}, None
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-X":
            method = next(words)
        elif word == "-d":
            body = next(words).encode()
        elif word != "-s":
            url = word
    with urlopen(Request(url, body, headers, method=method), timeout=30) as answer:
        return str(answer.read().decode())


def test_the_page_is_true(start: Start) -> None:
    process = start("server", "shop.py", "--port", "0")
    assert process.stdout is not None
    where, token = process.stdout.readline().split()[-1], process.stdout.readline().split()[-1]
    given = {"URL": where, "TOKEN": token}
    ask('curl -s -X POST "$URL/api/v1/plan/apply" -H "Authorization: Bearer $TOKEN"', **given)
    lines = [
        line
        for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
    ]
    asked = [(line[2:], lines[place + 1]) for place, line in enumerate(lines) if line.startswith("$ curl")]

    for curl, expected in asked:
        pattern = ".*".join(re.escape(part) for part in expected.split("…"))
        answer = ask(curl, **given)
        assert re.fullmatch(pattern, answer, re.DOTALL), (curl, answer)
    assert len(asked) == 5
    process.send_signal(signal.SIGTERM)
    assert process.wait(FINISHES_WITHIN) == 0


def test_dev_serves_the_dashboard_elsewhere_when_its_port_is_taken(start: Start, bare_shell: Any) -> None:
    first = start("server", "--port", "0")
    assert first.stdout is not None
    taken = first.stdout.readline().rpartition(":")[2].strip()
    bare_shell.environment["MAINSPRING_SERVER_PORT"] = taken
    process = start("dev", "shop.py")
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "Dashboard" in line:
            break
    url, _, token = said[-1].split()[-1].partition("/login#token=")

    assert [line for line in said if "is taken" in line]
    assert url.rpartition(":")[2] != taken
    assert '"role":"admin"' in ask(
        'curl "$URL/api/v1/me" -H "Authorization: Bearer $TOKEN"', URL=url, TOKEN=token
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(FINISHES_WITHIN) == 0


def test_an_address_that_others_reach_wants_a_key(bare_shell: Any) -> None:
    done = bare_shell("server", "--host", "0.0.0.0", "--port", "0")

    assert done.code == 2
    assert "server.host: expected a loopback address, for nobody can sign in yet" in done.err


def test_without_the_extra_it_says_what_to_install(bare_shell: Any) -> None:
    bare_shell.write("uvicorn.py", "raise ModuleNotFoundError(\"No module named 'uvicorn'\", name='uvicorn')")
    done = bare_shell("server", "--port", "0", PYTHONPATH=f".:{bare_shell.environment.get('PYTHONPATH', '')}")

    assert done.code == 2
    assert "pip install 'mainspring[server]'" in done.err
