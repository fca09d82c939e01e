"""The web door of an app on a store, with something of everything behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.testclient import TestClient

from mainspring import Mainspring
from mainspring.model.access import AccessRole, Actor
from mainspring.model.alert import AlertChange, AlertMove, NewNote, NoteKind, Rule, Severity, Trouble
from mainspring.model.job import Failure
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Reason, Settlement, Verdict
from mainspring.model.workflow import NewWorkflow
from mainspring.web.app import WebApp, create_app
from mainspring.web.auth.identity import by_token_or_session

PAIR = "workflow:pair"
LEASE = timedelta(minutes=5)
HOST = "127.0.0.1"


def make_app(url: str, **options: Any) -> Mainspring:
    """Two tasks, a workflow and a schedule."""
    app = Mainspring._with(url, **options)

    @app.task
    def greet(name: str, times: int = 1) -> str:
        return name * times

    @app.task
    def fail(secret: str = "") -> None:
        raise ValueError(secret)

    flow = app.workflow("pair")
    first = flow.step(greet, flow.param("who", default="Ada"), name="first")
    flow.step(greet, first, name="second")
    app.schedule("nightly", greet, cron="30 2 * * *", tz="Europe/Berlin", args=["Ada"])
    return app


async def by_header(request: Request) -> Actor | None:
    """Tests say who they are: `X-As: operator`, and `X-Scopes: jobs,dead`."""
    role = request.headers.get("x-as")
    if role is None:
        return None
    scopes = tuple(each for each in request.headers.get("x-scopes", "").split(",") if each)
    return Actor(name=f"test-{role}", role=AccessRole(role), via="host", scopes=scopes)


class House:
    """An app, its door, and a client of it on an event loop of its own."""

    def __init__(self, app: Mainspring, web: WebApp, client: TestClient) -> None:
        self.app, self.web, self.client = app, web, client
        self.workflow = 5
        """The id of a workflow that it holds."""

    def run(self, work: Any, *args: Any) -> Any:
        """A coroutine function, on the loop of the door."""
        return self.client.portal.call(work, *args)

    def ask(self, method: str, path: str, *, role: str | None = "admin", **options: Any) -> Any:
        given = options.pop("headers", {})
        headers = [*({} if role is None else {"X-As": role}).items(), *dict_items(given)]
        return self.client.request(method, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> Any:
        return self.ask("GET", f"/api/v1{path}", **options)

    def post_raw(self, path: str, body: str) -> Any:
        return self.ask("POST", f"/api/v1{path}", content=body, headers={"Content-Type": "application/json"})

    def post(self, path: str, body: object = None, **options: Any) -> Any:
        given = {} if body is None else {"json": body}
        return self.ask("POST", f"/api/v1{path}", **given, **options)


def dict_items(headers: Any) -> list[tuple[str, str]]:
    """Headers as pairs: a list may name one twice."""
    return list(headers.items() if isinstance(headers, dict) else headers)


@contextmanager
def open_house(url: str, *, seeded: bool = True, tokens: bool = False, **options: Any) -> Iterator[House]:
    app = make_app(url, **options)
    web = create_app(app, identify=[by_header, *(by_token_or_session(app) if tokens else ())])
    with TestClient(web, base_url=f"http://{HOST}", raise_server_exceptions=False) as client:
        house = House(app, web, client)
        try:
            if seeded:
                house.run(seed, app)
            yield house
        finally:
            house.run(app.aclose)


async def seed(app: Mainspring) -> None:
    """Job 1 succeeded, job 2 is dead, job 3 waits, job 4 is delayed, 5 is a workflow's; one schedule."""
    store, stamp = await app._store(), app._clock.stamp()
    tasks = app._registry.tasks
    await app._write_schedules()
    await store.queue.insert([tasks["greet"].job("Ada"), tasks["fail"].job("hunter2")], at=stamp)
    worker = NewProcess(id=7, role=Role.WORKER, name="w", queues=("default",), tasks=tuple(tasks))
    await store.processes.join(worker, lease=LEASE, at=stamp)
    claims = await store.queue.claim(7, queues=["default"], tasks=list(tasks), limit=10, at=stamp)
    done = {
        each.job_id: Settlement(
            job_id=each.job_id,
            worker_id=7,
            fence=each.fence,
            verdict=Verdict.SUCCEEDED,
            result=b'"Ada"',
            took=timedelta(seconds=1),
            log="hello\n",
        )
        for each in claims
    }
    done[2] = Settlement(
        job_id=2,
        worker_id=7,
        fence=1,
        verdict=Verdict.DEAD,
        reason=Reason.FAILED,
        failure=Failure(type="ValueError", message="password=hunter2 <b>", traceback="line 1"),
    )
    assert await store.queue.settle(list(done.values()), at=stamp) == []
    await store.queue.insert(
        [tasks["greet"].job("Bob"), tasks["greet"].using(delay="1h").job("Eve")], at=stamp
    )
    await store.queue.insert([tasks[PAIR].job()], at=stamp)
    [claim] = await store.queue.claim(7, queues=["default"], tasks=[PAIR], limit=1, at=stamp)
    new = NewWorkflow(definition=tasks[PAIR].definition, params={"who": "Ada"})
    begun = Settlement(job_id=5, worker_id=7, fence=claim.fence, verdict=Verdict.STARTED, start=new)
    assert await store.queue.settle([begun], at=stamp) == []
    await store.workflows.resolve(limit=10, at=stamp)


async def open_alert(app: Mainspring) -> None:
    """Alert 1, with a note."""
    store = await app._store()
    now = await store.now(at=app._clock.stamp())
    trouble = Trouble(
        rule=Rule.NO_WORKER,
        subject="mail",
        severity=Severity.CRITICAL,
        since=now,
        sentence="nobody serves it",
    )
    note = NewNote(kind=NoteKind.OPENED, target="k", shown="https://h/***", due_at=now)
    change = AlertChange(uid=1, trouble=trouble, move=AlertMove.OPENED, notes=(note,))
    assert await store.alerts.change([change], at=now) == 1
