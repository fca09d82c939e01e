"""Looks before the hints, against a queue whose dead rows cost a microsecond each."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from random import Random

import pytest

from mainspring.store.postgres.hints import EVERYTHING, Hints, Place, Stretch
from mainspring.testing import ManualClock

LEVEL = (1, 0)
TRIP = 0.0003
DEAD_ROW = 0.000001
CLAIM_EVERY = 0.05


class Queue:
    """Jobs come at a rate and are done at once; their rows stay until vacuum. Now and then one lies before
    the hints."""

    def __init__(self, rate: int) -> None:
        self.clock = ManualClock()
        self.hints = Hints(self.clock, enabled=True)
        self.rate = rate
        self.pinned_since = self.clock.now()
        self.left: list[Place] = []
        self.found: list[tuple[Place, datetime]] = []
        self.longest = 0.0
        self.spent = {"behind": 0.0, "before": 0.0}
        self.looks = 0
        self.stall = 0.0
        """Seconds for which the next look is held up by something else."""

    def claim(self) -> None:
        for stretch in self.hints.looks([1], [1]):
            self._look(stretch)

    def work(self, seconds: float) -> None:
        end = self.clock.now() + timedelta(seconds=seconds)
        while self.clock.now() < end:
            self.claim()
            self.clock.advance(timedelta(seconds=CLAIM_EVERY))

    def vacuum(self) -> None:
        self.pinned_since = self.clock.now()

    def lose(self, run_at: datetime) -> Place:
        self.left.append((run_at, 1))
        return self.left[-1]

    def _look(self, stretch: Stretch | None) -> None:
        began, now = self.clock.monotonic(), self.clock.now()
        newest = (now, int(self.clock.monotonic() * 1e6))
        after = self.hints.places[LEVEL] if stretch is None else stretch.after
        until = (stretch and stretch.until) or newest
        start = max(self.pinned_since, after[0]) if after else self.pinned_since
        walked = max((until[0] - start).total_seconds(), 0.0) * self.rate
        took = TRIP + walked * DEAD_ROW + self.stall
        self.stall = 0.0
        self.clock.advance(timedelta(seconds=took))
        self.longest = max(self.longest, took)
        self.spent["behind" if stretch is None else "before"] += took
        self.looks += 1
        found = [place for place in self.left if (after is None or place > after) and place <= until]
        self.left = [place for place in self.left if place not in found]
        self.found += [(place, self.clock.now()) for place in found]
        claimed = [(LEVEL, newest)] if until == newest else []
        self.hints.looked(stretch, began, claimed, full=False)


def test_where_vacuum_keeps_up_every_look_is_at_everything() -> None:
    queue = Queue(rate=0)
    queue.work(5)
    assert {stretch for _ in range(100) for stretch in _looks(queue)} == {EVERYTHING}


def test_one_look_after_the_other_is_behind_the_hints_but_for_a_twentieth_of_the_time() -> None:
    queue = Queue(rate=0)
    queue.work(5)
    seen = Counter(stretch for _ in range(1000) for stretch in _looks(queue, apart=0.0))
    assert seen == {EVERYTHING: pytest.approx(1000 / 20, rel=0.1), None: pytest.approx(1000, rel=0.1)}


def test_the_first_look_of_all_is_at_everything() -> None:
    assert _looks(Queue(rate=0)) == [EVERYTHING]


@pytest.mark.parametrize("rate", [200, 2000, 10_000])
def test_a_snapshot_held_for_long_makes_no_look_long(rate: int) -> None:
    queue = Queue(rate)
    queue.work(300)
    queue.longest, queue.spent = 0.0, {"behind": 0.0, "before": 0.0}
    queue.work(300)

    assert queue.longest < 0.02, "six million dead rows are six seconds"
    assert queue.spent["before"] < 300 * 0.1


def test_what_is_put_back_is_found_at_once_where_it_is_near_and_in_turn_where_it_is_not() -> None:
    queue, random = Queue(rate=2000), Random(7)
    queue.work(600)

    queue.lose(queue.clock.now() - timedelta(milliseconds=100))
    queue.hints.put_back()
    queue.work(1)
    assert not queue.left

    for _ in range(20):
        queue.lose(queue.clock.now() - timedelta(seconds=random.uniform(1, 600)))
    queue.lose(queue.clock.now() - timedelta(days=1000))
    queue.work(300)
    assert not queue.left


def test_a_worker_that_starts_under_an_old_snapshot_learns_to_take_short_looks() -> None:
    queue = Queue(rate=2000)
    queue.clock.advance(timedelta(hours=1))
    queue.work(1)
    assert queue.longest > 7, "once it has to walk over everything"

    queue.work(1000)
    queue.longest = 0.0
    queue.work(100)
    assert queue.longest < 0.02


def test_once_vacuum_has_passed_one_look_is_at_everything_again() -> None:
    queue = Queue(rate=2000)
    queue.work(300)
    queue.rate = 0
    queue.vacuum()
    queue.work(120)

    assert {stretch for _ in range(100) for stretch in _looks(queue)} == {EVERYTHING}


def test_a_look_that_is_long_once_cuts_nothing() -> None:
    queue = Queue(rate=0)
    queue.work(5)
    for _ in range(20):
        queue.stall = 0.25
        queue.work(1)

    assert {stretch for _ in range(100) for stretch in _looks(queue)} == {EVERYTHING}


def test_what_is_put_back_while_a_look_is_under_way_is_still_owed() -> None:
    queue = Queue(rate=0)
    queue.work(5)
    queue.hints.put_back()
    for stretch in queue.hints.looks([1], [1]):
        queue.hints.put_back()
        queue._look(stretch)

    assert list(queue.hints.looks([1], [1])) == [EVERYTHING]


def test_where_a_piece_was_full_the_hint_goes_back_so_that_the_rest_comes_in_order() -> None:
    queue = Queue(rate=0)
    queue.work(5)
    start = queue.clock.now() - timedelta(hours=1)
    piece = Stretch(after=(start, 0), until=(start + timedelta(minutes=1), 0))
    found = (start + timedelta(seconds=30), 7)

    queue.hints.looked(piece, queue.clock.monotonic(), [(LEVEL, found)], full=False)
    assert queue.hints.places[LEVEL] > found
    queue.hints.looked(piece, queue.clock.monotonic(), [(LEVEL, found)], full=True)
    assert queue.hints.places[LEVEL] == found


def test_other_queues_or_tasks_than_before_are_looked_for_from_the_beginning() -> None:
    queue = Queue(rate=0)
    queue.work(5)
    assert queue.hints.floor is not None

    assert list(queue.hints.looks([1, 2], [1])) == [EVERYTHING]
    assert queue.hints.floor is None


def test_the_order_of_queues_is_no_matter() -> None:
    queue = Queue(rate=0)
    list(queue.hints.looks([1, 2], [1]))
    queue.work(5)
    list(queue.hints.looks([1, 2], [1]))
    queue.claim()
    first = list(queue.hints.looks([1, 2], [1]))
    assert list(queue.hints.looks([2, 1], [1])) == first


def test_without_hints_every_look_is_at_everything() -> None:
    hints = Hints(ManualClock(), enabled=False)
    for _ in range(3):
        assert list(hints.looks([1], [1])) == [EVERYTHING]
        hints.looked(EVERYTHING, 0.0, [(LEVEL, (ManualClock().now(), 1))], full=False)
    assert hints.places == {}


def _looks(queue: Queue, apart: float = CLAIM_EVERY) -> list[Stretch | None]:
    """Where a claim looks, done."""
    seen = []
    queue.clock.advance(timedelta(seconds=apart))
    for stretch in queue.hints.looks([1], [1]):
        seen.append(stretch)
        queue._look(stretch)
    return seen
