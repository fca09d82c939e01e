"""The policies of schedules through a real scheduler, ticked by hand, on both stores."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.admin.slot_verification.verification import Kind
from mainspring.admin.slot_verification.verifier import SlotVerifier
from mainspring.model.job import Claim, JobFilter
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Settlement, Verdict
from mainspring.model.schedule import Disposition, Misfire, NewSchedule, Overlap, Skipped
from mainspring.scheduler.scheduler import Scheduler
from mainspring.telemetry.events import Event, SlotsDropped, Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.intervals import Every

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MINUTELY = Every(MINUTE)


class Stage:
    """A store, a clock, a scheduler and one worker's claims."""

    def __init__(self, store: Any, clock: ManualClock, run: Any, *, breaker: int = 1000) -> None:
        self.store, self.clock, self.run = store, clock, run
        self.heard: list[Event] = []
        self.breaker = breaker
        self.restart()
        run(
            store.processes.join(
                NewProcess(id=1, role=Role.WORKER, name="w"), lease=1000 * DAY, at=clock.stamp()
            )
        )

    def restart(self) -> None:
        """Another scheduler, with nothing in its memory."""
        telemetry, poll = Telemetry(self.heard.append), timedelta(seconds=1)
        self.scheduler = Scheduler(
            self.store, self.clock, telemetry, poll=poll, chunk=100, breaker=self.breaker
        )

    def declare(self, name: str = "s", /, **options: Any) -> None:
        app = Mainspring._with("sqlite://:memory:", clock=self.clock)

        @app.task(name="t")
        def nothing() -> None: ...

        declared = app.schedule(name, nothing, **{"every": "1m", **options})
        self.put(declared.new_schedule(self.clock.now()))

    def put(self, schedule: NewSchedule) -> None:
        self.run(self.store.schedules.put([schedule], at=self.clock.stamp()))

    def after(self, wait: timedelta, *, ticks: int = 1) -> None:
        self.clock.advance(wait)
        for _ in range(ticks):
            self.run(self.scheduler.tick())

    def claim(self) -> list[Claim]:
        claims: list[Claim] = self.run(
            self.store.queue.claim(1, queues=["default"], tasks=["t"], limit=100, at=self.clock.stamp())
        )
        return claims

    def finish(self, *claims: Claim) -> list[int]:
        done = [
            Settlement(job_id=c.job_id, worker_id=1, fence=c.fence, verdict=Verdict.SUCCEEDED) for c in claims
        ]
        refused: list[int] = self.run(self.store.queue.settle(done, at=self.clock.stamp()))
        return refused

    def drain(self, *, most: int = 1, restarts: bool = False) -> list[datetime]:
        """Run what there is until nothing is left, and never more than `most` at once; answer the
        slots in the order in which they were begun."""
        begun: list[datetime] = []
        in_hand: list[Claim] = []
        for _ in range(1000):
            if restarts:
                self.restart()
            self.after(timedelta(milliseconds=100))
            claims = self.claim()
            in_hand += claims
            begun += [claim.slot_at for claim in claims if claim.slot_at is not None]
            assert len(in_hand) <= most
            if not self.run(self.store.jobs.find(JobFilter(), at=self.clock.stamp())):
                return begun
            if len(begun) % 2:  # the others stay for another pass: nothing may come beside them
                self.after(timedelta(milliseconds=100))
                late = self.claim()
                in_hand += late
                begun += [claim.slot_at for claim in late if claim.slot_at is not None]
                assert len(in_hand) <= most
            if in_hand:
                self.finish(in_hand.pop(0))
        raise AssertionError("it does not end")

    def ledger(self, name: str = "s") -> list[tuple[Disposition, Skipped | None]]:
        slots = self.run(self.store.slots.of(name, limit=1000))
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
    [slot] = stage.run(stage.store.slots.of("s", limit=10))
    assert slot.since == slot.slot_at - 239 * MINUTE


def test_misfire_all_fires_every_slot_inside_its_window(stage: Stage) -> None:
    stage.declare(misfire="all", catch_up="10m", overlap="queue_all")
    stage.after(HOUR, ticks=20)

    ledger = stage.ledger()
    assert ledger[0] == skipped(Skipped.TOO_LATE)
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


@pytest.mark.parametrize("down", [timedelta(hours=36), timedelta(days=400)])
def test_after_any_outage_a_schedule_with_all_defaults_runs_its_newest_slot(
    stage: Stage, down: timedelta
) -> None:
    stage.declare(every=None, cron="0 0 1 * *")
    stage.clock.advance(31 * DAY - timedelta(hours=1))
    stage.after(down, ticks=3)

    assert stage.ledger() == [FIRED]
    [claim] = stage.claim()
    assert claim.slot_at is not None
    assert claim.slot_at.day == 1
    assert timedelta() <= stage.clock.now() - claim.slot_at < 31 * DAY
    assert not [event for event in stage.heard if isinstance(event, SlotsDropped)]


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "replace"])
def test_every_missed_slot_is_caught_up_one_after_another(stage: Stage, overlap: str) -> None:
    stage.declare(misfire="all", overlap=overlap)
    stage.clock.advance(32 * MINUTE + timedelta(seconds=30))

    begun = stage.drain(restarts=True)

    assert stage.ledger() == [FIRED] * 32
    assert len(begun) == 32
    assert begun == sorted(set(begun))


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all"])
@pytest.mark.parametrize("misfire", ["latest", "all"])
def test_an_outage_of_seconds_costs_a_schedule_of_seconds_no_slot(
    stage: Stage, misfire: str, overlap: str
) -> None:
    stage.declare(every="3s", misfire=misfire, overlap=overlap)
    stage.clock.advance(timedelta(seconds=9.5))  # no slot is as late as a missed one

    begun = stage.drain(restarts=True)

    assert stage.ledger() == [FIRED] * 3
    assert len(begun) == 3
    assert begun == sorted(set(begun))


def test_after_an_outage_of_seconds_the_slots_wait_as_the_policy_allows(stage: Stage) -> None:
    stage.declare(every="1s", misfire="all", allow=2)
    stage.clock.advance(timedelta(seconds=7.5))

    begun = stage.drain(most=2)

    assert stage.ledger() == [FIRED] * len(begun)
    assert len(begun) >= 7
    assert begun == sorted(set(begun))


def test_missed_slots_are_caught_up_as_many_at_once_as_the_policy_allows(stage: Stage) -> None:
    stage.declare(misfire="all", allow=3)
    stage.after(32 * MINUTE + timedelta(seconds=30), ticks=40)

    begun = stage.drain(most=3)

    assert stage.ledger() == [FIRED] * 32
    assert begun == sorted(begun)
    assert len(begun) == 32


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "replace", "allow"])
def test_a_fresh_slot_waits_behind_those_that_are_caught_up(stage: Stage, overlap: str) -> None:
    stage.declare(misfire="all", overlap=overlap, allow=1 if overlap == "allow" else None)
    stage.after(3 * MINUTE + timedelta(seconds=30), ticks=5)
    [first] = stage.claim()
    stage.after(timedelta(seconds=30))  # the fourth comes while the first runs, and two wait
    assert stage.ledger() == [FIRED] * 4
    assert stage.finish(first) == [], "nothing replaced it"
    stage.after(timedelta(milliseconds=100))

    assert first.slot_at is not None
    assert stage.drain() == [first.slot_at + n * MINUTE for n in (1, 2, 3)]


def test_when_all_is_caught_up_the_policy_counts_again(stage: Stage) -> None:
    stage.declare(misfire="all")
    stage.after(2 * MINUTE + timedelta(seconds=30), ticks=5)
    stage.drain()
    stage.after(timedelta(seconds=30))
    stage.claim()
    stage.after(MINUTE)

    assert stage.ledger() == [FIRED] * 3 + [skipped(Skipped.OVERLAP)]


def test_an_explicit_window_is_obeyed_and_no_breaker_cuts_it_short(store: Any, clock: Any, run: Any) -> None:
    stage = Stage(store, clock, run, breaker=5)
    stage.declare(every="1d", misfire="all", catch_up="90d")
    stage.after(40 * DAY + HOUR, ticks=45)

    assert stage.ledger() == [FIRED] * 40
    assert not [event for event in stage.heard if isinstance(event, SlotsDropped)]


def test_what_is_older_than_the_window_is_dropped_and_told(stage: Stage) -> None:
    stage.declare(every="1d", catch_up="1h")
    stage.after(40 * DAY + 2 * HOUR)

    assert stage.ledger() == [skipped(Skipped.TOO_LATE)]
    [told] = [event for event in stage.heard if isinstance(event, SlotsDropped)]
    assert (told.reason, told.told) == (Skipped.TOO_LATE, ("s",))
    assert told.slot_at - told.since == 39 * DAY  # type: ignore[operator]


def test_the_breaker_looks_at_the_load_of_one_schedule_and_says_so(store: Any, clock: Any, run: Any) -> None:
    stage = Stage(store, clock, run, breaker=3)
    stage.declare(misfire="all")
    stage.declare("other", misfire="all")
    other = run(store.schedules.get("other"))
    stage.clock.advance(10 * MINUTE + timedelta(seconds=30))
    for _ in range(12):
        # The other one's jobs end as soon as they are there: only its own load counts.
        stage.after(timedelta(milliseconds=100))
        done = [claim for claim in stage.claim() if claim.schedule_id == other.id]
        stage.finish(*done)

    assert stage.ledger() == [FIRED] * 3 + [skipped(Skipped.BREAKER)] * 7
    assert stage.ledger("other") == [FIRED] * 10
    [told] = [event for event in stage.heard if isinstance(event, SlotsDropped) and event.told]
    assert (told.reason, told.told) == (Skipped.BREAKER, ("s",))


def test_once_tripped_it_leaves_out_the_rest_at_once_and_fresh_slots_go_on(
    store: Any, clock: Any, run: Any
) -> None:
    stage = Stage(store, clock, run, breaker=3)
    stage.declare(misfire="all")
    stage.after(30 * DAY + timedelta(seconds=30), ticks=6)
    stage.clock.advance(timedelta(seconds=30))
    stage.after(timedelta(), ticks=1)

    assert stage.ledger() == [FIRED] * 3 + [skipped(Skipped.BREAKER)] * 2 + [FIRED]
    rows = run(store.slots.of("s", limit=10))
    assert rows[1].since is not None
    assert rows[1].slot_at - rows[1].since > 29 * DAY, "one row stands for a month of minutes"


def test_a_breaker_that_has_tripped_lets_go_when_its_load_is_gone(store: Any, clock: Any, run: Any) -> None:
    """A laptop that always wakes late: no slot comes on time, and none may be dropped without load."""
    stage = Stage(store, clock, run, breaker=3)
    stage.declare(misfire="all")
    stage.after(6 * MINUTE + timedelta(seconds=30), ticks=8)
    assert stage.ledger() == [FIRED] * 3 + [skipped(Skipped.BREAKER)] * 2

    assert len(stage.drain()) == 3
    for _ in range(3):
        stage.after(2 * MINUTE, ticks=4)
        assert len(stage.drain()) == 2

    assert {reason for _, reason in stage.ledger()[5:]} == {None}


def test_a_day_that_a_calendar_leaves_out_is_never_dropped(stage: Stage) -> None:
    """Of slots that are too late together, the row names the newest that the calendar keeps."""
    work = Calendar(name="work", version=1, holidays={})
    stage.run(stage.store.calendars.put([stored(work)]))
    noon = {"every": None, "cron": "0 12 * * *", "calendar": work, "on_holiday": "skip"}
    stage.declare(misfire="all", catch_up="1h", **noon)
    start = stage.clock.now()
    stage.after(timedelta(days=15), ticks=40)

    rows = stage.run(stage.store.slots.of("s", limit=100))
    dropped = [row for row in rows if row.reason is Skipped.TOO_LATE]
    assert dropped
    assert all(row.slot_at.weekday() < 5 for row in dropped)
    report = stage.run(SlotVerifier(stage.store, stage.clock, keep=400 * DAY).verify(start=start))
    weekdays_missed = sum(each.count for each in report.findings if each.kind is Kind.DROPPED)
    assert weekdays_missed == sum((start + n * DAY).weekday() < 5 for n in range(15))


def test_a_paused_schedule_skips_and_a_resumed_one_does_not_catch_up(stage: Stage) -> None:
    stage.declare()
    stage.run(stage.store.schedules.pause(["s"], author="ada", note="audit", at=stage.clock.stamp()))
    stage.after(MINUTE)
    stage.run(stage.store.schedules.resume(["s"], author="ada", at=stage.clock.stamp()))
    stage.after(MINUTE)

    assert stage.ledger() == [skipped(Skipped.PAUSED), FIRED]


def test_a_window_and_a_jitter_move_the_job_and_not_the_slot(stage: Stage) -> None:
    stage.declare(window="10m", jitter="5s", overlap="queue_all", allow=None)
    stage.after(MINUTE)

    [slot] = stage.run(stage.store.slots.of("s", limit=10))
    job = stage.run(stage.store.jobs.get(slot.job_id, at=stage.clock.stamp()))
    [schedule] = stage.run(stage.store.schedules.all())
    assert slot.slot_at == stage.clock.now()
    assert schedule.offset <= job.run_at - slot.slot_at < schedule.offset + timedelta(seconds=5)


def test_max_fires_ends_a_schedule(stage: Stage) -> None:
    stage.declare(max_fires=2, allow=100)
    for _ in range(3):
        stage.after(MINUTE)

    assert stage.ledger() == [FIRED, FIRED, skipped(Skipped.EXHAUSTED)]


def test_a_calendar_skips_in_the_ledger(stage: Stage, clock: ManualClock, run: Any) -> None:
    # The manual clock starts on Tuesday, 1 January 2030.
    app = Mainspring._with("sqlite://:memory:", clock=clock)

    @app.task(name="t")
    def nothing() -> None: ...

    calendar = Calendar(name="work", version=1, holidays={})
    declared = app.schedule(
        "s", nothing, cron="0 9 * * *", calendar=calendar, on_holiday="skip", overlap="queue_all"
    )
    run(stage.store.calendars.put([stored(calendar)]))
    stage.put(declared.new_schedule(clock.now()))
    stage.after(9 * HOUR)
    for _ in range(6):
        stage.after(DAY)

    weekend = skipped(Skipped.CALENDAR)
    assert stage.ledger() == [FIRED] * 4 + [weekend, weekend] + [FIRED]


def stored(calendar: Calendar) -> Any:
    from mainspring.model.schedule import StoredCalendar

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
    others = stage.run(stage.store.slots.of("other", limit=100))
    assert len(others) == 5
