"""What the strip of slots shows for each row of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.admin.schedules.sheet import legend, strip
from mainspring.model.job import JobState
from mainspring.model.schedule import Disposition, Skipped, Slot

AT = datetime(2030, 1, 1, 9, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def _slot(disposition: Disposition = Disposition.FIRED, **fields: Any) -> Slot:
    given = {"slot_at": AT, "reason": None, "since": None, "job_id": 7, "decided_at": AT, **fields}
    return Slot(schedule="s", disposition=disposition, **given)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (JobState.SUCCEEDED, "fired, its job succeeded"),
        (JobState.DEAD, "fired, its job is dead"),
        (JobState.RUNNING, "fired, its job is running"),
        (JobState.CANCELLED, "fired, its job was cancelled"),
    ],
)
def test_a_fired_slot_is_as_its_job_is(state: JobState, shown: str) -> None:
    [tile] = strip([_slot()], {7: state})

    assert (tile.state, tile.words) == (state.value, f"fired, {state.value}")
    assert tile.sentence == f"2030-01-01 09:00:00Z: {shown}"


@pytest.mark.parametrize("reason", Skipped)
def test_every_reason_to_skip_has_its_words(reason: Skipped) -> None:
    [tile] = strip([_slot(Disposition.SKIPPED, reason=reason, job_id=None)], {})

    assert (tile.state, tile.words) == ("skipped", f"skipped: {reason}")
    assert len(tile.sentence) > len(f"2030-01-01 09:00:00Z: skipped: {reason}")


def test_what_is_odd_is_told() -> None:
    row = _slot(since=AT - 3 * HOUR, decided_at=AT + 90 * SECOND, note="gap: shifted")
    [tile] = strip([row], {7: JobState.SUCCEEDED})

    assert tile.late == 90 * SECOND
    assert tile.sentence.endswith(
        "its job succeeded; coalesced with the slots since 2030-01-01 06:00:00Z; 1m30s late; gap: shifted"
    )


def test_a_backfilled_slot_tells_why_it_was_skipped_and_is_never_late() -> None:
    row = _slot(Disposition.BACKFILLED, reason=Skipped.PAUSED, decided_at=AT + 24 * HOUR)
    [tile] = strip([row], {7: JobState.READY})

    assert (tile.state, tile.words, tile.late) == ("ready", "backfilled, ready", None)
    assert "(at the time it was skipped: paused)" in tile.sentence


def test_a_job_nobody_knows_and_one_in_the_way() -> None:
    blocked = _slot(Disposition.SKIPPED, reason=Skipped.OVERLAP, job_id=None, blocker=41)
    [older, newer] = strip([_slot(slot_at=AT + HOUR, decided_at=AT + HOUR), blocked], {})

    assert "job 41 was in the way" in older.sentence
    assert newer.state == "gone"
    assert legend([older, newer, newer]) == (("gone", 2), ("skipped", 1))
