"""What became of a schedule's slots, one tile each, oldest first: for people who look at a row of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from mainspring.admin.words import length, moment
from mainspring.model.job import JobState
from mainspring.model.schedule import Disposition, Slot
from mainspring.model.value import Value

LATE = timedelta(seconds=5)
"""From here on it is told that a slot was decided late."""

_STATES = {
    JobState.DELAYED: ("delayed", "its job waits for its time"),
    JobState.READY: ("ready", "its job waits for a worker"),
    JobState.RUNNING: ("running", "its job is running"),
    JobState.SUCCEEDED: ("succeeded", "its job succeeded"),
    JobState.DEAD: ("dead", "its job is dead"),
    JobState.CANCELLED: ("cancelled", "its job was cancelled"),
    JobState.DISCARDED: ("discarded", "its job was discarded by its handler"),
}
_REASONS = {
    "misfire": "nobody could fire it in time",
    "too_late": "nobody could fire it before it was older than catch_up",
    "overlap": "the job before it was still live",
    "paused": "the schedule was paused",
    "calendar": "its calendar leaves this day out",
    "breaker": "too many jobs of the schedule were live",
    "requested": "somebody asked for it to be skipped",
    "exhausted": "its fires were used up",
    "deleted": "its schedule was deleted",
}


class Tile(Value, frozen=True, kw_only=True):
    """One row of the ledger."""

    slot_at: datetime
    state: str
    """Where its job stands; `skipped` when it has none, `gone` when nobody knows it any more."""
    words: str
    """In two or three words."""
    sentence: str
    disposition: str
    reason: str | None
    job_id: int | None
    blocker: int | None
    since: datetime | None
    """It stands for the slots from here on, too."""
    late: timedelta | None
    note: str | None
    decided_at: datetime


def strip(slots: Sequence[Slot], states: Mapping[int, JobState]) -> tuple[Tile, ...]:
    """A tile for each row, oldest first; rows come newest first."""
    return tuple(_tile(slot, states) for slot in reversed(slots))


def legend(tiles: Sequence[Tile]) -> tuple[tuple[str, int], ...]:
    """How many there are of each state, the most frequent first."""
    counts: dict[str, int] = {}
    for each in tiles:
        counts[each.state] = counts.get(each.state, 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _tile(slot: Slot, states: Mapping[int, JobState]) -> Tile:
    skipped = slot.reason is not None and slot.disposition is not Disposition.BACKFILLED
    state, ending = "skipped", ""
    if not skipped:
        found = states.get(slot.job_id) if slot.job_id is not None else None
        state, ending = ("gone", "its job is no longer on record") if found is None else _STATES[found]
    late = slot.decided_at - slot.slot_at
    is_late = late >= LATE and slot.disposition is Disposition.FIRED
    return Tile(
        slot_at=slot.slot_at,
        state=state,
        words=_words(slot, state),
        sentence=_sentence(slot, ending, late if is_late else None),
        disposition=slot.disposition.value,
        reason=None if slot.reason is None else slot.reason.value,
        job_id=slot.job_id,
        blocker=slot.blocker,
        since=slot.since,
        late=late if is_late else None,
        note=slot.note,
        decided_at=slot.decided_at,
    )


def _words(slot: Slot, state: str) -> str:
    if state == "skipped":
        return f"skipped: {slot.reason}"
    return f"{slot.disposition.value}, {state}"


def _sentence(slot: Slot, ending: str, late: timedelta | None) -> str:
    parts = []
    if not ending:
        parts.append(f"skipped: {_REASONS[slot.reason or '']}")
    elif slot.disposition is Disposition.BACKFILLED:
        before = f" (at the time it was skipped: {slot.reason})" if slot.reason else ""
        parts.append(f"backfilled{before}, {ending}")
    else:
        parts.append(f"fired, {ending}")
    if slot.blocker is not None:
        parts.append(f"job {slot.blocker} was in the way")
    if slot.since is not None:
        verb = "coalesced with" if ending else "together with"
        parts.append(f"{verb} the slots since {moment(slot.since)}")
    if late is not None:
        parts.append(f"{length(late)} late")
    if slot.note:
        parts.append(slot.note)
    return f"{moment(slot.slot_at)}: {'; '.join(parts)}"
