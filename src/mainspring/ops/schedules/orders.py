"""What operators order of schedules. Unknown names are refused before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from mainspring.clock import Clock
from mainspring.declare.names import looked_for
from mainspring.errors import NotFound
from mainspring.model.schedule import Schedule
from mainspring.model.value import Value
from mainspring.store.ports import Store


class ScheduleEffect(StrEnum):
    """What an order did to one schedule."""

    PAUSED = "paused"
    RESUMED = "resumed"
    HANDED_BACK = "handed_back"
    DELETED = "deleted"
    NONE = "none"


class ScheduleDone(Value, frozen=True, kw_only=True):
    """One schedule's answer to an order; `schedule` is what it was before."""

    name: str
    effect: ScheduleEffect
    schedule: Schedule
    why: str = ""
    """What was already so, when nothing was done."""


class Triggered(Value, frozen=True, kw_only=True):
    """A job that was asked for out of turn."""

    name: str
    job_id: int
    task: str
    queue: str


class Skipping(Value, frozen=True, kw_only=True):
    """How many slots were asked to be skipped now, and how many are to be in all."""

    name: str
    added: int
    skips: int


class ScheduleCommands:
    """Orders to one store about its schedules."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def pause(
        self, names: Sequence[str], *, author: str, note: str | None = None
    ) -> list[ScheduleDone]:
        """Skip their slots from now on; one that is paused keeps its first author and note."""
        found = await self._found(names)
        paused = await self._store.schedules.pause(
            list(found), author=author, note=note, at=self._clock.stamp()
        )
        return _answers(found, paused, ScheduleEffect.PAUSED, _paused_already)

    async def resume(self, names: Sequence[str], *, author: str) -> list[ScheduleDone]:
        """End their pause; the slots of the pause are not caught up."""
        found = await self._found(names)
        resumed = await self._store.schedules.resume(list(found), author=author, at=self._clock.stamp())
        return _answers(found, resumed, ScheduleEffect.RESUMED, lambda _: "is not paused")

    async def hand_back(
        self, names: Sequence[str], *, author: str, note: str | None = None
    ) -> list[ScheduleDone]:
        """Let code have what somebody edited: the next declaration of it counts. One that no app
        declares goes on as it is, but is code's to remove."""
        found = await self._found(names)
        handed = await self._store.schedules.revert(
            list(found), author=author, note=note, at=self._clock.stamp()
        )
        return _answers(found, handed, ScheduleEffect.HANDED_BACK, lambda _: "is code's already")

    async def delete(self, names: Sequence[str], *, author: str) -> list[ScheduleDone]:
        """Take them away; their ledger, their versions and the jobs they made stay."""
        found = await self._found(names)
        deleted = await self._store.schedules.delete(list(found), author=author, at=self._clock.stamp())
        return _answers(found, deleted, ScheduleEffect.DELETED, lambda _: "was deleted meanwhile")

    async def trigger(self, name: str) -> Triggered:
        """Make a job of it now, besides its slots and whatever its policies say."""
        [schedule] = (await self._found([name])).values()
        job_id = await self._store.schedules.trigger(name, at=self._clock.stamp())
        if job_id is None:
            raise NotFound("schedule", name)
        return Triggered(name=name, job_id=job_id, task=schedule.task, queue=schedule.queue)

    async def skip(self, name: str, count: int = 1, *, author: str) -> Skipping:
        """Have its next slots skipped, on top of those that are to be already."""
        await self._store.schedules.skip(
            looked_for(name, "name"), count=count, author=author, at=self._clock.stamp()
        )
        [schedule] = (await self._found([name])).values()
        return Skipping(name=name, added=count, skips=schedule.skips)

    async def _found(self, names: Sequence[str]) -> dict[str, Schedule]:
        found: dict[str, Schedule] = {}
        for name in dict.fromkeys(looked_for(each, "name") for each in names):
            schedule = await self._store.schedules.get(name)
            if schedule is None:
                raise NotFound("schedule", name)
            found[name] = schedule
        return found


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
    # Read before the order was given: somebody may have paused it in between.
    return f"is paused already, by {schedule.paused_by}" if schedule.paused_by else "is paused already"
