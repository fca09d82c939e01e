"""A canary in everything that can be written, and nowhere in anything that can be read.

Routes come from the routes themselves: a new one is asked too, and fails here until this page knows what to
put into its path. Most texts come from the showcase, whose `spice` is put on every text it stores.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import quote

import msgspec
import pytest
from starlette.responses import JSONResponse

from mainspring.admin.access import Credentials
from mainspring.admin.health.top import FrameView, look
from mainspring.model.access import AccessRole, Actor
from mainspring.model.alert import AlertChange, AlertMove, NewNote, NoteEnd, NoteKind, Rule, Severity, Trouble
from mainspring.model.checkpoint import Event
from mainspring.model.job import Failure
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import ProgressNote, Reason, Settlement, Verdict
from mainspring.model.schedule import NewBackfill
from mainspring.model.workflow import NewWorkflow
from mainspring.tasks.checks import is_name
from mainspring.web.live import _WHOLE, Live, topic_of
from mainspring.web.privacy import EXEMPT
from tests.support.door import PAIR, House, open_house
from tests.support.matrix import PUBLIC, guarded
from tests.support.secrets import ON_ONE_LINE, SHAPES
from tests.support.showcase import Showcase

MARK = "c4n4ry"
LEASE = timedelta(hours=9)
NOW = datetime.now(UTC).replace(microsecond=0)


class Canaries:
    """Each text gets a secret of its own, in each form by turns, so that one that got out can be named."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}

    def text(self, what: str, shapes: tuple[Callable[[str], str], ...] = ON_ONE_LINE) -> str:
        secret = f"{MARK}{len(self.planted):04d}"
        form = shapes[len(self.planted) % len(shapes)]
        self.planted[secret] = f"{what}: {form('…')}"
        self.planted[b64encode(f"ada:{secret}".encode()).decode()] = self.planted[secret]
        return f"{what} {form(secret)}"

    def spice(self, text: str) -> str:
        return text if is_name(text) else self.text(text)

    def value(self, what: str) -> dict[str, object]:
        """As users' values hold them: by the name of a key, deep inside, and in a text."""
        secret = f"{MARK}{len(self.planted):04d}"
        self.planted[secret] = f"{what}: by its key"
        return {
            "api_key": secret,
            "deep": [{"dbPassword": [secret]}],
            "name": self.text(f"{what}, inside"),
            self.text(f"{what}, as a key"): "up",
            "keys": {self.text(f"{what}, as a key {n}", SHAPES): n for n in range(len(SHAPES))},
            "headers": [["X-Api-Key", self.named(f"{what}, of a pair")]],
            "env": [{"name": "DB_PASSWORD", "value": self.named(f"{what}, beside its name")}],
        }

    def named(self, what: str) -> str:
        """A secret by itself: what it is called stands elsewhere."""
        secret = f"{MARK}{len(self.planted):04d}"
        self.planted[secret] = what
        return secret

    def found(self, text: str) -> set[str]:
        """What was planted and is in an answer."""
        if MARK not in text.lower() and not re.search(r"YWRhOmM0bjRyeT", text):
            return set()
        return {what for secret, what in self.planted.items() if secret in text} or {"something of it"}


@pytest.fixture
def planted(database_url: str) -> Iterator[tuple[House, Canaries]]:
    canaries = Canaries()
    with open_house(database_url, seeded=False, tokens=True) as house:

        def run(work: Any) -> Any:
            async def given() -> Any:
                return await work

            return house.run(given)

        store = run(house.app._store())
        # Its story is of the last three hours, so it comes first.
        Showcase(store, run, canaries.spice).fill()
        house.workflow = run(begin(house, canaries))
        plant_by_http(house, canaries)
        run(plant_in_store(house, canaries))
        yield house, canaries


async def begin(house: House, canaries: Canaries) -> int:
    """A worker, the schedules that are declared, and a workflow whose first step waits; answers its id."""
    store, stamp, tasks = await house.app._store(), None, house.app._registry.tasks
    await house.app._write_schedules()
    worker = NewProcess(id=7, role=Role.WORKER, name="w", queues=("default", "mine"), tasks=tuple(tasks))
    await store.processes.join(worker, lease=LEASE, at=stamp)
    await store.queue.insert([tasks[PAIR].job()], at=stamp)
    [claim] = await store.queue.claim(7, queues=["default"], tasks=[PAIR], limit=1, at=stamp)
    new = NewWorkflow(definition=tasks[PAIR].definition, params={"who": canaries.text("parameter")})
    begun = Settlement(
        job_id=claim.job_id, worker_id=7, fence=claim.fence, verdict=Verdict.STARTED, start=new
    )
    assert await store.queue.settle([begun], at=stamp) == []
    await store.workflows.resolve(limit=10, at=stamp)
    return claim.job_id


def plant_by_http(house: House, canaries: Canaries) -> None:
    text, value = canaries.text, canaries.value

    def put(method: str, path: str, body: object) -> Any:
        answer = house.ask(method, f"/api/v1{path}", json=body)
        assert answer.status_code < 300, (path, answer.text)
        assert not canaries.found(answer.text), path
        return answer.json()

    put("POST", "/jobs", {"task": "greet", "args": [text("argument")], "key": text("key")})
    put("POST", "/jobs", {"task": "fail", "kwargs": {"secret": text("argument by name")}, "delay": "1h"})
    new = {"name": "canary", "task": "greet", "every": "1h", "kwargs": {"name": text("argument")}}
    put("POST", "/schedules", {**new, "note": text("note of a schedule")})
    put("PATCH", "/schedules/canary", {"kwargs": {"name": text("changed")}, "note": text("note of an edit")})
    put("POST", "/schedules/canary/pause", {"note": text("note of a pause")})
    put("POST", "/schedules/canary/skip", {"count": 1})
    put("POST", "/schedules/canary/trigger", {})
    put("POST", "/queues/mail/pause", {"note": text("note of a queue's pause")})
    put("POST", f"/workflows/{house.workflow}/pause", {"note": text("note of a workflow")})
    put("POST", "/workflows", {"name": "pair", "params": {"who": text("parameter")}})
    put("POST", "/events", {"name": "paid", "payload": value("event")})


async def plant_in_store(house: House, canaries: Canaries) -> None:
    store, stamp, text = await house.app._store(), None, canaries.text
    tokens = house.app.admin(text("author")).tokens
    await tokens.acreate(text("token")[:100].strip(), role="viewer")
    actor = Actor(name=text("actor")[:100], role=AccessRole.VIEWER, via="oidc")
    gate = Credentials(store, house.app._clock, house.app._entropy, house.app.settings.access)
    await gate.sign_in(actor)
    member = NewProcess(
        id=8, role=Role.WORKER, name=text("member"), queues=("q",), tasks=("t",), version=text("version")
    )
    await store.processes.join(member, lease=LEASE, at=stamp)
    await store.leases.acquire("duty", holder_id=8, holder=text("holder"), ttl=LEASE, at=stamp)
    await store.events.send(Event(name="mine", payload=b'{"password": "c4n4ry-event"}', job_id=4), at=stamp)
    past = NewBackfill(schedule="nightly", start=NOW - LEASE, end=NOW, slots=(), author=text("author"))
    await store.backfills.add(past, at=stamp)
    await endings(house, canaries)
    await alerts(house, canaries)


async def endings(house: House, canaries: Canaries) -> None:
    """A step and two jobs: one that made something, one that failed, one that is under way."""
    store, stamp, text = await house.app._store(), None, canaries.text
    tasks = house.app._registry.tasks
    await store.queue.insert(
        [tasks["greet"].using(queue="mine").job(text(f"argument {n}")) for n in range(3)], at=stamp
    )
    claims = await store.queue.claim(7, queues=["mine"], tasks=["greet"], limit=3, at=stamp)
    claims += await store.queue.claim(7, queues=["default"], tasks=["greet"], limit=50, at=stamp)
    assert len(claims) >= 5
    made, failed, running, *others = claims
    result = msgspec.json.encode(canaries.value("result"))
    failure = Failure(type=text("type"), message=text("message"), traceback=text("traceback"))
    ended = [
        Settlement(
            job_id=each.job_id,
            worker_id=7,
            fence=each.fence,
            verdict=Verdict.SUCCEEDED,
            result=result,
            log=text("log"),
        )
        for each in (made, *others)
    ]
    dead = Settlement(
        job_id=failed.job_id,
        worker_id=7,
        fence=failed.fence,
        verdict=Verdict.DEAD,
        reason=Reason.FAILED,
        failure=failure,
        log=text("log of a failure"),
    )
    note = ProgressNote(
        job_id=running.job_id, worker_id=7, fence=running.fence, fraction=0.5, note=text("progress")
    )
    await store.runs.note_progress([note], at=stamp)
    await store.effects.record_step(running, text("checkpoint"), value=result, at=stamp)
    assert await store.queue.settle([*ended, dead], at=stamp) == []
    await store.workflows.resolve(limit=10, at=stamp)


async def alerts(house: House, canaries: Canaries) -> None:
    store, stamp, text = await house.app._store(), None, canaries.text
    trouble = Trouble(
        rule=Rule.FAILED,
        subject="fail",
        severity=Severity.WARNING,
        since=NOW,
        sentence=text("sentence of an alert"),
    )
    told = NewNote(kind=NoteKind.OPENED, target="digest", shown=text("target of an alert"), due_at=NOW)
    change = AlertChange(trouble=trouble, move=AlertMove.OPENED, notes=(told,), uid=1)
    assert await store.alerts.change([change], at=stamp)
    due = [each.id for each in await store.alerts.due_notes(limit=10, at=stamp)]
    assert await store.alerts.begin_notes(due, batch="b", lasts=LEASE, at=stamp)
    assert await store.alerts.end_notes(
        NoteEnd(note_ids=tuple(due), batch="b", problem=text("problem")), at=stamp
    )


class Paths:
    """Everything that a route can be asked for here."""

    def __init__(self, house: House) -> None:
        self._house = house
        states = ("ready", "delayed", "running", "succeeded", "dead", "cancelled")
        found = [house.get(f"/jobs?state={each}&limit=40").json()["items"] for each in states]
        self._values: dict[str, list[object]] = {
            "job_id": [each["id"] for some in found for each in (*some[:3], *some[-3:])],
            "workflow_id": [each["id"] for each in house.get("/workflows").json()["items"]],
            "step": ["first", "second"],
            "alert_id": [each["id"] for each in house.get("/alerts").json()["items"]],
            "backfill_id": [each["id"] for each in house.get("/backfills").json()["items"]],
            "replay_id": [1],
            "by": ["task", "queue"],
        }

    def of(self, path: str) -> list[str]:
        """The paths of a route, with what it wants behind the ?."""
        made = [path]
        for name in re.findall(r"\{(\w+)(?::\w+)?\}", path):
            values = self._named(path) if name == "name" else self._values[name]
            made = [re.sub(rf"\{{{name}(:\w+)?\}}", str(value), each) for each in made for value in values]
        return [f"{each}{query}" for each in made for query in self._queries(path)]

    def _named(self, path: str) -> list[str]:
        if "/queues" in path:
            return ["default", "mail", "media"]
        return ["pair"] if "workflow" in path else ["canary", "nightly", "reports.nightly"]

    def _queries(self, path: str) -> tuple[str, ...]:
        begin, end = (quote((NOW + timedelta(hours=each)).isoformat()) for each in (-3, 3))
        span = f"?from={begin}&to={end}"
        moment = quote(NOW.replace(minute=0, second=0).isoformat())
        if path in ("/api/v1/simulation", "/api/v1/load"):
            return (span,)
        if path.endswith("/-/backfill"):
            return (f"?from={NOW - timedelta(hours=3):%Y-%m-%dT%H:%M}&to={NOW:%Y-%m-%dT%H:%M}",)
        if path == "/api/v1/next":
            return ("?every=1h",)
        if path.endswith(("schedules/{name}/why", "/-/why")):
            return (f"?at={moment}",)
        if path == "/dead/letters":
            like = [each["newest_id"] for each in self._house.get("/dead/groups").json()["items"]]
            return ("", *(f"?like={each}" for each in like))
        if path == "/workflows/{workflow_id:int}/step" or path == "/workflows/{workflow_id:int}":
            return ("", "?step=first", "?step=second")
        if path in ("/jobs", "/jobs/part", "/api/v1/jobs"):
            return ("", *(f"?state={each}" for each in ("dead", "succeeded", "running", "delayed", "ready")))
        return ("",)


def test_no_answer_and_no_page_holds_a_secret(planted: tuple[House, Canaries]) -> None:
    house, canaries = planted
    house.ask(
        "POST",
        "/dead/replay",
        data={"like": house.get("/dead/groups").json()["items"][0]["newest_id"]},
        headers={"Sec-Fetch-Site": "same-origin"},
        follow_redirects=False,
    )
    paths, leaks, silent = Paths(house), {}, []
    for place, guard in guarded(house.web).items():
        method, path = place.split()
        if method != "GET" or path == "/api/v1/stream":
            continue
        statuses = set()
        roles = [None] if guard["role"] == PUBLIC else [guard["role"], "admin"]
        for asked in paths.of(path):
            for role in dict.fromkeys(roles):
                house.client.cookies.clear()
                answer = house.ask("GET", asked, role=role, follow_redirects=False)
                statuses.add(answer.status_code)
                out = canaries.found(f"{answer.text}{dict(answer.headers)}")
                if out:
                    leaks[f"{role} {asked}"] = sorted(out)
        if not statuses & {200, 303} and "oidc" not in path:
            silent.append((place, statuses))

    assert leaks == {}
    # Each of them had something to say, so that this test looked at it.
    assert not silent, silent


def test_no_stream_holds_a_secret(planted: tuple[House, Canaries]) -> None:
    house, canaries = planted
    jobs = Paths(house).of("{job_id}")
    names = [
        *_WHOLE,
        *(f"job/{each}" for each in jobs),
        f"workflow/{house.workflow}",
        "schedule/canary",
        "schedule/nightly",
    ]
    ada = Actor(name="ada", role=AccessRole.VIEWER, via="host")

    async def yes() -> bool:
        return True

    async def listen() -> str:
        live, heard, said = house.web.state.live, set[str](), ""
        assert isinstance(live, Live)
        stream = live.stream(live.seat(ada), [topic_of(each) for each in names], yes)
        async for event in stream:
            said += event.decode()
            heard |= {each for each in names if f"event: {each}\n" in event.decode()}
            if heard == set(names):
                break
        await stream.aclose()
        return said

    assert canaries.found(house.run(listen)) == set()


def test_top_holds_no_secret(planted: tuple[House, Canaries]) -> None:
    house, canaries = planted

    async def see() -> str:
        return str(FrameView.of(await look(await house.app._store(), house.app._clock)))

    seen = house.run(see)
    assert "[redacted]" in seen
    assert canaries.found(seen) == set()


def test_what_is_exempt_has_a_reason() -> None:
    assert {name: bool(why) for name, why in EXEMPT.items()} == {"next": True, "secret": True}


def test_names_that_look_like_secrets_lead_where_they_say(sqlite_house: House) -> None:
    """A name is no secret: `token:refresh` is a schedule that is opened, paused and listened to."""
    house = sqlite_house
    new = {"name": "token:refresh", "task": "greet", "every": "1h", "args": ["Ada"]}
    assert house.post("/schedules", new).status_code == 201
    listed = house.ask("GET", "/schedules").text
    shown = house.ask("GET", "/schedules/token%3Arefresh").text

    assert house.get("/schedules/token:refresh").json()["name"] == "token:refresh"
    assert 'href="/schedules/token%3Arefresh"' in listed
    assert ">token:refresh<" in listed
    assert 'action="/schedules/token%3Arefresh/-/pause"' in shown
    assert 'data-live="schedule/token:refresh"' in shown
    assert "[redacted]" not in listed + shown


def test_a_handler_that_answers_past_the_one_who_hides_is_told_so(
    sqlite_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of its own would show what it likes."""
    house = sqlite_house
    [route] = [each for each in house.web.routes if getattr(each, "path", "") == "/api/v1/version"]
    own = AsyncMock(return_value=JSONResponse({"note": "password=hunter2"}))
    monkeypatch.setattr(route.dependant, "call", own)  # type: ignore[attr-defined]
    answer = house.get("/version")

    assert own.await_count >= 1
    assert (answer.status_code, "hunter2" in answer.text) == (500, False)
