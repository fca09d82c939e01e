"""A session that breaks when it has done what it was asked: `AnswerLost` is for what has to be looked up."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from mainspring import Limit, Mainspring
from mainspring.clock import SystemClock
from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.job import JobFilter, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.store.opener import open_store
from mainspring.store.postgres.connection import REPEATABLE, SQL, TEXTS
from mainspring.store.postgres.troubles import IDEMPOTENT
from mainspring.store.sqlite import thread
from mainspring.store.statements import reading

app = Mainspring("sqlite://:memory:")
FOR_SECONDS = 4.0


@app.task(limits=[Limit("each", by="number", concurrency=2)])
def limited(number: int) -> None:
    """Its jobs have limit keys and lines."""


@pytest.fixture
def opened(postgres_url: str, run: Any) -> Iterator[Any]:
    store = open_store(postgres_url, clock=SystemClock())
    yield store
    run(store.close())


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counter[str]]:
    """Have sessions break when they have done this, so many times; answers how often they did."""

    def of(text: str, times: int) -> Counter[str]:
        seen: Counter[str] = Counter()

        def broken(name: str) -> None:
            real = getattr(asyncpg.Connection, name)

            async def call(self: Any, query: str, *args: Any, **options: Any) -> Any:
                answer = await real(self, query, *args, **options)
                if query == text and seen["broke"] < times:
                    seen["broke"] += 1
                    self.terminate()
                    raise asyncpg.ConnectionDoesNotExistError(
                        "connection was closed in the middle of operation"
                    )
                return answer

            monkeypatch.setattr(asyncpg.Connection, name, call)

        broken("fetch")
        broken("execute")
        return seen

    return of


ON_THE_WAY = [
    "reserve_ids",
    "queues",
    "add_queues",
    "tasks",
    "add_tasks",
    "add_priority_levels",
    "put_limit_keys",
    "limit_key_ids",
    "put_limit_sets",
    "limit_set_ids",
]
"""To a job with limits that is the first of its queue and task."""


@pytest.mark.parametrize("statement", ON_THE_WAY)
def test_what_may_be_repeated_is(opened: Any, breaking: Any, run: Any, statement: str) -> None:
    seen = breaking(SQL[statement][0], 1)

    ids = run(opened.queue.insert([limited.job(1)], at=None))

    assert seen["broke"] == 1
    assert [job.id for job in run(opened.jobs.find(JobFilter(), at=None))] == ids


@pytest.mark.parametrize("statement", ON_THE_WAY)
def test_what_never_answers_is_unavailable(opened: Any, breaking: Any, run: Any, statement: str) -> None:
    breaking(SQL[statement][0], 1000)

    with pytest.raises(StoreUnavailable):
        run(opened.queue.insert([limited.job(1)], at=None))

    assert run(opened.jobs.find(JobFilter(), at=None)) == []


def test_a_run_begins_although_the_answer_to_its_begin_was_lost(opened: Any, breaking: Any, run: Any) -> None:
    run(opened.queue.insert([NewJob(task="t", payload=b"{}")], at=None))
    run(
        opened.processes.join(
            NewProcess(id=1, role=Role.WORKER, name="w"), lease=timedelta(minutes=1), at=None
        )
    )
    [claim] = run(opened.queue.claim(1, queues=["default"], tasks=["t"], limit=1, at=None))
    seen = breaking(SQL["begin_orphan"][0], 1)

    assert run(opened.queue.begin(claim, at=None))
    assert seen["broke"] == 1


def test_an_effect_is_looked_up_and_not_repeated(opened: Any, breaking: Any, run: Any) -> None:
    seen = breaking(SQL["insert_limited_jobs"][0], 1)

    ids = run(opened.queue.insert([limited.job(1)], at=None))

    assert seen["broke"] == 1
    assert [job.id for job in run(opened.jobs.find(JobFilter(), at=None))] == ids


def test_an_effect_that_cannot_be_looked_up_is_told(opened: Any, breaking: Any, run: Any) -> None:
    breaking(SQL["acquire_lease"][0], 1)
    ttl = timedelta(seconds=15)

    with pytest.raises(AnswerLost):
        run(opened.leases.acquire("one", holder_id=1, holder="x", ttl=ttl, at=None))


@pytest.mark.parametrize(
    ("text", "told", "names"),
    [
        (
            SQL["add_queue_pause"][0] if "add_queue_pause" in SQL else SQL["pause_queue"][0],
            StoreUnavailable,
            [],
        ),
        ("COMMIT;", AnswerLost, ["late"]),
    ],
    ids=["statement", "commit"],
)
def test_of_a_transaction_only_its_commit_is_in_doubt(
    opened: Any, breaking: Any, run: Any, text: str, told: type[StoreError], names: list[str]
) -> None:
    run(opened.queue.insert([NewJob(task="t", payload=b"{}", queue="late")], at=None))
    breaking(text, 1)

    with pytest.raises(told) as raised:
        run(opened.queues.pause("late", author="me", note=None, at=None))

    assert type(raised.value) is told or told is StoreUnavailable
    assert [row.queue for row in run(opened.queues.pauses())] == names


def test_statements_that_read_are_known_to() -> None:
    """What is repeated must not be what counts: whatever has one of these words in it is none that reads."""
    words = re.compile(
        r"insert into|delete from|update mainspring|nextval|pg_notify|for update|mainspring\.\w+\(", re.I
    )
    reads = reading(TEXTS)

    assert [name for name in reads if words.search(TEXTS[name])] == []
    assert {"head", "live_job", "known_ids", "limit_key_ids"} <= reads
    assert not IDEMPOTENT & reads
    assert set(TEXTS) >= IDEMPOTENT
    assert not REPEATABLE & {
        name for name in TEXTS if name.startswith(("insert_", "settle_", "claim_", "take_"))
    }


def test_under_sessions_that_are_killed_only_effects_are_in_doubt(postgres_url: str, run: Any) -> None:
    """Every session, again and again, for some seconds: names and limits are new in each call."""
    told: Counter[str] = Counter()

    async def story() -> None:
        store = open_store(postgres_url, clock=SystemClock())
        stop = asyncio.Event()

        async def hammer(who: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                told["calls"] += 1
                try:
                    job = limited.using(queue=f"q-{who}-{number}").job(number * 10 + who)
                    await store.queue.insert([job], at=None)
                    await store.jobs.find(JobFilter(limit=1), at=None)
                    await store.queues.depth(at=None)
                except AnswerLost as lost:
                    told[lost.what] += 1
                except StoreUnavailable:
                    told["unavailable"] += 1

        async def killer() -> None:
            connection = await asyncpg.connect(postgres_url)
            while not stop.is_set():
                told["killed"] += await connection.fetchval(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                await asyncio.sleep(0.04)
            await connection.close()

        tasks = [asyncio.create_task(hammer(who)) for who in range(6)] + [asyncio.create_task(killer())]
        await asyncio.sleep(FOR_SECONDS)
        stop.set()
        await asyncio.gather(*tasks)
        await store.close()

    run(story())
    assert told["killed"] > 20
    assert told["calls"] > told["unavailable"] + told["enqueue"]
    assert set(told) <= {"calls", "killed", "unavailable", "enqueue"}, told


def test_a_read_that_could_not_be_ended_is_unavailable_on_sqlite(tmp_path: Any, run: Any) -> None:
    """The disk fails at COMMIT: of what changed nothing there is nothing to look up."""

    class Failing(sqlite3.Connection):
        fails = False

        def execute(self, text: str, *args: Any) -> Any:
            if text == "COMMIT" and Failing.fails:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error
            return super().execute(text, *args)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None, factory=Failing)
        connection.execute("CREATE TABLE IF NOT EXISTS t (n)")
        return connection

    async def ask(text: str) -> Any:
        calls = thread.ConnectionThread("mainspring-test", connect, begin="BEGIN")
        try:
            return await calls.run(lambda session: session.connection.execute(text).fetchall(), durable=False)
        finally:
            Failing.fails = False
            await calls.close()

    assert run(ask("SELECT n FROM t")) == []
    for text, told in (("SELECT n FROM t", StoreUnavailable), ("INSERT INTO t VALUES (1)", AnswerLost)):
        Failing.fails = True
        with pytest.raises(told):
            run(ask(text))
