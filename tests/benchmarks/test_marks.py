"""What is read out of the marks of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.figure import percentile
from benchmarks.marks import Mark, count, firings, per_second, read, tally, together, waits_ms
from benchmarks.peers.mark import BEGAN, ENDED, RECORD, TICKED


def began(number: int, at: float, *, sent_at: float = 0.0, process: int = 1) -> Mark:
    return Mark(BEGAN, number, sent_at, at, process)


def tick(number: int, at: float) -> Mark:
    return Mark(TICKED, number, 0.0, at, 1)


def test_a_record_that_was_cut_off_is_no_mark(tmp_path: Path) -> None:
    log = tmp_path / "marks"
    whole = RECORD.pack(BEGAN, 7, 1.5, 2.5, 42)

    assert (read(log), count(log)) == ([], 0)
    log.write_bytes(whole + whole[:10])

    assert read(log) == [Mark(BEGAN, 7, 1.5, 2.5, 42)]
    assert count(log) == 1


def test_doubles_and_losses_are_counted_apart() -> None:
    marks = [began(0, 1), began(1, 2), began(1, 3), began(1, 4), Mark(ENDED, 2, 0.0, 5, 1)]

    found = tally(marks, 4)

    assert (found.once, found.doubled, found.lost) == (2, 2, 2)


def test_a_rate_is_of_intervals() -> None:
    assert per_second([10.0, 10.5, 11.0]) == 2.0
    assert per_second([11.0, 10.0, 10.5]) == 2.0
    assert per_second([10.0]) is None
    assert per_second([10.0, 10.0]) is None


def test_two_processes_are_together_from_the_later_ones_first_job() -> None:
    alone = [began(number, number / 10) for number in range(10)]
    both = [began(10 + number, 1 + number / 20, process=1 + number % 2) for number in range(21)]

    assert together([*alone, *both], 2) == pytest.approx(20, rel=0.01)
    assert together(alone, 2) is None


def test_waits_are_milliseconds_in_order() -> None:
    marks = [began(0, 2.0, sent_at=1.0), began(1, 1.5, sent_at=1.25), Mark(ENDED, 0, 1.0, 9.0, 1)]

    assert waits_ms(marks) == [250.0, 1000.0]


def test_a_percentile_is_one_of_the_figures() -> None:
    hundred = [float(each) for each in range(1, 101)]

    assert [percentile(hundred, each) for each in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert [percentile([3.0], each) for each in (0, 50, 99)] == [3, 3, 3]
    assert percentile([1.0, 2.0], 50) == 1
    assert percentile([1.0, 2.0], 51) == 2
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


def test_a_tick_is_for_the_latest_slot_that_had_come() -> None:
    found = firings([tick(0, 60.5), tick(0, 121.0), tick(1, 59.98), tick(1, 120.0)], 2, [60, 120])

    assert [round(each, 2) for each in found.late] == [-0.02, 0.0, 0.5, 1.0]
    assert (found.missed, found.doubled) == (0, 0)


def test_a_second_tick_is_for_an_earlier_slot_without_one() -> None:
    found = firings([tick(0, 121.0), tick(0, 122.0)], 1, [60, 120])

    assert found.late == (1.0, 62.0)
    assert (found.missed, found.doubled) == (0, 0)


def test_a_tick_too_many_is_a_double_and_a_slot_without_one_is_missed() -> None:
    found = firings([tick(0, 60.1), tick(0, 60.2), tick(1, 59.0)], 2, [60])

    assert found.late == (pytest.approx(0.1),)
    assert (found.missed, found.doubled) == (1, 1)
