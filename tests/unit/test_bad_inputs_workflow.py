"""Graphs that have broken workflow engines: each is declared, and gets its verdict in time.

In the data, `says` is a part of the message.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, Workflow
from mainspring.errors import InvalidWorkflow
from mainspring.tasks.payload import decode
from tests.support.budget import within_cpu

CASES = json.loads((Path(__file__).parents[1] / "data/bad_inputs_workflow.json").read_text(encoding="utf-8"))
CPU_SECONDS = 3.0
"""A thousand steps are declared in that, on a machine that is busy with other tests."""


class Bench:
    """An app with tasks to draw graphs of."""

    def __init__(self) -> None:
        self.app = Mainspring("sqlite://:memory:")
        self.flow = self.app.workflow("flow", deadline="2h")

        @self.app.task
        def fetch(given: Any = None) -> Any: ...

        @self.app.task
        def load(given: Any = None) -> Any: ...

        @self.app.task(timeout="1h")
        def slow(given: Any = None) -> Any: ...

        self.fetch, self.load, self.slow = fetch, load, slow

    def chain(self, length: int, flow: Workflow | None = None) -> None:
        step = None
        for _ in range(length):
            step = (flow or self.flow).step(self.fetch, step)

    def condition(self, text: str) -> None:
        self.flow.param("x")
        self.flow.step(self.fetch, only_if=text)


def circle(bench: Bench) -> None:
    first = bench.flow.step(bench.fetch)
    first.after(bench.flow.step(bench.load, first))


def itself(bench: Bench) -> None:
    first = bench.flow.step(bench.fetch)
    first.after(first)


def many(bench: Bench) -> None:
    for _ in range(100_000):
        bench.flow.step(bench.fetch)


def theirs(bench: Bench) -> None:
    bench.flow.step(bench.load, bench.app.workflow("other").step(bench.fetch))


def unknown(bench: Bench) -> None:
    with pytest.raises(InvalidWorkflow, match=r"a task, declared with @app\.task"):
        bench.flow.step(object())  # type: ignore[call-overload]
    bench.flow.step("fetch")  # type: ignore[call-overload]


def too_slow(bench: Bench) -> None:
    bench.flow.step(bench.slow, bench.flow.step(bench.slow, bench.flow.step(bench.slow)))


def bad_names(bench: Bench) -> None:
    for name in ("../etc", "..", "a..b", "/"):
        with pytest.raises(InvalidWorkflow, match="in words joined by -"):
            bench.flow.step(bench.fetch, name=name)
    bench.flow.step(bench.fetch, name="a/b")


def single(bench: Bench) -> None:
    bench.flow.step(bench.fetch)
    assert len(bench.flow.definition.nodes) == 1
    assert decode(bench.flow.job().payload) == ([], {})


def largest(bench: Bench) -> None:
    for _ in range(10):
        bench.chain(100)
    assert len(bench.flow.definition.nodes) == 1000
    assert decode(bench.flow.job().payload) == ([], {})


DECLARED: dict[str, Callable[[Bench], object]] = {
    "cycle a>b>a": circle,
    "a depends on a": itself,
    "no steps": lambda bench: bench.flow.start(),
    "100 000 steps": many,
    "chain of depth 10 000": lambda bench: bench.chain(10_000),
    "fan-out of 1 000 000": lambda bench: bench.flow.map(bench.fetch, over=[0] * 1_000_000),
    "step depends on another tenant's job": theirs,
    "unknown step type": unknown,
    "timeout shorter than its steps' sum": too_slow,
    "name of step with / or ..": bad_names,
    "single step": single,
    "1000 steps, depth 100": largest,
}


def declared(text: str, bench: Bench) -> None:
    kind, sign, rest = text.partition(": ")
    if kind == "condition" and sign:
        bench.condition(rest)
    else:
        DECLARED[text](bench)


@pytest.mark.parametrize("case", CASES["workflow"], ids=lambda case: case["id"])
def test_a_graph_gets_its_verdict(case: dict[str, Any]) -> None:
    bench = Bench()
    with within_cpu(CPU_SECONDS):
        if case["expect"] == "accept":
            declared(case["input"], bench)
            return
        with pytest.raises(InvalidWorkflow) as refusal:
            declared(case["input"], bench)

    message = str(refusal.value)
    assert case["says"] in message
    assert refusal.value.field.startswith("flow")
    assert len(message) < 600
    assert message.isprintable()


def test_every_case_is_here() -> None:
    assert len(CASES["workflow"]) == 16
    assert all("says" in case for case in CASES["workflow"] if case["expect"] == "reject")
