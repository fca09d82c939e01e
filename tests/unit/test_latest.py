"""The newest slot that has passed, against a walk through all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from mainspring.triggers.slots import latest
from mainspring.triggers.trigger import Trigger

TRIGGERS = [
    Every(timedelta(seconds=1.5)),
    Every(timedelta(minutes=7)),
    Every(timedelta(days=9)),
    Cron("* * * * *"),
    Cron("*/5 9-17 * * 1-5", "Europe/Berlin"),
    Cron("30 2 * * *", "America/New_York"),
    Cron("*/30 * * * *", "Australia/Lord_Howe"),
    Cron("0 0 29 2 *"),
]
MOMENT = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  bounds are naive


class Counted:
    """A trigger that knows how often it was asked."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger, self.calls = trigger, 0

    def next_after(self, moment: datetime) -> datetime | None:
        self.calls += 1
        return self.trigger.next_after(moment)

    def encode(self) -> str:
        return self.trigger.encode()


def walked(trigger: Trigger, first: datetime, now: datetime) -> datetime:
    slot = first
    while (following := trigger.next_after(slot)) is not None and following <= now:
        slot = following
    return slot


@given(st.sampled_from(TRIGGERS), MOMENT, st.integers(0, 200), st.floats(0, 1))
def test_it_is_what_a_walk_through_all_slots_finds(
    trigger: Trigger, moment: datetime, missed: int, part: float
) -> None:
    first = trigger.next_after(moment)
    assert first is not None
    now = first
    for _ in range(missed % 20 if trigger.encode().find("29 2") > 0 else missed):
        now = trigger.next_after(now) or now
    now += (trigger.next_after(now) - now) * part * 0.999

    assert latest(trigger, first, now) == walked(trigger, first, now)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda each: each.encode())
def test_a_gap_of_many_years_costs_a_few_dozen_steps(trigger: Trigger) -> None:
    counted = Counted(trigger)
    first = trigger.next_after(datetime(2000, 1, 1, tzinfo=UTC))
    now = datetime(2026, 11, 15, 7, 31, 2, 123456, tzinfo=UTC)

    slot = latest(counted, first, now)

    following = trigger.next_after(slot)
    assert slot <= now < following
    assert counted.calls < 60


class Ends:
    """Three slots and no more."""

    slots = tuple(datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))

    def next_after(self, moment: datetime) -> datetime | None:
        return next((slot for slot in self.slots if slot > moment), None)

    def encode(self) -> str:
        return "{}"


def test_a_trigger_that_has_ended_answers_its_last_slot() -> None:
    assert latest(Ends(), Ends.slots[0], datetime(2027, 1, 1, tzinfo=UTC)) == Ends.slots[2]


def test_the_first_slot_is_the_answer_when_none_came_after_it() -> None:
    assert latest(Ends(), Ends.slots[0], Ends.slots[0]) == Ends.slots[0]
