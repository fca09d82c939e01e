"""What a finished run does to its job, and when a job becomes a dead letter without a failed handler."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from mainspring.model.job import Claim, Failure
from mainspring.model.run import (
    Crashed,
    Discarded,
    Expired,
    Failed,
    Outcome,
    Reason,
    Settled,
    Settlement,
    Snoozed,
    Started,
    Stopped,
    Succeeded,
    Verdict,
)

CRASHES_ALLOWED = 3
"""After this many worker crashes a job is a dead letter; it runs again only if an operator replays it."""
LAST_CRASH = CRASHES_ALLOWED - 1
"""After so many crashes the next one is the last. Such a job runs in a child process of its own, so that only
its own crash can make it a dead letter."""
WORKER_LOST = Failure(
    type="WorkerLost",
    message=f"its worker died or lost its lease under it, once too often ({CRASHES_ALLOWED} crashes)",
)
NEVER_BEGAN = Failure(type="Expired", message="its deadline passed while it waited")
_AT_ONCE = timedelta()
_SUCCEEDED = Verdict.SUCCEEDED  # once a job: before Python 3.12 a member of an enum is as slow as a call


def _is_too_many(crashes: int) -> bool:
    """Whether a job that has now crashed this often is quarantined."""
    return crashes >= CRASHES_ALLOWED


def settle(
    claim: Claim, outcome: Outcome, *, took: timedelta, backoff: timedelta, attempts: int | None = None
) -> Settlement:
    """Decide what is written; `backoff` is how long to wait if the job is to be tried again, `attempts`
    how often that may be if not as often as the job itself says."""
    # Each case spells out the whole value: a shared partial would double the cost, once per job.
    match outcome:
        case Succeeded() | Settled():
            return Settlement(
                job_id=claim.job_id,
                worker_id=claim.worker_id,
                fence=claim.fence,
                verdict=_SUCCEEDED,
                took=took,
                result=outcome.result,
            )
        case Failed():
            reason = _death(claim, outcome, took, backoff, attempts or claim.max_attempts)
            return Settlement(
                job_id=claim.job_id,
                worker_id=claim.worker_id,
                fence=claim.fence,
                verdict=Verdict.FAILED if reason is None else Verdict.DEAD,
                took=took,
                delay=backoff if reason is None else _AT_ONCE,
                failure=outcome.failure,
                reason=reason,
            )
        case Stopped():
            return Settlement(
                job_id=claim.job_id,
                worker_id=claim.worker_id,
                fence=claim.fence,
                verdict=Verdict.RELEASED,
                took=took,
                ran=outcome.started,
            )
        case Snoozed() | Discarded() | Crashed() | Expired() | Started():
            return _settle_rarely(claim, outcome, took, backoff)
        case _:
            assert_never(outcome)


def _settle_rarely(
    claim: Claim,
    outcome: Snoozed | Discarded | Crashed | Expired | Started,
    took: timedelta,
    backoff: timedelta,
) -> Settlement:
    match outcome:
        case Snoozed():
            verdict, delay, failure, reason = (
                Verdict.SNOOZED,
                _before_expiry(claim, outcome.delay, took),
                None,
                None,
            )
        case Discarded():
            verdict, delay, failure, reason = Verdict.DISCARDED, _AT_ONCE, outcome.failure, None
        case Crashed():
            reason = Reason.CRASHED if _is_too_many(claim.crashes + 1) else None
            verdict, delay, failure = Verdict.CRASHED, _AT_ONCE if reason else backoff, outcome.failure
        case Expired():
            verdict, delay, failure, reason = Verdict.DEAD, _AT_ONCE, outcome.failure, Reason.EXPIRED
        case Started():
            verdict, delay, failure, reason = Verdict.STARTED, _AT_ONCE, None, None
        case _:
            assert_never(outcome)
    return Settlement(
        job_id=claim.job_id,
        worker_id=claim.worker_id,
        fence=claim.fence,
        verdict=verdict,
        took=took,
        delay=delay,
        failure=failure,
        ran=not isinstance(outcome, Expired) or outcome.started,
        reason=reason,
        start=outcome.workflow if isinstance(outcome, Started) else None,
        awaits=outcome.awaits if isinstance(outcome, Snoozed) else None,
    )


def _death(claim: Claim, failed: Failed, took: timedelta, backoff: timedelta, attempts: int) -> Reason | None:
    """Why this failure makes the job a dead letter; None if it is tried again."""
    if failed.permanent:
        return Reason.PERMANENT
    if claim.attempt >= attempts:
        return Reason.FAILED
    # A retry that could not begin before the deadline is none.
    if claim.expires_in is not None and took + backoff >= claim.expires_in:
        return Reason.EXPIRED
    return None


def _before_expiry(claim: Claim, delay: timedelta, took: timedelta) -> timedelta:
    """Not beyond the deadline, so that the job ends at its deadline and not later."""
    if claim.expires_in is None:
        return delay
    return max(_AT_ONCE, min(delay, claim.expires_in - took))
