"""How fast the machine is, and waiting until it is."""

from __future__ import annotations

import os

import pytest

from benchmarks import noise
from benchmarks.noise import Lulls, Noise, pace_ms


@pytest.fixture
def paces(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the loop will take, one after the other; the last for ever."""
    coming: list[float] = []

    def next_pace() -> float:
        return coming.pop(0) if len(coming) > 1 else coming[0]

    monkeypatch.setattr(noise, "pace_ms", next_pace)
    monkeypatch.setattr(noise, "APART", 0.0)
    return coming


def test_the_pace_is_a_time_and_leaves_the_process_on_its_cores() -> None:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None

    assert pace_ms() > 0
    assert cores is None or os.sched_getaffinity(0) == cores


def test_a_lull_is_when_the_loop_takes_about_as_long_as_at_its_best(paces: list[float]) -> None:
    paces += [10.0] * noise.SAMPLES + [18.0, 12.0, 11.0, 30.0]
    lulls = Lulls(patience=60)

    lulls.wait()

    assert paces == [30.0], "it went on at 11, and not before"


def test_a_machine_that_turns_out_to_be_faster_is_waited_for(paces: list[float]) -> None:
    paces += [20.0] * noise.SAMPLES + [10.0, 20.0, 10.5, 30.0]
    lulls = Lulls(patience=60)
    lulls.wait()

    lulls.wait()

    assert paces == [30.0]


def test_nobody_waits_for_ever_nor_without_patience(paces: list[float]) -> None:
    paces += [10.0] * noise.SAMPLES + [30.0]

    Lulls(patience=0.05).wait()
    assert paces == [30.0]

    paces.clear()  # whoever asks now would fail
    Lulls().wait()


def test_what_is_told_of_a_measurement_is_the_pace_before_and_after_it(paces: list[float]) -> None:
    paces += [10.0, 14.0]

    assert Noise().pace == 12.0
