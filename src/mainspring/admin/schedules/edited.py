"""What became of a schedule that somebody made or changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from mainspring.admin.schedules.draft import Draft, draft_view
from mainspring.admin.schedules.versions import Difference
from mainspring.admin.views import FireView
from mainspring.model.value import Value
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.slots import UpcomingSlot, upcoming_slots

FIRES_SHOWN = 3
NO_BUSINESS_DAY = "skipped: no business day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A schedule as it now stands, or would if it were no dry run."""

    name: str
    created: bool
    dry_run: bool
    draft: Draft
    version: int
    fires: tuple[UpcomingSlot, ...]
    differences: tuple[Difference, ...] = ()
    """Of a change: what is not as it was. None means that nothing was written."""
    paused: bool = False

    @property
    def effect(self) -> str:
        """In one word."""
        return "created" if self.created else "changed" if self.differences else "none"


def upcoming(draft: Draft, now: datetime) -> tuple[UpcomingSlot, ...]:
    """Its next slots, in UTC and in its own zone, with what is odd about them."""
    return tuple(
        replace(fire, note=NO_BUSINESS_DAY) if is_skipped(draft.trigger, fire.at) else fire
        for fire in upcoming_slots(draft.trigger, now, FIRES_SHOWN, draft.tz())
    )


class WrittenView(Value, frozen=True, kw_only=True):
    """A schedule as it now stands, as programs read it."""

    name: str
    effect: str
    dry_run: bool
    version: int
    paused: bool
    differences: tuple[Difference, ...]
    schedule: dict[str, Any]
    """By the names of the options."""
    fires: tuple[FireView, ...]

    @classmethod
    def of(cls, written: Written) -> Self:
        """Of a schedule that was made or changed."""
        return cls(
            name=written.name,
            effect=written.effect,
            dry_run=written.dry_run,
            version=written.version,
            paused=written.paused,
            differences=written.differences,
            schedule=draft_view(written.draft),
            fires=tuple(FireView.of(each) for each in written.fires),
        )
