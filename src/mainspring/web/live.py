"""What changes, told to those who listen: one look for all who look at the same thing."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from hashlib import blake2b

import msgspec

from mainspring.errors import MainspringError, NotFound, StoreError
from mainspring.model.access import Actor
from mainspring.waiting import until
from mainspring.web.desk import Desk
from mainspring.web.privacy import private
from mainspring.web.problems import Problem
from mainspring.web.topics import Topic

LOOK_EVERY = timedelta(seconds=1)
KEEP_ALIVE = timedelta(seconds=10)
"""After so long a silence a stream says it is there. As often it is asked whether who listens still may."""
MOST_STREAMS, MOST_OF_ONE = 500, 20
_log = logging.getLogger("mainspring.web")
Recheck = Callable[[], Awaitable[bool]]


class Live:
    """Listeners by topic. A topic is looked at while somebody listens, once for all of them."""

    def __init__(self, desk: Desk, *, look_every: timedelta = LOOK_EVERY) -> None:
        self._desk, self._look_every = desk, look_every
        self._channels: dict[str, _Channel] = {}
        self._by_name: Counter[str] = Counter()
        self._closed = asyncio.Event()
        self._listeners: set[Listener] = set()

    def seat(self, actor: Actor) -> Seat:
        """A place for one stream, taken at once: whoever asks next finds it taken, though nothing has been
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
            now, longest = self._desk.clock.monotonic, keep_alive.total_seconds()
            asked = now()
            while not self._closed.is_set():
                came = await until(listener.news, keep_alive)
                if not came or now() - asked >= longest:
                    # However much news there is: who may not listen any more hears no more of it.
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
            self._channels[topic.name] = _Channel(self._desk, topic, self._look_every)
        return self._channels[topic.name]

    def _left(self, topic: Topic, listener: Listener) -> None:
        channel = self._channels.get(topic.name)
        if channel is not None and not channel.leave(listener):
            del self._channels[topic.name]


class Seat:
    """A place for one stream of somebody. It is left once, however often somebody says so."""

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
    """One stream. Of each topic it is told the newest only, however slowly it reads."""

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


class _Channel:
    """One topic, and those who listen to it."""

    def __init__(self, desk: Desk, topic: Topic, every: timedelta) -> None:
        self._desk, self._topic, self._every = desk, topic, every
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
            view = msgspec.json.encode(private(self._desk, await self._topic.look(self._desk)))
        except NotFound as gone:
            return _event("gone", msgspec.json.encode({"topic": self._topic.name, "detail": str(gone)}))
        except StoreError:
            return _event("unavailable", msgspec.json.encode({"topic": self._topic.name}))
        except MainspringError as error:
            return _event("refused", msgspec.json.encode({"topic": self._topic.name, "detail": str(error)}))
        except Exception:  # noqa: BLE001 - whoever listens is told, and the log
            _log.exception("topic %s: unexpected error", self._topic.name)
            return _event("failed", msgspec.json.encode({"topic": self._topic.name}))
        return _event(self._topic.name, view, blake2b(view, digest_size=8).hexdigest())

    def _publish(self, event: bytes) -> None:
        if event == self._last:
            return
        self._last = event
        for each in self._listeners:
            each.tell(self._topic.name, event)


def _event(name: str, data: bytes, event_id: str = "") -> bytes:
    # JSON has no line breaks: what is in a view cannot begin an event of its own.
    number = f"id: {event_id}\n" if event_id else ""
    return f"event: {name}\n{number}data: ".encode() + data + b"\n\n"
