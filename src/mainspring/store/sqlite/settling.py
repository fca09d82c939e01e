"""Settlements on SQLite, inside one transaction that has the write lock."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import assert_never

import msgspec

from mainspring.model.job import Failure
from mainspring.model.run import Reason, Settlement, Verdict
from mainspring.store.codes import AWAITING, VERDICT_CODE
from mainspring.store.sqlite.connection import Session, Transaction
from mainspring.store.sqlite.rows import by_id, errors, listed, micros, moment, span, written
from mainspring.store.sqlite.workflows import SQLiteStepJobs
from mainspring.store.workflows.session import WorkflowSession
from mainspring.store.workflows.start import start
from mainspring.waiting import at_once

_AWAITING = micros(AWAITING)

Standing = list[tuple[Settlement, sqlite3.Row]]
"""Settlements whose claim is still the job's, with what the job says of itself."""
TRACEBACKS = 10
"""Of many errors, the job's row keeps the tracebacks of the first ones and the last one: it is written anew
with each. Those between are with their runs."""


def named(settlement: Settlement) -> tuple[int, int, int]:
    """The claim that a settlement names."""
    return settlement.job_id, settlement.worker_id, settlement.fence


def settle(session: Session, settlements: Sequence[Settlement], now: int) -> set[int]:
    """Write them; answer the ids of the jobs that were settled."""
    by_verdict: dict[Verdict, dict[tuple[int, int, int], Settlement]] = defaultdict(dict)
    for settlement in settlements:
        by_verdict[settlement.verdict][named(settlement)] = settlement
    settled: set[int] = set()
    for verdict, batch in by_verdict.items():
        settled |= _settle(session, verdict, list(batch.values()), now)
    if by_verdict.keys() & {Verdict.FAILED, Verdict.RELEASED, Verdict.CRASHED, Verdict.SNOOZED}:
        session.hint()
    return settled


def _settle(session: Session, verdict: Verdict, batch: list[Settlement], now: int) -> set[int]:
    match verdict:
        case Verdict.SUCCEEDED:
            return _succeeded(session, batch, now)
        case Verdict.DEAD:
            return _dead(session, _standing(session, batch), now)
        case Verdict.FAILED:
            return _failed(session, _standing(session, batch), now)
        case Verdict.CRASHED:
            dying = [s for s in batch if s.reason is not None]
            again = [s for s in batch if s.reason is None]
            ended = _dead(session, _standing(session, dying), now)
            return ended | _failed(session, _standing(session, again), now)
        case Verdict.RELEASED | Verdict.SNOOZED:
            return _released(session, _standing(session, batch), now)
        case Verdict.DISCARDED:
            return _discarded(session, _standing(session, batch), now)
        case Verdict.STARTED:
            return _started(session, _standing(session, batch), now)
        case Verdict.CANCELLED | Verdict.EDITED:
            raise ValueError(f"{verdict} is the store's to write, not a worker's")
        case _:
            assert_never(verdict)


def _standing(session: Session, batch: list[Settlement]) -> Standing:
    found = session.rows("standing_claims", claims=listed(map(named, batch)))
    standing = {(row["id"], row["worker_id"], row["fence"]): row for row in found}
    return [(s, standing[named(s)]) for s in batch if named(s) in standing]


def _succeeded(session: Session, batch: list[Settlement], now: int) -> set[int]:
    plain = [(*named(s), span(s.took)) for s in batch if s.result is None]
    ended = {row["job_id"] for row in session.rows("settle_succeeded", claims=listed(plain), now=now)}
    standing = _standing(session, [s for s in batch if s.result is not None])
    session.each("note_run", [_run(s, None, now) for s, _ in standing])
    ended |= _ids(standing)
    session.change("remove_jobs", ids=listed(ended))
    return ended


def _dead(session: Session, standing: Standing, now: int) -> set[int]:
    failures = [_failure(s, job, now) for s, job in standing]
    session.each(
        "settle_dead",
        [
            {
                "id": s.job_id,
                **_counts(s),
                "reason": s.reason or Reason.FAILED,
                "errors": _appended(job, failure),
                "now": now,
            }
            for (s, job), failure in zip(standing, failures, strict=True)
        ],
    )
    session.each("note_run", [_run(s, f, now) for (s, _), f in zip(standing, failures, strict=True)])
    session.change("remove_jobs", ids=listed(_ids(standing)))
    return _ids(standing)


def _failed(session: Session, standing: Standing, now: int) -> set[int]:
    failures = [_failure(s, job, now) for s, job in standing]
    session.each("note_run", [_run(s, f, now) for (s, _), f in zip(standing, failures, strict=True)])
    session.each(
        "settle_failed",
        [
            {"id": s.job_id, **_counts(s), "errors": _appended(job, failure), "run_at": now + span(s.delay)}
            for (s, job), failure in zip(standing, failures, strict=True)
        ],
    )
    return _ids(standing)


def _discarded(session: Session, standing: Standing, now: int) -> set[int]:
    session.each("note_run", [_run(s, _failure(s, job, now), now) for s, job in standing])
    session.change("remove_jobs", ids=listed(_ids(standing)))
    return _ids(standing)


def _released(session: Session, standing: Standing, now: int) -> set[int]:
    session.each("note_run", [_run(s, None, now) for s, _ in standing if s.ran])
    found = _begin_waits(session, [s for s, _ in standing if s.awaits is not None])
    session.each(
        "settle_released",
        [
            {"id": s.job_id, "run_at": _again(s, now) if s.delay and s.job_id not in found else None}
            for s, _ in standing
        ],
    )
    return _ids(standing)


def _started(session: Session, standing: Standing, now: int) -> set[int]:
    session.each("note_run", [_run(s, None, now) for s, _ in standing])
    traces = {s.job_id: s.trace for s, _ in standing if s.trace is not None}
    parked = session.rows("settle_started", ids=listed(_ids(standing)), traces=by_id(traces))
    parents = {row["id"]: row["workflow_id"] for row in parked}
    begun = moment(now)
    opened = WorkflowSession(Transaction(session), SQLiteStepJobs(), now=begun, at=begun)
    at_once(start(opened, [s for s, _ in standing], parents))
    session.hint()
    return _ids(standing)


def _again(settlement: Settlement, now: int) -> int:
    return min(now + span(settlement.delay), _AWAITING)


def _counts(settlement: Settlement) -> dict[str, object]:
    """What it adds to the job's failures and crashes."""
    crashed = settlement.verdict is Verdict.CRASHED
    return {"crashed": crashed, "failed": settlement.ran and not crashed}


def _run(settlement: Settlement, failure: Failure | None, now: int) -> dict[str, object]:
    return {
        "id": settlement.job_id,
        "now": now,
        "started_at": now - span(settlement.took) if settlement.ran else None,
        "verdict": VERDICT_CODE[settlement.verdict],
        "result": settlement.result,
        "error": None if failure is None else written(failure),
    }


def _failure(settlement: Settlement, job: sqlite3.Row, now: int) -> Failure | None:
    """What was reported, with the attempt it ended and the moment it was written."""
    if settlement.failure is None:
        return None
    return msgspec.structs.replace(settlement.failure, attempt=job["failures"] + 1, at=moment(now))


def _appended(job: sqlite3.Row, failure: Failure | None) -> str:
    kept = errors(job["errors"])
    if failure is None:
        return listed(kept)
    if len(kept) > TRACEBACKS:
        kept = (*kept[:-1], msgspec.structs.replace(kept[-1], traceback=""))
    return listed((*kept, failure))


def _ids(standing: Standing) -> set[int]:
    return {settlement.job_id for settlement, _ in standing}


def _begin_waits(session: Session, settlements: Sequence[Settlement]) -> set[int]:
    """Record that these jobs wait, in the transaction that settles them; answer the jobs whose event has
    come: these do not wait."""
    found = {s.job_id for s in settlements if session.rows("event", job_id=s.job_id, name=s.awaits)}
    waits = [s for s in settlements if s.job_id not in found]
    session.each("put_waits", [{"job_id": s.job_id, "name": s.awaits, "fence": s.fence} for s in waits])
    return found
