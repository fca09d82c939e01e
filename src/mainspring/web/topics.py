"""What can be listened to: `queues`, `job/7`, `schedule/nightly`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mainspring.admin.jobs import JobDetail
from mainspring.admin.queues import QueueView
from mainspring.admin.views import MemberView, ScheduleDetail, to_json
from mainspring.declare.names import valid_name
from mainspring.errors import InvalidArgument
from mainspring.model.history import DeadFilter
from mainspring.model.value import Value
from mainspring.trigger.misfire import LATE
from mainspring.web.desk import Desk

Look = Callable[[Desk], Awaitable[object]]
LARGEST_ID = 2**63 - 1
GROUPS = 50


class Topic(Value, frozen=True, kw_only=True):
    """Something that may change, the noun that one must be let in to, and how to look at it."""

    name: str
    noun: str
    look: Look


def topic_of(text: str) -> Topic:
    """The topic of this name, or InvalidArgument."""
    kind, slash, rest = text.partition("/")
    if not slash and kind in _WHOLE:
        noun, look = _WHOLE[kind]
        return Topic(name=text, noun=noun, look=look)
    if slash and kind in ("job", "workflow") and rest.isascii() and rest.isdigit() and len(rest) < 20:
        number = int(rest)
        if 1 <= number <= LARGEST_ID:
            return _one(kind, number)
    if slash and kind == "schedule":
        return _schedule(valid_name(rest.replace("~", "/"), "topic"))
    listed = ", ".join(sorted(_WHOLE))
    raise InvalidArgument("topic", text, f"one of {listed}, job/ID, workflow/ID, schedule/NAME")


async def _queues(desk: Desk) -> object:
    return {"items": [QueueView.of(each) for each in await desk.questions.queues.aall(about=True)]}


async def _workers(desk: Desk) -> object:
    # A lease that is renewed is no news.
    found = await desk.questions.processes.aall()
    views = [{**to_json(MemberView.of(each)), "lease_until": None} for each in found]
    leases = await (await desk.store()).leases.all(at=desk.clock.stamp())
    return {"items": views, "leases": [{**to_json(each), "expires_at": None} for each in leases]}


async def _dead(desk: Desk) -> object:
    found = await desk.questions.dead_letters.agroups(DeadFilter(limit=GROUPS))
    return {"items": found}


async def _schedules(desk: Desk) -> object:
    # Looked at every second while somebody listens: never all of them.
    store = await desk.store()
    counts = await store.schedules.counts(late=LATE, at=desk.clock.stamp())
    coming = await store.slots.coming(limit=1)
    return {
        "count": counts.total,
        "paused": counts.paused,
        "overdue": counts.overdue,
        "next_at": coming[0].slot_at.isoformat() if coming else None,
    }


async def _overview(desk: Desk) -> object:
    queues = await desk.questions.queues.aall(about=True)
    members = [each for each in await desk.questions.processes.aall() if each.alive]
    roles = [each.role.value for each in members]
    return {
        "ready": sum(each.ready for each in queues),
        "delayed": sum(each.delayed for each in queues),
        "running": sum(each.running for each in queues),
        "workers": roles.count("worker"),
        "schedulers": roles.count("scheduler"),
        "paused_queues": [each.name for each in queues if each.pause is not None],
    }


def _one(kind: str, number: int) -> Topic:
    async def job(desk: Desk) -> object:
        return JobDetail.of_history(await desk.questions.jobs.aget(number))

    async def workflow(desk: Desk) -> object:
        found = await desk.questions.workflows.aget(number)
        # The moment of the look is no news.
        return {**to_json(found), "as_of": None}

    look = job if kind == "job" else workflow
    return Topic(name=f"{kind}/{number}", noun=f"{kind}s", look=look)


def _schedule(name: str) -> Topic:
    async def schedule(desk: Desk) -> object:
        found = await desk.questions.schedules.aget(name)
        return ScheduleDetail.of(found.schedule, slots=found.slots, fires=found.fires)

    return Topic(name=f"schedule/{name}", noun="schedules", look=schedule)


_WHOLE: dict[str, tuple[str, Look]] = {
    "overview": ("stats", _overview),
    "queues": ("queues", _queues),
    "workers": ("fleet", _workers),
    "dead": ("dead", _dead),
    "schedules": ("schedules", _schedules),
}
