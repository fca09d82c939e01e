"""Rules that must be refused, or taken, each within so much work."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mainspring.cli.main import cli
from mainspring.errors import InvalidArgument
from mainspring.triggers.rrule import RRule
from tests.support.budget import within_calls

CASES = json.loads((Path(__file__).parents[1] / "data" / "bad_inputs_rrule.json").read_text(encoding="utf-8"))
START = datetime(2026, 1, 2, 9)  # noqa: DTZ001  a Friday, on any wall clock
NOW = datetime(2026, 11, 15, tzinfo=UTC)
LIMIT = 400_000
"""Calls, of which dateutil makes some ten million a second; the hardest rule that is taken needs 260,000."""


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """The first use pays for imports."""
    RRule("FREQ=DAILY", START)
    CliRunner().invoke(cli, ["next", "--rrule", "FREQ=DAILY", "--dtstart", START.isoformat()])


def text_of(case: dict[str, Any]) -> str:
    if "repeat" in case:
        prefix, unit, times, suffix = case["repeat"]
        return str(prefix + unit * times + suffix)
    return case["rule"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_verdict_is_as_listed_and_soon(case: dict[str, Any]) -> None:
    rule, refusal, slot = text_of(case), None, None

    with within_calls(LIMIT):
        try:
            slot = RRule(rule, START, "Europe/Berlin").next_after(NOW)
        except InvalidArgument as error:
            refusal = error

    assert ("accept" if refusal is None else "reject") == case["expect"]
    assert refusal is None or case["says"] in str(refusal)
    assert slot is None or slot > NOW


@pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(text_of(case), str)], ids=lambda case: case["id"]
)
def test_the_verdict_at_a_shell_is_the_same(case: dict[str, Any]) -> None:
    words = ["next", "--rrule", text_of(case), "--dtstart", START.isoformat(), "--json"]

    with within_calls(LIMIT):
        answer = CliRunner().invoke(cli, words)

    assert ("accept" if answer.exit_code == 0 else "reject") == case["expect"]
    assert case.get("says", "fires") in answer.output


@pytest.mark.parametrize("year", [1990, 2021])
def test_an_old_start_costs_nothing(year: int) -> None:
    trigger = RRule("FREQ=MINUTELY;INTERVAL=5", datetime(year, 1, 1), "Europe/Berlin")  # noqa: DTZ001
    trigger.next_after(NOW)

    with within_calls(LIMIT // 1000):
        trigger.next_after(NOW)
