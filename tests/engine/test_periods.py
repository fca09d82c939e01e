"""What a handler learns of its slot: the one before it, and the missed ones that were combined into it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring import Context, Mainspring, Period
from mainspring.admin.simulation.simulate import Horizon, Outage, simulate
from mainspring.admin.views import to_json
from mainspring.admin.why.asking import Why
from mainspring.errors import StoreUnavailable
from mainspring.model.job import JobState
from mainspring.scheduler.scheduler import Scheduler
from mainspring.tasks.schedule import declare_schedule
from mainspring.telemetry.events import Telemetry
from mainspring.testing import Harness, eager
from tests.engine import isolated
from tests.engine.kit import HOUR, MINUTE, Floor, until
from tests.support.management import admin_of


class Office:
    """A floor whose scheduler is ticked by hand, with one hourly schedule."""

    def __init__(self, floor: Floor, run: Any) -> None:
        self.floor, self.run, self.clock = floor, run, floor.clock
        self.seen: list[Period | None] = []
        self.fails = False
        self.scheduler = Scheduler(
            floor.store,
            floor.clock,
            Telemetry(),
            poll=timedelta(seconds=1),
            chunk=100,  # type: ignore[arg-type]
        )

        @floor.task
        async def look(ctx: Context) -> None:
            self.seen.append(ctx.period)
            if self.fails:
                raise ZeroDivisionError

        self.look = look

    def declare(self, **options: Any) -> None:
        declared = self.floor.app.schedule("s", self.look, **{"every": "1h", **options})
        self.run(
            self.floor.store.schedules.put([declared.new_schedule(self.clock.now())], at=self.clock.stamp())
        )

    def pass_time(self, length: timedelta) -> Period:
        """Nobody is up meanwhile; then the scheduler and a worker are. What the last job was told."""
        self.clock.advance(length)
        before = len(self.seen)
        self.run(self.scheduler.tick())
        self.run(self._work())
        assert len(self.seen) > before
        last = self.seen[-1]
        assert last is not None
        return last

    async def _work(self) -> None:
        self.floor.worker.membership.id = None
        await self.floor.join()
        await self.floor.work()

    def asked(self) -> int:
        """How often the store was asked what a slot stands for."""
        return [name for name, *_ in self.floor.store.calls].count("slots.facts")


@pytest.fixture
def office(floor: Floor, run: Any) -> Office:
    return Office(floor, run)


def test_a_job_knows_the_slot_before_its_own_and_nobody_is_asked(office: Office) -> None:
    office.declare()
    now = office.clock.now()

    first, second = office.pass_time(HOUR), office.pass_time(HOUR)

    assert first == Period(end=now + HOUR, start=now, previous=now)
    assert second == Period(end=now + 2 * HOUR, start=now + HOUR, previous=now + HOUR)
    assert office.asked() == 0


def test_missed_slots_are_counted_and_the_period_reaches_back_before_them(office: Office) -> None:
    office.declare()
    now = office.clock.now()
    office.pass_time(HOUR)

    found = office.pass_time(3 * HOUR)

    assert found == Period(
        end=now + 4 * HOUR, start=now + HOUR, previous=now + 3 * HOUR, since=now + 2 * HOUR, missed=2
    )


def test_what_is_caught_up_one_by_one_stands_for_its_own_period(office: Office) -> None:
    office.declare(misfire="all", overlap="queue_all")
    now = office.clock.now()

    found = office.pass_time(3 * HOUR)

    assert found == Period(end=now + HOUR, start=now, previous=now)


def test_slots_before_the_schedule_was_resumed_were_not_missed(office: Office) -> None:
    office.declare(every="10m")
    store, clock = office.floor.store, office.clock
    other = office.floor.app.schedule("other", office.look, every="10m")
    clock.advance(25 * MINUTE)
    office.run(store.schedules.put([other.new_schedule(clock.now())], at=clock.stamp()))

    office.pass_time(20 * MINUTE)

    by_missed = sorted(period.missed for period in office.seen if period is not None)
    assert by_missed == [1, 3]  # the newer one was there for :30 only, besides the slot itself


def test_the_next_day_of_a_changed_trigger_has_the_slot_before_by_the_new_one(office: Office) -> None:
    office.declare()
    office.pass_time(HOUR)
    now = office.clock.now()
    changed = declare_schedule("s", office.look, every="2h")
    store = office.floor.store
    office.run(store.schedules.put([changed.new_schedule(now)], at=office.clock.stamp()))

    found = office.pass_time(2 * HOUR)

    assert found.end == found.previous + 2 * HOUR  # type: ignore[operator]
    assert found.end > now


def test_a_replayed_job_and_a_retry_are_told_the_same(office: Office) -> None:
    office.declare()
    office.fails = True
    first = office.pass_time(HOUR)
    again = office.pass_time(MINUTE)
    assert again == first
    store, clock = office.floor.store, office.clock
    for _ in range(12):
        office.clock.advance(10 * MINUTE)
        office.run(office._work())
    [letter] = [each for each in office.run(office.floor.dead()) if each.slot_at == first.end]
    assert office.run(store.dead_letters.replay([letter.id], at=clock.stamp())) == [letter.id]
    office.fails = False
    office.seen.clear()

    office.run(office._work())

    assert office.seen == [first]
    assert office.asked() >= 1  # it came back without it, and was looked up


def test_a_store_that_cannot_be_asked_costs_no_attempt(office: Office) -> None:
    office.declare()
    office.pass_time(HOUR)
    office.clock.advance(3 * HOUR)
    office.run(office.scheduler.tick())
    office.floor.store.before("slots.facts", StoreUnavailable("on order"))
    seen = len(office.seen)

    office.run(office._work())
    assert len(office.seen) == seen
    office.run(office._work())

    assert office.seen[-1] is not None and office.seen[-1].missed == 2
    [job] = [each for each in office.run(_jobs(office)) if each.slot_at == office.seen[-1].end]
    assert (job.state, job.failures) == (JobState.SUCCEEDED, 0)


async def _jobs(office: Office) -> list[Any]:
    rows = await office.floor.store.slots.of("s", limit=10)
    return [await office.floor.job(row.job_id) for row in rows if row.job_id is not None]


def test_a_job_and_why_and_the_handler_say_the_same(office: Office) -> None:
    office.declare()
    office.pass_time(HOUR)
    found = office.pass_time(4 * HOUR)
    store, clock = office.floor.store, office.clock
    job = next(each for each in office.run(_jobs(office)) if each.slot_at == found.end)

    history = office.run(admin_of(store, clock).jobs.aget(job.id))
    why_job = office.run(Why(store, clock).job(job.id))
    why_slot = office.run(Why(store, clock).slot("s", found.end))

    assert history.period == found
    assert why_job.facts["period"] == why_slot.facts["period"] == to_json(found)
    assert "It stands for 3 missed slots from" in why_job.sentence
    assert "It stands for 3 missed slots from" in why_slot.sentence


def test_a_simulation_says_what_the_handler_is_told(office: Office) -> None:
    office.declare()
    now = office.clock.now()
    office.pass_time(HOUR)
    told = office.pass_time(3 * HOUR)
    declared = office.floor.app._registry.schedules["s"].new_schedule(now)

    outage = Outage(start=now + 90 * MINUTE, end=now + 4 * HOUR)
    horizon = Horizon(start=now + MINUTE, end=now + 5 * HOUR, outages=(outage,))
    fired = [each for each in simulate([declared], horizon).outcomes if each.period is not None]

    assert fired[1].period == told


def test_a_job_in_a_child_is_told_as_well(office: Office, run: Any) -> None:
    floor = office.floor
    stands = floor.task(name="stands", isolate=True)(isolated.stands)
    declared = floor.app.schedule("c", stands, every="1h")
    now = floor.clock.now()
    run(floor.store.schedules.put([declared.new_schedule(now)], at=floor.clock.stamp()))

    async def story() -> Any:
        try:
            await floor.join()
            await floor.claimer.tick()
            await until(lambda: not floor.active_runs.running, 60)
            await floor.finish()
        finally:
            await floor.worker.children.close()
        [row] = await floor.store.slots.of("c", limit=1)
        return await floor.job(row.job_id)

    floor.clock.advance(3 * HOUR)
    run(office.scheduler.tick())
    job = run(story())

    assert job.state is JobState.SUCCEEDED, job.errors
    assert job.result == b'["%s","%s",2]' % (
        now.isoformat().encode(),
        (now + 3 * HOUR).isoformat().encode(),
    )


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("sqlite://:memory:")


def test_a_backfilled_slot_says_so(app: Mainspring) -> None:
    seen: list[Period | None] = []

    @app.task
    def look(ctx: Context) -> None:
        seen.append(ctx.period)

    app.schedule("s", look, every="1h", misfire="skip")
    with Harness(app) as mainspring:
        began = mainspring.clock.now()
        mainspring.run_until_idle()
        mainspring.clock.advance("5h")
        mainspring.run_until_idle()
        seen.clear()
        store = mainspring._store

        async def order() -> None:
            backfills = admin_of(store, mainspring.clock).backfills
            plan = await backfills.aplan("s", start=began + HOUR, end=began + 3 * HOUR)
            await backfills.astart(plan)

        mainspring._ask(order)
        mainspring.run_until_idle()

    assert seen[0] == Period(end=began + HOUR, start=began, previous=began, backfill=True)


def test_a_job_put_in_by_hand_stands_for_nothing(app: Mainspring) -> None:
    seen: list[Period | None] = []

    @app.task
    def look(ctx: Context) -> None:
        seen.append(ctx.period)

    with Harness(app) as mainspring:
        look.enqueue()
        mainspring.run_until_idle()
    given = Period(end=mainspring.clock.now(), start=mainspring.clock.now() - HOUR)
    with eager(app, period=given):
        look.enqueue()

    assert seen == [None, given]


def test_a_workflow_starts_with_the_beginning_of_its_period(app: Mainspring) -> None:
    seen: list[tuple[str, str]] = []

    @app.task
    def load(since: str, until: str) -> None:
        seen.append((since, until))

    flow = app.workflow("nightly")
    form = "%H:%M"
    flow.step(load, flow.param("since", slot=form, of="start"), flow.param("until", slot=form))
    app.schedule("nightly", flow, every="1h")

    with Harness(app) as mainspring:
        mainspring.run_for("1h")
        mainspring.clock.advance("4h")
        mainspring.run_until_idle()

    assert seen == [("00:00", "01:00"), ("01:00", "05:00")]
