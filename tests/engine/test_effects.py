"""Handlers that settle their own job: in a transaction of ours, in one of theirs, and step by step."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mainspring import Context, Retry
from mainspring.errors import AnswerLost, ClaimLost, UsageError
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.telemetry.events import ClaimsLost, RunEnded, SettlementRefused
from tests.engine.kit import LEASE, Floor, until

TABLE = "CREATE TABLE effects (job_id bigint)"


async def write(connection: Any, ctx: Context) -> None:
    await connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")


@pytest.fixture
def effects(floor: Floor, run: Any) -> Callable[[], list[int]]:
    """The user's own table; the function answers what is in it."""

    async def make() -> None:
        @floor.task
        async def make_table(ctx: Context) -> None:
            async with ctx.transaction() as connection:
                await connection.execute(TABLE)

        await floor.put("make_table")
        await floor.work()
        floor.heard.events.clear()

    async def ask() -> list[int]:
        loan = await floor.store.effects.lend()
        try:
            return [row["job_id"] for row in await loan.connection.fetch("SELECT job_id FROM effects")]
        finally:
            await loan.rollback()

    run(make())
    return lambda: run(ask())


def settled(floor: Floor, run: Any, job_id: int) -> tuple[JobState, list[Verdict]]:
    job, runs = run(floor.job(job_id)), run(floor.runs(job_id))
    return job.state, [each.verdict for each in runs]


def test_an_async_handlers_rows_and_its_success_are_one(floor: Floor, run: Any, effects: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> str:
        transaction = ctx.transaction(result="first")
        async with transaction as connection:
            await write(connection, ctx)
            transaction.result = {"paid": True}
        return "not kept"

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert effects() == [job_id]
    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert run(floor.job(job_id)).result == b'{"paid":true}'
    [ended] = floor.heard.of(RunEnded)
    assert (ended.job_id, ended.verdict) == (job_id, Verdict.SUCCEEDED)
    assert floor.heard.of(SettlementRefused) == []


def test_a_plain_functions_rows_and_its_success_are_one(floor: Floor, run: Any, effects: Any) -> None:
    seen: list[Any] = []

    @floor.task
    def pay(ctx: Context) -> None:
        with ctx.transaction(result=7) as connection:
            seen.append(connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})").split()[0])
            seen.append(connection.fetchval("SELECT count(*) FROM effects"))
            seen.append(len(connection.fetch("SELECT * FROM effects")))
            seen.append(connection.fetchrow("SELECT job_id FROM effects")["job_id"])

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert seen == ["INSERT", 1, 1, job_id]
    assert effects() == [job_id]
    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert run(floor.job(job_id)).result == b"7"


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_body_that_raises_leaves_nothing_and_its_job_fails(
    floor: Floor, run: Any, effects: Any, colour: str
) -> None:
    @floor.task(name="pay_async", retry=Retry(attempts=3, base=0))
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
            if ctx.attempt == 1:
                raise ValueError("no funds")

    @floor.task(name="pay_plain", retry=Retry(attempts=3, base=0))
    def pay_plain(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
            if ctx.attempt == 1:
                raise ValueError("no funds")

    job_id = run(floor.put(f"pay_{colour}", max_attempts=3))
    run(floor.work())
    after_one = effects()
    errors = run(floor.job(job_id)).errors
    run(floor.work())

    assert after_one == []
    assert [error.message for error in errors] == ["no funds"]
    assert effects() == [job_id]
    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.FAILED, Verdict.SUCCEEDED])


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_run_that_lost_its_claim_leaves_nothing_and_is_told(
    new_floor: Any, run: Any, effects: Any, floor: Floor, colour: str
) -> None:
    told: list[BaseException] = []
    at_it, go_on = threading.Event(), threading.Event()

    @floor.task(name="pay_async")
    async def pay(ctx: Context) -> None:
        at_it.set()
        await until(go_on.is_set)
        try:
            async with ctx.transaction() as connection:
                await write(connection, ctx)
        except ClaimLost as lost:
            told.append(lost)
            raise

    @floor.task(name="pay_plain")
    def pay_plain(ctx: Context) -> None:
        at_it.set()
        go_on.wait(20)
        try:
            with ctx.transaction() as connection:
                connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
        except ClaimLost as lost:
            told.append(lost)
            raise

    async def story() -> int:
        job_id = await floor.put(f"pay_{colour}")
        await floor.join()
        await floor.claimer.tick()
        await until(at_it.is_set)
        await floor.store.jobs.cancel([job_id], at=floor.clock.stamp())
        go_on.set()
        await floor.finish()
        return job_id

    job_id = run(story())

    assert effects() == []
    assert [type(error) for error in told] == [ClaimLost]
    assert settled(floor, run, job_id) == (JobState.CANCELLED, [Verdict.CANCELLED])
    assert len(floor.heard.of(SettlementRefused)) == 1


def test_what_comes_after_the_commit_cannot_take_it_back(
    floor: Floor, run: Any, effects: Any, caplog: Any
) -> None:
    @floor.task
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
        raise ValueError("too late")

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert "raised ValueError after its transaction had settled it: too late" in caplog.text
    [record] = [each for each in caplog.records if "settled it" in each.getMessage()]
    assert record.exc_info is not None and record.exc_info[0] is ValueError


def test_a_heartbeat_after_the_commit_does_not_take_the_handler_for_lost(
    floor: Floor, run: Any, effects: Any
) -> None:
    ended = []
    committed, go_on = asyncio.Event(), asyncio.Event()

    @floor.task
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
        committed.set()
        await go_on.wait()
        ended.append(ctx.cancelled)

    async def story() -> None:
        await floor.put("pay")
        await floor.join()
        await floor.claimer.tick()
        await committed.wait()
        await floor.heart.tick()
        go_on.set()
        await floor.finish()

    run(story())

    assert ended == [False]
    assert floor.heard.of(ClaimsLost) == []


def test_a_timeout_after_the_commit_finds_the_job_done(floor: Floor, run: Any, effects: Any) -> None:
    @floor.task(timeout="2s")
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
        await asyncio.sleep(60)

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])


def test_a_stop_after_the_commit_finds_the_job_done(floor: Floor, run: Any, effects: Any) -> None:
    committed = asyncio.Event()

    @floor.task
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
        committed.set()
        await asyncio.sleep(60)

    async def story() -> int:
        job_id = await floor.put("pay")
        await floor.join()
        await floor.claimer.tick()
        await committed.wait()
        floor.active_runs.release_all()
        await floor.finish()
        return job_id

    job_id = run(story())

    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert floor.heard.of(SettlementRefused) == []


class LosingLoan:
    """A loan whose answer to `commit` is lost, before or after it happened."""

    def __init__(self, loan: Any, *, arrives: bool) -> None:
        self._loan, self._arrives = loan, arrives
        self.connection = loan.connection
        self.rollback = loan.rollback

    async def commit(self, settlement: Any, *, at: Any) -> bool:
        if self._arrives:
            await self._loan.commit(settlement, at=at)
        else:
            await self._loan.rollback()
        raise AnswerLost("commit")

    async def committed(self, settlement: Any, lost: AnswerLost) -> bool:
        return bool(await self._loan.committed(settlement, lost))


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_whose_answer_was_lost_is_looked_up(
    floor: Floor, run: Any, effects: Any, store: Any, monkeypatch: Any, arrives: bool
) -> None:
    lend, losses = store.effects.lend, [1]

    async def losing() -> Any:
        loan = await lend()
        return LosingLoan(loan, arrives=arrives) if losses and losses.pop() else loan

    @floor.task(retry=Retry(attempts=3, base=0))
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)

    job_id = run(floor.put("pay", max_attempts=3))
    monkeypatch.setattr(floor.store.effects, "lend", losing, raising=False)
    run(floor.work())
    first = effects()
    run(floor.work())

    assert first == ([job_id] if arrives else [])
    assert effects() == [job_id]
    before = [] if arrives else [Verdict.FAILED]
    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [*before, Verdict.SUCCEEDED])


@pytest.mark.parametrize("again", ["nested", "after"])
def test_a_job_is_settled_once(floor: Floor, run: Any, effects: Any, again: str) -> None:
    errors: list[str] = []

    @floor.task
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
            if again == "nested":
                with pytest.raises(UsageError, match="open already"):
                    await ctx.transaction().__aenter__()
                errors.append("nested")
        if again == "after":
            with pytest.raises(UsageError, match="settled its job already"):
                await ctx.transaction().__aenter__()
            errors.append("after")

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert errors == [again]
    assert effects() == [job_id]


def test_a_result_that_cannot_be_kept_leaves_nothing(floor: Floor, run: Any, effects: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> None:
        async with ctx.transaction(result=object()) as connection:
            await write(connection, ctx)

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert effects() == []
    assert run(floor.job(job_id)).state is JobState.DEAD
    assert "result: expected a JSON value" in run(floor.job(job_id)).errors[0].message


def test_a_plain_with_in_an_async_handler_is_refused(floor: Floor, run: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> None:
        with ctx.transaction():
            pass

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert "use `async with`" in run(floor.job(job_id)).errors[0].message


def test_jobs_put_in_with_the_connection_are_part_of_the_transaction(
    floor: Floor, run: Any, effects: Any, store: Any, monkeypatch: Any
) -> None:
    # The app of these tests is only a registry; its sender is the store under test.
    class Sender:
        async def aenqueue_many(self, jobs: Any, *, tx: object | None = None) -> list[Any]:
            ids = await store.effects.borrower.insert(jobs, at=floor.clock.stamp()).arun(tx)
            return list(ids)

        def enqueue_many(self, jobs: Any, *, tx: object | None = None) -> list[Any]:
            return list(store.effects.borrower.insert(jobs, at=floor.clock.stamp()).run(tx))

    @floor.task
    async def mail(number: int) -> None: ...

    mail._sender = Sender()

    @floor.task(name="good")
    async def good(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await mail.using(tx=connection).aenqueue(1)

    @floor.task(name="bad")
    async def bad(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await mail.using(tx=connection).aenqueue(2)
            raise ValueError("no")

    @floor.task(name="plain")
    def plain(ctx: Context) -> None:
        with ctx.transaction() as connection:
            mail.using(tx=connection).enqueue(3)

    async def put() -> None:
        for name in ("good", "bad", "plain"):
            await floor.put(name)

    run(put())
    run(floor.work())
    depth = {each.task: each.ready for each in run(store.queues.depth(at=floor.clock.stamp()))}

    assert depth == {"mail": 2}


# Steps.


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_step_is_done_once_over_all_attempts(floor: Floor, run: Any, colour: str) -> None:
    firsts: list[bool] = []

    @floor.task(name="pay_async", retry=Retry(attempts=3, base=0))
    async def pay(ctx: Context) -> None:
        async with ctx.once("charge") as first:
            firsts.append(first)
            if ctx.attempt == 1:
                raise ValueError("before it was done")
        if ctx.attempt == 2:
            raise ValueError("after it was done")

    @floor.task(name="pay_plain", retry=Retry(attempts=3, base=0))
    def pay_plain(ctx: Context) -> None:
        with ctx.once("charge") as first:
            firsts.append(first)
            if ctx.attempt == 1:
                raise ValueError("before it was done")
        if ctx.attempt == 2:
            raise ValueError("after it was done")

    job_id = run(floor.put(f"pay_{colour}", max_attempts=3))
    for _ in range(3):
        run(floor.work())

    assert firsts == [True, True, False]
    assert run(floor.job(job_id)).state is JobState.SUCCEEDED


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_step_inside_a_transaction_is_recorded_with_it(
    floor: Floor, run: Any, effects: Any, store: Any, colour: str
) -> None:
    firsts: list[bool] = []

    @floor.task(name="pay_async", retry=Retry(attempts=3, base=0))
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            async with ctx.once("charge") as first:
                firsts.append(first)
                await write(connection, ctx)
            if ctx.attempt == 1:
                raise ValueError("rolled back")

    @floor.task(name="pay_plain", retry=Retry(attempts=3, base=0))
    def pay_plain(ctx: Context) -> None:
        with ctx.transaction() as connection:
            with ctx.once("charge") as first:
                firsts.append(first)
                connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
            if ctx.attempt == 1:
                raise ValueError("rolled back")

    job_id = run(floor.put(f"pay_{colour}", max_attempts=3))
    run(floor.work())
    between = run(store.effects.step(job_id, "charge"))
    run(floor.work())

    assert firsts == [True, True]
    assert between is False
    assert run(store.effects.step(job_id, "charge")) is True
    assert effects() == [job_id]


def test_a_step_of_a_run_that_lost_its_claim_is_refused(floor: Floor, run: Any, store: Any) -> None:
    told: list[BaseException] = []

    @floor.task
    async def pay(ctx: Context) -> None:
        try:
            async with ctx.once("charge"):
                await store.jobs.cancel([ctx.job_id], at=floor.clock.stamp())
        except ClaimLost as lost:
            told.append(lost)
            raise

    job_id = run(floor.put("pay"))
    run(floor.work())

    assert [str(lost) for lost in told] == [
        f"job {job_id}, claim 1: step charge could not be recorded; the job is another run's by now"
    ]
    assert run(store.effects.step(job_id, "charge")) is False


def test_a_context_made_by_hand_says_that_it_cannot_settle() -> None:
    ctx = Context(
        job_id=1,
        task="t",
        queue="q",
        attempt=1,
        max_attempts=1,
        fence=1,
        log=None,
        stop=asyncio.Event(),  # type: ignore[arg-type]
    )

    for call in (ctx.transaction, lambda: ctx.complete(tx=object()), lambda: ctx.once("charge")):
        with pytest.raises(UsageError, match="only a worker can settle a job"):
            call()


# On SQLite nobody else writes while a transaction is open.
@pytest.mark.parametrize("backend", ["postgres"])
def test_a_dead_workers_job_is_not_held_up_by_its_open_transaction(
    new_floor: Any, floor: Floor, run: Any, effects: Any
) -> None:
    """The row of a job is not locked before the settlement: another worker may take it meanwhile."""
    rival = new_floor()
    at_it, go_on = asyncio.Event(), asyncio.Event()

    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, ctx)
            if ctx.fence == 1:
                at_it.set()
                await go_on.wait()

    floor.task(pay)
    rival.task(pay)

    async def story() -> int:
        job_id = await floor.put("pay")
        await floor.join()
        await floor.claimer.tick()
        await at_it.wait()
        floor.clock.advance(LEASE)
        await rival.join()
        while (await floor.store.processes.reap(limit=10, at=floor.clock.stamp())).jobs == 0:
            pass
        await rival.work()
        go_on.set()
        await floor.finish()
        return job_id

    job_id = run(story())

    assert effects() == [job_id]
    assert settled(floor, run, job_id) == (JobState.SUCCEEDED, [Verdict.CRASHED, Verdict.SUCCEEDED])
