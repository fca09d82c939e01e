"""The arithmetic of very many schedules: nothing is lost in it, and small cases come out as by hand."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.lines import chart
from benchmarks.scale import page
from benchmarks.scale.arrivals import Due, day, seconds, share
from benchmarks.scale.curve import Curve
from benchmarks.scale.lateness import by_minute, samples, summed
from benchmarks.scale.mixture import Burst, Spread, apportioned, mixture
from benchmarks.scale.simulation import Overrun, Primary, simulate
from benchmarks.scale.sizing import needed, outcome

FAST = Primary(fires=60_000, runs=25_000, opens=0.001)


@pytest.mark.parametrize("spread", [Spread.NONE, Spread.WINDOW])
@pytest.mark.parametrize("schedules", [1, 999, 1_000_003])
def test_every_schedule_has_a_trigger(schedules: int, spread: Spread) -> None:
    bursts = mixture(schedules, spread)

    assert sum(burst.schedules for burst in bursts) == schedules
    assert len({(burst.cron, burst.tz, burst.window) for burst in bursts}) == len(bursts)


def test_parts_are_as_heavy_as_their_weights_and_add_up() -> None:
    assert apportioned(10, [1, 1, 1]) == [4, 3, 3]
    assert apportioned(7, [60, 30, 10]) == [4, 2, 1]


def test_a_hashed_trigger_names_the_second_that_is_its_own() -> None:
    bursts = [burst for burst in mixture(1_000_000, Spread.HASHED) if burst.cron.startswith("7 ")]
    five = next(burst for burst in bursts if burst.cron.startswith("7 3,8,13,"))

    assert seconds(five.cron, five.tz)[:2] == (3 * 60 + 7, 8 * 60 + 7)
    assert len(seconds(five.cron, five.tz)) == 24 * 12


def test_slots_are_the_triggers_own() -> None:
    # 02:00 in New York is 07:00 in UTC.
    assert seconds("0 2 * * *", "America/New_York") == (7 * 3600,)
    assert seconds("0 0 2 * *", "UTC") == ()
    assert len(seconds("*/15 * * * *", "UTC")) == 96


def test_shard_sets_add_up_and_the_first_is_the_largest() -> None:
    bursts, sets = mixture(10_007), 7
    whole = sum(due.slots for due in day(bursts))
    parts = [sum(due.slots for due in day(bursts, sets, number)) for number in range(sets)]

    assert sum(parts) == whole
    assert parts[0] == max(parts)
    assert [share(10, 3, number) for number in range(3)] == [4, 3, 3]


@pytest.mark.parametrize("spread", list(Spread))
def test_every_slot_is_fired_once_and_every_job_run_once(spread: Spread) -> None:
    # Some hours of it: a day in steps of a fifth of a second is long.
    bursts = [burst for burst in mixture(300_000, spread) if burst.tz == "UTC"][:1500]
    arrivals = [due for due in day(bursts) if due.second < 3 * 3600]
    slots = sum(due.slots for due in arrivals)

    passed = simulate(arrivals, FAST)

    assert passed.due.total == slots
    for curve in (passed.fired, passed.wanted, passed.run):
        assert curve.total == pytest.approx(slots, rel=1e-9)
    assert passed.busy == pytest.approx(sum(FAST.seconds(due) for due in arrivals), rel=1e-9)


def test_nothing_is_run_before_it_was_fired_nor_fired_before_it_was_due() -> None:
    passed = simulate([Due(0, 0, 5000), Due(60, 30, 8000)], Primary(1000, 2000))
    numbers = [float(number) for number in range(0, 13_000, 50)]

    due, fired, run = (list(curve.when(numbers)) for curve in (passed.due, passed.fired, passed.run))

    assert all(first <= then + 1e-6 for first, then in zip(due, fired, strict=True))
    assert all(first <= then + 0.2 for first, then in zip(fired, run, strict=True))


def test_a_herd_by_hand() -> None:
    """100 slots, a hundredth of a second each to fire and to run, half of the time for either: the first step
    has nothing to run yet, and the last one nothing to fire."""
    passed = simulate([Due(0, 0, 100)], Primary(fires=100, runs=100), step=0.1)
    late = summed(list(samples(passed.due, passed.fired)))

    assert passed.fired.times[-1] == pytest.approx(2.0)
    assert passed.busy == pytest.approx(2.0)
    assert late.most == pytest.approx(1.9)
    assert late.p50 == pytest.approx(0.9, abs=0.02)
    assert passed.run.totals[5] == pytest.approx(20)
    assert [round(each) for each in passed.depth] == []  # it was over before the minute was


def test_a_trigger_costs_something_however_few_schedules_it_has() -> None:
    passed = simulate([Due(0, 0, 10, triggers=10)], Primary(1000, 1000, opens=0.1), step=0.1)

    assert passed.busy == pytest.approx(10 * 0.1 + 10 / 1000 + 10 / 1000)
    assert summed(list(samples(passed.due, passed.fired))).most == pytest.approx(1.1, abs=0.1)


def test_a_window_spreads_the_runs() -> None:
    passed = simulate([Due(0, 60, 6000)], Primary(100_000, 100_000))

    assert list(passed.wanted.when([3000.0])) == [pytest.approx(30, abs=0.3)]
    assert list(passed.run.when([3000.0])) == [pytest.approx(30, abs=0.5)]
    assert summed(list(samples(passed.wanted, passed.run))).most < 0.5
    assert max(passed.depth) < 100


def test_what_a_primary_can_never_do_is_said() -> None:
    with pytest.raises(Overrun):
        simulate([Due(0, 0, 10**9)], Primary(1000, 1000), step=60)
    assert outcome(10_000_000, Spread.NONE, Primary(2000, 2000), 1) is None


def test_lateness_is_told_for_the_minute_in_which_it_was_due() -> None:
    first, then = Curve(), Curve()
    first.jump(30, 100)
    first.jump(90, 100)
    then.add(30, 0)
    then.add(40, 100)
    then.add(90, 0)
    then.add(91, 100)

    one, two = by_minute(list(samples(first, then)), 2)

    assert (one.most, two.most) == (pytest.approx(10), pytest.approx(1))
    assert summed(list(samples(first, then))).p50 == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("guess", [1, 5, 40, 41, 500])
def test_the_fewest_sets_are_found_from_any_guess(guess: int) -> None:
    asked: list[int] = []
    assert needed(lambda sets: asked.append(sets) or sets >= 41, guess) == 41
    assert min(asked) >= 1


def test_a_chart_is_well_formed_and_draws_every_line() -> None:
    drawn = chart("Late & later", "time", {"a<b": [(0, 0), (5, 12)], "c": [(0, 3)]}, marks={0: "00:00"})

    lines = ElementTree.fromstring(drawn).findall(".//{*}polyline")
    assert len(lines) == 2
    assert lines[0].get("points", "").count(",") == 2


def test_the_page_and_its_pictures_say_what_was_measured() -> None:
    result = page.read(page.newest())
    text = page.PAGE.read_text(encoding="utf-8")

    assert page.filled(text, result) == text, "python -m benchmarks.scale --from RESULTS --page"
    for name, picture in page.pictures(result).items():
        assert (page.IMAGES / name).read_text(encoding="utf-8") == picture
        assert name in text


def test_what_was_measured_is_whole() -> None:
    result = page.read(page.newest())

    assert {row["schedules"] for row in result["simulated"]} == {10_000_000, 100_000_000}
    assert {row["spread"] for row in result["simulated"]} == {each.value for each in Spread}
    assert result["measured"]["burst: slots"] > 0


def test_bursts_share_a_trigger() -> None:
    assert Burst("0 * * * *", "UTC", 120_000, 0) in mixture(1_000_000)
