"""Schedules made and changed at run time, by whoever has the store: the task's code is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from mainspring.calendars import Calendar, decode_calendar
from mainspring.clock import Clock
from mainspring.declare import payload
from mainspring.declare.edit import Said, changed_policies, changed_when, options_of
from mainspring.declare.names import valid_name
from mainspring.declare.policies import PolicyOptions
from mainspring.declare.registry import Registry
from mainspring.declare.schedule import attempts_of_slots
from mainspring.declare.when import When
from mainspring.errors import InvalidArgument, NotFound, Outdated
from mainspring.model.limit import Gate
from mainspring.model.schedule import Schedule
from mainspring.ops.callee import Callee
from mainspring.ops.schedules.draft import Draft, changes
from mainspring.ops.schedules.edited import Written, upcoming
from mainspring.ops.schedules.options import Wishes, read
from mainspring.ops.schedules.triggers import calendars_of
from mainspring.store.ports import Store
from mainspring.trigger.base import Trigger
from mainspring.trigger.codec import decode

_CALL = ("task", "args", "kwargs")
_PLACE = ("queue", "priority", "attempts")


class ScheduleEditor:
    """Writes schedules to one store. With a registry, tasks must be declared in it, arguments must
    fit them, and their queue, priority and attempts are the defaults.

    Options have the names that `app.schedule` gives them, and besides there is `attempts`. Values are
    plain: instants in ISO 8601, a calendar's name. None asks for an option's default.
    """

    def __init__(self, store: Store, clock: Clock, registry: Registry | None = None) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry

    async def create(
        self,
        name: str,
        options: Mapping[str, object],
        *,
        author: str,
        note: str | None = None,
        dry_run: bool = False,
    ) -> Written:
        """Make a schedule that is nobody's but the author's; a name that is taken is refused."""
        valid_name(name, "schedule.name")
        wishes = read(options)
        if await self._store.schedules.get(name) is not None:
            raise _taken(name)
        draft = await self._drafted(name, wishes)
        now = await self._store.now(at=self._clock.stamp())
        if not dry_run:
            try:
                await self._put(draft, now, author, note, None)
            except Outdated:
                raise _taken(name) from None
        return Written(
            name=name, created=True, dry_run=dry_run, draft=draft, version=1, fires=upcoming(draft, now)
        )

    async def edit(
        self,
        name: str,
        options: Mapping[str, object],
        *,
        author: str,
        note: str | None = None,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> Written:
        """Change the options that are given, and no others. Raises Outdated if somebody changed the
        schedule since it was read, here or by a caller who saw `expected_version`."""
        stored = await self._store.schedules.get(name)
        if stored is None:
            raise NotFound("schedule", name)
        if expected_version not in (None, stored.version):
            raise Outdated(
                "schedule", name, f"it is at version {stored.version}, and not at {expected_version}"
            )
        calendars = await calendars_of(self._store, [stored.trigger])
        before = Draft.of(stored, decode(stored.trigger, calendars))
        after = await self._changed(before, read(options))
        found = changes(before, after)
        now = await self._store.now(at=self._clock.stamp())
        if found and not dry_run:
            await self._put(after, now, author, note, stored)
        return Written(
            name=name,
            created=False,
            dry_run=dry_run,
            draft=after,
            differences=found,
            version=stored.version + (1 if found else 0),
            paused=stored.paused_at is not None,
            fires=upcoming(after, now),
        )

    async def _drafted(self, name: str, wishes: Wishes) -> Draft:
        task = Callee.named(wishes.call.get("task"), self._registry)
        given = {each: value for each, value in wishes.policies.items() if value is not None}
        trigger = changed_when(When(), await self._with_calendar(wishes.when)).trigger(name)
        task = _fitted(task, trigger)
        return Draft(
            name=name,
            task=task.name,
            trigger=trigger,
            policies=PolicyOptions(**given).policies(name),
            payload=task.payload(wishes.call.get("args") or [], wishes.call.get("kwargs") or {}),
            **_place(task, dict.fromkeys(_PLACE) | dict(wishes.call)),
        )

    async def _changed(self, before: Draft, wishes: Wishes) -> Draft:
        after = replace(before, policies=changed_policies(before.name, before.policies, wishes.policies))
        if wishes.when:
            when = changed_when(options_of(before.trigger), await self._with_calendar(wishes.when))
            after = replace(after, trigger=when.trigger(before.name))
        if not wishes.call:
            return after
        if not any(each in wishes.call for each in _CALL):
            # Its code is asked for only where somebody wants a default of it.
            known = None if None not in wishes.call.values() else self._registry
            task = _fitted(Callee.named(before.task, known), after.trigger)
            return replace(after, **_place(task, wishes.call))
        task = _fitted(Callee.named(wishes.call.get("task", before.task), self._registry), after.trigger)
        return replace(
            after,
            task=task.name,
            payload=_payload(task, before.payload, wishes.call),
            **_place(task, wishes.call),
        )

    async def _put(
        self, draft: Draft, now: datetime, author: str, note: str | None, expected: Schedule | None
    ) -> None:
        await self._store.schedules.put(
            [msgspec.structs.replace(draft.new_schedule(now), gates=self._gates(draft))],
            author=author,
            note=note,
            expected={draft.name: expected},
            at=self._clock.stamp(),
        )

    def _gates(self, draft: Draft) -> tuple[Gate, ...] | None:
        """The limits its jobs must pass, where the task is known; else those on record stay."""
        if self._registry is None or draft.task not in self._registry.tasks:
            return None
        return self._registry.tasks[draft.task].gates(draft.queue, *payload.decode(draft.payload))

    async def _with_calendar(self, said: Said) -> Said:
        name = said.get("calendar")
        return said if name is None else {**said, "calendar": await self._newest_calendar(name)}

    async def _newest_calendar(self, name: object) -> Calendar:
        stored = await self._store.calendars.all()
        versions = [each for each in stored if each.name == name]
        if not versions:
            known = ", ".join(sorted({each.name for each in stored}))
            expected = f"a calendar on record ({known})" if known else "none, for no calendar is on record"
            raise InvalidArgument("calendar", name, expected)
        return decode_calendar(max(versions, key=lambda each: each.version).definition)


def _payload(task: Callee, stored: bytes, said: Said) -> bytes:
    args, kwargs = ([], {}) if "args" in said and "kwargs" in said else payload.decode(stored)
    return task.payload(said.get("args", args) or [], said.get("kwargs", kwargs) or {})


def _fitted(task: Callee, trigger: Trigger) -> Callee:
    return replace(task, attempts=attempts_of_slots(task.attempts, task.retry, trigger))


def _place(task: Callee, said: Said) -> dict[str, Any]:
    return {each: task.option(each, said[each]) for each in _PLACE if each in said}


def _taken(name: str) -> InvalidArgument:
    return InvalidArgument(
        "schedule.name", name, "a name no other schedule has; edit changes one that is there"
    )
