"""Which slot of a due spec is opened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.model.schedule import Opening, Spec
from mainspring.triggers.intervals import Every
from mainspring.triggers.misfire import LATE, open_spec

HOUR = timedelta(hours=1)
HOURLY = Every(HOUR)
SLOT = datetime(2026, 11, 15, 7, tzinfo=UTC)


def spec(following: datetime | None, *, planned: bool = True) -> Spec:
    return Spec(id=7, trigger=HOURLY.encode(), next_at=SLOT, following_at=following, planned=planned)


def opening(slot: datetime, since: datetime | None, next_at: datetime | None) -> Opening:
    before = None if since is not None else slot - (HOUR if next_at is None else next_at - slot)
    return Opening(spec_id=7, expected=SLOT, slot_at=slot, since=since, next_at=next_at, previous=before)


def test_a_due_slot_is_opened_and_the_spec_moves_to_the_one_planned() -> None:
    opened = open_spec(spec(SLOT + HOUR), HOURLY, SLOT + HOUR / 2)

    assert opened == opening(SLOT, None, SLOT + HOUR)


def test_an_unplanned_spec_computes_what_follows() -> None:
    opened = open_spec(spec(None, planned=False), HOURLY, SLOT)

    assert opened == opening(SLOT, None, SLOT + HOUR)


def test_a_spec_planned_to_have_no_more_slots_ends() -> None:
    opened = open_spec(spec(None), HOURLY, SLOT + 5 * HOUR)

    assert opened == opening(SLOT, None, None)


def test_missed_slots_are_gathered_into_the_newest() -> None:
    opened = open_spec(spec(SLOT + HOUR), HOURLY, SLOT + 5.5 * HOUR)

    assert opened == opening(SLOT + 5 * HOUR, SLOT, SLOT + 6 * HOUR)


def test_a_slot_that_falls_due_this_instant_counts_as_passed() -> None:
    opened = open_spec(spec(SLOT + HOUR), HOURLY, SLOT + HOUR)

    assert opened == opening(SLOT + HOUR, SLOT, SLOT + 2 * HOUR)


def test_a_slot_that_is_only_late_is_opened_for_itself() -> None:
    secondly = Every(timedelta(seconds=1))
    late = Spec(id=7, trigger=secondly.encode(), next_at=SLOT, following_at=SLOT + timedelta(seconds=1))

    assert open_spec(late, secondly, SLOT + LATE) == opening(SLOT, None, SLOT + timedelta(seconds=1))


def test_a_slot_that_is_later_than_late_was_missed() -> None:
    secondly = Every(timedelta(seconds=1))
    missed = Spec(id=7, trigger=secondly.encode(), next_at=SLOT, following_at=SLOT + timedelta(seconds=1))

    opened = open_spec(missed, secondly, SLOT + LATE + timedelta(milliseconds=1))

    assert opened == opening(SLOT + LATE, SLOT, SLOT + LATE + timedelta(seconds=1))
