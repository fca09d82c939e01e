"""The example of an order that takes days, in the time of a test."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from mainspring.testing import Harness

EXAMPLE = Path(__file__).parents[2] / "examples" / "order.py"


@pytest.fixture
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_an_approved_order_is_shipped_and_asked_about_three_days_later(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    app, fulfil = example["app"], example["fulfil"]

    with Harness(app) as mainspring:
        job = fulfil.enqueue(7)
        mainspring.run_until_idle()
        mainspring.run_for("1d")
        assert app.send_event("approved", {"by": "ann"}, job=job)
        mainspring.run_until_idle()
        before = capsys.readouterr().out
        mainspring.run_for("3d")
        answer = job.result(timeout=5)

    assert before == ""
    assert capsys.readouterr().out == "order 7: how was it?\n"
    assert (answer["shipped"], answer["approved"], answer["order"]) == ("parcel-7", {"by": "ann"}, 7)


def test_an_order_that_nobody_approves_is_refused_after_a_week(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with Harness(example["app"]) as mainspring:
        job = example["fulfil"].enqueue(7)
        mainspring.run_for("6d")
        before = capsys.readouterr().out
        mainspring.run_for("1d")
        answer = job.result(timeout=5)

    assert (before, answer["shipped"]) == ("", None)
    assert capsys.readouterr().out == "order 7: nobody approved it\n"
