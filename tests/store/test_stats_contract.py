"""The contract of statistics, on every store."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.model.stats import BUCKETS, PLACES, SPANS, By, Counted, StatFilter, Tally
from tests.support.desk import DAY, HOUR, MINUTE


def tally(task="t", queue="q", *, waits=0, tooks=0, **counts):
    """`waits` and `tooks` are the one bucket in which everything is."""
    numbers, total = [0] * PLACES, sum(counts.values())
    for name, count in counts.items():
        numbers[Counted[name.upper()]] = count
    histograms = [tuple(total if n == place else 0 for n in range(BUCKETS)) for place in (waits, tooks)]
    return Tally(task=task, queue=queue, counts=tuple(numbers), waits=histograms[0], tooks=histograms[1])


@pytest.fixture
def add(desk):
    return lambda *tallies: desk.run(desk.store.stats.add(tallies, at=desk.clock.stamp()))


@pytest.fixture
def stats(desk):
    def asked(since, until, step=MINUTE, span=1, **which):
        chosen = StatFilter(since=since, until=until, step=step, span=span, **which)
        return desk.run(desk.store.stats.find(chosen))

    return asked


def test_what_two_processes_add_is_summed_up(desk, add, stats):
    start = desk.now.replace(second=0, microsecond=0)
    add(tally(succeeded=3, waits=2, tooks=5), tally("u", failed=1), tally("", "", fired=9))
    add(tally(succeeded=4, dead=1, waits=2, tooks=6))
    desk.advance(MINUTE)
    add(tally(succeeded=1))

    first, second = stats(start, start + HOUR)

    assert (first.at, second.at) == (start, start + MINUTE)
    assert first.count(Counted.SUCCEEDED) == 7
    assert first.count(Counted.FAILED, Counted.DEAD) == 2
    assert (first.waits[2], first.waits[0], first.tooks[5], first.tooks[6]) == (8, 1, 3, 5)
    assert second.count(*Counted) == 1
    [fleet] = stats(start, start + HOUR, fleet=True)
    assert (fleet.count(Counted.FIRED), fleet.count(Counted.SUCCEEDED)) == (9, 0)


def test_statistics_are_cut_by_task_and_queue(desk, add, stats):
    start = desk.now.replace(second=0, microsecond=0)
    add(tally("a", "q", succeeded=1), tally("a", "r", succeeded=2), tally("b", "r", succeeded=4))

    def counted(**which):
        return {each.key: each.count(Counted.SUCCEEDED) for each in stats(start, start + HOUR, **which)}

    assert counted() == {"": 7}
    assert counted(task="a") == {"": 3}
    assert counted(queue="r") == {"": 6}
    assert counted(by=By.TASK) == {"a": 3, "b": 4}
    assert counted(by=By.QUEUE, task="a") == {"q": 1, "r": 2}


@pytest.mark.parametrize("span", SPANS)
def test_every_span_has_the_same_sum(desk, add, stats, span):
    add(tally(succeeded=2))
    desk.advance(timedelta(days=1, minutes=3))
    add(tally(succeeded=3))

    [one] = stats(desk.now - 3 * DAY, desk.now + DAY, step=4 * DAY, span=span)

    assert one.count(Counted.SUCCEEDED) == 5


def test_short_spans_are_dropped_first(desk, add, stats):
    add(tally(succeeded=1))
    desk.advance(2 * DAY)
    gone = desk.run(desk.store.stats.prune(keep=DAY, at=desk.clock.stamp()))

    since = desk.now - 3 * DAY
    assert gone == 2  # the task's, and the sum of all tasks
    assert [len(stats(since, desk.now, span=span, step=HOUR)) for span in SPANS] == [0, 1, 1, 1]


def test_a_mark_of_the_log_is_the_fleets_alone(desk, add, stats):
    start = desk.now.replace(second=0, microsecond=0)
    add(tally(succeeded=1), tally("", "", fired=1))

    [job_row] = stats(start, start + HOUR)
    [fleet] = stats(start, start + HOUR, fleet=True)

    assert job_row.mark is None
    assert fleet.mark is None or fleet.mark > 0
