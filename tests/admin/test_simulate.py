"""Simulations say what the real scheduler does, and counting by minute says what listing says."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from mainspring.admin.simulation.load import MINUTE, load
from mainspring.admin.simulation.simulate import Fate, Horizon, Outage, Outcome, simulate
from mainspring.admin.simulation.views import load_lines, notes, outcome_in_words
from mainspring.model.schedule import Disposition, Misfire, NewSchedule, Overlap, Schedule, Skipped
from mainspring.scheduler.scheduler import Scheduler
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import START
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every, Instants
from mainspring.triggers.rolled import Roll, Rolled
from mainspring.triggers.trigger import Bounded
from tests.support.desk import Desk

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
MINUTELY = Cron("* * * * *", "UTC")
CALENDAR = Calendar("days", 1, tz="UTC", holidays={(START + DAY).date(): "off"})


def new(name: str = "s", trigger: Any = MINUTELY, **fields: Any) -> NewSchedule:
    return NewSchedule(name=name, task="t", trigger=trigger.encode(), payload=b"{}", **fields)


def at(minutes: float) -> datetime:
    return START + minutes * MINUTE


def horizon(minutes: float, *outages: tuple[float, float], **fields: Any) -> Horizon:
    down = tuple(Outage(start=at(a), end=at(b)) for a, b in outages)
    return Horizon(start=at(0.5), end=at(minutes), outages=down, **fields)


def listed(schedule: NewSchedule | Schedule, within: Horizon, limit: int = 100_000) -> list[Outcome]:
    return list(simulate([schedule], within, {("days", 1): CALENDAR}, limit=limit).outcomes)


def words(schedule: NewSchedule | Schedule, within: Horizon) -> list[str]:
    return [outcome_in_words(each) for each in listed(schedule, within)]


def test_without_trouble_every_slot_fires_when_it_comes() -> None:
    found = listed(new(), horizon(4))

    assert [(each.slot_at, each.fate, each.late) for each in found] == [
        (at(n), Fate.FIRED, timedelta()) for n in (1, 2, 3)
    ]


def test_the_first_moment_counts_and_the_last_does_not() -> None:
    found = listed(new(), Horizon(start=at(1), end=at(3)))

    assert [each.slot_at for each in found] == [at(1), at(2)]


def test_after_an_outage_the_newest_slot_stands_for_all() -> None:
    assert words(new(), horizon(6, (1.5, 4.5))) == [
        "fired",
        "coalesced into 2030-01-01 00:04:00Z",
        "coalesced into 2030-01-01 00:04:00Z",
        "fired, 30s late, for 2 missed before it too",
        "fired",
    ]


def test_after_an_outage_all_fire_one_by_one() -> None:
    found = listed(new(misfire=Misfire.ALL), horizon(6, (1.5, 4.5)))

    assert [each.fate for each in found] == [Fate.FIRED] * 5
    assert [each.decided_at - at(4.5) for each in found[1:4]] == [
        n * timedelta(milliseconds=100) for n in range(3)
    ]


def test_after_an_outage_nothing_is_made_up_for_with_skip() -> None:
    assert words(new(misfire=Misfire.SKIP), horizon(6, (1.5, 4.5)))[1:4] == ["skipped: misfire"] * 3


def test_the_catch_up_window_and_the_breaker_have_their_say() -> None:
    short = words(new(misfire=Misfire.ALL, catch_up=2 * MINUTE), horizon(8, (1.5, 6.5)))
    assert short[1:6] == ["skipped: too_late"] * 3 + ["fired, 1m30s late", "fired, 30s late"]
    slow = horizon(8, (1.5, 6.5), breaker=2, duration=HOUR)
    tripped = words(new(misfire=Misfire.ALL), slow)
    assert tripped == ["fired", "fired, 4m30s late"] + ["skipped: breaker"] * 4 + ["fired"]
    bounded = words(new(misfire=Misfire.ALL, catch_up=DAY), slow)
    assert [word.split(",")[0] for word in bounded] == ["fired"] * 7, (
        "an explicit catch_up is never overridden"
    )


def test_caught_up_slots_wait_for_each_other() -> None:
    def starts(**policies: Any) -> list[float]:
        found = listed(new(misfire=Misfire.ALL, **policies), horizon(8, (1.5, 5.5), duration=10 * MINUTE))
        assert {each.fate for each in found} == {Fate.FIRED}
        return [round((each.runs_at - START) / MINUTE) for each in found if each.runs_at is not None]

    one_by_one = [1, 11, 21, 31, 41, 51, 61]
    for overlap in (Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.QUEUE_ALL, Overlap.REPLACE):
        assert starts(overlap=overlap) == one_by_one, "and fresh ones queue behind them"
    assert starts(overlap=Overlap.ALLOW, overlap_limit=2) == [1, 6, 11, 16, 21, 26, 31]


def test_a_slot_on_a_holiday_is_skipped() -> None:
    daily = Rolled(Cron("0 9 * * *", "UTC"), CALENDAR, Roll.SKIP)

    assert words(new(trigger=daily), Horizon(start=START, end=START + 3 * DAY)) == [
        "fired",
        "skipped: calendar",
        "fired",
    ]


def test_after_max_fires_it_is_exhausted() -> None:
    assert words(new(max_fires=2), horizon(5)) == ["fired", "fired"] + ["skipped: exhausted"] * 2


def test_the_nights_on_which_clocks_change_are_noted() -> None:
    nightly = new(trigger=Cron("30 2 * * *", "Europe/Berlin"))
    spring = Horizon(start=datetime(2030, 3, 30, tzinfo=UTC), end=datetime(2030, 4, 1, tzinfo=UTC))

    assert [each.note for each in listed(nightly, spring)] == [None, "gap: shifted"]


OVERLAPS = {
    Overlap.SKIP: ["fired", "skipped: overlap", "skipped: overlap", "fired", "skipped: overlap"],
    Overlap.QUEUE_ONE: ["fired", "fired", "skipped: overlap", "fired", "skipped: overlap"],
    Overlap.QUEUE_ALL: ["fired"] * 5,
    Overlap.ALLOW: ["fired", "fired", "skipped: overlap", "fired", "fired"],
    Overlap.REPLACE: ["fired"] * 5,
}


@pytest.mark.parametrize("overlap", Overlap)
def test_with_a_duration_overlap_has_its_say(overlap: Overlap) -> None:
    schedule = new(overlap=overlap, overlap_limit=2)
    within = horizon(6, duration=2.5 * MINUTE)

    assert words(schedule, within) == OVERLAPS[overlap]
    assert words(schedule, horizon(6)) == ["fired"] * 5


def test_queued_jobs_start_one_after_the_other() -> None:
    found = listed(new(overlap=Overlap.QUEUE_ALL), horizon(4, duration=2 * MINUTE))

    assert [each.runs_at for each in found] == [at(1), at(3), at(5)]


def test_the_list_is_cut_and_says_so() -> None:
    within = Horizon(start=START, end=START + 3650 * DAY)
    done = simulate([new(f"s{n}") for n in range(3)], within, limit=5)

    assert (len(done.outcomes), done.cut) == (5, True)
    assert notes(done, within, jitter=True) == [
        "cut after 5 slots, at 2030-01-01 00:01:00Z: see --limit, --schedule, --load",
        "overlap is left out, for nobody knows how long jobs run: see --assume-duration",
        "the random delay of jitter is left out",
    ]


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("trigger", [MINUTELY, Every(20 * SECOND), Cron("*/7 * * * *", "UTC")])
def test_the_real_scheduler_does_as_simulated(desk: Desk, misfire: Misfire, trigger: Any) -> None:
    schedule = new(
        trigger=trigger, misfire=misfire, catch_up=20 * MINUTE, overlap=Overlap.ALLOW, max_fires=40
    )
    within = Horizon(
        start=START + timedelta(microseconds=1), end=at(60), outages=(Outage(start=at(10), end=at(40.5)),)
    )
    first = trigger.next_after(START)
    real = {"next_at": first, "following_at": trigger.next_after(first), "overlap_limit": 10_000}
    desk.schedule_all(msgspec.structs.replace(schedule, **real))
    scheduler = Scheduler(desk.store, desk.clock, Telemetry(), poll=SECOND, chunk=10)
    while desk.now < at(60) - 10 * SECOND:
        desk.advance(10 * SECOND)
        if at(10) <= desk.now < at(40.5):
            continue
        while desk.due():
            desk.run(scheduler.tick())

    ledger = [(row.slot_at, row.disposition.value, row.reason) for row in reversed(desk.slots(limit=1000))]

    found = [each for each in listed(schedule, within) if each.into is None]
    assert [(each.slot_at, each.fate.value, each.reason) for each in found] == ledger
    assert {row[1] for row in ledger} >= {Disposition.FIRED.value}


def test_a_paused_schedule_of_the_store_stays_paused(desk: Desk) -> None:
    desk.schedule_all(new("p"), new("q"))
    desk.pause("p")
    desk.skip(1, "q")

    assert words(desk.the_schedule("p"), horizon(3)) == ["skipped: paused"] * 2
    assert words(desk.the_schedule("q"), horizon(3)) == ["skipped: requested", "fired"]
    assert load([desk.the_schedule("p"), desk.the_schedule("q")], horizon(3)).total == 1


# Counting by minute.

SPRING = datetime(2030, 3, 25, 7, 13, tzinfo=UTC)
WEEKDAYS = Calendar("days", 1, tz="Europe/Berlin", holidays={(SPRING + 3 * DAY).date(): "off"})
COUNTED = {
    "minutely": MINUTELY,
    "berlin": Cron("*/7 1-4 * * *", "Europe/Berlin"),
    "seconds": Cron("*/20 */10 * * * *", "America/New_York"),
    "both": Cron("30 2 * * 0", "Europe/Berlin", gap="skip", fold="both"),
    "beirut": Cron("15 0,12 * * *", "Asia/Beirut"),
    "kathmandu": Cron("50 23 1-7 * 1", "Asia/Kathmandu"),
    "last": Cron("0 6 L * *", "Asia/Tokyo"),
    "daily": Cron("@daily", "Europe/Berlin"),
    "odd": Every(timedelta(seconds=421)),
    "rare": Every(timedelta(hours=31)),
    "bounded": Bounded(Cron("*/9 * * * *", "UTC"), SPRING + 30 * HOUR, SPRING + 200 * HOUR),
    "instants": Instants((SPRING + DAY, SPRING + 2 * DAY)),
    "work": Rolled(Cron("5 * * * *", "Europe/Berlin"), WEEKDAYS, Roll.SKIP),
    "elsewhere": Rolled(Cron("5 * * * *", "Asia/Tokyo"), WEEKDAYS, Roll.SKIP),
    "next": Rolled(Cron("0 9 * * *", "Europe/Berlin"), WEEKDAYS, Roll.NEXT),
}


def check_counted(schedules: list[NewSchedule], within: Horizon) -> None:
    calendars = {("days", 1): WEEKDAYS}
    each_minute: Counter[datetime] = Counter()
    for outcome in simulate(schedules, within, calendars, limit=1_000_000).outcomes:
        if outcome.runs_at is not None:
            each_minute[outcome.runs_at.replace(second=0, microsecond=0)] += 1

    counted = load(schedules, within, calendars, peaks=100_000)

    assert {peak.minute: peak.jobs for peak in counted.peaks} == each_minute
    assert (counted.total, counted.busy_minutes) == (each_minute.total(), len(each_minute))
    for hour, jobs in enumerate(counted.by_hour):
        assert jobs == max((n for at, n in each_minute.items() if at.hour == hour), default=0)


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("down", [(), ((50, 77),)])
def test_counting_by_minute_says_what_listing_says(name: str, down: tuple[tuple[int, int], ...]) -> None:
    outages = tuple(Outage(start=SPRING + a * HOUR, end=SPRING + b * HOUR) for a, b in down)
    within = Horizon(start=SPRING, end=SPRING + 10 * DAY + HOUR, outages=outages)
    offsets = [timedelta(), 7 * MINUTE + 30 * SECOND, 26 * HOUR]
    schedules = [new(f"{name}{n}", COUNTED[name], offset=offset) for n, offset in enumerate(offsets)]
    schedules.append(new("all", COUNTED[name], misfire=Misfire.ALL, catch_up=2 * HOUR))
    schedules.append(new("few", COUNTED[name], max_fires=5))

    check_counted(schedules, within)


def test_a_peak_names_its_schedules() -> None:
    schedules = [new(f"s{n}", Cron("0 * * * *", "UTC")) for n in range(3)]
    schedules += [new("often", Every(20 * SECOND)), new("later", Cron("0 * * * *", "UTC"), offset=5 * MINUTE)]

    [peak] = load(schedules, Horizon(start=START, end=START + HOUR), peaks=1).peaks

    assert (peak.minute, peak.jobs) == (START, 6)
    assert peak.schedules == (("often", 3), ("s0", 1), ("s1", 1), ("s2", 1))


def test_a_window_flattens_the_peak() -> None:
    schedules = [new(f"s{n}", Cron("0 * * * *", "UTC")) for n in range(300)]
    within = Horizon(start=START, end=START + DAY)
    busy = load(schedules, within)
    spread = load(schedules, within, offset=lambda each: int(each.name[1:]) % 15 * MINUTE)

    assert (busy.peaks[0].jobs, spread.peaks[0].jobs, busy.total, spread.total) == (300, 20, 7200, 7200)
    lines = list(load_lines(busy, spread, 15 * MINUTE))
    assert lines[0] == "7,200 jobs in 24 busy minutes; at most 300 in a minute"
    assert lines[3].endswith(f"{'#' * 40}  300  s0, s1, s2, s3, s4 and 295 more")
    assert lines[-1].endswith("at most 20 jobs in a minute instead of 300")


def test_a_year_of_many_schedules_is_counted_day_by_day(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    real = Cron.next_after

    def counting(self: Cron, moment: datetime) -> datetime | None:
        nonlocal asked
        asked += 1
        return real(self, moment)

    monkeypatch.setattr(Cron, "next_after", counting)
    schedules = [new(f"s{n}", Cron(f"{n % 60} * * * *", "UTC")) for n in range(120)]

    counted = load(schedules, Horizon(start=START, end=START + 365 * DAY), peaks=1)

    assert counted.total == 120 * 24 * 365
    assert asked < 60 * 24 * 3  # and not one for each of half a million slots


def test_reasons_are_those_of_the_ledger() -> None:
    assert {each.reason for each in listed(new(max_fires=0), horizon(3))} == {Skipped.EXHAUSTED}
