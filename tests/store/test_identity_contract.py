"""The id of a database, and the tokens that are made with it: no two databases share one."""

from __future__ import annotations

import logging
import shutil
import threading
from datetime import UTC, datetime, timedelta

import asyncpg

from mainspring.clock import SystemClock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from mainspring.worker.handlers import context_of
from tests.support.desk import settlement

ANOTHER = "12345678-9abc-4def-8123-456789abcdef"
SLOT = datetime(2030, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def tokens(claim):
    """Of the job, and of the schedule 1 at a slot."""
    context = context_of(
        claim, threading.Event(), log=logging.getLogger("test"), on_progress=print, effects=None, period=None
    )
    return context.token, type(context)(**{**fields(context), "schedule_id": 1, "slot": SLOT}).token


def fields(context):
    return {name: getattr(context, name) for name in context.__struct_fields__}


async def claimed(store, worker=1):
    """What a worker is handed that comes to this store, gives it back and leaves."""
    await store.processes.join(NewProcess(id=worker, role=Role.WORKER, name="w"), lease=MINUTE, at=None)
    found = await store.queue.claim(worker, queues=["default"], tasks=["t"], limit=1, at=None)
    held = await store.queue.held(worker, at=None)
    assert [each.database_id for each in held] == [each.database_id for each in found]
    await store.queue.settle([settlement(each, Verdict.RELEASED) for each in found], at=None)
    await store.processes.leave(worker, clean=True, at=None)
    return found


async def first_job(url):
    """The claim of the first job of a database, and the database's id."""
    store = open_store(url, clock=SystemClock())
    try:
        await store.migrate()
        if not (found := await claimed(store)):
            await store.queue.insert([NewJob(task="t", payload=b"{}")], at=None)
            found = await claimed(store)
        [claim] = found
        return claim, await store.identity()
    finally:
        await store.close()


def test_no_two_databases_share_a_token(tmp_path, new_database, run):
    urls = [f"sqlite:///{tmp_path}/{n}.db" for n in range(5)] + [new_database(migrated=False)]

    found = [run(first_job(url)) for url in urls]

    assert {claim.job_id for claim, _ in found} == {1}
    assert all(claim.database_id == identity for claim, identity in found)
    made = [token for claim, _ in found for token in tokens(claim)]
    assert len(set(made)) == 12, f"{len(set(made))} of 12 tokens differ"


def test_a_copy_of_a_file_keeps_its_tokens_until_it_is_given_an_id_of_its_own(tmp_path, run):
    original, copy = tmp_path / "original.db", tmp_path / "copy.db"
    first, _ = run(first_job(f"sqlite:///{original}"))
    again, _ = run(first_job(f"sqlite:///{original}"))
    assert tokens(again) == tokens(first)  # another attempt, by another process
    shutil.copy(original, copy)

    second, _ = run(first_job(f"sqlite:///{copy}"))
    assert tokens(second) == tokens(first)

    async def renewed():
        store = open_store(f"sqlite:///{copy}", clock=SystemClock())
        try:
            return await store.change_identity(ANOTHER, force=False, at=None)
        finally:
            await store.close()

    assert run(renewed()) == first.database_id
    third, _ = run(first_job(f"sqlite:///{copy}"))
    assert not {*tokens(third)} & {*tokens(first)}


def test_the_id_stays_what_it_is(store, run):
    before = run(store.identity())

    assert run(store.migrate()) == []
    assert run(store.identity()) == before
    assert len(before) == 36 and before == before.lower()


def test_a_new_id_is_what_claims_have_from_then_on(store, run, clock):
    run(store.queue.insert([NewJob(task="t", payload=b"{}")] * 2, at=None))
    before = run(store.identity())
    [one] = run(claimed(store))

    assert run(store.change_identity(ANOTHER, force=False, at=None)) == before

    [two] = run(claimed(store, 2))
    assert (one.database_id, two.database_id, run(store.identity())) == (before, ANOTHER, ANOTHER)


def test_the_id_is_not_changed_under_a_process_that_is_alive_unless_forced(store, run, clock):
    before = run(store.identity())
    run(store.processes.join(NewProcess(id=1, role=Role.SCHEDULER, name="s"), lease=MINUTE, at=clock.stamp()))

    assert run(store.change_identity(ANOTHER, force=False, at=clock.stamp())) is None
    assert run(store.identity()) == before
    assert run(store.change_identity(ANOTHER, force=True, at=clock.stamp())) == before
    clock.advance(MINUTE)
    assert run(store.change_identity(before, force=False, at=clock.stamp())) == ANOTHER


def test_a_process_that_lives_on_learns_the_id_of_the_database_that_answers_next(
    new_database, databases, run
):
    """Another database in the place of the one before, as after a restore from another cluster."""
    url = new_database()

    async def insist(call):
        for _ in range(9):
            try:
                return await call()
            except (StoreUnavailable, AnswerLost):
                continue
        raise AssertionError("the store did not come back")

    async def story():
        store = open_store(url, clock=SystemClock())
        try:
            await store.queue.insert([NewJob(task="t", payload=b"{}")], at=None)
            [before] = await claimed(store)
            await replace()
            await insist(lambda: store.queue.insert([NewJob(task="t", payload=b"{}")], at=None))
            [after] = await insist(lambda: claimed(store, 2))
        finally:
            await store.close()
        assert before.job_id == after.job_id == 1
        assert (before.database_id, after.database_id) == (old, ANOTHER)

    async def replace():
        name = url.rpartition("/")[2]
        connection = await asyncpg.connect(databases.url("postgres"))
        try:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE {databases.template}")
        finally:
            await connection.close()
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("UPDATE mainspring.database_identity SET id = $1", ANOTHER)
        finally:
            await connection.close()

    async def known():
        store = open_store(url, clock=SystemClock())
        try:
            return await store.identity()
        finally:
            await store.close()

    old = run(known())
    run(story())
