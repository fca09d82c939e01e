"""URLs and headers that have fooled others: one verdict, in Python and at a shell, within 50 ms each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mainspring.cli.main import cli
from mainspring.errors import InvalidArgument, TargetRefused
from mainspring.targets.http import HttpTarget, valid_headers
from mainspring.tasks.context import Context
from tests.support.budget import within_cpu, within_memory

CASES = json.loads((Path(__file__).parents[1] / "data/bad_inputs_targets.json").read_text(encoding="utf-8"))
CPU_SECONDS = 0.05
MEMORY = 5 * 1024 * 1024
APP = """
from mainspring import Mainspring
app = Mainspring("sqlite:///jobs.db")
app.http("deliver")
"""


def given(case: dict[str, Any]) -> Any:
    if "gen" in case:
        parts = case["gen"]
        return parts["prefix"] + parts["unit"] * parts["times"] + parts["suffix"]
    return case["input"]


def cases(group: str, *, typed: bool = False, late: bool = False) -> list[Any]:
    """With `late`, those that only the look-up can refuse."""
    return [
        pytest.param(case, given(case), id=case["id"])
        for case in CASES[group]
        if ("refused" in case) is late and (not typed or isinstance(given(case), str))
    ]


def verdict(call: Callable[[], object]) -> str | None:
    """What it is refused with, if it is."""
    try:
        call()
    except InvalidArgument as refusal:
        return str(refusal)
    return None


def check(case: dict[str, Any], call: Callable[[], object]) -> None:
    with within_cpu(CPU_SECONDS):
        message = verdict(call)
    with within_memory(MEMORY):
        verdict(call)

    if case["expect"] == "accept":
        assert message is None
        return
    assert message is not None
    assert case["says"] in message
    assert message.isprintable()
    assert len(message) < 600


# To declare none means that each job brings its own.
@pytest.mark.parametrize(("case", "url"), [each for each in cases("url") if each.values[1] is not None])
def test_a_declared_url_gets_its_verdict(case: dict[str, Any], url: Any) -> None:
    check(case, lambda: HttpTarget("notify", url))


@pytest.mark.parametrize(("case", "url"), cases("url"))
def test_a_jobs_url_gets_the_same_verdict(case: dict[str, Any], url: Any) -> None:
    target = HttpTarget("deliver")

    check(case, lambda: target.check({"url": url}))


@pytest.mark.parametrize(("case", "url"), cases("url", typed=True))
def test_a_url_gets_the_same_verdict_on_the_command_line(
    case: dict[str, Any], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / f"hooks_{case['id'].removeprefix('url-')}.py"  # a module is imported once
    program.write_text(APP, encoding="utf-8")

    answer = CliRunner().invoke(cli, ["enqueue", "-A", program.name, "deliver", f"url={url}"])

    if case["expect"] == "accept":
        assert answer.exit_code == 0, answer.stderr
        return
    with pytest.raises(InvalidArgument) as refusal:
        HttpTarget("deliver").check({"url": url})
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"Error: {' '.join(str(refusal.value).split())}\n"
    assert not (tmp_path / "jobs.db").exists()


@pytest.mark.parametrize(("case", "url"), cases("url", late=True))
def test_a_name_that_leads_to_a_private_address_is_refused_when_it_is_looked_up(
    case: dict[str, Any], url: str, context: Callable[..., Context], run: Callable[[Any], Any]
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    target = HttpTarget("notify", url, resolve=resolve)

    with pytest.raises(TargetRefused, match=r"leads to 127\.0\.0\.1, which is private") as refusal:
        run(target.run(context(), {}))
    assert case["says"] in str(refusal.value)
    assert refusal.value.permanent


@pytest.mark.parametrize(("case", "headers"), cases("header"))
def test_headers_get_their_verdict(case: dict[str, Any], headers: Any) -> None:
    if headers == {"count": 10000}:
        headers = {f"X-{number}": "1" for number in range(10_000)}

    check(case, lambda: valid_headers(headers, "notify.headers"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "internal"},
        {"transfer-encoding": "chunked"},
        {"Content-Length": "5"},
        {"Proxy-Authorization": "x"},
        {"Webhook-Id": "mine"},
        {"Idempotency-Key": "mine"},
        {"X-A": " leading"},
        {"X-A": "a\x7fb"},
        {"X-A": "1", "x-a": "2"},
        {"X-A": "a" * 9000},
        ["X-A"],
    ],
)
def test_other_headers_are_refused_too(headers: Any) -> None:
    with pytest.raises(InvalidArgument):
        valid_headers(headers, "headers")


def test_a_password_or_a_secret_is_in_no_message() -> None:
    for wrong in (
        lambda: HttpTarget("notify", "https://ada:hunter2@example.com/"),
        lambda: HttpTarget("notify", "https://example.com/", headers={"Authorization": "hunter2\n"}),
        lambda: HttpTarget("notify", "https://example.com/", secret="whsec_hunter2"),
        lambda: HttpTarget("notify", "https://example.com/", secret="hunter2"),
    ):
        with pytest.raises(InvalidArgument) as refusal:
            wrong()
        assert "hunter2" not in str(refusal.value)
