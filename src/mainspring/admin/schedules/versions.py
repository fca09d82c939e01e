"""The differences between one version of a schedule and the next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Self

from mainspring.admin.views import ScheduleView, to_json
from mainspring.admin.words import in_words
from mainspring.model.schedule import Change, Schedule, ScheduleVersion
from mainspring.model.value import Value

COMPARED = (
    "task",
    "trigger",
    "args",
    "kwargs",
    "payload",
    "queue",
    "priority",
    "max_attempts",
    "misfire",
    "catch_up",
    "overlap",
    "overlap_limit",
    "offset",
    "jitter",
    "max_fires",
    "expires",
    "expect_start_within",
    "expect_finish_by",
)


class Difference(Value, frozen=True, kw_only=True):
    """One changed field."""

    field: str
    was: Any
    now: Any


class Step(Value, frozen=True, kw_only=True):
    """A version, and its differences from the version before it."""

    version: ScheduleVersion
    differences: tuple[Difference, ...] = ()


def steps(versions: Sequence[ScheduleVersion]) -> list[Step]:
    """Each version with its differences, oldest first. A creation has no differences."""
    if not versions:
        return []
    return [
        Step(version=versions[0]),
        *(
            Step(version=after)
            if after.change is Change.CREATED
            else Step(version=after, differences=differences(before.schedule, after.schedule))
            for before, after in pairwise(versions)
        ),
    ]


def differences(before: Schedule, after: Schedule) -> tuple[Difference, ...]:
    """The options that differ."""
    old, new = to_json(ScheduleView.of(before)), to_json(ScheduleView.of(after))
    old["trigger"], new["trigger"] = in_words(before.trigger), in_words(after.trigger)
    if old["trigger"] == new["trigger"]:  # the words leave out details, such as the policy for a gap
        old["trigger"], new["trigger"] = before.trigger, after.trigger
    return tuple(
        Difference(field=name, was=old.get(name), now=new.get(name))
        for name in COMPARED
        if old.get(name) != new.get(name)
    )


def step_in_words(step: Step) -> str:
    """The kind of change, and its differences."""
    changed = ", ".join(f"{each.field} {each.was} -> {each.now}" for each in step.differences)
    words = step.version.change.words
    return f"{words}: {changed}" if changed else words


class VersionView(Value, frozen=True, kw_only=True):
    """One version of a schedule as programs read it."""

    version: int
    changed_at: datetime
    author: str | None
    change: Change
    differences: tuple[Difference, ...]
    note: str | None
    schedule: ScheduleView

    @classmethod
    def of(cls, step: Step) -> Self:
        """Of a version and its differences."""
        version = step.version
        return cls(
            version=version.version,
            changed_at=version.changed_at,
            author=version.author,
            change=version.change,
            differences=step.differences,
            note=version.note,
            schedule=ScheduleView.of(version.schedule),
        )
