"""A supervisor, one look at a time: what died is started again, ever more slowly, and all end together."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring.entropy import SeededEntropy
from mainspring.process.supervisor import ABORT_WITHIN, LONGEST_PAUSE, Supervisor, exit_code, pause_after
from mainspring.telemetry.events import Telemetry, WorkerEnded, WorkerStarted
from mainspring.telemetry.log import log_event
from mainspring.testing.clock import ManualClock
from tests.engine.kit import Heard

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
GRACE = timedelta(seconds=50)


class Fake:
    """A process that ends when it is told to."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self.told: list[str] = []

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.told.append("terminate")

    def kill(self) -> None:
        self.told.append("kill")
        self.code = -9


class Shift:
    """A supervisor and every process it has started."""

    def __init__(self, clock: ManualClock, run: Any, *, count: int = 2, burst: bool = False) -> None:
        self.clock, self._run = clock, run
        self.heard = Heard()
        self.started: list[tuple[int, Fake]] = []
        self.supervisor = Supervisor(
            count,
            self._start,
            grace=GRACE,
            burst=burst,
            clock=clock,
            entropy=SeededEntropy(1),
            telemetry=Telemetry(self.heard, log_event),
        )

    def _start(self, number: int) -> Fake:
        self.started.append((number, Fake(100 + len(self.started))))
        return self.started[-1][1]

    def look(self) -> timedelta:
        pause: timedelta = self._run(self.supervisor.tick())
        return pause

    def last(self, number: int = 1) -> Fake:
        return [fake for place, fake in self.started if place == number][-1]


@pytest.fixture
def shift(clock: ManualClock, run: Any) -> Shift:
    return Shift(clock, run)


def test_every_place_is_filled_at_once(shift: Shift) -> None:
    shift.look()

    assert [number for number, _ in shift.started] == [1, 2]
    assert [event.pid for event in shift.heard.of(WorkerStarted)] == [100, 101]


def test_one_that_dies_is_replaced_after_a_pause_and_the_others_are_left_alone(shift: Shift) -> None:
    shift.look()
    shift.last(2).code = -9
    pause = shift.look()
    assert len(shift.started) == 2
    assert SECOND / 2 <= pause <= SECOND

    shift.clock.advance(pause)
    shift.look()

    assert [number for number, _ in shift.started] == [1, 2, 2]
    [ended] = shift.heard.of(WorkerEnded)
    assert (ended.number, ended.pid, ended.code, ended.again_in) == (2, 101, -9, pause)
    assert shift.last(1).told == []


def test_pauses_double_while_it_keeps_dying_and_begin_anew_after_a_healthy_minute(
    clock: ManualClock, run: Any
) -> None:
    shift = Shift(clock, run, count=1)
    pauses = []
    shift.look()
    for lives in [0, 1, 1, 1, 1, 1, 1, 1, 59, 60, 1]:
        clock.advance(lives * SECOND)
        shift.last().code = 1
        shift.look()
        pauses.append(shift.heard.of(WorkerEnded)[-1].again_in or timedelta())
        clock.advance(pauses[-1] + timedelta(milliseconds=1))  # not a rounding error too early
        shift.look()

    for place, (pause, longest) in enumerate(
        zip(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2], strict=True)
    ):
        assert longest * SECOND / 2 <= pause <= longest * SECOND, place


def test_a_stop_reaches_all_and_nothing_is_started_again(shift: Shift) -> None:
    shift.look()
    shift.supervisor.stop()
    shift.last(1).code = 0
    shift.look()
    assert not shift.supervisor.done
    shift.last(2).code = 0
    shift.look()

    assert shift.supervisor.done
    assert shift.supervisor.code == 0
    assert [fake.told for _, fake in shift.started] == [["terminate"], ["terminate"]]
    assert len(shift.started) == 2


def test_a_stop_during_a_pause_forgets_what_was_to_be_started(clock: ManualClock, run: Any) -> None:
    shift = Shift(clock, run, count=1)
    shift.look()
    shift.last().code = 1
    shift.look()

    shift.supervisor.stop()
    clock.advance(MINUTE)
    shift.look()

    assert shift.supervisor.done
    assert len(shift.started) == 1


def test_a_second_stop_is_passed_on(shift: Shift) -> None:
    shift.look()
    shift.supervisor.stop()
    shift.supervisor.stop()

    assert shift.last(1).told == ["terminate", "terminate"]


def test_what_does_not_end_soon_after_a_second_stop_is_killed(shift: Shift) -> None:
    shift.look()
    shift.supervisor.stop()
    shift.supervisor.stop()
    assert shift.look() == min(ABORT_WITHIN, GRACE)
    shift.clock.advance(ABORT_WITHIN)
    shift.look()

    assert shift.last(1).told == ["terminate", "terminate", "kill"]


def test_what_does_not_end_within_the_grace_is_killed_and_told_by_the_exit_code(shift: Shift) -> None:
    shift.look()
    shift.supervisor.stop()
    shift.last(1).code = 0
    assert shift.look() == GRACE

    shift.clock.advance(GRACE - timedelta(milliseconds=1))
    shift.look()
    assert shift.last(2).told == ["terminate"]
    shift.clock.advance(timedelta(milliseconds=1))
    shift.look()
    shift.look()

    assert shift.last(2).told == ["terminate", "kill"]
    assert shift.supervisor.done
    assert shift.supervisor.code == 128 + 9


def test_a_worker_that_can_never_start_ends_the_supervisor(shift: Shift) -> None:
    shift.look()
    shift.last(1).code = 2
    shift.look()
    assert shift.last(2).told == ["terminate"]
    shift.last(2).code = 0
    shift.look()

    assert shift.supervisor.done
    assert shift.supervisor.code == 2


def test_once_one_was_healthy_a_bad_start_is_tried_again(clock: ManualClock, run: Any) -> None:
    shift = Shift(clock, run, count=1)
    shift.look()
    clock.advance(MINUTE)
    shift.last().code = -9
    clock.advance(shift.look())
    shift.look()
    shift.last().code = 2
    shift.look()

    assert not shift.supervisor.done
    assert shift.heard.of(WorkerEnded)[-1].again_in is not None


def test_in_a_burst_those_that_are_done_stay_away(clock: ManualClock, run: Any) -> None:
    shift = Shift(clock, run, burst=True)
    shift.look()
    shift.last(1).code = 0
    shift.last(2).code = 1
    clock.advance(shift.look())
    shift.look()
    assert [number for number, _ in shift.started] == [1, 2, 2]
    shift.last(2).code = 0
    shift.look()

    assert shift.supervisor.done
    assert shift.supervisor.code == 0


def test_pauses_never_exceed_their_longest() -> None:
    assert pause_after(10_000, 0.999999) <= LONGEST_PAUSE
    assert pause_after(1, 0.0) == SECOND / 2


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_a_signal_becomes_what_a_shell_says(status: int, code: int) -> None:
    assert exit_code(status) == code
