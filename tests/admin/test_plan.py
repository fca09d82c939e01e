"""What a plan says about each schedule, on both stores."""

from __future__ import annotations

from typing import Any

import msgspec

from mainspring import Mainspring
from mainspring.admin.schedules.plan import Action, Planned, dropped_sentences, plan
from mainspring.testing.clock import ManualClock


def declared_by(clock: ManualClock, every: str = "1h") -> Mainspring:
    app = Mainspring._with("sqlite://:memory:", clock=clock)

    @app.task
    def work() -> None: ...

    app.schedule("s", work, every=every)
    return app


def planned(app: Mainspring, store: Any, run: Any) -> list[Planned]:
    return plan(app._registry.schedules, run(store.schedules.all()), app._clock.now())


def test_what_somebody_edited_is_kept_and_the_difference_is_told(
    store: Any, clock: ManualClock, run: Any
) -> None:
    app = declared_by(clock)
    new = app._registry.schedules["s"].new_schedule(clock.now())
    run(store.schedules.put([new], at=clock.stamp()))
    run(store.schedules.put([msgspec.structs.replace(new, priority=9)], author="ada", at=clock.stamp()))

    [found] = planned(app, store, run)

    assert found.action is Action.KEEP
    assert [(each.field, each.was, each.now) for each in found.differences] == [("priority", 9, 0)]


def test_what_somebody_made_by_hand_is_no_business_of_the_code(
    store: Any, clock: ManualClock, run: Any
) -> None:
    app = declared_by(clock)
    new = app._registry.schedules["s"].new_schedule(clock.now())
    run(store.schedules.put([msgspec.structs.replace(new, name="by-hand")], author="ada", at=clock.stamp()))

    assert [(each.name, each.action) for each in planned(app, store, run)] == [("s", Action.ADD)]


def test_what_is_the_same_is_the_same(store: Any, clock: ManualClock, run: Any) -> None:
    app = declared_by(clock)
    run(store.schedules.put([app._registry.schedules["s"].new_schedule(clock.now())], at=clock.stamp()))

    assert [each.action for each in planned(app, store, run)] == [Action.SAME]
    assert [each.action for each in planned(declared_by(clock, "2h"), store, run)] == [Action.CHANGE]


def test_after_many_the_schedules_that_lost_slots_are_counted():
    found = [Planned(name=f"s{n:02}", action=Action.REMOVE, dropped=n) for n in range(24)]

    told = dropped_sentences(found)

    assert len(told) == 21
    assert told[0].startswith("s01: 1 slot was due")
    assert told[19].startswith("s20: 20 slots were due")
    assert told[20].startswith("3 other schedules: 66 slots were due")
