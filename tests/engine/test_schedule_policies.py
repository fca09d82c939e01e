"""The policies of schedules through a real scheduler, ticked by hand, on both stores."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.calendars import Calendar
from mainspring.engine.scheduler import Scheduler
from mainspring.model.fleet import Member, Role
from mainspring.model.job import Claim
from mainspring.model.schedule import Disposition, Misfire, NewSchedule, Overlap, Skipped
from mainspring.model.settlement import Settlement, Verdict
from mainspring.telemetry import BreakerTripped, Event, Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.trigger.interval import Every

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MINUTELY = Every(MINUTE)


class Stage:
    """A store, a clock, a scheduler and one worker's claims."""

    def __init__(self, store: Any, clock: ManualClock, run: Any) -> None:
        self.store, self.clock, self.run = store, clock, run
        self.heard: list[Event] = []
        telemetry = Telemetry(self.heard.append)
        self.scheduler = Scheduler(store, clock, telemetry, poll=timedelta(seconds=1), chunk=100, breaker=DAY)
        run(store.join(Member(id=1, role=Role.WORKER, name="w"), lease=1000 * DAY, at=clock.stamp()))

    def declare(self, **options: Any) -> None:
        app = Mainspring("sqlite://:memory:", clock=self.clock)

        @app.task(name="t")
        def nothing() -> None: ...

        declared = app.schedule("s", nothing, **{"every": "1m", **options})
        self.put(declared.new_schedule(self.clock.now()))

    def put(self, schedule: NewSchedule) -> None:
        self.run(self.store.put_schedules([schedule], at=self.clock.stamp()))

    def after(self, wait: timedelta, *, ticks: int = 1) -> None:
        self.clock.advance(wait)
        for _ in range(ticks):
            self.run(self.scheduler.tick())

    def claim(self) -> list[Claim]:
        claims: list[Claim] = self.run(
            self.store.claim(1, queues=["default"], tasks=["t"], limit=100, at=self.clock.stamp())
        )
        return claims

    def finish(self, *claims: Claim) -> list[int]:
        done = [
            Settlement(job_id=c.job_id, worker_id=1, fence=c.fence, verdict=Verdict.SUCCEEDED) for c in claims
        ]
        refused: list[int] = self.run(self.store.settle(done, at=self.clock.stamp()))
        return refused

    def ledger(self) -> list[tuple[Disposition, Skipped | None]]:
        slots = self.run(self.store.slots("s", limit=1000))
        return [(slot.disposition, slot.reason) for slot in reversed(slots)]


FIRED = (Disposition.FIRED, None)


def skipped(reason: Skipped) -> tuple[Disposition, Skipped]:
    return Disposition.SKIPPED, reason


@pytest.fixture
def stage(store: Any, clock: ManualClock, run: Any) -> Stage:
    return Stage(store, clock, run)


def test_by_default_a_slot_whose_predecessor_still_runs_is_skipped(stage: Stage) -> None:
    stage.declare()
    stage.after(MINUTE)
    [running] = stage.claim()
    stage.after(MINUTE)
    stage.finish(running)
    stage.after(MINUTE)

    assert stage.ledger() == [FIRED, skipped(Skipped.OVERLAP), FIRED]


def test_queue_one_runs_the_next_when_the_first_has_ended_and_no_sooner(stage: Stage) -> None:
    stage.declare(overlap="queue_one")
    stage.after(MINUTE)
    [running] = stage.claim()
    stage.after(MINUTE)
    stage.after(MINUTE)
    assert stage.claim() == []

    stage.finish(running)
    stage.after(timedelta(seconds=1))
    [second] = stage.claim()

    assert second.slot_at == running.slot_at + MINUTE  # type: ignore[operator]
    assert stage.ledger() == [FIRED, FIRED, skipped(Skipped.OVERLAP)]


def test_queue_all_runs_them_one_after_another(stage: Stage) -> None:
    stage.declare(overlap="queue_all")
    for _ in range(3):
        stage.after(MINUTE)
    slots = []
    for _ in range(3):
        [claim] = stage.claim()
        slots.append(claim.slot_at)
        assert stage.claim() == []
        stage.finish(claim)
        stage.after(timedelta(seconds=1))

    assert slots == sorted(slots)
    assert stage.ledger() == [FIRED] * 3


def test_replace_takes_the_job_away_from_its_worker(stage: Stage) -> None:
    stage.declare(overlap="replace")
    stage.after(MINUTE)
    [old] = stage.claim()
    stage.after(MINUTE)
    [new] = stage.claim()

    assert stage.finish(old, new) == [old.job_id]


def test_a_four_hour_outage_of_a_minutely_schedule_costs_one_job_by_default(stage: Stage) -> None:
    stage.declare()
    stage.after(4 * HOUR, ticks=3)

    assert stage.ledger() == [FIRED]
    [slot] = stage.run(stage.store.slots("s", limit=10))
    assert slot.since == slot.slot_at - 239 * MINUTE


def test_misfire_all_fires_every_slot_inside_its_window(stage: Stage) -> None:
    stage.declare(misfire="all", catch_up="10m", overlap="queue_all")
    stage.after(HOUR, ticks=20)

    ledger = stage.ledger()
    assert ledger[0] == skipped(Skipped.MISFIRE)
    assert ledger[1:] == [FIRED] * 11


def test_misfire_all_pauses_between_passes(stage: Stage) -> None:
    stage.declare(misfire="all", catch_up="10m", overlap="queue_all")
    stage.clock.advance(HOUR)

    assert stage.run(stage.scheduler.tick()) == timedelta(milliseconds=100)


def test_misfire_skip_fires_nothing_that_was_missed(stage: Stage) -> None:
    stage.declare(misfire="skip")
    stage.after(HOUR + timedelta(seconds=30))
    stage.after(timedelta(seconds=30))

    assert stage.ledger() == [skipped(Skipped.MISFIRE), FIRED]


def test_the_breaker_sheds_and_says_so(stage: Stage) -> None:
    stage.declare(every="1h", misfire="all", catch_up="30d", overlap="queue_all")
    stage.after(10 * DAY, ticks=30)

    ledger = stage.ledger()
    assert ledger[0] == skipped(Skipped.BREAKER)
    assert ledger[1:] == [FIRED] * 25
    assert [type(event) for event in stage.heard if isinstance(event, BreakerTripped)] == [BreakerTripped]


def test_a_paused_schedule_skips_and_a_resumed_one_does_not_catch_up(stage: Stage) -> None:
    stage.declare()
    stage.run(stage.store.pause_schedules(["s"], author="ada", note="audit", at=stage.clock.stamp()))
    stage.after(MINUTE)
    stage.run(stage.store.resume_schedules(["s"], author="ada", at=stage.clock.stamp()))
    stage.after(MINUTE)

    assert stage.ledger() == [skipped(Skipped.PAUSED), FIRED]


def test_a_window_and_a_jitter_move_the_job_and_not_the_slot(stage: Stage) -> None:
    stage.declare(window="10m", jitter="5s", overlap="queue_all", allow=None)
    stage.after(MINUTE)

    [slot] = stage.run(stage.store.slots("s", limit=10))
    job = stage.run(stage.store.job(slot.job_id, at=stage.clock.stamp()))
    [schedule] = stage.run(stage.store.schedules())
    assert slot.slot_at == stage.clock.now()
    assert schedule.offset <= job.run_at - slot.slot_at < schedule.offset + timedelta(seconds=5)


def test_max_fires_ends_a_schedule(stage: Stage) -> None:
    stage.declare(max_fires=2, allow=100)
    for _ in range(3):
        stage.after(MINUTE)

    assert stage.ledger() == [FIRED, FIRED, skipped(Skipped.EXHAUSTED)]


def test_a_calendar_skips_in_the_ledger(stage: Stage, clock: ManualClock, run: Any) -> None:
    # The manual clock starts on Tuesday, 1 January 2030.
    app = Mainspring("sqlite://:memory:", clock=clock)

    @app.task(name="t")
    def nothing() -> None: ...

    calendar = Calendar(name="work", version=1, holidays={})
    declared = app.schedule(
        "s", nothing, cron="0 9 * * *", calendar=calendar, on_holiday="skip", overlap="queue_all"
    )
    run(stage.store.put_calendars([stored(calendar)]))
    stage.put(declared.new_schedule(clock.now()))
    stage.after(9 * HOUR)
    for _ in range(6):
        stage.after(DAY)

    weekend = skipped(Skipped.CALENDAR)
    assert stage.ledger() == [FIRED] * 4 + [weekend, weekend] + [FIRED]


def stored(calendar: Calendar) -> Any:
    from mainspring.model.calendar import StoredCalendar

    return StoredCalendar(name=calendar.name, version=calendar.version, definition=calendar.encode())


def test_two_schedules_of_one_trigger_but_other_misfire_do_not_disturb_each_other(stage: Stage) -> None:
    stage.declare()
    first = MINUTELY.next_after(stage.clock.now())
    assert first is not None
    stage.put(
        NewSchedule(
            name="other",
            task="t",
            trigger=MINUTELY.encode(),
            payload=b"{}",
            misfire=Misfire.ALL,
            overlap=Overlap.QUEUE_ALL,
            next_at=first,
            following_at=first + MINUTE,
        )
    )
    stage.after(5 * MINUTE, ticks=10)

    assert stage.ledger() == [FIRED]
    others = stage.run(stage.store.slots("other", limit=100))
    assert len(others) == 5
