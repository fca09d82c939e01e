"""Rules that must be refused, or taken, each within 50 ms of CPU."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mainspring.cli.main import cli
from mainspring.errors import InvalidArgument
from mainspring.trigger.rrule import RRule

CASES = json.loads((Path(__file__).parents[1] / "data" / "bad_inputs_rrule.json").read_text(encoding="utf-8"))
START = datetime(2026, 1, 2, 9)  # noqa: DTZ001  a Friday, on any wall clock
NOW = datetime(2026, 11, 15, tzinfo=UTC)
LIMIT = 0.05


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """The first use pays for the import of dateutil."""
    RRule("FREQ=DAILY", START)


def text_of(case: dict[str, Any]) -> str:
    if "repeat" in case:
        prefix, unit, times, suffix = case["repeat"]
        return str(prefix + unit * times + suffix)
    return case["rule"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_verdict_is_as_listed_and_soon(case: dict[str, Any]) -> None:
    rule, refusal, slot = text_of(case), None, None

    began = time.process_time()
    try:
        slot = RRule(rule, START, "Europe/Berlin").next_after(NOW)
    except InvalidArgument as error:
        refusal = error
    took = time.process_time() - began

    assert ("accept" if refusal is None else "reject") == case["expect"]
    assert refusal is None or case["says"] in str(refusal)
    assert slot is None or slot > NOW
    assert took < LIMIT


@pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(text_of(case), str)], ids=lambda case: case["id"]
)
def test_the_verdict_at_a_shell_is_the_same(case: dict[str, Any]) -> None:
    words = ["next", "--rrule", text_of(case), "--dtstart", START.isoformat(), "--json"]

    began = time.process_time()
    answer = CliRunner().invoke(cli, words)
    took = time.process_time() - began

    assert ("accept" if answer.exit_code == 0 else "reject") == case["expect"]
    assert case.get("says", "fires") in answer.output
    assert took < LIMIT


@pytest.mark.parametrize("year", [1990, 2021])
def test_an_old_start_costs_nothing(year: int) -> None:
    trigger = RRule("FREQ=MINUTELY;INTERVAL=5", datetime(year, 1, 1), "Europe/Berlin")  # noqa: DTZ001
    trigger.next_after(NOW)

    began = time.process_time()
    for _ in range(20):
        trigger.next_after(NOW)

    assert (time.process_time() - began) / 20 < LIMIT / 10
