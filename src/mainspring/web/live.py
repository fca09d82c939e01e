"""What changes, sent to browsers that listen: topics, one look for all who listen to a topic, `/stream`."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mainspring.admin.jobs import JobDetail
from mainspring.admin.queues import QueueView
from mainspring.admin.views import ProcessView, ScheduleDetail, to_json
from mainspring.errors import InvalidArgument, MainspringError, NotFound, StoreError
from mainspring.model.access import AccessRole, Actor
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.value import Value
from mainspring.tasks.checks import valid_name
from mainspring.triggers.misfire import LATE
from mainspring.waiting import until
from mainspring.web.auth.identity import actor_of
from mainspring.web.auth.policy import Routes, identified
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.privacy import private
from mainspring.web.problems import Forbidden, Problem, Unauthorized
from mainspring.web.services import Services

LOOK_EVERY = timedelta(seconds=1)
KEEP_ALIVE = timedelta(seconds=10)
"""After so long a silence a stream sends a comment. As often the listener is identified again."""
MOST_STREAMS, MOST_OF_ONE = 500, 20
_log = logging.getLogger("mainspring.web")
Recheck = Callable[[], Awaitable[bool]]
Look = Callable[[Services], Awaitable[object]]
LARGEST_ID = 2**63 - 1
GROUPS = 50
MOST_TOPICS = 20
routes = Routes("stats", ApiRoute, prefix="/api/v1", tags=["stream"])
_ANSWERS: dict[str, Any] = {
    "response_model": None,
    "responses": {
        200: {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        "4XX": {
            "description": "Refused",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        },
        "5XX": {
            "description": "Not now",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        },
    },
}


class Live:
    """Listeners by topic. A topic is read while it has a listener, once for all of its listeners."""

    def __init__(self, services: Services, *, look_every: timedelta = LOOK_EVERY) -> None:
        self._services, self._look_every = services, look_every
        self._channels: dict[str, _Channel] = {}
        self._by_name: Counter[str] = Counter()
        self._closed = asyncio.Event()
        self._listeners: set[Listener] = set()

    def seat(self, actor: Actor) -> Seat:
        """A place for one stream, taken at once: the next request finds it taken, though nothing has been
        sent yet. Raises where there are too many streams, of this one or in all."""
        if self._by_name[actor.name] >= MOST_OF_ONE:
            raise Problem(
                429, "too_many", f"at most {MOST_OF_ONE} streams for each", headers={"Retry-After": "5"}
            )
        if self._by_name.total() >= MOST_STREAMS or self._closed.is_set():
            raise Problem(503, "too_many", f"at most {MOST_STREAMS} streams", headers={"Retry-After": "5"})
        return Seat(self._by_name, actor.name)

    async def stream(
        self, seat: Seat, topics: Sequence[Topic], still: Recheck, *, keep_alive: timedelta = KEEP_ALIVE
    ) -> AsyncIterator[bytes]:
        """Events until the listener goes, we close, or it may not listen any more."""
        listener = Listener(self)
        self._listeners.add(listener)
        try:
            for topic in topics:
                self._channel(topic).join(listener)
            yield b"retry: 2000\n\n"
            now, longest = self._services.clock.monotonic, keep_alive.total_seconds()
            asked = now()
            while not self._closed.is_set():
                came = await until(listener.news, keep_alive)
                if not came or now() - asked >= longest:
                    # However many events there are: a listener that may not listen any more gets none.
                    if not await still():
                        yield _event("closed", b"{}")
                        return
                    asked = now()
                for event in listener.take():
                    yield event
                if not came:
                    yield b": still here\n\n"
        finally:
            self._listeners.discard(listener)
            seat.leave()
            for topic in topics:
                self._left(topic, listener)

    def close(self) -> None:
        """End every stream."""
        self._closed.set()
        for each in self._listeners:
            each.news.set()

    @property
    def watched(self) -> list[str]:
        """Topics that are looked at now."""
        return sorted(self._channels)

    def _channel(self, topic: Topic) -> _Channel:
        if topic.name not in self._channels:
            self._channels[topic.name] = _Channel(self._services, topic, self._look_every)
        return self._channels[topic.name]

    def _left(self, topic: Topic, listener: Listener) -> None:
        channel = self._channels.get(topic.name)
        if channel is not None and not channel.leave(listener):
            del self._channels[topic.name]


class Seat:
    """A place for one stream of one actor. Only the first call of `leave` counts."""

    def __init__(self, taken: Counter[str], name: str) -> None:
        self._taken, self._name, self._is_taken = taken, name, True
        taken[name] += 1

    def leave(self) -> None:
        """For others."""
        if self._is_taken:
            self._is_taken = False
            self._taken[self._name] -= 1
            self._taken += Counter()  # names that have none are forgotten


class Listener:
    """One stream. Of each topic it gets the newest event only, however slowly it reads."""

    def __init__(self, live: Live) -> None:
        self.news = asyncio.Event()
        self._waiting: dict[str, bytes] = {}
        self._live = live

    def tell(self, topic: str, event: bytes) -> None:
        """News, in place of what it has not read of the same topic."""
        self._waiting[topic] = event
        self.news.set()

    def take(self) -> list[bytes]:
        """Everything there is; the rest is to come."""
        events, self._waiting = list(self._waiting.values()), {}
        self.news.clear()
        return events


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


async def _overview(services: Services) -> object:
    queues = await services.questions.queues.aall(about=True)
    processes = [each for each in await services.questions.processes.aall() if each.alive]
    roles = [each.role.value for each in processes]
    return {
        "ready": sum(each.ready for each in queues),
        "delayed": sum(each.delayed for each in queues),
        "running": sum(each.running for each in queues),
        "workers": roles.count("worker"),
        "schedulers": roles.count("scheduler"),
        "paused_queues": [each.name for each in queues if each.pause is not None],
    }


async def _queues(services: Services) -> object:
    return {"items": [QueueView.of(each) for each in await services.questions.queues.aall(about=True)]}


async def _workers(services: Services) -> object:
    # A renewed lease is not a change.
    found = await services.questions.processes.aall()
    views = [{**to_json(ProcessView.of(each)), "lease_until": None} for each in found]
    leases = await (await services.store()).leases.all(at=services.clock.stamp())
    return {"items": views, "leases": [{**to_json(each), "expires_at": None} for each in leases]}


async def _dead(services: Services) -> object:
    found = await services.questions.dead_letters.agroups(DeadFilter(limit=GROUPS))
    return {"items": found}


async def _schedules(services: Services) -> object:
    # Read every second while it has a listener: counts only, never all schedules.
    store = await services.store()
    counts = await store.schedules.counts(late=LATE, at=services.clock.stamp())
    coming = await store.slots.coming(limit=1)
    return {
        "count": counts.total,
        "paused": counts.paused,
        "overdue": counts.overdue,
        "next_at": coming[0].slot_at.isoformat() if coming else None,
    }


_WHOLE: dict[str, tuple[str, Look]] = {
    "overview": ("stats", _overview),
    "queues": ("queues", _queues),
    "workers": ("fleet", _workers),
    "dead": ("dead", _dead),
    "schedules": ("schedules", _schedules),
}


@routes.get("/stream", **_ANSWERS)
async def stream(request: Request, topic: Annotated[list[str], Query(max_length=MOST_TOPICS)]) -> Response:
    """Events named like their topic, with the JSON of what it is now, whenever that changes: overview,
    queues, workers, dead, schedules, job/ID, workflow/ID, schedule/NAME. `unavailable` while the database is
    away, `gone` for what is not there, `closed` when you may not listen any more."""
    _refuse_others(request)
    live: Live = request.app.state.live
    actor = actor_of(request)
    topics = [topic_of(each) for each in dict.fromkeys(topic)]
    for each in topics:
        if not actor.may(AccessRole.VIEWER, each.noun):
            raise Forbidden(AccessRole.VIEWER)

    async def still() -> bool:
        return await _may_still(request, actor, topics)

    return _Listening(live, live.seat(actor), topics, still)


class _Channel:
    """One topic, and those who listen to it."""

    def __init__(self, services: Services, topic: Topic, every: timedelta) -> None:
        self._services, self._topic, self._every = services, topic, every
        self._listeners: set[Listener] = set()
        self._last: bytes | None = None
        self._stop = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    def join(self, listener: Listener) -> None:
        self._listeners.add(listener)
        if self._last is not None:
            listener.tell(self._topic.name, self._last)

    def leave(self, listener: Listener) -> bool:
        """Whether others still listen."""
        self._listeners.discard(listener)
        if not self._listeners:
            self._stop.set()
        return bool(self._listeners)

    async def _run(self) -> None:
        while not self._stop.is_set():
            self._publish(await self._looked())
            await until(self._stop, self._every)

    async def _looked(self) -> bytes:
        try:
            view = msgspec.json.encode(private(self._services, await self._topic.look(self._services)))
        except NotFound as gone:
            return _event("gone", msgspec.json.encode({"topic": self._topic.name, "detail": str(gone)}))
        except StoreError:
            return _event("unavailable", msgspec.json.encode({"topic": self._topic.name}))
        except MainspringError as error:
            return _event("refused", msgspec.json.encode({"topic": self._topic.name, "detail": str(error)}))
        except Exception:  # noqa: BLE001 - the listeners and the log get it
            _log.exception("topic %s: unexpected error", self._topic.name)
            return _event("failed", msgspec.json.encode({"topic": self._topic.name}))
        return _event(self._topic.name, view, blake2b(view, digest_size=8).hexdigest())

    def _publish(self, event: bytes) -> None:
        if event == self._last:
            return
        self._last = event
        for each in self._listeners:
            each.tell(self._topic.name, event)


class _Listening(StreamingResponse):
    """Leaves its seat also when the browser has gone before the first event."""

    def __init__(self, live: Live, seat: Seat, topics: list[Topic], still: Recheck) -> None:
        self._seat = seat
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(live.stream(seat, topics, still), headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._seat.leave()


def _event(name: str, data: bytes, event_id: str = "") -> bytes:
    # JSON has no line breaks: what is in a view cannot begin an event of its own.
    number = f"id: {event_id}\n" if event_id else ""
    return f"event: {name}\n{number}data: ".encode() + data + b"\n\n"


def _one(kind: str, number: int) -> Topic:
    async def job(services: Services) -> object:
        return JobDetail.of_history(await services.questions.jobs.aget(number))

    async def workflow(services: Services) -> object:
        found = await services.questions.workflows.aget(number)
        # The moment of the look is not a change.
        return {**to_json(found), "as_of": None}

    look = job if kind == "job" else workflow
    return Topic(name=f"{kind}/{number}", noun=f"{kind}s", look=look)


def _schedule(name: str) -> Topic:
    async def schedule(services: Services) -> object:
        found = await services.questions.schedules.aget(name)
        return ScheduleDetail.of(found.schedule, slots=found.slots, fires=found.fires)

    return Topic(name=f"schedule/{name}", noun="schedules", look=schedule)


async def _may_still(request: Request, before: Actor, topics: list[Topic]) -> bool:
    """Identify the listener again: a token may have been revoked, a session closed, a role taken."""
    try:
        actor = await identified(request)
    except Unauthorized:
        return False
    except StoreError:
        return True  # the database is away: nothing can be checked, and nothing is sent either
    return (
        actor is not None
        and actor.name == before.name
        and all(actor.may(AccessRole.VIEWER, each.noun) for each in topics)
    )


def _refuse_others(request: Request) -> None:
    """Pages of other sites, whose browser would send our cookie with what they ask for."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
    if foreign or site in ("cross-site", "same-site"):
        raise Problem(403, "forbidden", "origin: not a page of this server", field="origin")
