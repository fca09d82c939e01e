"""The contract of what handlers do once, on every store: lent transactions and recorded steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mainspring.errors import AnswerLost, UsageError
from mainspring.model.job import Claim, JobState
from mainspring.model.run import Verdict
from tests.support.desk import DAY, SECOND, Desk, settlement


@pytest.fixture
def orders(desk: Desk) -> Callable[[], list[int]]:
    """A table of the user's own, in the same database; the function answers what is in it."""

    async def ask() -> list[int]:
        loan = await desk.store.effects.lend()
        try:
            return [row["id"] for row in await loan.connection.fetch("SELECT id FROM orders ORDER BY id")]
        finally:
            await loan.rollback()

    async def make(claim: Claim) -> None:
        loan = await desk.store.effects.lend()
        await loan.connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        assert await loan.commit(settlement(claim, Verdict.SUCCEEDED), at=desk.clock.stamp())

    desk.run(make(desk.started(worker=99)))
    return lambda: desk.run(ask())


def test_what_a_handler_wrote_is_committed_with_the_settlement(desk: Desk, orders: Any) -> None:
    claim = desk.started()
    desk.advance(SECOND)

    async def work() -> bool:
        loan = await desk.store.effects.lend()
        await loan.connection.execute("INSERT INTO orders VALUES (7)")
        done = settlement(claim, Verdict.SUCCEEDED, took=SECOND, result=b"42")
        return await loan.commit(done, at=desk.clock.stamp())

    assert desk.run(work()) is True
    assert orders() == [7]
    job, [run] = desk.job(claim.job_id), desk.runs(claim.job_id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, b"42")
    assert (run.verdict, run.started_at, run.finished_at) == (Verdict.SUCCEEDED, desk.now - SECOND, desk.now)
    assert desk.recorded(settlement(claim, Verdict.SUCCEEDED)) == [claim.job_id]


def test_under_a_lost_claim_nothing_remains(desk: Desk, orders: Any) -> None:
    claim = desk.started()
    desk.lose()

    async def work() -> bool:
        loan = await desk.store.effects.lend()
        await loan.connection.execute("INSERT INTO orders VALUES (7)")
        return await loan.commit(settlement(claim, Verdict.SUCCEEDED), at=desk.clock.stamp())

    assert desk.run(work()) is False
    assert orders() == []
    assert desk.job(claim.job_id).state is JobState.READY


def test_the_same_worker_under_a_new_fence_is_another_claim(desk: Desk, orders: Any) -> None:
    old = desk.started()
    desk.end(old, Verdict.RELEASED)
    new = desk.take()

    async def work(claim: Any, number: int) -> bool:
        loan = await desk.store.effects.lend()
        await loan.connection.execute(f"INSERT INTO orders VALUES ({number})")
        return await loan.commit(settlement(claim, Verdict.SUCCEEDED), at=desk.clock.stamp())

    assert [desk.run(work(old, 1)), desk.run(work(new, 2)), desk.run(work(new, 3))] == [False, True, False]
    assert orders() == [2]


def test_a_rollback_leaves_nothing(desk: Desk, orders: Any) -> None:
    claim = desk.started()

    async def work() -> None:
        loan = await desk.store.effects.lend()
        await loan.connection.execute("INSERT INTO orders VALUES (7)")
        await loan.rollback()

    desk.run(work())
    assert orders() == []
    assert desk.job(claim.job_id).state is JobState.RUNNING


def test_after_an_error_of_the_handlers_own_statement_nothing_is_committed(desk: Desk, orders: Any) -> None:
    claim = desk.started()

    async def work() -> None:
        loan = await desk.store.effects.lend()
        await loan.connection.execute("INSERT INTO orders VALUES (7)")
        try:
            await loan.connection.execute("INSERT INTO nothing VALUES (7)")
        finally:
            await loan.rollback()

    with pytest.raises(Exception, match="nothing"):
        desk.run(work())
    assert orders() == []
    assert desk.job(claim.job_id).state is JobState.RUNNING


def test_a_handler_that_ends_the_transaction_itself_is_told_so(desk: Desk, orders: Any) -> None:
    claim = desk.started()

    async def work() -> None:
        loan = await desk.store.effects.lend()
        await loan.connection.execute("ROLLBACK")
        await loan.commit(settlement(claim, Verdict.SUCCEEDED), at=desk.clock.stamp())

    with pytest.raises(UsageError, match="the handler has ended the transaction"):
        desk.run(work())
    assert desk.job(claim.job_id).state is JobState.RUNNING


def test_a_lost_commit_is_looked_up(desk: Desk, orders: Any) -> None:
    first, second = desk.started(), desk.started()

    async def work() -> list[bool]:
        committed = await desk.store.effects.lend()
        await committed.commit(settlement(first, Verdict.SUCCEEDED), at=desk.clock.stamp())
        not_committed = await desk.store.effects.lend()
        await not_committed.rollback()
        lost = AnswerLost("commit")
        return [
            await committed.committed(settlement(first, Verdict.SUCCEEDED), lost),
            await not_committed.committed(settlement(second, Verdict.SUCCEEDED), lost),
        ]

    assert desk.run(work()) == [True, False]


def test_the_connection_has_asyncpgs_calls(desk: Desk, orders: Any, backend: str) -> None:
    mark = "?" if backend == "sqlite" else "$1"

    async def work() -> list[Any]:
        loan = await desk.store.effects.lend()
        connection = loan.connection
        try:
            await connection.executemany(f"INSERT INTO orders VALUES ({mark})", [(1,), (2,)])
            return [
                (await connection.execute(f"INSERT INTO orders VALUES ({mark})", 3)).split()[0],
                [row["id"] for row in await connection.fetch("SELECT id FROM orders ORDER BY id")],
                (await connection.fetchrow(f"SELECT id FROM orders WHERE id = {mark}", 2))["id"],
                await connection.fetchrow(f"SELECT id FROM orders WHERE id = {mark}", 9),
                await connection.fetchval("SELECT count(*) FROM orders"),
                await connection.fetchval(f"SELECT id FROM orders WHERE id = {mark}", 9),
            ]
        finally:
            await loan.rollback()

    assert desk.run(work()) == ["INSERT", [1, 2, 3], 2, None, 3, None]


# Steps.


def step(desk: Desk, job_id: int, name: str = "charge") -> bool:
    return bool(desk.run(desk.store.effects.step(job_id, name)))


def record(desk: Desk, claim: Any, name: str = "charge") -> bool:
    return bool(desk.run(desk.store.effects.record_step(claim, name, at=desk.clock.stamp())))


def test_a_step_is_on_record_once_and_for_every_run_of_its_job(desk: Desk) -> None:
    first = desk.started(max_attempts=3)
    other = desk.started()
    before = step(desk, first.job_id)
    recorded = record(desk, first)
    desk.end(first, Verdict.FAILED)
    again = desk.take()

    assert (before, recorded) == (False, True)
    assert step(desk, again.job_id) is True
    assert record(desk, again) is False
    assert step(desk, again.job_id, "mail") is False
    assert step(desk, other.job_id) is False


def test_a_step_under_a_lost_claim_is_not_recorded(desk: Desk) -> None:
    claim = desk.started()
    desk.lose()
    new = desk.take(2)

    assert record(desk, claim) is False
    assert step(desk, claim.job_id) is False
    assert record(desk, new) is True


def test_a_step_joins_the_transaction_that_is_lent(desk: Desk, orders: Any) -> None:
    claim, other = desk.started(), desk.started()

    async def work(claim: Any, commit: bool) -> tuple[bool, bool]:
        loan = await desk.store.effects.lend()
        borrower = desk.store.effects.borrower
        before = await borrower.step(claim.job_id, "charge").arun(loan.connection)
        written = await borrower.record_step(claim, "charge", at=desk.clock.stamp()).arun(loan.connection)
        if commit:
            assert await loan.commit(settlement(claim, Verdict.SUCCEEDED), at=desk.clock.stamp())
        else:
            await loan.rollback()
        return before, written

    assert desk.run(work(other, False)) == (False, True)
    assert desk.run(work(claim, True)) == (False, True)
    assert (step(desk, claim.job_id), step(desk, other.job_id)) == (True, False)


def test_steps_go_when_nobody_knows_their_job_any_more(desk: Desk) -> None:
    done, dead, live = (desk.started(max_attempts=9) for _ in range(3))
    for claim in (done, dead, live):
        assert record(desk, claim)
    desk.end(done, Verdict.SUCCEEDED)
    desk.end(dead, Verdict.DEAD)
    desk.end(live, Verdict.FAILED)
    desk.prune(7 * DAY)
    kept = [step(desk, claim.job_id) for claim in (done, dead, live)]
    desk.advance(9 * DAY)
    gone = desk.prune(7 * DAY)

    assert kept == [True, True, True]
    assert gone > 0
    assert [step(desk, claim.job_id) for claim in (done, dead, live)] == [False, True, True]
    assert desk.prune(7 * DAY) == 0


@pytest.mark.parametrize("backend", ["postgres"])
def test_a_session_that_breaks_before_the_commit_has_committed_nothing(desk: Desk, orders: Any) -> None:
    claim = desk.started()

    async def work() -> bool:
        loan = await desk.store.effects.lend()
        pid = await loan.connection.fetchval("SELECT pg_backend_pid()")
        await loan.connection.execute("INSERT INTO orders VALUES (7)")
        other = await desk.store.effects.lend()
        await other.connection.fetchval("SELECT pg_terminate_backend($1, 10000)", pid)
        await other.rollback()
        done = settlement(claim, Verdict.SUCCEEDED)
        try:
            await loan.commit(done, at=desk.clock.stamp())
        except AnswerLost as lost:
            return await loan.committed(done, lost)
        pytest.fail("the commit was answered")

    assert desk.run(work()) is False
    assert orders() == []
    assert desk.job(claim.job_id).state is JobState.RUNNING
