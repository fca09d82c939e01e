"""The settler on a store that fails: nothing is lost, and everybody is told the truth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.job import Claim, Failure, JobState, NewJob
from mainspring.model.run import Settlement, Verdict
from mainspring.telemetry.events import RunEnded, SettlementRefused
from tests.engine.kit import LEASE, Floor


async def _claims(floor: Floor, count: int) -> list[Claim]:
    await floor.join()
    await floor.store.queue.insert(
        [NewJob(task="t", payload=b"{}", max_attempts=3)] * count, at=floor.clock.stamp()
    )
    return list(
        await floor.store.queue.claim(
            floor.id, queues=["default"], tasks=["t"], limit=count, at=floor.clock.stamp()
        )
    )


def _put(floor: Floor, claims: Sequence[Claim], verdict: Verdict = Verdict.SUCCEEDED, **fields: Any) -> None:
    if verdict in (Verdict.FAILED, Verdict.DEAD):
        fields.setdefault("failure", Failure(type="ValueError", message="boom"))
    for claim in claims:
        floor.result_writer.put(
            claim,
            Settlement(
                job_id=claim.job_id, worker_id=claim.worker_id, fence=claim.fence, verdict=verdict, **fields
            ),
        )


def _told(floor: Floor) -> tuple[list[int], list[int]]:
    ended = sorted(event.job_id for event in floor.heard.of(RunEnded))
    return ended, sorted(event.job_id for event in floor.heard.of(SettlementRefused))


def test_a_store_that_is_away_loses_no_settlement(floor: Floor, run: Any) -> None:
    async def story() -> None:
        claims = await _claims(floor, 3)
        ids = sorted(claim.job_id for claim in claims)
        _put(floor, claims)
        floor.store.before("queue.settle", times=2)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await floor.result_writer.tick()
        assert (floor.result_writer.pending, _told(floor)) == (3, ([], []))

        await floor.result_writer.tick()
        assert (floor.result_writer.pending, _told(floor)) == (0, (ids, []))
        assert [(await floor.job(job_id)).state for job_id in ids] == [JobState.SUCCEEDED] * 3

    run(story())


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.FAILED, Verdict.DEAD, Verdict.RELEASED])
@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_answer_is_told_as_written_whether_it_arrived_or_not(
    floor: Floor, run: Any, arrived: bool, verdict: Verdict
) -> None:
    async def story() -> None:
        claims = await _claims(floor, 2)
        ids = sorted(claim.job_id for claim in claims)
        _put(floor, claims, verdict)
        (floor.store.after if arrived else floor.store.before)("queue.settle", AnswerLost("settle"))
        with pytest.raises(AnswerLost):
            await floor.result_writer.tick()
        assert floor.result_writer.pending == 2

        await floor.result_writer.tick()
        assert (floor.result_writer.pending, _told(floor)) == (0, (ids, []))
        for job_id in ids:
            assert [each.verdict for each in await floor.runs(job_id)] == [verdict]

    run(story())


def test_a_lost_answer_to_the_release_of_what_never_ran_is_no_refusal(floor: Floor, run: Any) -> None:
    async def story() -> None:
        [claim] = await _claims(floor, 1)
        _put(floor, [claim], Verdict.RELEASED, ran=False)
        floor.store.after("queue.settle")
        with pytest.raises(AnswerLost):
            await floor.result_writer.tick()
        await floor.result_writer.tick()

        assert _told(floor) == ([claim.job_id], [])
        assert await floor.runs(claim.job_id) == []

    run(story())


def test_what_arrived_meanwhile_is_written_with_the_batch_in_doubt(floor: Floor, run: Any) -> None:
    async def story() -> None:
        first, second = await _claims(floor, 2)
        _put(floor, [first])
        floor.store.after("queue.settle", times=3)
        for _ in range(3):
            with pytest.raises(AnswerLost):
                await floor.result_writer.tick()
        _put(floor, [second])
        await floor.result_writer.tick()
        if floor.result_writer.pending:
            await floor.result_writer.tick()

        assert _told(floor) == (sorted([first.job_id, second.job_id]), [])

    run(story())


def test_the_settlement_of_a_lost_claim_is_refused_and_told(floor: Floor, run: Any) -> None:
    async def story() -> None:
        lost, kept = await _claims(floor, 2)
        await floor.store.jobs.cancel([lost.job_id], at=floor.clock.stamp())
        _put(floor, [lost, kept])
        await floor.result_writer.tick()

        assert _told(floor) == ([kept.job_id], [lost.job_id])
        [refused] = floor.heard.of(SettlementRefused)
        assert (refused.fence, refused.verdict) == (lost.fence, Verdict.SUCCEEDED)

    run(story())


@pytest.mark.parametrize("late", [Verdict.SUCCEEDED, Verdict.DEAD, Verdict.FAILED])
def test_an_old_settlement_of_a_job_that_ran_again_here_is_refused_and_the_new_one_accepted(
    floor: Floor, run: Any, late: Verdict
) -> None:
    """The store was away for longer than the lease: both are there to be written when it comes back."""

    async def story() -> None:
        [old] = await _claims(floor, 1)
        _put(floor, [old], late, result=b'"old"' if late is Verdict.SUCCEEDED else None)
        floor.store.before("queue.settle")
        with pytest.raises(StoreUnavailable):
            await floor.result_writer.tick()
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await floor.heart.tick()  # it has lost its lease, and joins again
        [new] = await floor.store.queue.claim(
            floor.id, queues=["default"], tasks=["t"], limit=1, at=floor.clock.stamp()
        )
        assert (new.job_id, new.fence) == (old.job_id, 2)
        _put(floor, [new], result=b'"new"')
        while floor.result_writer.pending:
            await floor.result_writer.tick()

        job = await floor.job(new.job_id)
        assert (job.state, job.result) == (JobState.SUCCEEDED, b'"new"')
        verdicts = [each.verdict for each in await floor.runs(new.job_id)]
        assert verdicts == [Verdict.CRASHED, Verdict.SUCCEEDED]
        assert [event.fence for event in floor.heard.of(SettlementRefused)] == [1]
        assert len(floor.heard.of(RunEnded)) == 1

    run(story())


def test_a_settlement_that_never_arrived_and_was_then_taken_away_is_told_as_refused(
    floor: Floor, run: Any
) -> None:
    async def story() -> None:
        [claim] = await _claims(floor, 1)
        _put(floor, [claim])
        floor.store.before("queue.settle", AnswerLost("settle"))
        with pytest.raises(AnswerLost):
            await floor.result_writer.tick()
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await floor.result_writer.tick()

        assert _told(floor) == ([], [claim.job_id])

    run(story())


class Picky:
    """A store that cannot take one job's settlement: with its result, or not at all."""

    def __init__(self, floor: Floor, job_id: int, *, wholly: bool) -> None:
        self._real = floor.store._store.queue.settle
        self._job_id, self._wholly = job_id, wholly

    async def settle(self, settlements: Sequence[Settlement], *, at: Any) -> list[int]:
        for each in settlements:
            if each.job_id == self._job_id and (self._wholly or each.result is not None):
                raise StoreError("cannot be stored")
        return list(await self._real(settlements, at=at))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_result_the_store_cannot_take_fails_its_own_job_only(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    async def story() -> None:
        claims = await _claims(floor, 3)
        bad = claims[place]
        monkeypatch.setattr(floor.store._store.queue, "settle", Picky(floor, bad.job_id, wholly=False).settle)
        _put(floor, claims, result=b"1", took=timedelta(seconds=1))
        await floor.result_writer.tick()

        assert _told(floor) == (sorted(claim.job_id for claim in claims), [])
        job = await floor.job(bad.job_id)
        assert (job.failures, job.worker_id) == (1, None)
        assert "could not be stored" in job.errors[0].message
        others = [claim.job_id for claim in claims if claim is not bad]
        assert [(await floor.job(job_id)).state for job_id in others] == [JobState.SUCCEEDED] * 2
        assert [e.verdict for e in floor.heard.of(RunEnded) if e.job_id == bad.job_id] == [Verdict.FAILED]

    run(story())


def test_a_settlement_the_store_cannot_take_at_all_does_not_hold_up_the_others(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        claims = await _claims(floor, 4)
        bad = claims[0]
        picky = Picky(floor, bad.job_id, wholly=True)
        with monkeypatch.context() as patch:
            patch.setattr(floor.store._store.queue, "settle", picky.settle)
            _put(floor, claims[:3])
            with pytest.raises(StoreError):
                await floor.result_writer.tick()
            _put(floor, claims[3:])
            with pytest.raises(StoreError):
                await floor.result_writer.tick()
        good = sorted(claim.job_id for claim in claims[1:])
        assert _told(floor) == (good, [])
        assert floor.result_writer.pending == 1

        await floor.result_writer.tick()
        assert floor.result_writer.pending == 0
        assert [each.verdict for each in await floor.runs(bad.job_id)] == [Verdict.SUCCEEDED]

    run(story())


@pytest.mark.parametrize("result", [None, b"1"])
def test_a_store_that_stumbles_over_everything_does_not_make_failures_of_successes(
    floor: Floor, run: Any, result: bytes | None
) -> None:
    async def story() -> None:
        claims = await _claims(floor, 2)
        _put(floor, claims, result=result)
        floor.store.before("queue.settle", StoreError("an odd day"), times=10)
        with pytest.raises(StoreError, match="an odd day"):
            await floor.result_writer.tick()
        floor.store.heal()
        await floor.result_writer.tick()

        for claim in claims:
            job = await floor.job(claim.job_id)
            assert (job.state, job.result) == (JobState.SUCCEEDED, result)
        assert floor.result_writer.pending == 0

    run(story())


def test_an_outage_halfway_through_single_writes_tells_nothing_wrong(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        claims = await _claims(floor, 3)
        picky = Picky(floor, claims[2].job_id, wholly=False)
        monkeypatch.setattr(floor.store._store.queue, "settle", picky.settle)
        _put(floor, claims, result=b"1")
        passed: list[None] = []

        async def note() -> None:
            passed.append(None)

        floor.store.before("queue.settle", StoreError("together they cannot"))
        floor.store.during("queue.settle", note)  # the first alone is written,
        floor.store.before("queue.settle")  # and then the store goes away
        with pytest.raises(StoreUnavailable):
            await floor.result_writer.tick()
        await floor.result_writer.tick()

        assert passed == [None]
        assert _told(floor) == (sorted(claim.job_id for claim in claims), [])

    run(story())


def test_a_release_the_store_stumbles_over_never_costs_an_attempt(floor: Floor, run: Any) -> None:
    async def story() -> None:
        [claim] = await _claims(floor, 1)
        _put(floor, [claim], Verdict.RELEASED)
        floor.store.before("queue.settle", StoreError("an odd day"), times=3)
        with pytest.raises(StoreError):
            await floor.result_writer.tick()
        await floor.result_writer.tick()

        assert (await floor.job(claim.job_id)).failures == 0

    run(story())


def test_a_result_that_cannot_be_stored_on_the_last_attempt_kills_the_job(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        await floor.join()
        job_id = await floor.put("t", max_attempts=1)
        [claim] = await floor.store.queue.claim(
            floor.id, queues=["default"], tasks=["t"], limit=1, at=floor.clock.stamp()
        )
        monkeypatch.setattr(floor.store._store.queue, "settle", Picky(floor, job_id, wholly=False).settle)
        _put(floor, [claim], result=b"1")
        await floor.result_writer.tick()

        assert (await floor.job(job_id)).state is JobState.DEAD

    run(story())
