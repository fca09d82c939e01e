"""Statistics as charts want them, and what workers and schedulers add to them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.admin.health.stats import SeriesView, Stats, StatView
from mainspring.admin.views import to_json
from mainspring.errors import InvalidArgument, StoreUnavailable
from mainspring.model.run import Reason, Verdict
from mainspring.model.stats import BOUNDS, BUCKETS, OTHER, By, Counted, bucket, quantile
from mainspring.process.statistics import MOST_KEYS, StatisticsCollector
from mainspring.telemetry.events import JobsExpired, JobsQuarantined, RunEnded, SlotsFired
from tests.support.desk import DAY, HOUR, MINUTE, SECOND


def ended(task="t", verdict=Verdict.SUCCEEDED, took=SECOND, waited=SECOND, reason=None):
    return RunEnded(
        job_id=1,
        task=task,
        queue="q",
        attempt=1,
        verdict=verdict,
        took=took,
        waited=waited,
        delay=timedelta(),
        failure=None,
        reason=reason,
    )


@pytest.fixture
def tallier(desk):
    class Half:
        def fraction(self):
            return 0.5

    return StatisticsCollector(desk.store.stats, desk.clock, Half())


def test_a_quantile_is_within_its_bucket():
    histogram = [0] * BUCKETS
    for milliseconds in range(1, 1001):
        histogram[bucket(timedelta(milliseconds=milliseconds))] += 1

    assert quantile(histogram, 0.5) == pytest.approx(0.5, rel=0.1)
    assert quantile(histogram, 0.99) == pytest.approx(0.99, rel=0.1)
    assert quantile([0] * BUCKETS, 0.5) is None
    assert quantile([0] * (BUCKETS - 1) + [1], 0.5) == BOUNDS[-1]
    assert [bucket(timedelta(seconds=each)) for each in (0, 0.001, 0.0011, 10**6)] == [0, 0, 1, BUCKETS - 1]


def test_what_a_process_counts_becomes_a_series(desk, tallier):
    for _ in range(3):
        tallier.hear(ended(took=100 * timedelta(milliseconds=1)))
    tallier.hear(ended("u", Verdict.DEAD, reason=Reason.FAILED, waited=None))
    tallier.hear(ended("u", Verdict.CRASHED, reason=Reason.CRASHED))
    tallier.hear(JobsQuarantined(job_ids=(1,)))
    tallier.hear(JobsExpired(job_ids=(2, 3)))
    tallier.hear(SlotsFired(slot_at=desk.now, fired=5, skipped=2, late=MINUTE))
    assert desk.run(tallier.tick()) == timedelta(seconds=10)

    series = desk.run(Stats(desk.store, desk.clock).series(until=desk.now + MINUTE))
    view = to_json(SeriesView.of(series))

    assert (len(series.jobs), view["step_seconds"]) == (90, 120.0)
    assert (sum(view["runs"]), sum(view["failed"]), sum(view["died"])) == (5, 2, 4)
    assert (sum(view["fired"]), sum(view["skipped"]), sum(view["late"])) == (5, 2, 7)
    [point] = [each for each in series.jobs if each.count(Counted.SUCCEEDED)]
    assert StatView.of(point).took_p50 == pytest.approx(0.1, rel=0.5)
    assert sum(point.waits) == 4
    totals = desk.run(Stats(desk.store, desk.clock).totals(By.TASK, until=desk.now + MINUTE))
    assert [(each.key, each.count(Counted.SUCCEEDED)) for each in totals] == [("t", 3), ("u", 0)]


def test_what_could_not_be_added_is_added_later(desk, tallier, monkeypatch):
    async def away(tallies, *, at):
        raise StoreUnavailable("gone")

    tallier.hear(ended())
    with monkeypatch.context() as patched:
        patched.setattr(desk.store.stats, "add", away)
        with pytest.raises(StoreUnavailable):
            desk.run(tallier.flush())
    tallier.hear(ended())
    desk.run(tallier.flush())
    desk.run(tallier.flush())

    series = desk.run(Stats(desk.store, desk.clock).series(until=desk.now + MINUTE))
    assert sum(each.count(Counted.SUCCEEDED) for each in series.jobs) == 2


def test_more_tasks_than_can_be_told_apart_are_counted_as_one(desk, tallier):
    for number in range(MOST_KEYS + 50):
        tallier.hear(ended(f"task{number}"))
    tallier.hear(ended("task7"))
    desk.run(tallier.flush())

    totals = desk.run(Stats(desk.store, desk.clock).totals(By.TASK, until=desk.now + MINUTE))
    found = {each.key: each.count(Counted.SUCCEEDED) for each in totals}
    assert (len(found), found[OTHER], found["task7"]) == (MOST_KEYS + 1, 50, 2)


@pytest.mark.parametrize(
    ("length", "step", "expected"),
    [
        (3 * HOUR, None, 2 * MINUTE),
        (DAY, None, 20 * MINUTE),
        (DAY, MINUTE * 3, 10 * MINUTE),
        (90 * DAY, None, DAY),
        (3 * HOUR, MINUTE, MINUTE),
    ],
)
def test_steps_are_as_long_as_it_takes(desk, length, step, expected):
    series = desk.run(Stats(desk.store, desk.clock).series(since=desk.now - length, step=step))

    assert series.step == expected
    assert len(series.jobs) <= 500
    assert series.since <= desk.now - length
    assert series.until >= desk.now


@pytest.mark.parametrize(
    ("given", "field"),
    [({"since": HOUR}, "since"), ({"step": SECOND}, "step"), ({"since": -2 * DAY, "step": MINUTE}, "step")],
)
def test_what_cannot_be_answered_is_refused(desk, given, field):
    asked = {**given, **({"since": desk.now + given["since"]} if "since" in given else {})}
    with pytest.raises(InvalidArgument) as refused:
        desk.run(Stats(desk.store, desk.clock).series(**asked))

    assert refused.value.field == field
