"""Expressions, zones and instants that have broken schedulers: one verdict, in Python and at a shell.

In the data, `says` is a part of the message and `exception` is why we take what others advise to refuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mainspring.cli.main import cli
from mainspring.errors import InvalidArgument
from mainspring.tasks.retry import Retry
from mainspring.tasks.schedule import declare_schedule
from mainspring.tasks.task import Task
from mainspring.triggers.slots import upcoming_slots
from mainspring.triggers.zones import read_instant
from tests.support.budget import within_cpu

CASES = json.loads((Path(__file__).parents[1] / "data/bad_inputs_time.json").read_text(encoding="utf-8"))
NOW = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
CPU_SECONDS = 0.05


def tick() -> None: ...


TASK: Task[..., object] = Task(tick, sender=None, queue="default", priority=0, retry=Retry())  # type: ignore[arg-type]


def cases(group: str, *, typed: bool = False) -> list[Any]:
    """With `typed`, only what can be typed at a command line."""
    found = [(case, given(case)) for case in CASES[group]]
    return [
        pytest.param(case, value, id=case["id"])
        for case, value in found
        if not typed or isinstance(value, str)
    ]


def given(case: dict[str, Any]) -> object:
    if "gen" in case:
        parts = case["gen"]
        return parts["prefix"] + parts["unit"] * parts["times"] + parts["suffix"]
    return case["input"]


def first_fires(**options: Any) -> list[datetime]:
    declared = declare_schedule("nightly", TASK, **options)
    return [fire.at for fire in upcoming_slots(declared.trigger, NOW, 5, "UTC")]


def next_(*words: str) -> Result:
    return CliRunner().invoke(cli, ["next", "--after", "2026-11-15T07:00:00Z", "--json", *words])


def check_python(case: dict[str, Any], call: Callable[[], object]) -> None:
    with within_cpu(CPU_SECONDS):
        if case["expect"] == "accept":
            assert call()
            return
        with pytest.raises(InvalidArgument) as refusal:
            call()

    message = str(refusal.value)
    assert case["says"] in message
    assert len(message) < 600
    assert message.isprintable()


def check_cli(case: dict[str, Any], call: Callable[[], object], *words: str) -> None:
    with within_cpu(CPU_SECONDS):
        answer = next_(*words)
    if case["expect"] == "accept":
        assert answer.exit_code == 0, answer.stderr
        assert len(json.loads(answer.stdout)["fires"]) == 5
        return
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"Error: {' '.join(str(refusal.value).split())}\n"


@pytest.mark.parametrize(("case", "value"), cases("cron"))
def test_an_expression_gets_its_verdict_in_python(case: dict[str, Any], value: Any) -> None:
    check_python(case, lambda: first_fires(cron=value))


@pytest.mark.parametrize(("case", "value"), cases("cron", typed=True))
def test_an_expression_gets_the_same_verdict_on_the_command_line(case: dict[str, Any], value: str) -> None:
    check_cli(case, lambda: first_fires(cron=value), "--name", "nightly", "--", value)


@pytest.mark.parametrize(("case", "value"), cases("zone"))
def test_a_zone_gets_its_verdict_in_python(case: dict[str, Any], value: Any) -> None:
    check_python(case, lambda: first_fires(cron="30 2 * * *", tz=value))


@pytest.mark.parametrize(("case", "value"), cases("zone", typed=True))
def test_a_zone_gets_the_same_verdict_on_the_command_line(case: dict[str, Any], value: str) -> None:
    check_cli(case, lambda: first_fires(cron="30 2 * * *", tz=value), f"--tz={value}", "30 2 * * *")


@pytest.mark.parametrize(("case", "value"), cases("time"))
def test_an_instant_gets_its_verdict_in_python(case: dict[str, Any], value: Any) -> None:
    check_python(case, lambda: read_instant(value, "after"))


@pytest.mark.parametrize(("case", "value"), cases("time", typed=True))
def test_an_instant_gets_the_same_verdict_on_the_command_line(case: dict[str, Any], value: str) -> None:
    check_cli(case, lambda: read_instant(value, "after"), f"--after={value}", "30 2 * * *")


def test_every_case_that_goes_against_advice_says_why() -> None:
    taken = [case for group in CASES.values() for case in group if "exception" in case]

    assert {case["id"] for case in taken} == {"cron-022", "cron-023", "cron-050", "cron-051"}
    assert all(case["expect"] == "accept" and case["exception"] for case in taken)
