"""Schedules: create, change, pause and delete them at run time; compare and write the declared ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

import msgspec

from mainspring.admin.order import Noun, blocking, carried_out, one_or_more, order
from mainspring.admin.schedules.draft import Callee, Draft, Wishes, Written, changes, read, upcoming
from mainspring.admin.schedules.plan import Action, Planned, dropped_sentences, plan, write_declared
from mainspring.admin.schedules.sheet import (
    ScheduleList,
    ScheduleSheet,
    ScheduleSummary,
    listed,
    sheet,
    summary,
)
from mainspring.admin.schedules.triggers import calendars_of, readable
from mainspring.admin.why.answer import Answer
from mainspring.admin.why.asking import LastAndNext, Why
from mainspring.errors import InvalidArgument, NotFound, Outdated, UsageError
from mainspring.model.limit import LimitKey
from mainspring.model.schedule import (
    DeletedSlots,
    Schedule,
    ScheduleCounts,
    ScheduleFilter,
    SchedulePage,
    ScheduleVersion,
    Slot,
)
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.tasks import payload
from mainspring.tasks.checks import looked_for, valid_name
from mainspring.tasks.registry import Registry
from mainspring.tasks.schedule import (
    GivenOptions,
    attempts_of_slots,
    changed_policies,
    changed_when,
    options_of,
)
from mainspring.tasks.schedule_options import Policies, PolicyOptions, TriggerOptions
from mainspring.triggers.calendars import Calendar, decode_calendar
from mainspring.triggers.codec import decode
from mainspring.triggers.misfire import LATE
from mainspring.triggers.slots import period
from mainspring.triggers.trigger import Trigger

_log = logging.getLogger("mainspring")
BY_CODE = "code"
_CALL = ("task", "args", "kwargs")
_PLACE = ("queue", "priority", "attempts")
LAST_SLOTS, NEXT_FIRES = 10, 5
MOST_DELETED = 500
"""Schedules deleted in one transaction."""
EVERY = ScheduleFilter()


class ScheduleEffect(StrEnum):
    """The effect of an order on one schedule."""

    PAUSED = "paused"
    RESUMED = "resumed"
    REVERTED = "reverted"
    DELETED = "deleted"
    NONE = "none"


class ScheduleDone(Value, frozen=True, kw_only=True):
    """The result of an order for one schedule; `schedule` is the schedule before the order."""

    name: str
    effect: ScheduleEffect
    schedule: Schedule
    why: str = ""
    """The reason if nothing was done."""


class Triggered(Value, frozen=True, kw_only=True):
    """A job that was triggered between slots."""

    name: str
    job_id: int
    task: str
    queue: str


class Skipping(Value, frozen=True, kw_only=True):
    """How many slots this order skips, and how many slots are to be skipped in all."""

    name: str
    added: int
    skips: int


class ScheduleHistory(Value, frozen=True, kw_only=True):
    """A schedule with its slots, newest first, and its next fires."""

    schedule: Schedule
    slots: tuple[Slot, ...]
    fires: tuple[datetime, ...] | None
    """None when this version cannot read the trigger."""


def effects(done: Sequence[ScheduleDone]) -> dict[str, list[str]]:
    """The names of the schedules by effect, for the audit log."""
    return {
        str(effect): names
        for effect in ScheduleEffect
        if (names := [each.name for each in done if each.effect is effect])
    }


def _written(answer: Written) -> object:
    return {"effect": answer.effect, "version": answer.version}


class Schedules(Noun):
    """Schedules of one store. Options of `create` and `edit` have the names that `app.schedule` gives
    them, and besides there is `attempts`. A task and a calendar are given by name, and an instant as a
    datetime or in ISO 8601. None asks for an option's default. Where an app declares tasks, the task must
    be one of them, the arguments must fit it, and its queue, priority and attempts are the defaults."""

    async def aget(self, name: str, *, slots: int = LAST_SLOTS, fires: int = NEXT_FIRES) -> ScheduleHistory:
        """One schedule with its last slots and its next fires."""
        store = await self._store()
        schedule = await store.schedules.get(name)
        if schedule is None:
            raise NotFound("schedule", name)
        now = await store.now(at=self._stamp)
        trigger = readable(schedule.trigger, await calendars_of(store, [schedule.trigger]))
        return ScheduleHistory(
            schedule=schedule,
            slots=tuple(await store.slots.of(name, limit=slots)) if slots else (),
            fires=next_fires(trigger, now, fires),
        )

    async def aall(self) -> list[Schedule]:
        """Every schedule, by name."""
        return await (await self._store()).schedules.all()

    async def apage(self, which: ScheduleFilter = EVERY) -> SchedulePage:
        """One page of schedules, by name, each with its newest slot."""
        return await (await self._store()).schedules.page(which, at=self._stamp)

    async def acounts(self) -> ScheduleCounts:
        """How many schedules there are, are paused, are late."""
        return await (await self._store()).schedules.counts(late=LATE, at=self._stamp)

    async def asummary(self) -> ScheduleSummary:
        """The counts, and the first schedules that are overdue."""
        return await summary(await self._store(), self._clock)

    async def alisted(self, which: ScheduleFilter = EVERY) -> ScheduleList:
        """One page, as a list shows it."""
        return await listed(await self._store(), self._clock, which)

    async def asheet(self, name: str, *, before: datetime | None = None) -> ScheduleSheet:
        """Everything about one schedule, with a page of its slots: the newest, or those before a moment."""
        return await sheet(await self._store(), self._clock, name, before=before)

    async def aslots(
        self,
        name: str,
        *,
        start: datetime | None = None,
        before: datetime | None = None,
        limit: int = LAST_SLOTS,
    ) -> list[Slot]:
        """The ledger of one schedule, newest slot first: slots from `start` on and before `before`; of a
        schedule that was deleted too."""
        await self.aversions(name)
        return await (await self._store()).slots.of(name, start=start, before=before, limit=limit)

    async def aversions(self, name: str) -> list[ScheduleVersion]:
        """Every version of a schedule, oldest first; of one that was deleted too."""
        store = await self._store()
        versions = await store.schedules.versions(name)
        if not versions and await store.schedules.get(name) is None:
            raise NotFound("schedule", name)
        return versions

    async def awhy(self, name: str, at: datetime | None = None) -> Answer | LastAndNext:
        """Why a schedule did, or did not do, something at a moment; without one, the last and the next
        slot."""
        why = Why(await self._store(), self._clock)
        if at is None:
            return await why.schedule(name)
        if at.tzinfo is None:
            raise InvalidArgument("at", at, "a moment with its offset")
        return await why.slot(name, at)

    @order("schedules.create", result=_written)
    async def acreate(
        self, name: str, /, *, note: str | None = None, dry_run: bool = False, **options: object
    ) -> Written:
        """Create a schedule that code does not change. A name that exists is refused."""
        valid_name(name, "schedule.name")
        wishes, store = read(options), await self._store()
        if await store.schedules.get(name) is not None:
            raise _taken(name)
        draft = await _drafted(store, self._registry, name, wishes)
        now = await store.now(at=self._stamp)
        written = Written(
            name=name, created=True, dry_run=dry_run, draft=draft, version=1, fires=upcoming(draft, now)
        )
        if dry_run:
            return written
        try:
            return await self._put(written, now, note, None)
        except Outdated:
            raise _taken(name) from None

    @order("schedules.edit", result=_written)
    async def aedit(
        self,
        name: str,
        /,
        *,
        note: str | None = None,
        expected_version: int | None = None,
        dry_run: bool = False,
        **options: object,
    ) -> Written:
        """Change only the given options. Raises Outdated if the schedule was changed since this method read
        it, or since the caller read `expected_version`."""
        store = await self._store()
        stored = await store.schedules.get(name)
        if stored is None:
            raise NotFound("schedule", name)
        if expected_version not in (None, stored.version):
            raise Outdated(
                "schedule", name, f"it is at version {stored.version}, and not at {expected_version}"
            )
        before = Draft.of(stored, decode(stored.trigger, await calendars_of(store, [stored.trigger])))
        after = await _changed(store, self._registry, before, read(options))
        found = changes(before, after)
        now = await store.now(at=self._stamp)
        written = Written(
            name=name,
            created=False,
            dry_run=dry_run,
            draft=after,
            differences=found,
            version=stored.version + (1 if found else 0),
            paused=stored.paused_at is not None,
            fires=upcoming(after, now),
        )
        return await self._put(written, now, note, stored) if found and not dry_run else written

    @order("schedules.pause", result=effects)
    async def apause(self, names: str | Sequence[str], *, note: str | None = None) -> list[ScheduleDone]:
        """Skip the slots of schedules from now on. A paused schedule keeps its first author and note."""
        store = await self._store()
        found = await _found(store, one_or_more(names))
        return await carried_out(
            store.schedules.pause(list(found), author=self._author, note=note, at=self._stamp),
            lambda paused: _answers(found, paused, ScheduleEffect.PAUSED, _paused_already),
        )

    @order("schedules.resume", result=effects)
    async def aresume(self, names: str | Sequence[str]) -> list[ScheduleDone]:
        """End the pause of schedules. The slots of the pause are not caught up."""
        store = await self._store()
        found = await _found(store, one_or_more(names))
        return await carried_out(
            store.schedules.resume(list(found), author=self._author, at=self._stamp),
            lambda resumed: _answers(found, resumed, ScheduleEffect.RESUMED, lambda _: "is not paused"),
        )

    @order("schedules.revert", result=effects)
    async def arevert(self, names: str | Sequence[str], *, note: str | None = None) -> list[ScheduleDone]:
        """Revert edited schedules to the code: their next declaration applies again. A schedule that no app
        declares continues unchanged, but `apply` with `prune` then deletes it."""
        store = await self._store()
        found = await _found(store, one_or_more(names))
        return await carried_out(
            store.schedules.revert(list(found), author=self._author, note=note, at=self._stamp),
            lambda reverted: _answers(
                found, reverted, ScheduleEffect.REVERTED, lambda _: "is code's already"
            ),
        )

    @order("schedules.delete", result=effects)
    async def adelete(self, names: str | Sequence[str]) -> list[ScheduleDone]:
        """Delete schedules. Their ledger, their versions and their jobs stay."""
        store = await self._store()
        found = await _found(store, one_or_more(names))
        return await carried_out(
            store.schedules.delete(list(found), author=self._author, at=self._stamp),
            lambda deleted: _answers(
                found, deleted, ScheduleEffect.DELETED, lambda _: "was deleted meanwhile"
            ),
        )

    @order("schedules.trigger", result=lambda done: {"job": done.job_id})
    async def atrigger(self, name: str) -> Triggered:
        """Create a job of a schedule now, in addition to its slots. Its policies do not apply."""
        store = await self._store()
        [schedule] = (await _found(store, [name])).values()
        job_id = await carried_out(
            store.schedules.trigger(name, at=self._stamp), said=lambda job_id: {"job": job_id}
        )
        if job_id is None:
            raise NotFound("schedule", name)
        return Triggered(name=name, job_id=job_id, task=schedule.task, queue=schedule.queue)

    @order("schedules.skip", result=lambda done: {"skips": done.skips})
    async def askip(self, name: str, count: int = 1) -> Skipping:
        """Skip the next slots of a schedule, in addition to those that are to be skipped already."""
        store = await self._store()
        skipping = await carried_out(
            store.schedules.skip(looked_for(name, "name"), count=count, author=self._author, at=self._stamp),
            lambda skips: Skipping(name=name, added=count, skips=skips),
        )
        if not skipping.skips:
            raise NotFound("schedule", name)
        return skipping

    async def aplan(self) -> list[Planned]:
        """What the schedules that the app declares would change; nothing is written."""
        store, declared = await self._store(), self._declared
        return plan(declared, await store.schedules.all(), await store.now(at=self._stamp))

    @order(
        "schedules.apply",
        several=True,
        result=lambda found: {
            "changed": sum(each.action is not Action.SAME for each in found),
            "dropped_slots": sum(each.dropped for each in found),
        },
    )
    async def aapply(self, *, prune: bool = False) -> list[Planned]:
        """Write the schedules that the app declares; edited schedules stay. With `prune`, also
        delete schedules that the code no longer declares. Their due slots get no job, and a warning reports
        these slots."""
        store, declared = await self._store(), self._declared
        stored, now = await store.schedules.all(), await store.now(at=self._stamp)
        found = plan(declared, stored, now)
        await write_declared(store, self._clock, self._context.registry or Registry())
        if not prune:
            return found
        doomed = {each.name for each in found if each.action is Action.REMOVE}
        dropped = await self._prune([each for each in stored if each.name in doomed], now)
        return [dropped.get(each.name, each) for each in found]

    async def _prune(self, doomed: Sequence[Schedule], now: datetime) -> dict[str, Planned]:
        """Delete schedules; answer those that had due slots."""
        store = await self._store()
        calendars = await calendars_of(store, [each.trigger for each in doomed])
        triggers = {each.name: readable(each.trigger, calendars) for each in doomed}
        told: dict[str, Planned] = {}
        for start in range(0, len(doomed), MOST_DELETED):
            page = [each.name for each in doomed[start : start + MOST_DELETED]]
            await store.schedules.delete(page, author=BY_CODE, at=self._stamp)
            for each in await store.slots.deleted(page, since=now):
                count, at_least = _how_many(each, triggers[each.schedule])
                before = told.get(each.schedule, Planned(name=each.schedule, action=Action.REMOVE))
                told[each.schedule] = msgspec.structs.replace(
                    before, dropped=before.dropped + count, at_least=before.at_least or at_least
                )
        # A command prints these warnings itself, so they are logged only if logging is configured.
        if _log.hasHandlers():
            for sentence in dropped_sentences(told.values()):
                _log.warning("%s", sentence)
        return told

    @property
    def _registry(self) -> Registry | None:
        """The registry of an app with tasks. Without it, tasks and arguments of schedules are not checked."""
        registry = self._context.registry
        return registry if registry is not None and registry.tasks else None

    @property
    def _declared(self) -> Mapping[str, Any]:
        if self._context.registry is None:
            raise UsageError("no app was named, so nothing is known of what it declares")
        return self._context.registry.schedules

    async def _put(
        self, written: Written, now: datetime, note: str | None, expected: Schedule | None
    ) -> Written:
        store, draft = await self._store(), written.draft
        return await carried_out(
            store.schedules.put(
                [
                    msgspec.structs.replace(
                        draft.new_schedule(now), limit_keys=_limit_keys(self._registry, draft)
                    )
                ],
                author=self._author,
                note=note,
                expected={draft.name: expected},
                at=self._stamp,
            ),
            lambda _: written,
        )

    get = blocking(aget)
    all = blocking(aall)
    page = blocking(apage)
    counts = blocking(acounts)
    summary = blocking(asummary)
    listed = blocking(alisted)
    sheet = blocking(asheet)
    slots = blocking(aslots)
    versions = blocking(aversions)
    why = blocking(awhy)
    create = blocking(acreate)
    edit = blocking(aedit)
    pause = blocking(apause)
    resume = blocking(aresume)
    revert = blocking(arevert)
    delete = blocking(adelete)
    trigger = blocking(atrigger)
    skip = blocking(askip)
    plan = blocking(aplan)
    apply = blocking(aapply)


def next_fires(trigger: Trigger | None, after: datetime, count: int) -> tuple[datetime, ...] | None:
    """The next instants of a trigger, fewer if it ends; None if the trigger could not be read."""
    if trigger is None:
        return None
    found: list[datetime] = []
    moment: datetime | None = after
    while moment is not None and len(found) < count:
        moment = trigger.next_after(moment)
        if moment is not None:
            found.append(moment)
    return tuple(found)


class ScheduleDoneView(Value, frozen=True, kw_only=True):
    """The result of an order for one schedule, as programs read it."""

    name: str
    effect: ScheduleEffect
    why: str

    @classmethod
    def of(cls, done: ScheduleDone) -> Self:
        """Of a result, without the schedule before the order."""
        return cls(name=done.name, effect=done.effect, why=done.why)


def _taken(name: str) -> InvalidArgument:
    return InvalidArgument(
        "schedule.name", name, "a name no other schedule has; edit changes one that is there"
    )


async def _drafted(store: Store, registry: Registry | None, name: str, wishes: Wishes) -> Draft:
    task = Callee.named(wishes.call.get("task"), registry)
    given = {each: value for each, value in wishes.policies.items() if value is not None}
    trigger = changed_when(TriggerOptions(), await _with_calendar(store, wishes.when)).trigger(name)
    policies = PolicyOptions(**given).policies(name)
    task = _fitted(task, trigger, policies)
    return Draft(
        name=name,
        task=task.name,
        trigger=trigger,
        policies=policies,
        payload=task.payload(wishes.call.get("args") or [], wishes.call.get("kwargs") or {}),
        **_place(task, dict.fromkeys(_PLACE) | dict(wishes.call)),
    )


async def _with_calendar(store: Store, said: GivenOptions) -> GivenOptions:
    name = said.get("calendar")
    return said if name is None else {**said, "calendar": await _newest_calendar(store, name)}


async def _newest_calendar(store: Store, name: object) -> Calendar:
    stored = await store.calendars.all()
    versions = [each for each in stored if each.name == name]
    if not versions:
        known = ", ".join(sorted({each.name for each in stored}))
        expected = f"a calendar on record ({known})" if known else "none, for no calendar is on record"
        raise InvalidArgument("calendar", name, expected)
    return decode_calendar(max(versions, key=lambda each: each.version).definition)


def _fitted(task: Callee, trigger: Trigger, policies: Policies) -> Callee:
    attempts = attempts_of_slots(task.attempts, task.retry, trigger, policies.overlap)
    return replace(task, attempts=attempts)


def _place(task: Callee, said: GivenOptions) -> dict[str, Any]:
    return {each: task.option(each, said[each]) for each in _PLACE if each in said}


async def _changed(store: Store, registry: Registry | None, before: Draft, wishes: Wishes) -> Draft:
    after = replace(before, policies=changed_policies(before.name, before.policies, wishes.policies))
    if wishes.when:
        when = changed_when(options_of(before.trigger), await _with_calendar(store, wishes.when))
        after = replace(after, trigger=when.trigger(before.name))
    if not wishes.call:
        return after
    if not any(each in wishes.call for each in _CALL):
        # The task must be known only if a default of the task is requested.
        known = None if None not in wishes.call.values() else registry
        task = _fitted(Callee.named(before.task, known), after.trigger, after.policies)
        return replace(after, **_place(task, wishes.call))
    called = Callee.named(wishes.call.get("task", before.task), registry)
    task = _fitted(called, after.trigger, after.policies)
    return replace(
        after,
        task=task.name,
        payload=_payload(task, before.payload, wishes.call),
        **_place(task, wishes.call),
    )


def _payload(task: Callee, stored: bytes, said: GivenOptions) -> bytes:
    args, kwargs = ([], {}) if "args" in said and "kwargs" in said else payload.decode(stored)
    return task.payload(said.get("args", args) or [], said.get("kwargs", kwargs) or {})


async def _found(store: Store, names: Sequence[str]) -> dict[str, Schedule]:
    wanted = list(dict.fromkeys(looked_for(each, "name") for each in names))
    found = await store.schedules.some(wanted)
    for name in wanted:
        if name not in found:
            raise NotFound("schedule", name)
    return {name: found[name] for name in wanted}


def _answers(
    found: dict[str, Schedule],
    changed: Sequence[str],
    effect: ScheduleEffect,
    already: Callable[[Schedule], str],
) -> list[ScheduleDone]:
    return [
        ScheduleDone(name=name, effect=effect, schedule=schedule)
        if name in changed
        else ScheduleDone(name=name, effect=ScheduleEffect.NONE, schedule=schedule, why=already(schedule))
        for name, schedule in found.items()
    ]


def _paused_already(schedule: Schedule) -> str:
    # The schedule was read before the order: another actor may have paused it in between.
    return f"is paused already, by {schedule.paused_by}" if schedule.paused_by else "is paused already"


def _how_many(deleted: DeletedSlots, trigger: Trigger | None) -> tuple[int, bool]:
    """The number of slots of some rows, and whether there may be more."""
    if deleted.since is None or deleted.slot_at is None:
        return deleted.rows, False
    if trigger is None:
        return 2 * deleted.rows, True
    stands = period(trigger, deleted.slot_at, since=deleted.since)
    return deleted.rows * (stands.missed + 1), stands.at_least


def _limit_keys(registry: Registry | None, draft: Draft) -> tuple[LimitKey, ...] | None:
    """The limit keys of its jobs if the task is known; otherwise the stored ones stay."""
    if registry is None or draft.task not in registry.tasks:
        return None
    return registry.tasks[draft.task].limit_keys(draft.queue, *payload.decode(draft.payload))
