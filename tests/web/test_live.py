"""Streams: one look for all who listen, news only when there is some, and nobody who may not."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from mainspring.admin.views import to_json
from mainspring.errors import StoreUnavailable
from mainspring.model.access import AccessRole, Actor
from mainspring.web import live
from mainspring.web.live import Live, Topic, _Listening, topic_of
from mainspring.web.privacy import private
from mainspring.web.problems import Problem
from mainspring.web.services import Services
from tests.support.door import House, make_app

QUICK = timedelta(milliseconds=5)
ADA = Actor(name="ada", role=AccessRole.VIEWER, via="token")


class World:
    """Something that changes, and how often it was looked at."""

    def __init__(self) -> None:
        self.value: object = 1
        self.looks = 0

    async def look(self, services: Services) -> object:
        self.looks += 1
        if isinstance(self.value, Exception):
            raise self.value
        return {"value": self.value}

    @property
    def topic(self) -> Topic:
        return Topic(name="world", noun="jobs", look=self.look)


async def yes() -> bool:
    return True


def quick(tmp_path: Any) -> Live:
    return Live(Services(make_app(f"sqlite:///{tmp_path}/mainspring.db")), look_every=QUICK)


async def events(stream: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Any]]:
    async for chunk in stream:
        lines = dict(line.split(": ", 1) for line in chunk.decode().splitlines() if ": " in line)
        if "event" in lines:
            yield lines["event"], json.loads(lines["data"])


async def settled(hub: Live) -> None:
    """Until nobody looks any more."""
    while hub.watched or len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_listeners_share_one_look_and_hear_of_changes_only(run: Callable[[Any], Any], tmp_path: Any) -> None:
    async def story() -> tuple[list[Any], list[Any], int]:
        hub, world = quick(tmp_path), World()
        heard: list[list[Any]] = [[], []]

        async def listen(ear: list[Any]) -> None:
            async with aclosing(hub.stream(hub.seat(ADA), [world.topic], yes)) as stream:
                async for _, data in events(stream):
                    ear.append(data["value"])
                    if data["value"] == 3:
                        return

        ears = [asyncio.ensure_future(listen(each)) for each in heard]
        for value in (1, 2):
            world.value = value
            before = world.looks
            while world.looks < before + 3:  # noqa: ASYNC110 - unchanged for a while: no news
                await asyncio.sleep(0.001)
        world.value = 3
        await asyncio.gather(*ears)
        await settled(hub)
        ended = world.looks
        await asyncio.sleep(0.02)
        return heard[0], heard[1], world.looks - ended

    first, second, looks_after = run(story())

    assert first == second == [1, 2, 3]
    assert looks_after == 0


def test_a_stream_outlives_the_database_and_says_so(run: Callable[[Any], Any], tmp_path: Any) -> None:
    async def story() -> list[str]:
        hub, world, heard = quick(tmp_path), World(), []
        then = iter([StoreUnavailable("away"), 1, None])
        async with aclosing(hub.stream(hub.seat(ADA), [world.topic], yes)) as stream:
            async for name, _ in events(stream):
                heard.append(name)
                value = next(then)
                if value is None:
                    break
                world.value = value
        await settled(hub)
        return heard

    assert run(story()) == ["world", "unavailable", "world"]


def test_who_may_not_listen_any_more_is_let_go(run: Callable[[Any], Any], tmp_path: Any) -> None:
    async def no() -> bool:
        return False

    async def story() -> list[str]:
        hub = quick(tmp_path)
        stream = hub.stream(hub.seat(ADA), [World().topic], no, keep_alive=5 * QUICK)
        heard = [name async for name, _ in events(stream)]
        await settled(hub)
        return heard

    assert run(story()) == ["world", "closed"]


def test_a_topic_that_never_rests_keeps_nobody_in(run: Callable[[Any], Any], tmp_path: Any) -> None:
    class Restless(World):
        async def look(self, services: Services) -> object:
            return {"value": next(self.numbers)}

        numbers = itertools.count()

    async def story() -> list[str]:
        hub = quick(tmp_path)

        async def no() -> bool:
            return False

        async with aclosing(
            hub.stream(hub.seat(ADA), [Restless().topic], no, keep_alive=20 * QUICK)
        ) as stream:
            return [name async for name, _ in events(stream)]

    heard = run(asyncio.wait_for(story(), 30))
    assert (heard[0], heard[-1]) == ("world", "closed")


def test_streams_are_counted_for_each_and_in_all(
    run: Callable[[Any], Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """api-070: the twenty-first of one is refused, others are served."""
    monkeypatch.setattr(live, "MOST_STREAMS", 21)
    bob = Actor(name="bob", role=AccessRole.VIEWER, via="token")

    async def story() -> list[int]:
        hub, world, refused = quick(tmp_path), World(), []
        streams = [hub.stream(hub.seat(ADA), [world.topic], yes) for _ in range(20)]
        for each in streams:
            await anext(each)
        for actor, more in ((ADA, 0), (bob, 1), (bob, 0)):
            try:
                hub.seat(actor).leave()
            except Problem as problem:
                refused.append(problem.status)
            for _ in range(more):
                streams.append(hub.stream(hub.seat(actor), [world.topic], yes))
                await anext(streams[-1])
        assert world.looks <= 3
        for each in streams:
            await each.aclose()
        hub.seat(ADA).leave()
        await settled(hub)
        return refused

    assert run(story()) == [429, 503]


def test_a_burst_finds_as_many_seats_as_there_are(sqlite_house: House) -> None:
    """A hundred ask before the first of them has been sent anything."""

    async def burst() -> Counter[int]:
        hub = sqlite_house.web.state.live
        transport = httpx2.ASGITransport(app=sqlite_house.web)
        headers = {"X-As": "viewer"}
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers
        ) as client:
            asked = [
                asyncio.ensure_future(client.get("/api/v1/stream", params={"topic": "queues"}))
                for _ in range(100)
            ]
            while sum(each.done() for each in asked) < 80:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            hub.close()
            return Counter(each.status_code for each in await asyncio.gather(*asked))

    assert sqlite_house.run(burst) == {200: 20, 429: 80}


def test_a_browser_that_goes_before_it_was_told_anything_leaves_its_seat(sqlite_house: House) -> None:
    hub, ada = sqlite_house.web.state.live, Actor(name="ada", role=AccessRole.VIEWER, via="host")

    async def gone() -> int:
        async def still() -> bool:
            return True

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            raise OSError("the browser has gone")

        for _ in range(live.MOST_OF_ONE + 1):
            listening = _Listening(hub, hub.seat(ada), [topic_of("queues")], still)
            with suppress(BaseException):
                await listening({"type": "http", "asgi": {"spec_version": "2.0"}}, receive, send)
        return hub._by_name.total()

    assert sqlite_house.run(gone) == 0


def test_a_server_that_stops_ends_its_streams(run: Callable[[Any], Any], tmp_path: Any) -> None:
    async def story() -> bool:
        hub = quick(tmp_path)
        stream = hub.stream(hub.seat(ADA), [World().topic], yes)
        await anext(stream)
        hub.close()
        async for _ in stream:
            pass
        await settled(hub)
        with pytest.raises(Problem):
            hub.seat(ADA)
        return True

    assert run(story())


def test_what_can_be_listened_to(house: House) -> None:
    """Each topic is looked at once, on each store."""
    names = ["overview", "queues", "workers", "dead", "schedules", "job/1", "workflow/5", "schedule/nightly"]

    async def look() -> dict[str, Any]:
        return {name: to_json(await topic_of(name).look(house.web.state.services)) for name in names}

    views = house.run(look)

    assert views["overview"]["workers"] == 1
    assert views["job/1"]["result"] == "Ada"
    assert views["workflow/5"]["name"] == "pair"
    assert views["schedule/nightly"]["task"] == "greet"
    assert "hunter2" not in json.dumps(private(house.web.state.services, views["dead"]))


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        ("", {}, 422, "missing"),
        ("?topic=nonsense", {}, 422, "invalid"),
        ("?topic=job/0", {}, 422, "invalid"),
        ("?" + "&".join(["topic=queues"] * 21), {}, 422, "range"),
        ("?topic=queues", {"Origin": "https://evil.example"}, 403, "forbidden"),
        ("?topic=queues", {"Sec-Fetch-Site": "cross-site"}, 403, "forbidden"),
        ("?topic=queues", {"X-Scopes": "stats,jobs"}, 403, "forbidden"),
    ],
)
def test_streams_that_are_refused(
    sqlite_house: House, query: str, headers: dict[str, str], status: int, code: str
) -> None:
    """api-072 among them"""
    answer = sqlite_house.get(f"/stream{query}", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
